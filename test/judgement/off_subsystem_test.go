package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// offSwitch is a subsystem and how it is switched.
type offSwitch struct {
	name string
	set  func(*harnessv1.LoopConfig, bool)
	// trace is what a story shows of it: events, requests, state, result.
	trace func(*live.Transcript) []string
}

// offAll are the subsystems that have a switch.
func offAll() []offSwitch {
	return []offSwitch{
		{"stall", func(c *harnessv1.LoopConfig, on bool) { c.Stall = &harnessv1.StallConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			return slices.Concat(s.Names("stall.detected"), offSet("state: progress", s.State().GetProgressTracker() != nil),
				offSet("verdict", s.Result.GetReason().GetKind() == "stalled"))
		}},
		{"doom_loop", func(c *harnessv1.LoopConfig, on bool) { c.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			return slices.Concat(s.Names("doom_loop.detected"), offGuided(s, "doom_loop"), offSet("state: loop", s.State().GetDoomLoop() != nil),
				offSet("verdict", s.Result.GetReason().GetKind() == "doom_loop"))
		}},
		{"work_items", func(c *harnessv1.LoopConfig, on bool) { c.WorkItems = &harnessv1.WorkItemConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			trace := slices.Concat(s.Names("work_item.changed", "deliverables.updated"), offGuided(s, "work_items", "planning", "items_state", "control"), offRejected(s, "work_items_incomplete"),
				offSet("state: items", s.State().GetWorkItemLedger() != nil || s.State().GetItemsShown() != 0), offSet("result: deliverables", len(s.Result.GetDeliverables()) > 0))
			for _, name := range jitTools(s, 0) {
				trace = append(trace, offSet("tool: "+name, strings.HasPrefix(name, "work_item"))...)
			}
			return trace
		}},
		{"guidance", func(c *harnessv1.LoopConfig, on bool) { offGuidance(c).Enabled = &on }, func(s *live.Transcript) []string {
			return slices.Concat(offGuided(s, "tools", "work_items", "planning", "items_state"), offSet("state: items shown", s.State().GetItemsShown() != 0))
		}},
		{"jit", func(c *harnessv1.LoopConfig, on bool) { offGuidance(c).Jit = &on }, func(s *live.Transcript) []string {
			trace := append(offGuided(s, "jit"), offSet("state: rules", s.State().GetJit() != nil)...)
			for _, e := range s.Events {
				trace = append(trace, offSet("rule left out: "+e.GetHookError().GetHookId(), e.GetHookError().GetTopic() == "jit")...)
			}
			return trace
		}},
		{"hooks", func(c *harnessv1.LoopConfig, on bool) { c.Hooks = &harnessv1.HookConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			return slices.Concat(s.Names("hook.result"), offGuided(s, "hook"), offSet("state: hooks", s.State().GetHooks() != nil),
				offSet("file: hooked", s.Exists("hooked")), offSet("denied", len(modesDenied(s)) > 0))
		}},
		{"contract", func(c *harnessv1.LoopConfig, on bool) { c.Contract = &harnessv1.ContractConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			return slices.Concat(s.Names("contract.evaluated"), offGuided(s, "contract"), offRejected(s, "contract_not_satisfied"),
				offSet("state: contract", s.State().GetTaskContract() != nil), offSet("state: coverage", s.State().GetCoverageLedger() != nil), offSet("result: coverage", s.Result.GetCoverage() != nil),
				offSet("result: verified", s.Result.GetReason().GetDetails().GetContractVerified()),
				offSet("told of it", strings.Contains(s.Text(len(s.Requests)-1), "the wanted file")))
		}},
		{"continuation", func(c *harnessv1.LoopConfig, on bool) { c.Continuation = &harnessv1.ContinuationConfig{Enabled: &on} }, func(s *live.Transcript) []string {
			return append(s.Names("continuation.prompt"), offSet("state: nudges", s.State().GetContinuationCount() > 0)...)
		}},
	}
}

func offGuidance(c *harnessv1.LoopConfig) *harnessv1.GuidanceConfig {
	if c.Guidance == nil {
		c.Guidance = &harnessv1.GuidanceConfig{}
	}
	return c.Guidance
}

// offSet names a trace if it is there.
func offSet(name string, there bool) []string {
	if there {
		return []string{name}
	}
	return nil
}

// offGuided are the kinds of guidance that were given.
func offGuided(s *live.Transcript, kinds ...string) []string {
	var all []string
	for _, e := range s.Events {
		if g := e.GetGuidanceInjected(); g != nil && slices.Contains(kinds, g.GetKind()) {
			all = append(all, "guidance: "+g.GetKind())
		}
	}
	return all
}

func offRejected(s *live.Transcript, kind string) []string {
	var all []string
	for _, e := range s.Events {
		all = append(all, offSet("rejected: "+kind, e.GetStopRejected().GetKind() == kind)...)
	}
	return all
}

