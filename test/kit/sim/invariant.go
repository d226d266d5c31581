package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Invariant must hold after each interaction.
type Invariant struct {
	// Name describes it in a few words.
	Name string
	// Stored is called with each record once it is stored, and with its log. It returns
	// the fault, or an empty string. It must be cheap: it should check only the new
	// record. Nil checks nothing.
	Stored func(l *Log, e runlog.Entry) string
	// Final is called when all runs are parked or ended after the last fault.
	Final func(w *World) string
}

// Violation is an invariant that did not hold.
type Violation struct {
	// Invariant is its name, Message the fault.
	Invariant, Message string
}

// broken records that an invariant does not hold; the first one counts.
func (w *World) broken(invariant, message string) {
	if w.violation == nil {
		w.violation = &Violation{Invariant: invariant, Message: message}
	}
}

// Logs returns the logs of all runs, in the order of their start. It is for the
// functions of an Invariant.
func (w *World) Logs() []*Log { return w.store.order }

// logState is the checked state of a log, so that each record is checked once.
type logState struct {
	newest   runlog.Entry
	step     runlog.Entry
	cursor   uint64
	messages uint64
	calls    map[string]bool // true once it has its result
	settled  map[string]int  // inputs that were accepted or rejected
	answers  map[string]int
	texts    map[string]int
	open     bool
	segment  uint32
	expired  bool
	counted  map[string]bool                  // jobs whose usage is counted
	spans    map[string]*harnessv1.SummaryJob // by key
	outcomes map[string]harnessv1.ToolOutcome // of calls that have ended
	tree     treeState
	judged   judgedState
}

// busInvariants returns what holds for every log, whatever its writers do.
func busInvariants() []Invariant {
	return []Invariant{
		{Name: "gap-free log", Stored: gapFree},
		{Name: "records never change", Final: unchanged},
	}
}

// stock returns the invariants that hold for every log that executors write.
func (w *World) stock() []Invariant {
	return slices.Concat(summaryInvariants(), w.treeInvariants(), w.qualityInvariants(), []Invariant{
		{Name: "gap-free log", Stored: gapFree},
		{Name: "nothing after the end", Stored: nothingAfter},
		{Name: "legal phases", Stored: legalPhases},
		{Name: "no executor fails", Stored: noFailure},
		{Name: "valid conversation", Stored: validConversation},
		{Name: "each input once", Stored: inputsOnce, Final: inputsTaken},
		{Name: "one session at a time", Stored: sessions},
		{Name: "a killed call is dead", Stored: w.killedAreDead},
		{Name: "records never change", Final: unchanged},
		{Name: "watchers see all", Final: watchersSaw},
	})
}

func (w *World) checkStored(m *message) {
	if m.record() == nil {
		return
	}
	for _, i := range w.invariants {
		if i.Stored == nil {
			continue
		}
		if wrong := i.Stored(m.log, m.entry); wrong != "" {
			w.broken(i.Name, fmt.Sprintf("%s version %d: %s", m.log.Run, m.entry.Header.Version, wrong))
		}
	}
	m.log.state.newest = m.entry
	if m.record().GetStep() != nil {
		m.log.state.step = m.entry
	}
}

func (w *World) final() {
	for _, i := range w.invariants {
		if i.Final != nil {
			if wrong := i.Final(w); wrong != "" {
				w.broken(i.Name, wrong)
			}
		}
	}
}

func gapFree(l *Log, e runlog.Entry) string {
	s := &l.state
	switch {
	case e.Header.Version != s.newest.Header.Version+1:
		return fmt.Sprintf("follows version %d", s.newest.Header.Version)
	case e.Record.GetPrevSequence() != s.newest.Sequence:
		return fmt.Sprintf("links to sequence %d, the record before it is at %d", e.Record.GetPrevSequence(), s.newest.Sequence)
	}
	cursor := e.Record.GetStep().GetSnapshot().GetInboxCursor()
	if e.Record.GetStep() != nil {
		if cursor < s.cursor {
			return fmt.Sprintf("the inbox cursor decreases from %d to %d", s.cursor, cursor)
		}
		s.cursor = cursor
	}
	return ""
}

func nothingAfter(l *Log, e runlog.Entry) string {
	if l.state.expired {
		return "the run was deleted before"
	}
	l.state.expired = e.Record.GetStep().GetSnapshot().GetExpireTime() != nil
	return ""
}

func legalPhases(l *Log, e runlog.Entry) string {
	before, step := l.state.step.Record.GetStep(), e.Record.GetStep()
	if before == nil || step == nil {
		return ""
	}
	if err := runstate.CheckPhases(before.GetSnapshot(), step); err != nil {
		return err.Error()
	}
	return ""
}

