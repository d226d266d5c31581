// Package turn decides inside a turn: what the model is sent, what becomes of
// each call that it makes, what is left to do after a crash, and how the turn
// counts. Everything here is a function of the step, the run's journal and the
// conversation; the effects are in turnserver.
//
// # The machine
//
// A turn goes claim → respond → start → run → commit. Where it stands is folded
// from the journal alone (Progress), so that another worker goes on exactly
// where one stopped: a recorded response is not asked for again, a call with a
// result is not run again, and only calls that the journal names as started are
// ever sent to the tool host.
package turn

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Turn

// Call is a tool call that is to be run.
type Call struct {
	ID           string
	Tool         string
	Arguments    *harnessv1.Content
	ParallelSafe bool
	Idempotent   bool
}

// Progress is how far a turn has come.
type Progress struct {
	// Number of the turn.
	Number uint32
	// Resumed says that the turn goes on after an answer from outside: its
	// response was recorded with an earlier step.
	Resumed bool
	// Attempts is the number of claims, and Former the process that made the
	// last one.
	Attempts uint32
	Former   string
	// Response is what the model answered and Message what it said; nil before.
	Response *harnessv1.ModelResponded
	Message  *harnessv1.Message
	// FailedTries is the number of tries at models that failed in this step, and
	// Failures are those tries.
	FailedTries uint32
	Failures    []*harnessv1.ModelRetried
	// Started holds the ids of the calls that may run, and Ledgers the
	// ledger of the tool host that each was started under last.
	Started map[string]bool
	Ledgers map[string]string
	// Finished holds how calls ended.
	Finished map[string]harnessv1.ToolOutcome
	// Calls are all that the step has to run, in order.
	Calls []Call
	// Prepared is what was decided of the calls of the response, in order; nil while
	// their subscribers have not spoken.
	Prepared []*harnessv1.PreparedCall
	// Admitted is what subscribers of before_step made of the turn; nil before.
	Admitted *harnessv1.TurnAdmitted
	// Skip is why the turn is passed over; empty when it is not.
	Skip string
	// Abort is why a hook ended the turn; empty when none did.
	Abort string

	told      bool                          // the model was told that its response was cut off
	behind    uint64                        // bytes appended behind the response
	arguments map[string]*harnessv1.Content // of the calls, as they run
	written   map[string]*harnessv1.Content // of the calls, as the model wrote them
	results   []answered                    // in the order in which they came
	items     []*harnessv1.WorkItem         // as the harness's tools have left them
	opened    *harnessv1.TurnStarted        // the first claim
	wants     *harnessv1.HookState          // of the rest of the loop
	approved  []*harnessv1.PendingCall      // that the turn goes on with
}

// answered is a result that was recorded in this step.
type answered struct{ call, tool, digest string }

// Begin is the progress of a step whose journal is empty.
func Begin(step *harnessv1.Step) *Progress {
	s := step.GetSnapshot()
	p := &Progress{
		Number:   s.GetTurnCount() + 1,
		Resumed:  s.GetTurn().GetOpen(),
		Started:  map[string]bool{},
		Ledgers:  map[string]string{},
		Finished: map[string]harnessv1.ToolOutcome{},

		arguments: map[string]*harnessv1.Content{},
		written:   map[string]*harnessv1.Content{},
	}
	if p.Resumed {
		p.approved = runstate.ApprovedCalls(s)
		for _, c := range p.approved {
			p.Calls = append(p.Calls, Call{ID: c.GetCallId(), Tool: c.GetTool(), Arguments: c.GetArguments()})
			p.arguments[c.GetCallId()], p.written[c.GetCallId()] = c.GetArguments(), c.GetArguments()
		}
	} else {
		p.Skip = s.GetHooks().GetSkipNext()
	}
	return p
}

