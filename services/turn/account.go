package turn

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/turn/judge"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Bounds of the lists in the state.
const (
	maxFired = 128
	maxTold  = 16
)

// addClaim adds the data of the claim: the rules that fired, and the items and texts
// that the model was shown.
func (c *completion) addClaim() {
	s, first := c.s, c.p.claim
	for _, call := range c.p.approved {
		// A call that continues after a question was counted at its beginning.
		if c.p.Started[call.GetCallId()] && !c.p.refused(call.GetCallId()) && call.GetQuestion() == nil {
			runstate.CountActivity(s, call)
		}
	}
	if c.p.reportsTooLarge(s) {
		s.ProgressTracker.ToldTooLarge = true
	}
	if !c.p.Resumed && c.p.Skip == "" {
		s.ToldTurn = max(s.GetToldTurn(), c.p.Number)
	}
	runstate.ForgetBackground(s, first.GetEndedBackground())
	for _, b := range c.p.background {
		runstate.AddBackground(s, b)
	}
	if s.GetParent() != nil { // its result names them
		runstate.AddFiles(s, c.p.files, false)
	}
	if len(first.GetFiredRules()) > 0 {
		if s.Jit == nil {
			s.Jit = &harnessv1.JitState{}
		}
		s.Jit.Fired = lastOf(append(s.Jit.Fired, first.GetFiredRules()...), maxFired)
	}
	if first.GetItemsShown() != 0 {
		s.ItemsShown, s.ItemsShownTurn = first.GetItemsShown(), c.p.Number
	}
	s.ToldControls = lastOf(append(s.ToldControls, first.GetToldControls()...), maxTold)
	if files := first.GetInstructionFiles(); len(files) > 0 {
		s.InstructionFiles = slices.DeleteFunc(slices.Clone(files), func(f *harnessv1.FileDigest) bool { return f.GetPath() == "" })
	}
	if first.GetFilesChanged() > 0 {
		runstate.OwnActivity(s).FilesChanged = first.GetFilesChanged()
	}
	if s.Hooks != nil && c.p.Skip != "" {
		s.Hooks.SkipNext = ""
	}
	switch a := c.p.Admitted; a.GetAction() {
	case harnessv1.HookAction_HOOK_ACTION_PAUSE:
		runstate.RecordWants(s, &harnessv1.HookState{Pause: a.GetReason()})
		s.Hooks.ReviewedTurn = c.p.Number
	case harnessv1.HookAction_HOOK_ACTION_REPLAN:
		runstate.RecordWants(s, &harnessv1.HookState{Replan: a.GetReason()})
	default: // the other actions leave no state
	}
	runstate.RecordWants(s, c.p.wants)
	if s.Hooks != nil && slices.ContainsFunc(c.p.Prepared, func(call *harnessv1.PreparedCall) bool {
		return toolcall.Accepted(call) && !judge.EndsWork(call.GetTool())
	}) {
		s.Hooks.FailedCall = c.p.wants.GetFailedCall()
	}
}

// addActivity counts the reads, writes and searches of the response's calls.
func (c *completion) addActivity() {
	s := c.s
	for _, call := range c.p.Prepared {
		runstate.CountToolUse(s, harnesstool.CanonicalName(call.GetTool()), call.GetOffered())
		if toolcall.Accepted(call) && !c.p.refused(call.GetCallId()) && call.GetDisposition() != harnessv1.CallDisposition_CALL_DISPOSITION_ASK { // an approval may be refused
			runstate.CountActivity(s, call)
		}
	}
	if len(c.p.changedItems) > 0 {
		workitem.Upsert(runstate.OwnLedger(s), c.p.changedItems)
	}
	if len(c.p.savedArtifacts) > 0 {
		workitem.UpsertArtifacts(runstate.OwnLedger(s), c.p.savedArtifacts)
	}
	c.addQuality()
}

func lastOf(list []string, n int) []string {
	return list[max(0, len(list)-n):]
}

// addResponse adds the usage and the content of the response.
func (c *completion) addResponse(end End) {
	s, p := c.s, c.p
	for _, f := range p.Failures {
		runstate.AddTokens(s, f.GetUsage())
		if f.GetAdjustment() != nil {
			s.ModelAdjustments = runstate.Adjust(s.GetModelAdjustments(), f.GetAdjustment())
		}
	}
	if p.Response == nil {
		s.FailedTries += p.failedTries()
		return
	}
	s.FailedTries, s.AnswerModel = 0, p.Response.GetModel()
	usage := p.Response.GetUsage()
	runstate.AddUsage(s, usage)
	runstate.CountCalls(s, len(p.Response.GetCalls()))
	if len(p.Response.GetCalls()) > 0 {
		s.ContinuationCount = 0
	}
	c.addActivity()
	if text := p.Message.GetContent(); content.Text(text) != "" {
		s.Answer = proto.CloneOf(text)
	}
	b := s.TokenBudget
	if b == nil {
		b = &harnessv1.TokenBudget{}
		s.TokenBudget = b
	}
	b.ToolTokens, b.Exceeded, b.Refusals = end.ToolTokens, false, 0
	if reported := runstate.TotalTokens(usage); usage.GetInputTokens() > 0 && !usage.GetEstimated() {
		// The report covers everything up to and including the response. What
		// followed was counted with the journal and is counted again from here,
		// exactly. What a compaction had freed is not in it.
		b.ReportedTokens = uint32(min(reported, 1<<32-1))
		b.ReportedMessages = p.Message.GetId()
		b.UnreportedBytes, b.FreedTokens = p.followed, 0
	}
	c.addRequest()
	s.Turn = &harnessv1.TurnState{
		Number: p.Number, CalledTools: len(p.Response.GetCalls()) > 0,
		Calls:    uint32(len(p.Response.GetCalls())), //nolint:gosec // bounded by a response
		CutShort: p.Response.GetCutShort(),
	}
	if summary := judge.Summary(p.Message, p.Prepared); summary != nil {
		s.Turn.AgentDone, s.Turn.CalledWorkComplete = true, true
		s.Summary = summary
		given := judge.Completion(p.Prepared)
		s.Output, s.OutputProblem = proto.CloneOf(given.GetOutput()), given.GetProblem()
	}
}
