package stopdecision_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/contract"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// situation is everything that a stop decision depends on, a value for each thing.
type situation struct {
	stopAsked   bool
	failure     string // "", cancelled, provider_unavailable, failed, no_plan
	interrupted bool
	awaiting    string // "", approval, review
	maxTurns    bool
	pause       bool
	silent      bool   // the turn made no call
	loop        string // "", strict 0 … strict 3 by the corrections so far, loose, loose told
	stall       bool
	replan      bool
	done        bool
	called      bool
	retries     string // "", last, used
	policy      string // interactive, strict, not required
	contract    string // "", met, unmet, unseen, asks, asks nobody, answered
	items       string // "", open, done
	hook        string // "", continue, block, abort, pause, replan, called
}

// Values of each thing, in the order of the fields.
var (
	failures  = []string{"", "cancelled", "provider_unavailable", "failed", "no_plan"}
	awaitings = []string{"", "approval", "review"}
	loops     = []string{"", "strict 0", "strict 1", "strict 2", "strict 3", "loose", "loose told"}
	retries   = []string{"", "last", "used"}
	policies  = []string{"interactive", "strict", "not required"}
	contracts = []string{"", "met", "unmet", "unseen", "asks", "asks nobody", "answered"}
	itemed    = []string{"", "open", "done"}
	hooked    = []string{"", "continue", "block", "abort", "pause", "replan", "called"}
	either    = []bool{false, true}
)

// want is what the specification makes of a situation: the first layer that matches,
// and in the fourth the first gate that objects.
func (c situation) want() string {
	seen := func(verdict string) string { // the coverage in a result is brought up to date
		if c.contract == "unseen" {
			return "needs check:out"
		}
		return verdict
	}
	switch {
	case c.stopAsked:
		return "repair"
	case c.failure == "cancelled":
		return "CANCELLED cancelled false"
	case c.failure == "provider_unavailable":
		return "PARKED provider_unavailable"
	case c.failure == "no_plan":
		return "DONE no_plan false"
	case c.failure != "":
		return "FAILED failed false"
	case c.interrupted:
		return "repair"
	case c.awaiting != "":
		return "PARKED " + c.awaiting
	case c.maxTurns:
		return seen("DONE max_turns false")
	case c.pause:
		return "PARKED review"
	case !c.silent && c.loop == "strict 3":
		return seen("STALLED doom_loop false")
	case !c.silent && c.stall && !strings.HasPrefix(c.loop, "strict"):
		switch c.contract { // a look at the outputs may show that something has moved
		case "", "unmet":
			return "STALLED stalled false"
		case "unseen":
			return "needs check:out"
		}
	}
	switch {
	case c.replan, !c.done:
		return "repair"
	}
	return c.gates()
}

func (c situation) gates() string {
	if c.policy != "not required" && !c.called {
		switch {
		case c.retries != "used":
			return "repair work_complete_not_called"
		case c.policy == "strict":
			return "repair work_complete_required_strict"
		}
	}
	switch c.contract {
	case "unseen":
		return "needs check:out"
	case "asks":
		return "PARKED question"
	case "unmet", "asks nobody":
		return "repair contract_not_satisfied"
	}
	if c.items == "open" {
		return "repair work_items_incomplete"
	}
	switch c.hook {
	case "block":
		return "repair agent_stop_hook_blocked"
	case "abort":
		return "FAILED failed false"
	case "pause":
		return "PARKED review"
	case "replan":
		return "repair"
	case "called":
		return "needs hook"
	}
	return fmt.Sprintf("DONE agent_done %v", c.called || c.policy == "not required")
}

// told is how many messages of a kind the model gets: a correction for a loop, and
// one for a stop that is rejected.
func (c situation) told(want string) (corrections, rejections int) {
	if strings.HasPrefix(want, "needs") {
		return 0, 0
	}
	if c.watched() && !c.silent && c.loop != "" && c.loop != "strict 3" && c.loop != "loose told" {
		corrections = 1
	}
	if strings.HasPrefix(want, "repair ") {
		rejections = 1
	}
	return corrections, rejections
}

// watched says that no layer above that of loops and stalls decides.
func (c situation) watched() bool {
	return !c.stopAsked && c.failure == "" && !c.interrupted && c.awaiting == "" && !c.maxTurns && !c.pause
}

