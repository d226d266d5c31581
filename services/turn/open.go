package turn

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/jit"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// Facts are what guidance depends on beside the state.
type Facts struct {
	// Seconds that the run has worked.
	Seconds float64
	// FilesChanged since the run began; nil when nobody looked.
	FilesChanged *uint32
	// Instructions as they are now; nil when nobody looked.
	Instructions []*harnessv1.InstructionFile
}

// Opening is the record that claims a turn for the first time.
type Opening struct {
	Entry    *harnessv1.Journal
	Appended []*harnessv1.Message
	Events   []*harnessv1.Event
}

// Open claims a turn. The first claim of a turn that is not resumed tells the model
// what there is to tell it; a later one finds that said. deferred says that
// subscribers of before_step have to be asked before the turn begins.
func Open(s *harnessv1.Snapshot, p *Progress, made *agent.Definition, f Facts, deferred bool) Opening {
	entry, events := Claim(s, p)
	o := &opening{s: s, p: p, started: entry.GetTurnStarted()}
	if p.Attempts == 0 && !p.Resumed && p.Skip == "" && p.Number > s.GetToldTurn() {
		o.guide(made, f)
	}
	if deferred { // the turn begins once it is admitted
		events = slices.DeleteFunc(events, func(e *harnessv1.Event) bool { return e.GetStepStart() != nil })
	}
	return Opening{Entry: entry, Appended: o.appended, Events: append(o.events, events...)}
}

// Admit is the record of what subscribers of before_step made of the turn.
func Admit(s *harnessv1.Snapshot, p *Progress, action harnessv1.HookAction, reason string, e Effects) Opening {
	o := Opening{Entry: &harnessv1.Journal{Entry: &harnessv1.Journal_TurnAdmitted{TurnAdmitted: &harnessv1.TurnAdmitted{Action: action, Reason: reason, Hooks: e.Wants}}}}
	for _, ev := range e.Events {
		o.Events = append(o.Events, event(s, p, ev))
	}
	if action != harnessv1.HookAction_HOOK_ACTION_PAUSE {
		o.Events = append(o.Events, event(s, p, &harnessv1.Event{Event: &harnessv1.Event_StepStart{
			StepStart: &harnessv1.StepStart{Attempt: max(p.Attempts, 1)},
		}}))
	}
	messages, told := noted(s, p, e.Notes)
	o.Appended, o.Events = messages, append(o.Events, told...)
	return o
}

type opening struct {
	s        *harnessv1.Snapshot
	p        *Progress
	started  *harnessv1.TurnStarted
	appended []*harnessv1.Message
	events   []*harnessv1.Event
}

func (o *opening) say(kind, rule, text string) {
	if text == "" {
		return
	}
	o.appended = append(o.appended, guidance(o.p.Number, text))
	o.events = append(o.events, event(o.s, o.p, runstate.Guided(kind, rule, text)))
}

// toolStrategy is told with the first turn.
const toolStrategy = `How to use the tools: look before you change. Read what a change depends on first, and
several things at once with parallel calls where they do not depend on each other. Prefer the tool that
is made for a thing to a command that can do it too. Change one thing, check it, go on. When a call fails,
read the error and change something before you call again: the same call gives the same answer.`

// guide tells the model what there is to tell it with this turn.
func (o *opening) guide(made *agent.Definition, f Facts) {
	s, cfg := o.s, o.s.GetConfig()
	items := cfg.GetWorkItems().GetEnabled()
	if cfg.GetGuidance().GetEnabled() {
		if o.p.Number == 1 {
			o.say("tools", "", toolStrategy)
			if items {
				o.say("work_items", "", workitem.Guidance())
				o.say("planning", "", workitem.Planning())
			}
		} else if items && !workitem.IsComplete(s.GetWorkItemLedger()) {
			o.itemsState()
		}
	}
	if items {
		o.failedControls()
	}
	o.instructions(f.Instructions)
	o.started.FilesChanged = f.FilesChanged
	if cfg.GetGuidance().GetJit() {
		o.rules(made.Rules, f)
	}
}

// again is after how many turns work items are shown in full though nothing changed.
const again = 10

// itemsState shows the work items: all of them when something changed since the
// model saw them last, else a line.
func (o *opening) itemsState() {
	ledger := o.s.GetWorkItemLedger()
	shown := workitem.ShownHash(ledger)
	if shown == o.s.GetItemsShown() && o.p.Number < o.s.GetItemsShownTurn()+again {
		o.say("items_state", "", workitem.Summary(ledger))
		return
	}
	o.started.ItemsShown = shown
	o.say("items_state", "", workitem.State(ledger, o.s.GetToolUsage(), o.s.GetActivity().GetReads()))
}