// Fold adds a record of the journal.
func (p *Progress) Fold(rec *harnessv1.Record) {
	switch e := rec.GetJournal().GetEntry().(type) {
	case *harnessv1.Journal_TurnStarted:
		p.Attempts, p.Former = e.TurnStarted.GetAttempt(), rec.GetWriter().GetInstance()
		if p.opened == nil {
			p.opened = e.TurnStarted
		}
	case *harnessv1.Journal_TurnAdmitted:
		p.Admitted = e.TurnAdmitted
		p.want(e.TurnAdmitted.GetHooks())
		switch e.TurnAdmitted.GetAction() {
		case harnessv1.HookAction_HOOK_ACTION_SKIP:
			p.Skip = e.TurnAdmitted.GetReason()
		case harnessv1.HookAction_HOOK_ACTION_ABORT:
			p.Abort = e.TurnAdmitted.GetReason()
		}
	case *harnessv1.Journal_ModelRetried:
		p.FailedTries++
		p.Failures = append(p.Failures, e.ModelRetried)
	case *harnessv1.Journal_ModelResponded:
		p.Response = e.ModelResponded
		for _, m := range rec.GetAppended() {
			switch m.GetRole() {
			case harnessv1.Role_ROLE_ASSISTANT:
				p.Message = m
				for _, c := range m.GetToolCalls() {
					p.arguments[c.GetId()], p.written[c.GetId()] = c.GetArguments(), c.GetArguments()
				}
			case harnessv1.Role_ROLE_USER:
				p.told = true
				p.behind += runstate.MessageBytes(m)
			default:
				p.behind += runstate.MessageBytes(m)
			}
		}
		if !e.ModelResponded.GetUnjudged() {
			p.decided(e.ModelResponded.GetCalls(), e.ModelResponded.GetWorkItems())
		}
	case *harnessv1.Journal_CallsJudged:
		p.decided(e.CallsJudged.GetCalls(), e.CallsJudged.GetWorkItems())
		p.want(e.CallsJudged.GetHooks())
		for _, m := range rec.GetAppended() {
			p.behind += runstate.MessageBytes(m)
		}
	case *harnessv1.Journal_ToolsStarted:
		for _, id := range e.ToolsStarted.GetCallIds() {
			p.Started[id], p.Ledgers[id] = true, e.ToolsStarted.GetLedgerId()
		}
	case *harnessv1.Journal_ToolFinished:
		p.Finished[e.ToolFinished.GetCallId()] = e.ToolFinished.GetOutcome()
		p.want(e.ToolFinished.GetHooks())
		for _, m := range rec.GetAppended() {
			p.behind += runstate.MessageBytes(m)
		}
	}
	for _, m := range rec.GetAppended() {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			p.results = append(p.results, answered{call: m.GetToolCallId(), tool: m.GetToolName(), digest: content.DigestOf(m.GetContent())})
		}
	}
}

// decided notes what becomes of the calls of the response.
func (p *Progress) decided(calls []*harnessv1.PreparedCall, items []*harnessv1.WorkItem) {
	p.Prepared, p.items = calls, items
	if p.Prepared == nil {
		p.Prepared = []*harnessv1.PreparedCall{}
	}
	for _, c := range calls {
		if c.GetArguments() != nil {
			p.arguments[c.GetCallId()] = c.GetArguments()
		}
		if c.GetDisposition() == harnessv1.CallDisposition_CALL_DISPOSITION_RUN {
			p.Calls = append(p.Calls, Call{
				ID: c.GetCallId(), Tool: c.GetTool(), Arguments: p.arguments[c.GetCallId()],
				ParallelSafe: c.GetParallelSafe(), Idempotent: c.GetIdempotent(),
			})
		}
	}
}

// want notes what hooks want of the rest of the loop.
func (p *Progress) want(h *harnessv1.HookState) {
	if h == nil {
		return
	}
	if p.wants == nil {
		p.wants = &harnessv1.HookState{}
	}
	proto.Merge(p.wants, h)
	if h.GetAbort() != "" {
		p.Abort = h.GetAbort()
	}
}

// Unjudged says that the subscribers of the response's calls have not spoken yet.
func (p *Progress) Unjudged() bool { return p.Response != nil && p.Prepared == nil }

// Tries is how often a model was asked in vain in this step, and the failure
// after which it was given up; nil while it may be asked again.
func (p *Progress) Tries(ref string) (count uint32, last *harnessv1.ModelRetried) {
	for _, f := range p.Failures {
		if f.GetModel() == ref {
			count++
			if f.GetLast() {
				last = f
			}
		}
	}
	return count, last
}

// Unanswered is what no model's answer makes of the turn: unavailable when
// waiting may help, else the refusal.
func Unanswered(failures []*harnessv1.ModelRetried) *harnessv1.TurnError {
	end := &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR}
	var texts []string
	for _, f := range failures {
		texts = append(texts, f.GetModel()+": "+f.GetError())
		switch {
		case f.GetKind() == harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE: // one that may answer later wins over all that never will
			end.Kind = f.GetKind()
		case end.Kind == harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR:
			end.Kind = f.GetKind()
		}
	}
	end.Message = content.Cut(strings.Join(texts, "\n"), content.MaxPreview)
	return end
}

// Answered says that results were recorded in this step.
func (p *Progress) Answered() bool { return len(p.results) > 0 }

// NeedsModel says that the model has to be asked.
func (p *Progress) NeedsModel() bool {
	return !p.Resumed && p.Response == nil && p.Skip == "" && p.Abort == "" &&
		p.Admitted.GetAction() != harnessv1.HookAction_HOOK_ACTION_PAUSE
}

// Unstarted returns the calls that have not been started.
func (p *Progress) Unstarted() []Call {
	var calls []Call
	for _, c := range p.Calls {
		if !p.Started[c.ID] {
			calls = append(calls, c)
		}
	}
	return calls
}

// Unfinished returns the calls without an end, in groups: the calls of a group
// may run beside each other, the groups run in order.
func (p *Progress) Unfinished() [][]Call {
	var groups [][]Call
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; ended {
			continue
		}
		if last := len(groups) - 1; c.ParallelSafe && last >= 0 && groups[last][0].ParallelSafe {
			groups[last] = append(groups[last], c)
			continue
		}
		groups = append(groups, []Call{c})
	}
	return groups
}