// input makes the step that a situation stands for.
func (c situation) input() *harnessv1.StepInput {
	s := at(4)
	s.Turn = &harnessv1.TurnState{Number: 4, CalledTools: !c.silent, Calls: 1, AgentDone: c.done, CalledWorkComplete: c.called}
	if c.silent {
		s.Turn.Calls = 0
	}
	if c.maxTurns {
		s.MaxTurns = 4
	}
	turn := &harnessv1.TurnComplete{TurnNumber: 4, Interrupted: c.interrupted, AgentDone: c.done, CalledWorkComplete: c.called}
	if c.failure != "" {
		kind := harnessv1.TurnErrorKind_value["TURN_ERROR_KIND_"+strings.ToUpper(c.failure)]
		turn.Error = failed(harnessv1.TurnErrorKind(kind))
	}
	if c.awaiting != "" {
		s.Phase, s.Turn.Open, turn.Awaiting = harnessv1.Phase_PHASE_AWAITING_TOOL, true, true
		s.PendingToolCalls = []*harnessv1.PendingCall{{
			CallId: "c", Tool: "t", Kind: c.awaiting, Why: "why", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL,
		}}
	}
	s.Hooks = &harnessv1.HookState{}
	if c.pause {
		s.Hooks.Pause = "look"
	}
	if c.replan {
		s.Hooks.Replan = "another way"
	}
	switch c.retries {
	case "last":
		s.WorkCompleteRetries = 2
	case "used":
		s.WorkCompleteRetries = 3
	}
	switch c.policy {
	case "strict":
		s.Config.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT
	case "not required":
		s.Config.Stop.RequireWorkComplete = proto.Bool(false)
	}
	in := &harnessv1.StepInput{Namespace: "n", RunId: "r", Version: 7, Now: timestamppb.New(noon)}
	if c.stopAsked {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: stopdecision.SawStop, Value: &harnessv1.Observation_StopAsked{StopAsked: true}})
	}
	in.Observed = append(in.Observed, c.agree(s)...)
	c.work(s)
	c.subscribe(s)
	c.repeat(s)
	in.Step = &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_TurnComplete{TurnComplete: turn}}
	return in
}

// agree gives the run its contract, and says how the output stands.
func (c situation) agree(s *harnessv1.Snapshot) []*harnessv1.Observation {
	if c.contract == "" {
		return nil
	}
	task := &harnessv1.TaskContract{Goal: "g", RequiredOutputs: []*harnessv1.RequiredOutput{{
		Id: "out", Description: "The output", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "f"},
	}}}
	asked := c.contract == "asks" || c.contract == "asks nobody" || c.contract == "answered"
	if asked {
		task.Questions = []*harnessv1.UserQuestion{{Id: "q", Question: "Which?", Required: true}}
	}
	s.TaskContract = contract.Resolve(task)
	s.CoverageLedger = contract.Initial(s.GetTaskContract())
	s.Autonomous = c.contract == "asks nobody"
	if c.contract == "answered" {
		s.CoverageLedger.Answers = []*harnessv1.QuestionAnswer{{QuestionId: "q", Answer: runlog.Inline("this")}}
	}
	if c.contract == "unseen" {
		return nil
	}
	return []*harnessv1.Observation{seenAs("out", c.contract != "unmet")}
}

// seenAs is an output that was looked at.
func seenAs(id string, there bool) *harnessv1.Observation {
	seen := &harnessv1.RequirementCoverage{RequirementId: id, Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "there is no file f"}
	if there {
		seen = &harnessv1.RequirementCoverage{
			RequirementId: id, Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Confidence: 1,
			Evidence: []*harnessv1.Evidence{{Kind: "file", Text: "f"}},
		}
	}
	return &harnessv1.Observation{Key: stopdecision.NeedCheck + id, Value: &harnessv1.Observation_Check{Check: seen}}
}

// work gives the run work items.
func (c situation) work(s *harnessv1.Snapshot) {
	if c.items == "" {
		return
	}
	s.Config.WorkItems.Enabled = proto.Bool(true)
	s.WorkItemLedger = &harnessv1.WorkItemLedger{Items: []*harnessv1.WorkItem{{Id: "w1", Title: "One", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE}}}
	if c.items == "open" {
		s.WorkItemLedger.Items = append(s.WorkItemLedger.Items, &harnessv1.WorkItem{Id: "w2", Title: "Two", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING})
	}
}

