package turn

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

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
		if c, ok := p.call(e.ToolFinished.GetCallId()); ok {
			p.marks.Finish(p.Ledgers[c.ID], c.HostID(), e.ToolFinished)
		}
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
