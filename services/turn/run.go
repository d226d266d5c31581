package turn

import (
	"cmp"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/turn/hookpoint"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// MaxParallel bounds the calls of one response that run at the same time.
const MaxParallel = 16

// start makes the calls of the turn runnable, after a last read of the inbox. A
// call that waited for an approval was announced with its response. One that tool hosts hold is
// for its own one.
func (p *Progress) start(s *State) Action {
	if !p.execution.inboxChecked {
		return CheckInbox{}
	}
	for _, c := range p.Unstarted() {
		if !c.Held() && p.blocks(s, c) {
			return p.block(s, c)
		}
	}
	started := &harnessv1.ToolsStarted{LedgerId: cmp.Or(p.Unstarted()[0].Question.GetLedgerId(), s.Ledger)}
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{ToolsStarted: started}})
	for _, c := range p.Unstarted() {
		if cmp.Or(c.Question.GetLedgerId(), s.Ledger) != started.GetLedgerId() {
			continue // its own record is next
		}
		started.CallIds = append(started.CallIds, c.ID)
		if !p.Resumed {
			d.Emit(event.ToolCalled(c.ID, c.Tool, c.Arguments, "", c.Level))
		}
	}
	return Append{Draft: d, After: "tools_started"}
}

// run sends the calls of a group to their tool hosts at the same time, the groups
// in order, and stores each end when it comes. A group that has begun is run to
// its end, unless the turn is stopped.
func (p *Progress) run(s *State) Action {
	e := &p.execution
	if c, ok := p.sendable(); ok {
		switch {
		case !e.recent:
			return CheckInbox{}
		case p.unsent(c) && !c.Held() && p.blocks(s, c):
			return p.block(s, c)
		}
		return SendCall{Call: c, Ledger: p.Ledgers[c.ID], Fresh: e.fresh[c.ID] && !c.Held(), Known: p.marks.Request(p.Ledgers[c.ID], c.HostID(), p.startedCalls())}
	}
	switch {
	case e.fenced:
	case p.compares() != nil:
		return LoadConversation{}
	case len(e.moved) > 0:
		return Append{Draft: p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{
			ToolsStarted: &harnessv1.ToolsStarted{CallIds: []string{e.moved[0].ID}, LedgerId: e.moved[0].Ledger},
		}})}
	case len(e.ended) > 0:
		return p.finish(s, e.ended[0])
	}
	return AwaitCall{}
}

// sendable returns a call of the current group that can be sent now.
func (p *Progress) sendable() (c toolcall.Call, ok bool) {
	e := &p.execution
	underWay := len(e.inFlight) > 0
	if e.stop != nil || len(e.inFlight) >= MaxParallel || !underWay && (p.Abort != "" || e.failure != nil) {
		return toolcall.Call{}, false
	}
	parallel := true
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; ended {
			continue
		}
		switch {
		case !parallel || !c.ParallelSafe && underWay:
			return toolcall.Call{}, false
		case !e.sent[c.ID]:
			return c, true
		}
		parallel, underWay = c.ParallelSafe, true
	}
	return toolcall.Call{}, false
}

// finish tells the subscribers of a call that it has ended, and stores its end. A
// stop keeps the result and discards the verdicts of the subscribers.
func (p *Progress) finish(s *State, ended *endedCall) Action {
	ran := ended.response.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	if failed := ended.response.GetIsError(); p.execution.stop == nil && (ran && s.hooked(hookpoint.AfterCall) || failed && s.hooked(hookpoint.OnError)) {
		c := ended.call
		arguments, known := p.text(c.ID, c.Arguments)
		if !known {
			return ReadArguments{Arguments: map[string]*harnessv1.Content{c.ID: c.Arguments}}
		}
		payload := agent.CallPayload(c.ID, c.Tool, arguments, ended.response.GetResult(), ended.response.GetIsError())
		if ended.point == pointFailed && ended.response.GetIsError() && s.hooked(hookpoint.OnError) {
			payload["error"] = ended.response.GetResult()
			return s.fire(p.Number, hookpoint.OnError, c.ID, c.Tool, payload)
		}
		if ran && ended.point <= pointAfter && s.hooked(hookpoint.AfterCall) {
			return s.fire(p.Number, hookpoint.AfterCall, c.ID, c.Tool, payload)
		}
	}
	effects := ended.effects
	if p.execution.stop != nil {
		effects = hook.Effects{}
	}
	return Append{Draft: p.finished(s, ended.call, ended.response, ended.lost, effects), After: "tool_finished"}
}

// finished returns the record of a call's end, with its result. A call whose end
// is unknown has no result: repair answers it. Neither has one whose server asks a person. With entries that
// follow those that the log knows, its number says nothing about these.
func (p *Progress) finished(s *State, c toolcall.Call, r *harnessv1.ExecuteToolResponse, lost []*harnessv1.LedgerCall, e hook.Effects) *runstate.Draft {
	text, files := r.GetResult(), r.GetMedia()
	if replaced, ok := e.Text("result"); ok {
		text, files = replaced, nil // what subscribers hide must not remain in an image
	}
	finished := &harnessv1.ToolFinished{
		CallId: c.ID, Outcome: r.GetOutcome(), Duration: r.GetDuration(), Hooks: e.Wants(),
		FilesChanged: r.GetFilesChanged()[:min(len(r.GetFilesChanged()), maxChanged)], Background: p.started(c, r),
		Question: r.GetQuestion(),
	}
	if len(r.GetUnrecorded()) == 0 {
		finished.LedgerSequence = r.GetLedgerSequence()
	}
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: finished}})
	if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN && r.GetOutcome() != toolcall.InputRequired {
		failed := r.GetIsError() || r.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
		result := toolcall.Result(c.ID, c.Tool, c.Changes+text, failed)
		mark.Result(result, c.Marks, text, r.ExitCode)
		// A host sends the data of files. It cannot name blobs of the run.
		files = slices.DeleteFunc(slices.Clone(files), func(m *harnessv1.Media) bool { return m.GetBlob() != nil })
		result.Parts = media.Parts(files[:min(len(files), media.MaxParts)])
		d.Append(result)
		d.Emit(event.ToolEnded(c.ID, c.Tool, failed, r.GetDuration()))
		if r.GetGuarded() != "" { // its result has it too
			d.Emit(event.GuidanceInjected("guarded", "", r.GetGuarded()))
		}
	}
	finished.ToldSequence = p.reportLost(d, p.Ledgers[c.ID], lost)
	d.Apply(e)
	return d
}

// started returns the background command that a call has started, or may have started if its
// end is unknown; nil for none.
func (p *Progress) started(c toolcall.Call, r *harnessv1.ExecuteToolResponse) *harnessv1.BackgroundCommand {
	if b := r.GetBackground(); b != nil {
		return b
	}
	if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN || c.Level == sandbox.Auto || !runstate.StartsBackground(content.Text(c.Arguments)) {
		return nil
	}
	return &harnessv1.BackgroundCommand{CallId: c.ID, LedgerId: p.Ledgers[c.ID]}
}

// maxChanged bounds the paths that a record names.
const maxChanged = 32

// end takes the end of a call that was sent.
func (p *Progress) end(id string, response *harnessv1.ExecuteToolResponse) {
	c, _ := p.call(id)
	p.execution.ended = append(p.execution.ended, &endedCall{call: c, response: toolcall.CheckResponse(c, response)})
}
