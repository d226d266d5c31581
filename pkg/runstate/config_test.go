package runstate_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// defaults are the documented ones.
func defaults() *harnessv1.LoopConfig {
	return &harnessv1.LoopConfig{
		Stop: &harnessv1.StopConfig{
			MaxTurns: proto.Uint32(50), Policy: harnessv1.StopPolicy_STOP_POLICY_INTERACTIVE,
			RequireWorkComplete: proto.Bool(true), WorkCompleteMaxRetries: proto.Uint32(3), OutputMaxRetries: proto.Uint32(3),
		},
		Continuation: &harnessv1.ContinuationConfig{Enabled: proto.Bool(true), MaxPrompts: proto.Uint32(2)},
		Context: &harnessv1.ContextConfig{
			MaxInputTokens: proto.Uint32(128_000), SoftThreshold: proto.Float64(0.80), BlockingThreshold: proto.Float64(0.95),
			SafetyBuffer: proto.Uint32(500), Target: proto.Float64(0.5), RecentMessages: proto.Uint32(12), RecentShare: proto.Float64(0.3),
			RehydrationReserve: proto.Uint32(2_000), Compaction: proto.Bool(true), ClearTokens: proto.Uint32(100),
			ExternalizeTokens: proto.Uint32(1_000), SummaryWait: durationpb.New(2 * time.Minute),
		},
		Model: &harnessv1.ModelConfig{
			MaxTries: proto.Uint32(5), BackoffInitial: durationpb.New(500 * time.Millisecond), BackoffMax: durationpb.New(30 * time.Second),
			IdleTimeout: durationpb.New(120 * time.Second), Streaming: proto.Bool(true), OutageRetry: durationpb.New(time.Minute),
		},
		Tools:   &harnessv1.ToolConfig{Timeout: durationpb.New(120 * time.Second), ShownTokens: proto.Uint32(10_000), Yolo: proto.Bool(false), Wait: proto.Bool(true), ApprovalTimeout: durationpb.New(168 * time.Hour), AnswerTimeout: durationpb.New(168 * time.Hour)},
		Budgets: &harnessv1.Budgets{ToolCalls: proto.Uint32(300), AllowUnpriced: proto.Bool(false), Runs: proto.Uint32(64)},

		Stall:     &harnessv1.StallConfig{Enabled: proto.Bool(true), Threshold: proto.Uint32(3)},
		DoomLoop:  &harnessv1.DoomLoopConfig{Enabled: proto.Bool(true), MaxCorrections: proto.Uint32(3)},
		WorkItems: &harnessv1.WorkItemConfig{Enabled: proto.Bool(false)},
		Guidance:  &harnessv1.GuidanceConfig{Enabled: proto.Bool(true), Jit: proto.Bool(true)},
		Hooks:     &harnessv1.HookConfig{Enabled: proto.Bool(true), Timeout: durationpb.New(5 * time.Second)},
		Contract:  &harnessv1.ContractConfig{Enabled: proto.Bool(true)},
		Prompt: &harnessv1.PromptConfig{
			Environment: proto.Bool(true), InstructionFiles: proto.Bool(true), Modes: proto.Bool(true), Tools: proto.Bool(true),
			Completion: proto.Bool(true), Style: proto.Bool(true), HarnessMessages: proto.Bool(true),
		},
	}
}

func TestResolveFillsEveryDefault(t *testing.T) {
	for name, c := range map[string]*harnessv1.LoopConfig{"nil": nil, "empty": {}, "empty parts": {Stop: &harnessv1.StopConfig{}, Budgets: &harnessv1.Budgets{}}} {
		if got := runstate.Resolve(c, 0); !proto.Equal(got, defaults()) {
			t.Errorf("%s resolves to %v", name, got)
		}
	}
}

// TestResolveKeepsWhatIsSet sets every field, to a value that is not its
// default, zero values included, and expects all of them back.
func TestResolveKeepsWhatIsSet(t *testing.T) {
	for _, n := range []uint64{0, 7} {
		c := &harnessv1.LoopConfig{}
		setAll(c.ProtoReflect(), n)
		if n == 0 { // no policy means the default one
			c.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT
		}
		before := proto.CloneOf(c)
		got := runstate.Resolve(c, 32_000)
		if !proto.Equal(got, before) {
			t.Errorf("got %v, set %v", got, before)
		}
		got.Stop.MaxTurns = proto.Uint32(99)
		if !proto.Equal(c, before) {
			t.Error("the caller's config was changed")
		}
	}
}

func setAll(m protoreflect.Message, n uint64) {
	all := m.Descriptor().Fields()
	for i := range all.Len() {
		fd := all.Get(i)
		if fd.IsList() {
			continue
		}
		switch fd.Kind() {
		case protoreflect.MessageKind:
			if fd.Message().FullName() == "google.protobuf.Duration" {
				m.Set(fd, protoreflect.ValueOfMessage(durationpb.New(time.Duration(n)*time.Second).ProtoReflect()))
			} else {
				setAll(m.Mutable(fd).Message(), n)
			}
		case protoreflect.Uint32Kind:
			m.Set(fd, protoreflect.ValueOfUint32(uint32(n)))
		case protoreflect.Uint64Kind:
			m.Set(fd, protoreflect.ValueOfUint64(n))
		case protoreflect.DoubleKind:
			m.Set(fd, protoreflect.ValueOfFloat64(float64(n)/100))
		case protoreflect.BoolKind:
			m.Set(fd, protoreflect.ValueOfBool(n == 0 && fd.Name() == "yolo"))
		case protoreflect.StringKind:
			m.Set(fd, protoreflect.ValueOfString("text"))
		case protoreflect.EnumKind:
			m.Set(fd, protoreflect.ValueOfEnum(2))
		}
	}
}

func TestShownTokensIsAtMostAnEighthOfTheWindow(t *testing.T) {
	for window, want := range map[uint32]uint32{0: 10_000, 16_000: 2_000, 80_000: 10_000, 200_000: 10_000} {
		if got := runstate.ShownTokens(runstate.Resolve(nil, window)); got != want {
			t.Errorf("%d tokens of a result are shown in a window of %d, want %d", got, window, want)
		}
	}
}

func TestResolveWindow(t *testing.T) {
	set := &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(9)}}
	for _, c := range []struct {
		config *harnessv1.LoopConfig
		window uint32
		want   uint32
	}{{nil, 0, 128_000}, {nil, 200_000, 200_000}, {set, 200_000, 9}, {set, 0, 9}} {
		if got := runstate.Resolve(c.config, c.window).GetContext().GetMaxInputTokens(); got != c.want {
			t.Errorf("window %d resolves to %d, want %d", c.window, got, c.want)
		}
	}
}