// offSame is a model that reads the same file again and again, then ends the work.
func offSame(n int) live.Model {
	return func(i int, _ *modeltest.Request) modeltest.Reply {
		if i < n {
			return live.Calls(jitRead("same.txt"))
		}
		return live.Done()
	}
}

// Each subsystem, in a run that shows it when it is on, is not to be seen when it is
// off: no event, nothing in a request, nothing in the state or the result; and the run
// comes to its end.
func TestOffLeavesNoTrace(t *testing.T) {
	t.Parallel()
	add := live.Call("work_item_add", live.Args{"title": "Report", "id": "report", "role": "DELIVERABLE"})
	cases := map[string]struct {
		model   live.Model
		edit    func(*harnessv1.RunSpec)
		on, off string // verdicts
		traces  []string
	}{
		"stall": {
			model: offSame(6), edit: func(spec *harnessv1.RunSpec) {
				spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)}
			},
			on: "STALLED stalled", off: "DONE agent_done accepted", traces: []string{"stall.detected", "state: progress", "verdict"},
		},
		"doom_loop": {
			model: offSame(8), edit: func(spec *harnessv1.RunSpec) { spec.Config.Stall = &harnessv1.StallConfig{Enabled: proto.Bool(false)} },
			on: "STALLED doom_loop", off: "DONE agent_done accepted", traces: []string{"doom_loop.detected", "guidance: doom_loop", "state: loop", "verdict"},
		},
		"work_items": {
			model: jitScript(live.Calls(add), live.Calls(jitLook()),
				live.Calls(live.Call("work_item_set_artifact", live.Args{"id": "report", "content": "The report.", "role": "DELIVERABLE"}), live.Call("work_item_update", live.Args{"id": "report", "status": "DONE"}))),
			on: "DONE agent_done accepted", off: "DONE agent_done accepted",
			traces: []string{"work_item.changed", "deliverables.updated", "guidance: work_items", "guidance: planning", "guidance: items_state", "state: items", "result: deliverables", "tool: work_item_add"},
		},
		"guidance": {
			model: jitScript(live.Calls(add), live.Calls(jitLook()), live.Calls(live.Call("work_item_update", live.Args{"id": "report", "status": "SKIPPED", "notes": "not wanted"}))), edit: jitItems,
			on: "DONE agent_done accepted", off: "DONE agent_done accepted",
			traces: []string{"guidance: tools", "guidance: work_items", "guidance: planning", "guidance: items_state", "state: items shown"},
		},
		"jit": {
			model: jitScript(jitLooks(3)...), edit: jitRules(jitRule("own", "turn == 2", "own"), jitRule("broken", "1 / (turn - 1) > 5", "broken")),
			on: "DONE agent_done accepted", off: "DONE agent_done accepted", traces: []string{"guidance: jit", "state: rules", "rule left out: broken"},
		},
		"hooks": {
			model: jitScript(live.Calls(jitWrite("out.txt", "x")), live.Calls(jitLook())), edit: func(spec *harnessv1.RunSpec) {
				spec.Agent.Hooks = []*harnessv1.Hook{
					{Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Tools: []string{"write_file"}, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_DENY, Reason: "no", Context: "Think of it."},
					{Topic: harnessv1.HookTopic_HOOK_TOPIC_SESSION_START, Command: "touch hooked"},
					{Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Context: "A step is over."},
				}
			},
			on: "DONE agent_done accepted", off: "DONE agent_done accepted", traces: []string{"hook.result", "guidance: hook", "file: hooked", "denied"},
		},
		"contract": {
			model: jitScript(jitLooks(1)[0], live.Done(), live.Calls(jitWrite("wanted.txt", "x"))), edit: func(spec *harnessv1.RunSpec) {
				spec.Contract = &harnessv1.TaskContract{Goal: "Make it.", RequiredOutputs: []*harnessv1.RequiredOutput{{
					Id: "file", Description: "the wanted file", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "wanted.txt"},
				}}}
			},
			on: "DONE agent_done accepted", off: "DONE agent_done accepted",
			traces: []string{"contract.evaluated", "guidance: contract", "rejected: contract_not_satisfied", "state: contract", "state: coverage", "result: coverage", "result: verified", "told of it"},
		},
		"continuation": {
			model: live.Replies(live.Message("It is done.")),
			on:    "DONE agent_done", off: "DONE agent_done", traces: []string{"continuation.prompt", "state: nudges"},
		},
	}
	for _, sub := range offAll() {
		c, known := cases[sub.name]
		if !known {
			t.Fatalf("%s is not tried", sub.name)
		}
		for _, on := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", sub.name, on), func(t *testing.T) {
				t.Parallel()
				r := live.Prepare(t, c.model)
				r.Write("same.txt", "the same\n")
				s := jitBegin(r, func(spec *harnessv1.RunSpec) {
					if c.edit != nil {
						c.edit(spec)
					}
					sub.set(spec.Config, on)
				}).Wait()
				trace := sub.trace(s)
				if !on {
					s.Want(c.off)
					jitSame(t, "traces", trace)
					jitStable(t, s)
					return
				}
				s.Want(c.on)
				for _, want := range c.traces {
					if !slices.Contains(trace, want) {
						t.Errorf("switched on it does not show %q, but %q: the test shows nothing", want, trace)
					}
				}
			})
		}
	}
}

