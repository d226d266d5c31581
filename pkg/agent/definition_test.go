package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func spec() *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Agent: &harnessv1.AgentSpec{
			Tools: []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}},
			Jit:   []*harnessv1.JitRule{{Id: "a", When: "turn == 2", Text: strings.Repeat("x", 600)}},
			Hooks: []*harnessv1.Hook{{Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Grpc: "127.0.0.1:9"}},
			Modes: []*harnessv1.ModeSpec{{Name: "look", ReadOnly: true}},
		},
		Contract: &harnessv1.TaskContract{Goal: "g", Requirements: []string{"It is good."}},
	}
}

// TestCacheCompilesADefinitionOnce: equal definitions are the same value, also if their
// parts are stored in blobs.
func TestCacheCompilesADefinitionOnce(t *testing.T) {
	blobs, reads := map[string][]byte{}, 0
	cache := &agent.Cache{Blob: func(_ context.Context, _ runlog.Run, digest string) ([]byte, error) {
		reads++
		return blobs[digest], nil
	}}
	d, task := agent.StoredForm(spec())
	s := &harnessv1.Snapshot{Definition: d, TaskContract: task}
	err := runstate.Pack(s, func(data []byte) (*harnessv1.BlobRef, error) {
		blobs[content.Digest(data)] = data
		return &harnessv1.BlobRef{Digest: content.Digest(data), Size: uint64(len(data))}, nil
	})
	if err != nil || s.GetDefinition().GetJit() != nil {
		t.Fatalf("packed %v: %v", s, err)
	}
	first, err := cache.Load(t.Context(), runlog.Run{}, s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := cache.Load(t.Context(), runlog.Run{}, proto.CloneOf(s))
	if err != nil || again != first || reads != 1 {
		t.Errorf("read %d times, the same: %v, %v", reads, again == first, err)
	}
	if len(first.Modes) != 1 || first.Contract.Proto().GetRequiredOutputs()[0].GetId() != "R1" || !first.Hooks.Any(harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP) {
		t.Errorf("made %+v", first)
	}
	fromSpec, err := cache.LoadSpec(t.Context(), runlog.Run{}, spec())
	if err != nil || fromSpec.Contract.Proto().GetGoal() != "g" {
		t.Errorf("from the spec %v", err)
	}
	other, err := cache.Load(t.Context(), runlog.Run{}, &harnessv1.Snapshot{ToolRules: spec().GetAgent().GetTools()})
	if err != nil || other == first {
		t.Errorf("a run without a definition: %v", err)
	}
	if got, _ := other.Policy.Decide(&harnessv1.ToolSpec{Name: "run_command"}, "{}", policy.Exemptions{Yolo: true}); got != harnessv1.ToolDecision_TOOL_DECISION_DENY {
		t.Errorf("the tool rules of a run without a definition decide %v", got)
	}
}

// TestFromStepReadsNoBlobs: a step that a client sends must hold its parts itself.
func TestFromStepReadsNoBlobs(t *testing.T) {
	stored := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 3}}}
	_, err := agent.FromStep(&harnessv1.Step{Snapshot: &harnessv1.Snapshot{Definition: &harnessv1.Definition{Stored: stored}}})
	if err == nil || !strings.Contains(err.Error(), "replace the reference with the part itself") {
		t.Errorf("got %v", err)
	}
	if _, err := agent.FromStep(&harnessv1.Step{Snapshot: &harnessv1.Snapshot{Definition: &harnessv1.Definition{Jit: []*harnessv1.JitRule{{Id: "a", When: "turn >", Text: "t"}}}}}); err == nil {
		t.Error("a rule that does not compile was accepted")
	}
}

// TestFireNeedsMissingOutcomes returns the request of a hook until its outcome is
// observed.
func TestFireNeedsMissingOutcomes(t *testing.T) {
	made, err := agent.FromStep(&harnessv1.Step{Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Spec: spec()}}})
	if err != nil {
		t.Fatal(err)
	}
	in := &harnessv1.StepInput{Namespace: "n", RunId: "r"}
	point := hook.Point{Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Key: "1", Payload: map[string]any{"turn_count": int64(1)}}
	_, err = agent.Fire(made.Hooks, in, point)
	needed := new(agent.NeedsError)
	if !errors.As(err, &needed) || len(needed.Hooks) != 1 || needed.Hooks[0].GetRunId() != "r" || needed.Output().GetNeeds().GetKeys()[0] != needed.Keys[0] {
		t.Fatalf("needs %v", err)
	}
	in.Observed = []*harnessv1.Observation{{Key: needed.Keys[0], Value: &harnessv1.Observation_Hook{Hook: &harnessv1.HookOutcome{
		Verdict: &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_BLOCK, Reason: "not yet"},
	}}}}
	result, err := agent.Fire(made.Hooks, in, point)
	if err != nil || result.Action != harnessv1.HookAction_HOOK_ACTION_BLOCK || result.Reason != "not yet" {
		t.Errorf("%+v, %v", result, err)
	}
}

// TestOutcomeLimit: outcomes beyond the limit are failures, and small ones still pass.
func TestOutcomeLimit(t *testing.T) {
	limit := &agent.OutcomeLimit{}
	outcome := &harnessv1.HookOutcome{Verdict: &harnessv1.HookVerdict{Context: strings.Repeat("x", 8<<10)}}
	failed, taken := 0, 0
	for range 64 {
		if o := limit.Apply(outcome); o.GetError() != "" {
			failed++
		} else {
			taken += proto.Size(o)
		}
	}
	if failed == 0 || taken > 96<<10 || taken < 80<<10 {
		t.Errorf("%d failed, %d bytes were taken", failed, taken)
	}
	if o := limit.Apply(&harnessv1.HookOutcome{}); o.GetError() != "" {
		t.Errorf("an empty outcome failed: %v", o)
	}
}

// TestCallPayload keeps numbers exact and invalid JSON as text.
func TestCallPayload(t *testing.T) {
	p := agent.CallPayload("c", "t", `{"n":9007199254740993}`, "r", true)
	encoded, err := hook.Encode(p)
	if err != nil || !strings.Contains(encoded, "9007199254740993") {
		t.Errorf("%s, %v", encoded, err)
	}
	if got := agent.CallPayload("c", "t", `{"n":`, "", false)["arguments"]; got != `{"n":` {
		t.Errorf("got %v", got)
	}
}

// TestRulesGoBeforeThePolicyOfAServer: it holds for all tools of the server that no rule of the
// agent names.
func TestRulesGoBeforeThePolicyOfAServer(t *testing.T) {
	allow, deny := harnessv1.ToolDecision_TOOL_DECISION_ALLOW, harnessv1.ToolDecision_TOOL_DECISION_DENY
	stored, _ := agent.StoredForm(&harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{
		Mcp:   []*harnessv1.McpServer{{Name: "s", Command: "c", Policy: deny}},
		Tools: []*harnessv1.ToolRule{{Name: "mcp__s__get_*", Policy: allow}},
	}})
	p, err := policy.Compile(stored.GetTools())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]harnessv1.ToolDecision{"mcp__s__get_a": allow, "mcp__s__put_a": deny, "mcp__other__put_a": allow} {
		if got, why := p.Decide(&harnessv1.ToolSpec{Name: name}, "{}", policy.Exemptions{}); got != want {
			t.Errorf("%s: %v, %s", name, got, why)
		}
	}
}
