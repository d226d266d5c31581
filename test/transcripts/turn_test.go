package transcripts

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// turning is one worker at one turn.
type turning struct {
	d       *driver
	version uint64
	s       *harnessv1.Snapshot
	p       *turn.Progress
	made    *agent.Definition
	around  turn.Surroundings
}

// turn carries out a turn, or what a worker that died has left of it.
func (d *driver) turn(step *harnessv1.Step, version uint64) (*harnessv1.Outcome, error) {
	d.t.Helper()
	w := d.worker(step, version)
	admits := w.admits()
	opening := turn.Open(w.s, w.p, w.made, turn.Facts{}, admits)
	if err := w.note("started", opening.Entry, opening.Appended, opening.Events); err != nil {
		return nil, err
	}
	for _, f := range d.onTurn[w.p.Number] {
		f(d)
	}
	delete(d.onTurn, w.p.Number)
	if admits {
		if err := w.admit(); err != nil {
			return nil, err
		}
	}
	end := turn.Ending{ToolTokens: 100}
	var err error
	if end.Error, err = w.respond(); err != nil {
		return nil, err
	}
	if end.Error == nil {
		if end.Interrupted = d.stopAsked(w.s); !end.Interrupted {
			if err := w.carryOut(); err != nil {
				return nil, err
			}
		}
	}
	first, limit := w.s.GetProgressTracker().GetFirstMessage(), w.s.GetMessageCount()+1
	end.Seen = func(signature uint64) bool { return w.before().Seen(signature, first, limit) }
	end.Now = d.now()
	outcome, err := turn.Complete(w.counted(), w.p, end)
	if err != nil {
		d.t.Fatalf("turn %d: %v", w.p.Number, err)
	}
	w.after(outcome)
	return outcome, nil
}

// worker takes a turn up where its journal ends.
func (d *driver) worker(step *harnessv1.Step, version uint64) *turning {
	d.t.Helper()
	made, err := agent.FromStep(step)
	if err != nil {
		d.t.Fatal(err)
	}
	offered, blocked := turn.Offered(step.GetSnapshot(), d.host, nil, made)
	tools, err := tool.NewSet(offered)
	if err != nil {
		d.t.Fatal(err)
	}
	w := &turning{d: d, version: version, s: step.GetSnapshot(), p: turn.Begin(step), made: made}
	w.around = turn.Surroundings{
		Tools: tools, Blocked: func(name string) bool { return blocked[name] }, Made: made, Deferred: w.hooked(beforeCall, afterCall, onError),
		Known: d.conversation.HasCall, Model: "script:story",
	}
	for _, rec := range d.log[version:] {
		w.p.Fold(rec)
	}
	return w
}

// counted is the state of the step with the messages of the journal counted.
func (w *turning) counted() *harnessv1.Snapshot {
	s := proto.CloneOf(w.s)
	for _, rec := range w.d.log[w.version:] {
		for _, m := range rec.GetAppended() {
			if s.TokenBudget == nil {
				s.TokenBudget = &harnessv1.TokenBudget{}
			}
			s.MessageCount++
			s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
		}
	}
	return s
}

// before is the conversation as it was when the turn began.
func (w *turning) before() *conversation.Conversation {
	c := &conversation.Conversation{}
	for _, rec := range w.d.log[:w.version] {
		c.Fold(rec)
	}
	return c
}

func (w *turning) respond() (*harnessv1.TurnError, error) {
	if !w.p.NeedsModel() {
		return nil, nil
	}
	d := w.d
	request := turn.Prepare(w.s, d.conversation.Messages, w.around.Tools.Specs())
	checkView(d.t, request.GetMessages())
	d.requests = append(d.requests, request)
	if len(d.answers) == 0 {
		d.t.Fatalf("turn %d: the script has no more answers", w.p.Number)
	}
	next := d.answers[0]
	d.answers = d.answers[1:]
	if next.failure != nil {
		return next.failure, nil
	}
	a := turn.Answer(w.s, w.p, &next.response, w.around)
	return nil, w.note("responded", a.Entry, a.Appended, a.Events)
}

// carryOut judges the calls of the response, where nobody has yet, and runs them.
func (w *turning) carryOut() error {
	if w.p.Unjudged() {
		if err := w.judge(); err != nil {
			return err
		}
	}
	d := w.d
	if calls := w.p.Unstarted(); len(calls) > 0 && w.p.Abort == "" {
		entry, events := turn.Start(w.s, w.p, calls, d.ledger)
		if err := w.note("tools", entry, nil, events); err != nil {
			return err
		}
	}
	for _, group := range w.p.Unfinished() {
		if w.p.Abort != "" {
			return nil
		}
		for _, call := range group {
			r := d.result(call, w.p.Ledgers[call.ID])
			entry, appended, events := turn.FinishWith(w.s, w.p, call, r, w.heard(call, r))
			if err := w.note("finished", entry, appended, events); err != nil {
				return err
			}
		}
	}
	return nil
}

// result is what the tool host says of a call. One that has lost its ledger
// knows nothing of a call that was started under the former one.
func (d *driver) result(call turn.Call, ledger string) *harnessv1.ExecuteToolResponse {
	if ledger != d.ledger && !call.Idempotent {
		return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	}
	r := result{text: "ok"}
	if queued := d.results[call.Tool]; len(queued) > 0 {
		r, d.results[call.Tool] = queued[0], queued[1:]
	}
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: r.text, IsError: r.failed, Duration: durationpb.New(0),
	}
}

// stopAsked looks for an interrupt or a cancel beyond the cursor.
func (d *driver) stopAsked(s *harnessv1.Snapshot) bool {
	for _, item := range d.inbox {
		if item.GetSequence() > s.GetInboxCursor() && (item.GetInterrupt() != nil || item.GetCancel() != nil) {
			return true
		}
	}
	return false
}

// note appends to the journal. The worker dies behind the entry that the story says.
func (w *turning) note(at string, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	for i, m := range appended {
		m.Id = uint64(len(w.d.conversation.Messages) + i + 1)
	}
	rec := &harnessv1.Record{Appended: appended, Events: events, Body: &harnessv1.Record_Journal{Journal: entry}}
	w.d.append(turn.Name, rec)
	w.p.Fold(rec)
	if w.d.crash == at {
		w.d.crash = ""
		if w.d.forget {
			w.d.forget, w.d.ledger = false, w.d.ledger+"+"
		}
		return errDied
	}
	return nil
}

// checkView is written without a look at the view's own code: each call is
// answered exactly once directly behind the message that holds it, in order,
// nothing else is an answer, and no message is blank.
func checkView(t fatal, messages []*harnessv1.Message) {
	t.Helper()
	var waiting []string
	for i, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			if len(waiting) == 0 || waiting[0] != m.GetToolCallId() {
				t.Fatal(fmt.Sprintf("message %d answers %q, waiting: %q", i, m.GetToolCallId(), waiting))
			}
			waiting = waiting[1:]
		} else if len(waiting) > 0 {
			t.Fatal(fmt.Sprintf("message %d stands before the answers to %q", i, waiting))
		}
		if content.Text(m.GetContent()) == "" && len(m.GetToolCalls()) == 0 {
			t.Fatal(fmt.Sprintf("message %d is empty", i))
		}
		for _, c := range m.GetToolCalls() {
			waiting = append(waiting, c.GetId())
		}
	}
	if len(waiting) > 0 {
		t.Fatal(fmt.Sprintf("no answer to %q", waiting))
	}
}