// failedControls asks for a revision of what an audit has found wanting, once for
// each audit.
func (o *opening) failedControls() {
	var news []workitem.FailedControl
	for _, c := range workitem.FailedControls(o.s.GetWorkItemLedger()) {
		if !slices.Contains(o.s.GetToldControls(), c.Key) {
			news = append(news, c)
			o.started.ToldControls = append(o.started.ToldControls, c.Key)
		}
	}
	if len(news) > 0 {
		o.say("control", "", workitem.RevisionRequest(news))
	}
}

// instructions tells of standing instructions that have changed since the model has
// seen them.
func (o *opening) instructions(now []*harnessv1.InstructionFile) {
	if now == nil {
		return
	}
	had := map[string]string{}
	for _, f := range o.s.GetInstructionFiles() {
		had[f.GetPath()] = f.GetDigest()
	}
	var digests []*harnessv1.FileDigest
	changed := false
	for _, f := range now {
		digests = append(digests, &harnessv1.FileDigest{Path: f.GetPath(), Digest: f.GetDigest()})
		if had[f.GetPath()] != f.GetDigest() {
			changed = true
			o.say("instructions", "", "The instructions in "+f.GetPath()+" have changed. From now on they are:\n"+f.GetContent())
		}
		delete(had, f.GetPath())
	}
	for _, f := range o.s.GetInstructionFiles() {
		if _, gone := had[f.GetPath()]; gone {
			changed = true
			o.say("instructions", "", "The instructions in "+f.GetPath()+" no longer hold: the file is gone.")
		}
	}
	if changed {
		o.started.InstructionFiles = digests
		if len(digests) == 0 { // all gone: an empty list would read as no change
			o.started.InstructionFiles = []*harnessv1.FileDigest{{}}
		}
	}
}

// rules fires the just-in-time instructions whose time has come.
func (o *opening) rules(rules *jit.Rules, f Facts) {
	s := o.s
	finished, total := workitem.Counts(s.GetWorkItemLedger())
	files := s.GetActivity().GetFilesChanged()
	if f.FilesChanged != nil {
		files = *f.FilesChanged
	}
	usage := make(map[string]uint32, len(s.GetToolUsage()))
	for _, u := range s.GetToolUsage() {
		usage[u.GetTool()] = u.GetCalls()
	}
	fired, failed := rules.Evaluate(jit.Context{
		Turn: o.p.Number, MaxTurns: s.GetMaxTurns(), SegmentTurn: s.GetSpent().GetTurns() + 1, SegmentMax: s.GetConfig().GetStop().GetMaxTurns(), ToolUsage: usage,
		Reads: s.GetActivity().GetReads(), Writes: s.GetActivity().GetWrites(), Explores: s.GetActivity().GetExplores(),
		WorkItemsComplete: uint32(finished), WorkItemsTotal: uint32(total), //nolint:gosec // at most 200
		ItemAdds: usage[workitem.Add], Compactions: s.GetActivity().GetCompactions(), FilesChanged: files, Seconds: f.Seconds,
		ItemsOpen: s.GetConfig().GetWorkItems().GetEnabled() && !workitem.IsComplete(s.GetWorkItemLedger()),
	}, func(id string) bool { return slices.Contains(s.GetJit().GetFired(), id) })
	for _, r := range fired {
		o.say("jit", r.ID, r.Text)
		if r.Once {
			o.started.FiredRules = append(o.started.FiredRules, r.ID)
		}
	}
	for _, r := range failed {
		o.events = append(o.events, event(s, o.p, &harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{
			HookId: r.ID, Topic: "jit", Error: r.Error,
		}}}))
	}
}

// lookAgain is after how many turns somebody looks whether there are standing
// instructions now, where there were none and nothing was written.
const lookAgain = 5

// Looks says what has to be looked at in the workspace before a turn: the standing
// instructions, and the number of files that have changed.
func Looks(s *harnessv1.Snapshot, made *agent.Definition) (instructions, changes bool) {
	changes = s.GetConfig().GetGuidance().GetJit() && made.Rules.NeedsFilesChanged()
	instructions = changes || len(s.GetInstructionFiles()) > 0 || s.GetActivity().GetWrites() > 0 || (s.GetTurnCount()+1)%lookAgain == 0
	return instructions, changes
}