// Claim is the record that claims the turn, and its events, where nobody has to be
// asked about it first and the model is told nothing.
func Claim(s *harnessv1.Snapshot, p *Progress) (*harnessv1.Journal, []*harnessv1.Event) {
	attempt := p.Attempts + 1
	var events []*harnessv1.Event
	if p.Attempts > 0 {
		events = append(events, event(s, p, &harnessv1.Event{Event: &harnessv1.Event_WorkerTakeover{
			WorkerTakeover: &harnessv1.WorkerTakeover{Attempt: attempt, Former: p.Former},
		}}))
	} else {
		events = append(events, event(s, p, &harnessv1.Event{Event: &harnessv1.Event_StepStart{
			StepStart: &harnessv1.StepStart{Attempt: attempt, Resumed: p.Resumed},
		}}))
	}
	return &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{
		TurnStarted: &harnessv1.TurnStarted{TurnNumber: p.Number, Attempt: attempt},
	}}, events
}

// Start is the record that makes calls runnable, and its events. A call that
// was asked for was announced with the answer that holds it.
func Start(s *harnessv1.Snapshot, p *Progress, calls []Call, ledgerID string) (*harnessv1.Journal, []*harnessv1.Event) {
	started := &harnessv1.ToolsStarted{LedgerId: ledgerID}
	var events []*harnessv1.Event
	for _, c := range calls {
		started.CallIds = append(started.CallIds, c.ID)
		if !p.Resumed {
			events = append(events, called(s, p, c.ID, c.Tool, c.Arguments))
		}
	}
	return &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{ToolsStarted: started}}, events
}

// Move is the record that makes a call runnable on another tool host than the one
// that it was started on, where nothing of it began.
func Move(c Call, ledgerID string) *harnessv1.Journal {
	return &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{
		ToolsStarted: &harnessv1.ToolsStarted{CallIds: []string{c.ID}, LedgerId: ledgerID},
	}}
}

// Finish is the record of a call's end with its result, and its events.
func Finish(s *harnessv1.Snapshot, p *Progress, c Call, r *harnessv1.ExecuteToolResponse) (*harnessv1.Journal, []*harnessv1.Message, []*harnessv1.Event) {
	entry := &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{
		CallId: c.ID, Outcome: r.GetOutcome(), Duration: r.GetDuration(), FilesChanged: r.GetFilesChanged()[:min(len(r.GetFilesChanged()), maxChanged)],
	}}}
	if r.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		return entry, nil, nil
	}
	failed := r.GetIsError() || r.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
	return entry, []*harnessv1.Message{result(p.Number, c.ID, c.Tool, r.GetResult(), failed)},
		[]*harnessv1.Event{ended(s, p, c.ID, c.Tool, failed, r.GetDuration())}
}

// maxChanged bounds the paths that a record names.
const maxChanged = 32

func result(turn uint32, id, tool, text string, failed bool) *harnessv1.Message {
	return &harnessv1.Message{
		Role:       harnessv1.Role_ROLE_TOOL,
		Content:    content.Inline(text),
		ToolCallId: id,
		ToolName:   tool,
		IsError:    failed,
		TurnNumber: turn,
	}
}

// Effects is what subscribers made of a call that ended.
type Effects struct {
	// Result takes the place of the tool's, when it is set.
	Result *string
	// Events of the subscribers, behind those of the call.
	Events []*harnessv1.Event
	// Notes are what they tell the model.
	Notes []hook.Note
	// Wants is what they want of the rest of the loop; nil: nothing.
	Wants *harnessv1.HookState
}

// FinishWith is Finish after subscribers have spoken.
func FinishWith(s *harnessv1.Snapshot, p *Progress, c Call, r *harnessv1.ExecuteToolResponse, e Effects) (*harnessv1.Journal, []*harnessv1.Message, []*harnessv1.Event) {
	if e.Result != nil {
		r = proto.CloneOf(r)
		r.Result = *e.Result
	}
	entry, messages, events := Finish(s, p, c, r)
	entry.GetToolFinished().Hooks = e.Wants
	for _, ev := range e.Events {
		events = append(events, event(s, p, ev))
	}
	notes, told := noted(s, p, e.Notes)
	return entry, append(messages, notes...), append(events, told...)
}

// noted is what hooks tell the model, as messages and events.
func noted(s *harnessv1.Snapshot, p *Progress, notes []hook.Note) (messages []*harnessv1.Message, events []*harnessv1.Event) {
	for _, n := range notes {
		messages = append(messages, guidance(p.Number, n.Text))
		events = append(events, event(s, p, runstate.Guided("hook", n.HookID, n.Text)))
	}
	return messages, events
}

func guidance(turn uint32, text string) *harnessv1.Message {
	m := runstate.GuidanceMessage(text)
	m.TurnNumber = turn
	return m
}

func event(s *harnessv1.Snapshot, p *Progress, e *harnessv1.Event) *harnessv1.Event {
	return runstate.Event(s, p.Number, e)
}