func noFailure(_ *Log, e runlog.Entry) string {
	if f := e.Record.GetJournal().GetExecutorFailed(); f != nil {
		return fmt.Sprintf("%s: %s", f.GetExecutor(), f.GetError())
	}
	for _, ev := range e.Record.GetEvents() {
		if b := ev.GetExecutorError(); b != nil { // of the sweeper: a step was lost
			return fmt.Sprintf("%s: %s", b.GetExecutor(), b.GetError())
		}
	}
	switch k := e.Record.GetStep().GetTurnComplete().GetError(); k.GetKind() {
	case harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON, harnessv1.TurnErrorKind_TURN_ERROR_KIND_ILLEGAL_TRANSITION:
		return k.GetMessage()
	default:
		return ""
	}
}

func validConversation(l *Log, e runlog.Entry) string {
	s := &l.state
	if s.calls == nil {
		s.calls = map[string]bool{}
	}
	for _, m := range e.Record.GetAppended() {
		s.messages++
		if m.GetId() != s.messages {
			return fmt.Sprintf("message %d is numbered %d", s.messages, m.GetId())
		}
		for _, c := range m.GetToolCalls() {
			if _, has := s.calls[c.GetId()]; has {
				return fmt.Sprintf("duplicate call id %s", c.GetId())
			}
			s.calls[c.GetId()] = false
		}
		if m.GetRole() != harnessv1.Role_ROLE_TOOL {
			continue
		}
		answered, has := s.calls[m.GetToolCallId()]
		switch {
		case !has:
			return fmt.Sprintf("a result for the unknown call %s", m.GetToolCallId())
		case answered:
			return fmt.Sprintf("a second result for call %s", m.GetToolCallId())
		}
		s.calls[m.GetToolCallId()] = true
	}
	if step := e.Record.GetStep(); step != nil && step.GetSnapshot().GetExpireTime() == nil && step.GetSnapshot().GetMessageCount() != s.messages {
		return fmt.Sprintf("the snapshot counts %d messages, the log has %d", step.GetSnapshot().GetMessageCount(), s.messages)
	}
	return ""
}

func inputsOnce(l *Log, e runlog.Entry) string {
	s := &l.state
	if s.settled == nil {
		s.settled, s.answers, s.texts = map[string]int{}, map[string]int{}, map[string]int{}
	}
	for _, ev := range e.Record.GetEvents() {
		id := ""
		switch b := ev.GetEvent().(type) {
		case *harnessv1.Event_InputAccepted:
			id = b.InputAccepted.GetItemId()
		case *harnessv1.Event_InputRejected:
			if b.InputRejected.GetKind() != "timer_fired" { // a timer that is too early is repeated under the same id
				id = b.InputRejected.GetItemId()
			}
		case *harnessv1.Event_ApprovalAnswered:
			if s.answers[b.ApprovalAnswered.GetCallId()]++; s.answers[b.ApprovalAnswered.GetCallId()] > 1 {
				return "a second answer to call " + b.ApprovalAnswered.GetCallId()
			}
		}
		if id == "" {
			continue
		}
		if s.settled[id]++; s.settled[id] > 1 {
			return "input " + id + " is taken in a second time"
		}
	}
	for _, m := range e.Record.GetAppended() {
		if m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT {
			continue
		}
		text := content.Text(m.GetContent())
		if s.texts[text]++; s.texts[text] > 1 && strings.HasPrefix(text, uniqueText) {
			return "the message " + text + " is there a second time"
		}
	}
	return ""
}

// uniqueText is the prefix of messages that clients send once.
const uniqueText = "message "

func sessions(l *Log, e runlog.Entry) string {
	s := &l.state
	for _, ev := range e.Record.GetEvents() {
		switch b := ev.GetEvent().(type) {
		case *harnessv1.Event_SessionStart:
			if s.open || b.SessionStart.GetSegment() != s.segment+1 {
				return fmt.Sprintf("segment %d starts after segment %d, open: %v", b.SessionStart.GetSegment(), s.segment, s.open)
			}
			s.open, s.segment = true, b.SessionStart.GetSegment()
		case *harnessv1.Event_SessionComplete:
			if !s.open {
				return "a session is completed that is not open"
			}
			s.open = false
		}
	}
	return ""
}

func unchanged(w *World) string {
	if m := w.store.changed(); m != nil {
		return fmt.Sprintf("version %d of %s, which is shared, was modified", m.entry.Header.Version, m.log.Run)
	}
	return ""
}
