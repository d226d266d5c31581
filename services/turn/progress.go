package turn

import (
	"time"

	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Progress is how far a turn has come: what its journal records, and what this
// worker has observed since it claimed the turn.
type Progress struct {
	// Number of the turn.
	Number uint32
	// Resumed is true if the turn continues after an answer from outside: its
	// response was recorded with an earlier step.
	Resumed bool
	// Attempts is the number of claims, and Former the process that made the
	// last one.
	Attempts uint32
	Former   string
	// Response is the stored response of the model and Message its message; nil
	// before.
	Response *harnessv1.ModelResponded
	Message  *harnessv1.Message
	// Failures are the tries at models that failed in this step.
	Failures []*harnessv1.ModelRetried
	// Started holds the ids of the calls that may run, and Ledgers the ledger of
	// the tool host that each was started on last.
	Started map[string]bool
	Ledgers map[string]string
	// Finished holds how calls ended, and Questions what the servers of those ask that wait for
	// a person.
	Finished  map[string]harnessv1.ToolOutcome
	Questions map[string]*harnessv1.ServerQuestion
	// Calls are all that tool hosts run in the step, in order.
	Calls []toolcall.Call
	// Prepared is what becomes of the calls of the response, in order; nil before
	// they are judged.
	Prepared []*harnessv1.PreparedCall
	// Admitted is the decision of the subscribers of before_step; nil before.
	Admitted *harnessv1.TurnAdmitted
	// Skip is why the turn is skipped; empty if it is not.
	Skip string
	// Abort is why a hook ended the turn; empty if none did.
	Abort string

	claim          *harnessv1.TurnStarted         // the first claim
	messages       uint64                         // appended by the journal
	weight         uint64                         // of those messages
	followed       uint64                         // weight of those after the response
	media          media.Room                     // of the images and documents of those messages
	cutOff         bool                           // the calls of the response were dropped
	arguments      map[string]*harnessv1.Content  // of calls, as they run
	written        map[string]*harnessv1.Content  // of calls, as the model wrote them
	results        []result                       // in the order of the records
	changedItems   []*harnessv1.WorkItem          // as the work item tools left them
	savedArtifacts []*harnessv1.Artifact          // as save_artifact has left them
	wants          *harnessv1.HookState           // what hooks want of the rest of the loop
	background     []*harnessv1.BackgroundCommand // that calls have started
	files          []string                       // that calls have changed
	approved       []*harnessv1.PendingCall       // the calls that a resumed turn continues with

	execution execution
}

// result is the stored result of a call.
type result struct {
	call, tool string
	content    *harnessv1.Content
}

// New returns the progress of the turn of a state whose step is followed by
// journal.
func New(s *State, now time.Time, journal ...*harnessv1.Record) *Progress {
	p := newProgress(s.Snapshot)
	for _, rec := range journal {
		p.Fold(rec)
	}
	p.execution.now = now
	p.recoverUnsent()
	p.startJudgement(s)
	return p
}

// newProgress returns the progress of a step without a journal.
func newProgress(s *harnessv1.Snapshot) *Progress {
	p := &Progress{
		Number:   s.GetTurnCount() + 1,
		Resumed:  s.GetTurn().GetOpen(),
		Started:  map[string]bool{},
		Ledgers:  map[string]string{},
		Finished: map[string]harnessv1.ToolOutcome{},

		Questions: map[string]*harnessv1.ServerQuestion{},
		arguments: map[string]*harnessv1.Content{},
		written:   map[string]*harnessv1.Content{},

		execution: newExecution(),
	}
	if p.Resumed {
		p.approved = runstate.ApprovedCalls(s)
		for _, c := range p.approved {
			p.Calls = append(p.Calls, toolcall.Approved(c))
			p.arguments[c.GetCallId()], p.written[c.GetCallId()] = c.GetArguments(), c.GetArguments()
		}
	} else {
		p.Skip = s.GetHooks().GetSkipNext()
	}
	return p
}

// Fold adds a record of the journal.
func (p *Progress) Fold(rec *harnessv1.Record) {
	var weight uint64
	for _, m := range rec.GetAppended() {
		weight += runstate.MessageBytes(m)
		p.media = p.media.Plus(media.MessageRoom(m))
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			p.results = append(p.results, result{call: m.GetToolCallId(), tool: m.GetToolName(), content: m.GetContent()})
		}
	}
	p.messages += uint64(len(rec.GetAppended()))
	p.weight += weight
	switch e := rec.GetJournal().GetEntry().(type) {
	case *harnessv1.Journal_TurnStarted:
		p.Attempts, p.Former = e.TurnStarted.GetAttempt(), rec.GetWriter().GetInstance()
		if p.claim == nil {
			p.claim = e.TurnStarted
		}
	case *harnessv1.Journal_TurnAdmitted:
		p.foldAdmitted(e.TurnAdmitted)
	case *harnessv1.Journal_ModelRetried:
		p.Failures = append(p.Failures, e.ModelRetried)
	case *harnessv1.Journal_ModelResponded:
		p.foldResponse(e.ModelResponded, rec.GetAppended())
	case *harnessv1.Journal_CallsJudged:
		p.foldCalls(e.CallsJudged.GetCalls(), e.CallsJudged.GetWorkItems(), e.CallsJudged.GetArtifacts())
		p.foldWants(e.CallsJudged.GetHooks())
		p.followed += weight
	case *harnessv1.Journal_ToolsStarted:
		for _, id := range e.ToolsStarted.GetCallIds() {
			p.Started[id], p.Ledgers[id] = true, e.ToolsStarted.GetLedgerId()
		}
	case *harnessv1.Journal_ToolFinished:
		p.Finished[e.ToolFinished.GetCallId()] = e.ToolFinished.GetOutcome()
		if q := e.ToolFinished.GetQuestion(); q != nil {
			p.Questions[e.ToolFinished.GetCallId()] = q
		}
		p.foldWants(e.ToolFinished.GetHooks())
		if b := e.ToolFinished.GetBackground(); b != nil {
			p.background = append(p.background, b)
		}
		p.files = append(p.files, e.ToolFinished.GetFilesChanged()...)
		p.followed += weight
	}
}