// subscribe gives the run a subscriber of agent_stop.
func (c situation) subscribe(s *harnessv1.Snapshot) {
	if c.hook == "" {
		return
	}
	h := &harnessv1.Hook{Id: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP}
	if c.hook == "called" {
		h.Grpc = "127.0.0.1:1"
	} else {
		h.Cel, h.Reason = "true", "because"
		h.Action = harnessv1.HookAction(harnessv1.HookAction_value["HOOK_ACTION_"+strings.ToUpper(c.hook)])
	}
	s.Definition = &harnessv1.Definition{Hooks: []*harnessv1.Hook{h}}
}

// repeat gives the run a history of calls.
func (c situation) repeat(s *harnessv1.Snapshot) {
	s.DoomLoop = &harnessv1.DoomLoop{}
	for n := range uint64(6) {
		strict, loose := n+10, n+20
		if strings.HasPrefix(c.loop, "strict") && n > 2 {
			strict, loose = 1, 2
		}
		if strings.HasPrefix(c.loop, "loose") {
			loose = 2
		}
		progress.Note(s.GetDoomLoop(), "read_file", strict, loose)
	}
	if n, is := strings.CutPrefix(c.loop, "strict "); is {
		s.DoomLoop.Corrections = uint32(n[0] - '0')
	}
	if c.loop == "loose told" {
		s.DoomLoop.CallsSinceCorrection = 3
	}
	s.ProgressTracker = &harnessv1.ProgressTracker{DistinctOutcomes: 6, Fingerprints: []uint64{1, 2}}
	if c.stall {
		now := progress.Fingerprint(progress.Facts{
			WorkItems: workitem.Fingerprint(s.GetWorkItemLedger()), Coverage: contract.Fingerprint(s.GetCoverageLedger()), Outcomes: 6,
		})
		s.ProgressTracker.Fingerprints = []uint64{now, now}
	}
}

// got is what became of a situation, in the words of want.
func got(out *harnessv1.StepOutput) string {
	needs := out.GetNeeds()
	switch {
	case needs == nil:
		return verdict(out.GetOutcome())
	case len(needs.GetHooks()) == 1 && len(needs.GetKeys()) == 1 && needs.GetHooks()[0].GetIdempotencyKey() == needs.GetKeys()[0]:
		return "needs hook"
	}
	return "needs " + strings.Join(needs.GetKeys(), " ")
}

// failer is what tests and properties have in common.
type failer interface {
	Helper()
	Fatalf(string, ...any)
}

// judge holds a situation to its specification.
func judge(t failer, c situation) {
	t.Helper()
	in := c.input()
	before := proto.CloneOf(in)
	out, err := stopdecision.Decide(in)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	if again, err := stopdecision.Decide(in); err != nil || !proto.Equal(out, again) {
		t.Fatalf("%+v: decided otherwise the second time (%v)", c, err)
	}
	if !proto.Equal(in, before) {
		t.Fatalf("%+v: the input was changed", c)
	}
	want := c.want()
	if got(out) != want {
		t.Fatalf("%+v: got %q, want %q", c, got(out), want)
	}
	if out.GetOutcome() == nil {
		return
	}
	o := out.GetOutcome()
	s := o.GetStep().GetSnapshot()
	if err := runstate.CheckPhases(in.GetStep().GetSnapshot(), o.GetStep()); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	wantCorrections, wantRejections := c.told(want)
	corrections, rejections, next := 0, 0, in.GetStep().GetSnapshot().GetMessageCount()
	for _, m := range o.GetAppended() {
		if next++; m.GetId() != next {
			t.Fatalf("%+v: message %d stands at %d", c, m.GetId(), next)
		}
		switch m.GetKind() {
		case harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE:
			corrections++
		case harnessv1.MessageKind_MESSAGE_KIND_STOP_REJECTED:
			rejections++
		}
	}
	if corrections != wantCorrections || rejections != wantRejections || len(o.GetAppended()) != corrections+rejections || s.GetMessageCount() != next {
		t.Fatalf("%+v: the model is told %v", c, o.GetAppended())
	}
	completes, pauses := 0, 0
	for _, e := range o.GetEvents() {
		if e.GetSessionComplete() != nil {
			completes++
		}
		if e.GetSessionPause() != nil {
			pauses++
		}
		if e.GetTurnNumber() != 4 {
			t.Fatalf("%+v: an event of turn %d", c, e.GetTurnNumber())
		}
	}
	to := o.GetStep().GetTo()
	ends, parks := to == runlog.End, to == runlog.Park
	if ends != (completes == 1) || ends != (s.GetPhase() == harnessv1.Phase_PHASE_DONE) || completes > 1 {
		t.Fatalf("%+v: goes to %s in %s with %d ends", c, to, s.GetPhase(), completes)
	}
	paused := parks && want != "PARKED approval"
	if paused != (pauses == 1) || pauses > 1 || paused != (s.GetPausedPhase() != harnessv1.Phase_PHASE_UNSPECIFIED) {
		t.Fatalf("%+v: goes to %s in %s with %d pauses", c, to, s.GetPhase(), pauses)
	}
	if (ends || parks) != (s.GetRunningSince() == nil) || (ends || parks) == (s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING) {
		t.Fatalf("%+v: goes to %s and stands at %s", c, to, s.GetStatus())
	}
	window := s.GetProgressTracker().GetFingerprints()
	switch before := in.GetStep().GetSnapshot().GetProgressTracker().GetFingerprints(); {
	case !c.watched() || c.silent:
		if !slices.Equal(window, before) {
			t.Fatalf("%+v: the window of stalls went from %v to %v", c, before, window)
		}
	case strings.HasPrefix(c.loop, "strict") && c.loop != "strict 3":
		if len(window) > 0 {
			t.Fatalf("%+v: the window of stalls holds %v while a correction is outstanding", c, window)
		}
	case c.loop == "" && len(window) != 3:
		t.Fatalf("%+v: the window of stalls holds %v", c, window)
	}
	if want == "repair" && c.failure == "" && c.awaiting == "" && (s.GetPhase() == harnessv1.Phase_PHASE_PLANNING) != (s.GetHooks().GetReplan() != "") {
		t.Fatalf("%+v: goes on in %s, replan is %q", c, s.GetPhase(), s.GetHooks().GetReplan())
	}
}

