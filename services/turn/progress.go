package turn

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/known"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
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
	// Finished has the outcomes of calls, and Questions the questions of servers that wait for
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

	marks *known.Marks // of the ledgers of tool hosts

	execution execution
}

// result is the stored result of a call.
type result struct {
	call, tool string
	content    *harnessv1.Content
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
		marks:     known.New(s.GetLedgers()),

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

// unjudged reports whether the response is stored and the subscribers of its
// calls have not decided about them yet.
func (p *Progress) unjudged() bool { return p.Response != nil && p.Prepared == nil }

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

// Stop tells the machine that the work on the turn has ended early: interrupted
// by an inbox item or the time budget, or else because the step is lost or the
// process stops. Effects that cause has broken off count as not done. Only the
// first call counts.
func (p *Progress) Stop(cause error, interrupted bool) {
	if p.execution.stop == nil {
		p.execution.stop = &stop{cause: cause, interrupted: interrupted}
	}
}

func (p *Progress) entry(s *State, entry *harnessv1.Journal) *runstate.Draft {
	return runstate.NewEntry(entry, s.Snapshot, p.Number)
}

// text returns the arguments of a call; known is false if they are stored as a
// blob that has not been read.
func (p *Progress) text(id string, arguments *harnessv1.Content) (text string, known bool) {
	if arguments.GetBlob() == nil {
		return arguments.GetInline(), true
	}
	text, known = p.execution.texts[id]
	return text, known
}

// mode returns the mode of work of the calls that have not started.
func (p *Progress) mode(s *State) string {
	if p.execution.offer != nil {
		return p.execution.offer.Mode
	}
	return runstate.Mode(s.Snapshot)
}

// offer returns what calls can use that have not started.
func (p *Progress) offer(s *State) *offer.Offer {
	if p.execution.offer != nil {
		return p.execution.offer
	}
	return s.Offer
}

// refused reports whether a call was not started because it was refused.
func (p *Progress) refused(id string) bool {
	return p.Finished[id] == harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED
}

// unsent reports whether no worker has sent a call under its ledger.
func (p *Progress) unsent(c toolcall.Call) bool {
	return p.execution.fresh[c.ID] && !p.execution.sent[c.ID]
}
