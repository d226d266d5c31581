package turn

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// inspects reports whether the workspace is read before the turn, and whether
// the changed files are counted.
func (p *Progress) inspects(s *State) (instructions, changes bool) {
	snapshot := s.Snapshot
	if p.Attempts > 0 || p.Resumed || p.Number == 1 || snapshot.GetWorkspace() == "" {
		return false, false
	}
	changes = snapshot.GetConfig().GetGuidance().GetJit() && s.Definition.Rules.NeedsFilesChanged()
	instructions = changes || len(snapshot.GetBackgroundCommands()) > 0 || runstate.ShowsInstructions(snapshot) &&
		(len(snapshot.GetInstructionFiles()) > 0 || snapshot.GetActivity().GetWrites() > 0 || p.Number%reinspect == 0)
	return instructions, changes
}

// reinspect is after how many turns the workspace is searched for instruction files
// again if there were none and nothing was written.
const reinspect = 5

// claimTurn claims the turn. The first claim of a turn that is not resumed gives
// the model its guidance; later claims find the guidance stored. If before_step
// has subscribers the turn begins once it is admitted.
func (p *Progress) claimTurn(s *State) Action {
	instructions, changes := p.inspects(s)
	if instructions && !p.execution.inspected {
		return Inspect{InstructionsOnly: !changes}
	}
	first := p.Attempts == 0 && !p.Resumed && p.Skip == ""
	if first && p.mayFollowAnswer(s) && p.execution.conversation == nil && p.execution.stop == nil {
		return LoadConversation{}
	}
	attempt := p.Attempts + 1
	started := &harnessv1.TurnStarted{TurnNumber: p.Number, Attempt: attempt}
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: started}})
	g := &guide{s: s, p: p, draft: d, started: started}
	switch {
	case first && p.Number > s.Snapshot.GetToldTurn():
		g.all()
	case first && p.compacted(s) && s.Snapshot.GetItemsShownTurn() < p.Number: // the turn begins again, after a compaction
		g.items()
	}
	if first && len(d.Appended) == 0 && p.followsAnswer(s) {
		g.addOn("continue", "continue", "", continuation)
	}
	switch {
	case p.Attempts > 0:
		d.Emit(event.WorkerTakeover(attempt, p.Former))
	case !p.unadmitted(s):
		d.Emit(event.StepStart(attempt, p.Resumed))
	}
	return Append{Draft: d, After: "claimed"}
}

// continuation precedes a request that would otherwise end with an answer, which some
// wires refuse and some models would write on.
const continuation = "Continue with the task. If it is done, call work_complete."

// mayFollowAnswer reports whether the conversation may end with an answer.
func (p *Progress) mayFollowAnswer(s *State) bool {
	last := s.Snapshot.GetTurn()
	return last.GetNumber() > 0 && !last.GetCalledTools()
}

// followsAnswer reports whether the conversation ends with an answer.
func (p *Progress) followsAnswer(s *State) bool {
	if !p.mayFollowAnswer(s) || p.execution.conversation == nil {
		return false
	}
	view := conversation.View(p.execution.conversation.Messages)
	return len(view) > 0 && view[len(view)-1].GetRole() == harnessv1.Role_ROLE_ASSISTANT
}

// guide writes the guidance that comes with a turn.
type guide struct {
	s       *State
	p       *Progress
	draft   *runstate.Draft
	started *harnessv1.TurnStarted
}

func (g *guide) add(kind, rule, text string) { g.addOn("", kind, rule, text) }

// addOn adds guidance that later guidance on the same topic replaces.
func (g *guide) addOn(topic, kind, rule, text string) {
	if text != "" {
		g.draft.GuideOn(topic, kind, rule, text)
	}
}

// toolStrategy comes with the first turn.
const toolStrategy = `How to use the tools: look before you change. Read what a change depends on first, and
several things at once with parallel calls where they do not depend on each other. Prefer the tool that
is made for a thing to a command that can do it too. Change one thing, check it, go on. When a call fails,
read the error and change something before you call again: the same call gives the same answer.`

