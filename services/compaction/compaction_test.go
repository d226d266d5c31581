package compaction_test

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// tester is what *testing.T and *rapid.T share.
type tester interface {
	Helper()
	Fatalf(string, ...any)
}

// state is a run without compaction with a window of 1,000 tokens: soft at 800, blocking at
// 950.
func state(b *harnessv1.TokenBudget, messages uint64) *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Phase: harnessv1.Phase_PHASE_EXECUTING, MessageCount: messages, TokenBudget: b, Workflow: workflow.Default(),
		Config: runstate.Resolve(&harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{
			MaxInputTokens: proto.Uint32(1000), SafetyBuffer: proto.Uint32(50), Compaction: proto.Bool(false),
		}}, 0),
	}
}

// decide decides twice and returns the output. It fails the test if the outputs differ or
// the input has changed.
func decide(t tester, s *harnessv1.Snapshot, counted ...uint32) *harnessv1.StepOutput {
	t.Helper()
	in := &harnessv1.StepInput{Step: &harnessv1.Step{Snapshot: s, Message: &harnessv1.Step_RepairComplete{
		RepairComplete: &harnessv1.RepairComplete{RepairsMade: 3},
	}}}
	for _, n := range counted {
		in.Observed = append(in.Observed, &harnessv1.Observation{Key: compaction.KeyTokens, Value: &harnessv1.Observation_Tokens{Tokens: n}})
	}
	before := proto.CloneOf(in)
	out, err := compaction.Decide(in, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	again, err := compaction.Decide(in, nil)
	if err != nil || !bytes.Equal(encode(t, out), encode(t, again)) {
		t.Fatalf("the second decision differs: %v", err)
	}
	if !proto.Equal(in, before) {
		t.Fatalf("the input was changed")
	}
	return out
}

func encode(t tester, m proto.Message) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return data
}

// TestEstimate: the provider's report plus the messages appended since, counted exactly if
// the bytes could reach the soft threshold.
func TestEstimate(t *testing.T) {
	const none, soft, blocking = harnessv1.PressureLevel_PRESSURE_LEVEL_UNSPECIFIED, harnessv1.PressureLevel_PRESSURE_LEVEL_SOFT, harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING
	for _, c := range []struct {
		name     string
		budget   *harnessv1.TokenBudget
		messages uint64
		counted  []uint32
		needs    bool
		used     uint32
		level    harnessv1.PressureLevel
	}{
		{"nothing yet", nil, 0, nil, false, 50, none},
		{"before the first report", &harnessv1.TokenBudget{UnreportedBytes: 400, ToolTokens: 100}, 2, nil, false, 50 + 100 + 2*4 + 400/4, none},
		{"after a report", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 40, ToolTokens: 100}, 7, nil, false, 300 + 2*4 + 40/4, none},
		{"a byte below the threshold", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 495}, 6, nil, false, 300 + 4 + 123, none},
		{"the bound reaches the threshold", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 496}, 6, nil, true, 0, none},
		{"counted, below", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 5000}, 6, []uint32{499}, false, 799, none},
		{"counted, soft", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 5000}, 6, []uint32{500}, false, 800, soft},
		{"counted, a token below blocking", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 5000}, 6, []uint32{649}, false, 949, soft},
		{"counted, blocking", &harnessv1.TokenBudget{ReportedTokens: 300, ReportedMessages: 5, UnreportedBytes: 5000}, 6, []uint32{650}, false, 950, blocking},
		{"counted before the first report", &harnessv1.TokenBudget{UnreportedBytes: 5000, ToolTokens: 100}, 6, []uint32{700}, false, 850, soft},
		{"reported alone", &harnessv1.TokenBudget{ReportedTokens: 900, ReportedMessages: 5}, 5, nil, true, 0, none},
		{"an absurd count", &harnessv1.TokenBudget{ReportedTokens: 1 << 31}, 5, []uint32{1<<32 - 1}, false, 1<<32 - 1, blocking},
		{"a report of more messages than there are", &harnessv1.TokenBudget{ReportedTokens: 10, ReportedMessages: 50}, 5, nil, false, 10, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := decide(t, state(c.budget, c.messages), c.counted...)
			if needs := strings.Join(out.GetNeeds().GetKeys(), " "); (needs == compaction.KeyTokens) != c.needs {
				t.Fatalf("needs %q", needs)
			}
			if c.needs {
				return
			}
			step := out.GetOutcome().GetStep()
			b := step.GetSnapshot().GetTokenBudget()
			if b.GetUsedTokens() != c.used || step.GetCompactionComplete().GetPressure() != c.level {
				t.Errorf("used %d, %s; want %d, %s", b.GetUsedTokens(), step.GetCompactionComplete().GetPressure(), c.used, c.level)
			}
			if b.GetMaxInputTokens() != 1000 || b.GetSoftTokens() != 800 || b.GetBlockingTokens() != 950 {
				t.Errorf("limits %v", b)
			}
			if step.GetTo() != "turn" || step.GetCompactionComplete().GetRepair().GetRepairsMade() != 3 || len(step.GetObserved()) != len(c.counted) {
				t.Errorf("committed %v", step)
			}
		})
	}
}