func (p *Progress) foldAdmitted(e *harnessv1.TurnAdmitted) {
	p.Admitted = e
	p.foldWants(e.GetHooks())
	switch e.GetAction() {
	case harnessv1.HookAction_HOOK_ACTION_SKIP:
		p.Skip = e.GetReason()
	case harnessv1.HookAction_HOOK_ACTION_ABORT:
		p.Abort = e.GetReason()
	default: // the other actions do not change the turn
	}
}

func (p *Progress) foldResponse(e *harnessv1.ModelResponded, appended []*harnessv1.Message) {
	p.Response = e
	for _, m := range appended {
		if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
			p.cutOff = p.cutOff || m.GetRole() == harnessv1.Role_ROLE_USER
			p.followed += runstate.MessageBytes(m)
			continue
		}
		p.Message = m
		for _, c := range m.GetToolCalls() {
			p.arguments[c.GetId()], p.written[c.GetId()] = c.GetArguments(), c.GetArguments()
		}
	}
	if !e.GetUnjudged() {
		p.foldCalls(e.GetCalls(), e.GetWorkItems(), e.GetArtifacts())
	}
}

// foldCalls adds what becomes of the calls of the response.
func (p *Progress) foldCalls(calls []*harnessv1.PreparedCall, items []*harnessv1.WorkItem, artifacts []*harnessv1.Artifact) {
	p.Prepared, p.changedItems, p.savedArtifacts = calls, items, artifacts
	if p.Prepared == nil {
		p.Prepared = []*harnessv1.PreparedCall{}
	}
	for _, c := range calls {
		if c.GetArguments() != nil {
			p.arguments[c.GetCallId()] = c.GetArguments()
		}
		if call, ok := toolcall.Request(c, p.arguments[c.GetCallId()], p.Number).(toolcall.Call); ok {
			p.Calls = append(p.Calls, call)
		}
	}
}

// foldWants adds what hooks want of the rest of the loop.
func (p *Progress) foldWants(h *harnessv1.HookState) {
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

// Unjudged reports whether the response is stored and the subscribers of its
// calls have not decided about them yet.
func (p *Progress) Unjudged() bool { return p.Response != nil && p.Prepared == nil }

// NeedsModel reports whether the turn still needs a response of a model.
func (p *Progress) NeedsModel() bool {
	return !p.Resumed && p.Response == nil && p.Skip == "" && p.Abort == "" &&
		p.Admitted.GetAction() != harnessv1.HookAction_HOOK_ACTION_PAUSE
}

// Unstarted returns the calls that have not been started.
func (p *Progress) Unstarted() []toolcall.Call {
	var calls []toolcall.Call
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; !ended && !p.Started[c.ID] {
			calls = append(calls, c)
		}
	}
	return calls
}

// Unfinished returns the calls without an end, in groups: the calls of a group
// may run at the same time, the groups run in order.
func (p *Progress) Unfinished() [][]toolcall.Call {
	var groups [][]toolcall.Call
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; ended {
			continue
		}
		if last := len(groups) - 1; c.ParallelSafe && last >= 0 && groups[last][0].ParallelSafe {
			groups[last] = append(groups[last], c)
			continue
		}
		groups = append(groups, []toolcall.Call{c})
	}
	return groups
}

// unfinished reports whether a call has no end.
func (p *Progress) unfinished() bool {
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; !ended {
			return true
		}
	}
	return false
}

// killed reports whether a call of the turn was killed.
func (p *Progress) killed() bool {
	for _, outcome := range p.Finished {
		if outcome == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			return true
		}
	}
	return false
}

// call returns the call with an id.
func (p *Progress) call(id string) (toolcall.Call, bool) {
	for _, c := range p.Calls {
		if c.ID == id {
			return c, true
		}
	}
	return toolcall.Call{}, false
}

// snapshot returns a copy of the step's snapshot with the messages of the
// journal counted.
func (p *Progress) snapshot(s *State) *harnessv1.Snapshot {
	return runstate.Counted(s.Snapshot, p.messages, p.weight, p.media)
}