// all writes the guidance of the turn.
func (g *guide) all() {
	cfg := g.s.Snapshot.GetConfig()
	items := cfg.GetWorkItems().GetEnabled()
	if cfg.GetGuidance().GetEnabled() {
		if g.p.Number == 1 {
			g.add("tools", "", toolStrategy)
			if items {
				g.add("work_items", "", workitem.Guidance())
				g.add("planning", "", workitem.Planning())
			}
		} else {
			g.items()
		}
	}
	if items {
		g.failedControls()
	}
	if g.p.reportsTooLarge(g.s.Snapshot) {
		g.addOn("too_large", "too_large", "", progress.TooLargeText())
	}
	g.instructions()
	g.started.EndedBackground = g.draft.ReportBackground(g.p.execution.workspace.GetBackground())
	if _, changes := g.p.inspects(g.s); changes && g.p.execution.workspace != nil {
		g.started.FilesChanged = proto.Uint32(g.p.execution.workspace.GetFilesChanged())
	}
	if cfg.GetGuidance().GetJit() {
		g.rules()
	}
}

// compacted reports whether a compaction has changed the view of the conversation since the last
// turn ended.
func (p *Progress) compacted(s *State) bool {
	plan := s.Snapshot.GetCompactionPlan()
	return plan.GetPasses() > 0 && plan.GetLastPassTurn()+1 == p.Number
}

// items shows the work items while one is open.
func (g *guide) items() {
	cfg := g.s.Snapshot.GetConfig()
	if cfg.GetGuidance().GetEnabled() && cfg.GetWorkItems().GetEnabled() && !workitem.IsComplete(g.s.Snapshot.GetWorkItemLedger()) {
		g.itemsState()
	}
}

// reportsTooLarge reports whether the turn tells the model that its material does not fit. s is
// the snapshot that the turn begins with.
func (p *Progress) reportsTooLarge(s *harnessv1.Snapshot) bool {
	return !p.Resumed && s.GetHooks().GetSkipNext() == "" && p.Number > s.GetToldTurn() && progress.MustTellTooLarge(s.GetProgressTracker())
}

// showAgain is after how many turns work items are shown in full although nothing
// changed.
const showAgain = 10

// itemsState shows the work items: all of them when something changed since the
// model saw them last, or when a compaction may have taken them away, else a line.
func (g *guide) itemsState() {
	ledger := g.s.Snapshot.GetWorkItemLedger()
	shown := workitem.ShownHash(ledger)
	if !g.p.compacted(g.s) && shown == g.s.Snapshot.GetItemsShown() && g.p.Number < g.s.Snapshot.GetItemsShownTurn()+showAgain {
		g.addOn("items_summary", "items_state", "", workitem.Summary(ledger))
		return
	}
	g.started.ItemsShown = shown
	state := workitem.State(ledger, g.s.Snapshot.GetToolUsage(), g.s.Snapshot.GetActivity().GetReads())
	g.draft.GuideOn("items_state", "items_state", "", state).Kept = g.draft.Marks()
}

// failedControls asks for a revision of what an audit has rejected, once for each
// audit.
func (g *guide) failedControls() {
	var news []workitem.FailedControl
	for _, c := range workitem.FailedControls(g.s.Snapshot.GetWorkItemLedger()) {
		if !slices.Contains(g.s.Snapshot.GetToldControls(), c.Key) {
			news = append(news, c)
			g.started.ToldControls = append(g.started.ToldControls, c.Key)
		}
	}
	if len(news) > 0 {
		g.add("control", "", workitem.RevisionRequest(news))
	}
}