// A run does its work with each subsystem switched off, and with all of them; in the
// latter the model reads nothing but the task and what its calls gave.
func TestOffTheRunStillWorks(t *testing.T) {
	t.Parallel()
	all := offAll()
	for i := range len(all) + 1 {
		off := all
		name := "all"
		if i < len(all) {
			off, name = all[i:i+1], all[i].name
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, jitScript(live.Calls(jitRead("f00.txt")), live.Calls(jitWrite("out.txt", "x")), live.Calls(jitShell("cat out.txt")), jitLooks(1)[0]))
			jitFiles(r, 1)
			s := jitBegin(r, func(spec *harnessv1.RunSpec) {
				for _, sub := range off {
					sub.set(spec.Config, false)
				}
			}).Wait()
			s.Want("DONE agent_done accepted")
			if s.Result.GetTurnCount() != 5 || !r.Exists("out.txt") {
				t.Errorf("%d turns, out.txt is there: %t", s.Result.GetTurnCount(), r.Exists("out.txt"))
			}
			for _, sub := range off {
				jitSame(t, sub.name, sub.trace(s))
			}
			jitStable(t, s)
			if len(off) < len(all) {
				return
			}
			if got := s.Names("guidance.injected", "stop.rejected", "hook.error"); len(got) > 0 {
				t.Errorf("%v", got)
			}
			for _, m := range s.Requests[len(s.Requests)-1].Messages {
				if m.Role == "user" && m.Content != "Do the task." {
					t.Errorf("the model gets %q", m.Content)
				}
			}
		})
	}
}

// Where there are no work items nothing that the model reads speaks of them.
func TestOffWorkItemsAreNotSpokenOf(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(4)...))
	s.Want("DONE agent_done accepted")
	all := s.Text(len(s.Requests) - 1)
	for _, word := range []string{"work item", "work_item"} {
		if i := strings.Index(all, word); i >= 0 {
			t.Errorf("the model reads of it: …%s…", all[max(0, i-80):min(len(all), i+80)])
		}
	}
}

// A call of one of their tools is a call of a tool that there is not.
func TestOffWorkItemToolsAreUnknown(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(live.Calls(live.Call("work_item_add", live.Args{"title": "x"}))))
	s.Want("DONE agent_done accepted")
	modesSays(t, "the answer", jitResult(s, jitID(1, 0)), "no tool", "work_item_add")
}

// Answers of clients leave no trace of what is switched off either.
func TestOffAnswersOfClientsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	s := jitAttend(live.Start(t, jitScript(live.Calls(live.Call("peek", live.Args{"v": 1})), live.Calls(live.Call("peek", live.Args{"v": 2}))), jitClients(jitClient("peek", &harnessv1.ToolAnnotations{Reads: true})),
		func(spec *harnessv1.RunSpec) {
			for _, sub := range offAll() {
				sub.set(spec.Config, false)
			}
		}))
	s.Want("DONE agent_done accepted")
	for _, sub := range offAll() {
		jitSame(t, sub.name, sub.trace(s))
	}
}

// A question of a disabled contract does not park the run.
func TestOffContractAsksNothing(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()), func(spec *harnessv1.RunSpec) {
		spec.Config.Contract = &harnessv1.ContractConfig{Enabled: proto.Bool(false)}
		spec.Contract = &harnessv1.TaskContract{Goal: "Paint it.", Questions: []*harnessv1.UserQuestion{{Id: "colour", Question: "Which colour?", Required: proto.Bool(true)}}}
	})
	s.Want("DONE agent_done accepted")
}

// Rules do not depend on the other guidance.
func TestOffGuidanceLeavesRules(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(3)...), func(spec *harnessv1.RunSpec) { offGuidance(spec.Config).Enabled = proto.Bool(false) })
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s), "3 no_reads_after_3_turns")
	jitSame(t, "guided", offGuided(s, "tools"))
}

// Nor does the other guidance depend on rules.
func TestOffRulesLeaveGuidance(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(3)...), func(spec *harnessv1.RunSpec) { offGuidance(spec.Config).Jit = proto.Bool(false) })
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s))
	jitSame(t, "guided", offGuided(s, "tools"), "guidance: tools")
}