// TestRehydrationReserve is taken off the window while content is externalised, at most a quarter of it.
func TestRehydrationReserve(t *testing.T) {
	for _, c := range []struct {
		externalized, reserve, soft, blocking uint32
	}{{0, 100, 800, 950}, {1, 100, 720, 855}, {1, 0, 800, 950}, {3, 2000, 600, 712}} {
		s := state(&harnessv1.TokenBudget{ReportedTokens: 300}, 5)
		s.CompactionPlan = &harnessv1.CompactionPlan{Externalized: c.externalized}
		s.Config.Context.RehydrationReserve = proto.Uint32(c.reserve)
		b := decide(t, s, 10).GetOutcome().GetStep().GetSnapshot().GetTokenBudget()
		if b.GetMaxInputTokens() != 1000 || b.GetSoftTokens() != c.soft || b.GetBlockingTokens() != c.blocking {
			t.Errorf("%+v: %v", c, b)
		}
	}
}

// TestEvents: usage is reported when it changes, pressure in every step that has some.
func TestEvents(t *testing.T) {
	names := func(s *harnessv1.Snapshot, counted ...uint32) string {
		var all []string
		for _, e := range decide(t, s, counted...).GetOutcome().GetEvents() {
			r := e.ProtoReflect()
			all = append(all, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("event")).Name()))
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		before  uint32
		counted uint32
		want    string
	}{{0, 100, "context_usage"}, {400, 100, ""}, {0, 500, "context_usage context_pressure"}, {800, 500, "context_pressure"}, {950, 650, "context_pressure"}} {
		s := state(&harnessv1.TokenBudget{ReportedTokens: 300, UsedTokens: c.before}, 5)
		if got := names(s, c.counted); got != c.want {
			t.Errorf("from %d with %d: %q, want %q", c.before, c.counted, got, c.want)
		}
	}
}

// TestPressureIsNeverMissed: the decision asks for the exact count whenever one token a
// byte could bring the window to the soft threshold.
func TestPressureIsNeverMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &harnessv1.TokenBudget{
			ReportedTokens:   rapid.Uint32().Draw(t, "reported"),
			ReportedMessages: rapid.Uint64().Draw(t, "messages"),
			UnreportedBytes:  rapid.Uint64Max(1<<40).Draw(t, "bytes"),
			ToolTokens:       rapid.Uint32Max(1<<20).Draw(t, "tools"),
		}
		messages := rapid.Uint64Max(1<<20).Draw(t, "count")
		out := decide(t, state(b, messages))
		worst := uint64(b.GetReportedTokens()) + b.GetUnreportedBytes()
		if out.GetNeeds() == nil && (worst >= 800 || out.GetOutcome().GetStep().GetCompactionComplete().GetPressure() != 0) {
			t.Fatalf("%d tokens at worst and no count", worst)
		}
		counted := decide(t, state(b, messages), rapid.Uint32().Draw(t, "counted")).GetOutcome().GetStep()
		used, level := counted.GetSnapshot().GetTokenBudget().GetUsedTokens(), counted.GetCompactionComplete().GetPressure()
		if (used >= 950) != (level == harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING) || (used < 800) != (level == 0) {
			t.Fatalf("%d tokens are %s", used, level)
		}
	})
}

// TestCompactionFollowsTheWorkflow: the step goes to the executor after compaction.
func TestCompactionFollowsTheWorkflow(t *testing.T) {
	s := state(nil, 0)
	s.Workflow = []string{"repair", "compaction", "mine", "turn", "stopdecision"}
	if got := decide(t, s).GetOutcome().GetStep().GetTo(); got != "mine" {
		t.Errorf("goes to %s", got)
	}
}

func TestDecideRejectsIncompleteInputs(t *testing.T) {
	for name, in := range map[string]*harnessv1.StepInput{
		"nothing":         nil,
		"another message": {Step: &harnessv1.Step{Snapshot: state(nil, 0), Message: &harnessv1.Step_TurnComplete{}}},
		"no snapshot":     {Step: &harnessv1.Step{Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}}}},
	} {
		if out, err := compaction.Decide(in, nil); err == nil {
			t.Errorf("%s: %v", name, out)
		}
	}
}