// instructions adds the instruction files that have changed since the model has
// seen them.
func (g *guide) instructions() {
	if g.p.execution.workspace == nil || !runstate.ShowsInstructions(g.s.Snapshot) {
		return
	}
	had := map[string]string{}
	for _, f := range g.s.Snapshot.GetInstructionFiles() {
		had[f.GetPath()] = f.GetDigest()
	}
	var digests []*harnessv1.FileDigest
	changed := false
	for _, f := range g.p.execution.workspace.GetInstructionFiles() {
		digests = append(digests, &harnessv1.FileDigest{Path: f.GetPath(), Digest: f.GetDigest()})
		if had[f.GetPath()] != f.GetDigest() {
			changed = true
			text := "The instructions in " + f.GetPath() + " have changed. From now on they are:\n" + f.GetContent()
			g.draft.GuideOn("instructions:"+f.GetPath(), "instructions", "", text).Kept = g.draft.Marks()
		}
		delete(had, f.GetPath())
	}
	for _, f := range g.s.Snapshot.GetInstructionFiles() {
		if _, gone := had[f.GetPath()]; gone {
			changed = true
			why := "the file is gone."
			if slices.Contains(g.p.execution.workspace.GetUnaccepted(), f.GetPath()) {
				why = "a run has changed the file, and no person has accepted that yet."
			}
			g.draft.GuideOn("instructions:"+f.GetPath(), "instructions", "", "The instructions in "+f.GetPath()+" no longer hold: "+why).Kept = g.draft.Marks()
		}
	}
	if changed {
		g.started.InstructionFiles = digests
		if len(digests) == 0 { // an empty list would read as no change
			g.started.InstructionFiles = []*harnessv1.FileDigest{{}}
		}
	}
}

// rules fires the just-in-time rules whose conditions hold.
func (g *guide) rules() {
	s := g.s.Snapshot
	finished, total := workitem.Counts(s.GetWorkItemLedger())
	files := s.GetActivity().GetFilesChanged()
	if g.started.FilesChanged != nil {
		files = g.started.GetFilesChanged()
	}
	usage := make(map[string]uint32, len(s.GetToolUsage()))
	for _, u := range s.GetToolUsage() {
		usage[u.GetTool()] = u.GetCalls()
	}
	fired, failed := g.s.Definition.Rules.Evaluate(jit.Context{
		Turn: g.p.Number, MaxTurns: s.GetMaxTurns(), SegmentTurn: s.GetSpent().GetTurns() + 1, SegmentMax: s.GetConfig().GetStop().GetMaxTurns(), ToolUsage: usage,
		Reads: s.GetActivity().GetReads(), Writes: s.GetActivity().GetWrites(), Explores: s.GetActivity().GetExplores(),
		WorkItemsComplete: uint32(finished), WorkItemsTotal: uint32(total), //nolint:gosec // at most 200
		ItemAdds: usage[workitem.Add], Compactions: s.GetActivity().GetCompactions(), FilesChanged: files, Seconds: runstate.ActiveTime(s, g.p.execution.now).Seconds(),
		ItemsOpen: s.GetConfig().GetWorkItems().GetEnabled() && !workitem.IsComplete(s.GetWorkItemLedger()), NextItem: nextItem(s),
		ContextUsed: s.GetTokenBudget().GetUsedTokens(), ContextMax: s.GetTokenBudget().GetMaxInputTokens(),
	}, func(id string) bool { return slices.Contains(s.GetJit().GetFired(), id) })
	for _, r := range fired {
		g.addOn("jit:"+r.ID, "jit", r.ID, r.Text)
		if r.Once {
			g.started.FiredRules = append(g.started.FiredRules, r.ID)
		}
	}
	for _, r := range failed {
		g.draft.Emit(event.HookError(r.ID, "jit", r.Error, false))
	}
}

// nextItem names the work item that the agent works on, or else the first open one; empty
// if none is open.
func nextItem(s *harnessv1.Snapshot) string {
	open := workitem.Open(s.GetWorkItemLedger())
	if len(open) == 0 || !s.GetConfig().GetWorkItems().GetEnabled() {
		return ""
	}
	next := open[0]
	if i := slices.IndexFunc(open, func(i *harnessv1.WorkItem) bool {
		return i.GetStatus() == harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS
	}); i >= 0 {
		next = open[i]
	}
	return next.GetId() + " (" + next.GetTitle() + ")"
}