// unclear says that the specification does not say what a situation comes to: a
// loose loop in which nothing new has come about.
func (c situation) unclear() bool { return c.stall && !c.silent && strings.HasPrefix(c.loop, "loose") }

// TestEveryCombinationOfLayers goes through all of them, over gates that let the run
// end and over gates that do not.
func TestEveryCombinationOfLayers(t *testing.T) {
	for _, gate := range []situation{
		{policy: "interactive", called: true}, {policy: "strict", called: true, contract: "unmet"}, {policy: "interactive", called: true, contract: "unseen"},
	} {
		c := gate
		for _, c.stopAsked = range either {
			for _, c.failure = range failures {
				for _, c.interrupted = range either {
					for _, c.awaiting = range awaitings {
						for _, c.maxTurns = range either {
							for _, c.pause = range either {
								c.underLoops(t)
							}
						}
					}
				}
			}
		}
	}
}

func (c situation) underLoops(t *testing.T) {
	t.Helper()
	for _, c.silent = range either {
		for _, c.loop = range loops {
			for _, c.stall = range either {
				for _, c.replan = range either {
					for _, c.done = range either {
						if !c.unclear() {
							judge(t, c)
						}
					}
				}
			}
		}
	}
}

// TestEveryCombinationOfGates goes through all of them, below layers that let them
// decide.
func TestEveryCombinationOfGates(t *testing.T) {
	for _, layers := range []situation{{done: true}, {done: true, loop: "strict 1", stall: true}, {done: true, silent: true, stall: true}} {
		c := layers
		for _, c.called = range either {
			for _, c.retries = range retries {
				for _, c.policy = range policies {
					for _, c.contract = range contracts {
						for _, c.items = range itemed {
							for _, c.hook = range hooked {
								judge(t, c)
							}
						}
					}
				}
			}
		}
	}
}

// TestAnySituation draws from everything at once.
func TestAnySituation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(rt, name) }
		rarely := func(name string) bool { return rapid.IntRange(0, 5).Draw(rt, name) == 5 }
		one := func(name string, of []string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		c := situation{
			stopAsked: rarely("stop asked"), interrupted: rarely("interrupted"), maxTurns: rarely("max turns"), pause: rarely("pause"),
			silent: flag("silent"), loop: one("loop", loops), stall: flag("stall"), replan: rarely("replan"), done: !rarely("not done"),
			called: flag("called"), retries: one("retries", retries), policy: one("policy", policies), contract: one("contract", contracts),
			items: one("items", itemed), hook: one("hook", hooked),
		}
		if rarely("fails") {
			c.failure = one("failure", failures)
		}
		if rarely("awaits") {
			c.awaiting = one("awaiting", awaitings)
		}
		if !c.unclear() {
			judge(rt, c)
		}
	})
}
