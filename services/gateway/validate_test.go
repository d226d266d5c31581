package gateway

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

func validStart() *harnessv1.StartRunRequest {
	return &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{
		Goal:      content.Inline("do it"),
		Workspace: "/work",
		Agent:     &harnessv1.AgentSpec{Model: "openai:gpt-5", Tools: []*harnessv1.ToolRule{{Name: "*"}, {Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}}},
		Workflow:  workflow.Default(),
		Config: &harnessv1.LoopConfig{
			Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(1)}, Continuation: &harnessv1.ContinuationConfig{},
			Context: &harnessv1.ContextConfig{SoftThreshold: proto.Float64(0.9)}, Model: &harnessv1.ModelConfig{}, Tools: &harnessv1.ToolConfig{},
			Budgets: &harnessv1.Budgets{CostUsd: proto.Float64(0.01)},
		},
	}}
}

// files returns images or documents with data.
func files(data ...string) []*harnessv1.Media {
	var list []*harnessv1.Media
	for _, d := range data {
		list = append(list, &harnessv1.Media{Data: []byte(d)})
	}
	return list
}

// refusedAt fails the test unless err names the field; size: the error is TOO_LARGE.
func refusedAt(t *testing.T, err error, field string, size bool) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a refusal of %s", err, field)
	}
	code, reason := codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_INVALID_FIELD
	if size {
		code, reason = codes.ResourceExhausted, harnessv1.ErrorReason_ERROR_REASON_TOO_LARGE
		if !slices.Contains(e.Metadata, "limit") || !slices.Contains(e.Metadata, "size") {
			t.Errorf("metadata %q", e.Metadata)
		}
	}
	if e.Code != code || e.Reason != reason || !strings.HasPrefix(e.Message, field+": ") {
		t.Errorf("got %v %v %q, want a refusal of %s", e.Code, e.Reason, e.Message, field)
	}
}

func TestCheckStart(t *testing.T) {
	if err := CheckStart(validStart()); err != nil {
		t.Fatal(err)
	}
	full := validStart()
	full.Spec.Media = files(strings.Repeat("x", media.MaxData), "y") // the files do not count for the size of the spec
	if err := CheckStart(full); err != nil {
		t.Error(err)
	}
	least := &harnessv1.StartRunRequest{Spec: &harnessv1.RunSpec{Goal: content.Inline("x"), Workspace: "/"}}
	if err := CheckStart(least); err != nil {
		t.Fatal(err)
	}
	type request = harnessv1.StartRunRequest
	for _, c := range []struct {
		field  string
		size   bool
		change func(*request)
	}{
		{"namespace", false, func(r *request) { r.Namespace = "a.b" }},
		{"run_id", false, func(r *request) { r.RunId = strings.Repeat("r", 65) }},
		{"request_id", false, func(r *request) { r.RequestId = "a\nb" }},
		{"request_id", true, func(r *request) { r.RequestId = strings.Repeat("r", 129) }},
		{"spec", false, func(r *request) { r.Spec = nil }},
		{"spec.goal", false, func(r *request) { r.Spec.Goal = nil }},
		{"spec.goal", false, func(r *request) { r.Spec.Goal = content.Inline(" \t\n") }},
		{"spec.goal", false, func(r *request) {
			r.Spec.Goal = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{}}}
		}},
		{"spec.goal", true, func(r *request) { r.Spec.Goal = content.Inline(strings.Repeat("x", input.MaxText+1)) }},
		{"spec.agent.reasoning.effort", false, func(r *request) { r.Spec.Agent.Reasoning = &harnessv1.ReasoningConfig{Effort: 8} }},
		{"spec.media", true, func(r *request) { r.Spec.Media = slices.Repeat(files("x"), media.MaxParts+1) }},
		{"spec.media[1].data", false, func(r *request) { r.Spec.Media = files("x", "") }},
		{"spec.media[0].data", true, func(r *request) { r.Spec.Media = files(strings.Repeat("x", media.MaxData+1)) }},
		{"spec.media[0].blob", false, func(r *request) { r.Spec.Media = []*harnessv1.Media{{Blob: &harnessv1.BlobRef{}}} }},
		{"spec.agent.name", true, func(r *request) { r.Spec.Agent.Name = strings.Repeat("x", input.MaxName+1) }},
		{"spec.agent.instructions", true, func(r *request) { r.Spec.Agent.Instructions = strings.Repeat("x", maxInstructions+1) }},
		{"spec.agent.model", false, func(r *request) { r.Spec.Agent.Model = "gpt-5" }},
		{"spec.agent.model", false, func(r *request) { r.Spec.Agent.Model = ":gpt-5" }},
		{"spec.agent.fallback_models[1]", false, func(r *request) { r.Spec.Agent.FallbackModels = []string{"a:b", ""} }},
		{"spec.agent.fallback_models", true, func(r *request) { r.Spec.Agent.FallbackModels = make([]string, 9) }},
		{"spec.agent.tools[0].name", false, func(r *request) { r.Spec.Agent.Tools[0].Name = "a b" }},
		{"spec.agent.tools[1].policy", false, func(r *request) { r.Spec.Agent.Tools[1].Policy = 17 }},
		{"spec.agent.tools", true, func(r *request) { r.Spec.Agent.Tools = make([]*harnessv1.ToolRule, 65) }},
		{"spec.workspace", false, func(r *request) { r.Spec.Workspace = "" }},
		{"spec.workspace", false, func(r *request) { r.Spec.Workspace = "work" }},
		{"spec.workspace", false, func(r *request) { r.Spec.Workspace = "/a\x00b" }},
		{"spec.workspace", true, func(r *request) { r.Spec.Workspace = "/" + strings.Repeat("x", maxPath) }},
		{"spec.workflow[1]", false, func(r *request) { r.Spec.Workflow[1] = "a b" }},
		{"spec.workflow[1]", false, func(r *request) { r.Spec.Workflow[1] = "park" }},
		{"spec.workflow[2]", false, func(r *request) { r.Spec.Workflow[2] = "compaction" }},
		{"spec.workflow", false, func(r *request) { r.Spec.Workflow = []string{"turn", "repair", "stopdecision"} }},
		{"spec.workflow", false, func(r *request) { r.Spec.Workflow = []string{"repair", "stopdecision", "turn"} }},
		{"spec.workflow", false, func(r *request) { r.Spec.Workflow = []string{"repair", "stopdecision"} }},
		{"spec.workflow[2]", false, func(r *request) { r.Spec.Workflow = []string{"repair", "turn", "inference", "stopdecision"} }},
		{"spec.workflow", true, func(r *request) { r.Spec.Workflow = make([]string, 17) }},
		{"spec.config.stop.max_turns", false, func(r *request) { r.Spec.Config.Stop.MaxTurns = proto.Uint32(0) }},
		{"spec.config.stop.policy", false, func(r *request) { r.Spec.Config.Stop.Policy = 9 }},
		{"spec.config.continuation.text", true, func(r *request) { r.Spec.Config.Continuation.Text = strings.Repeat("x", input.MaxReason+1) }},
		{"spec.config.context.max_input_tokens", false, func(r *request) { r.Spec.Config.Context.MaxInputTokens = proto.Uint32(0) }},
		{"spec.config.context.soft_threshold", false, func(r *request) { r.Spec.Config.Context.SoftThreshold = proto.Float64(0) }},
		{"spec.config.context.soft_threshold", false, func(r *request) { r.Spec.Config.Context.SoftThreshold = proto.Float64(math.NaN()) }},
		{"spec.config.context.soft_threshold", false, func(r *request) { r.Spec.Config.Context.SoftThreshold = proto.Float64(0.96) }},
		{"spec.config.context.blocking_threshold", false, func(r *request) { r.Spec.Config.Context.BlockingThreshold = proto.Float64(1.1) }},
		{"spec.config.context.blocking_threshold", false, func(r *request) {
			r.Spec.Config.Context = &harnessv1.ContextConfig{BlockingThreshold: proto.Float64(0.5)}
		}},
		{"spec.config.context.safety_buffer", false, func(r *request) {
			r.Spec.Config.Context.MaxInputTokens, r.Spec.Config.Context.SafetyBuffer = proto.Uint32(100), proto.Uint32(100)
		}},
		{"spec.config.context.soft_threshold", false, func(r *request) { r.Spec.Config.Context.SoftThreshold = proto.Float64(0.5) }}, // the default target
		{"spec.config.context.target", false, func(r *request) { r.Spec.Config.Context.Target = proto.Float64(0) }},
		{"spec.config.context.target", false, func(r *request) { r.Spec.Config.Context.Target = proto.Float64(math.NaN()) }},
		{"spec.config.context.target", false, func(r *request) { r.Spec.Config.Context.Target = proto.Float64(1) }},
		{"spec.config.context.target", false, func(r *request) { r.Spec.Config.Context.Target = proto.Float64(0.9) }},
		{"spec.config.context.target", false, func(r *request) {
			r.Spec.Config.Context.Target, r.Spec.Config.Context.Compaction = proto.Float64(0.95), proto.Bool(false)
		}},
		{"spec.config.context.rehydration_reserve", false, func(r *request) {
			r.Spec.Config.Context.MaxInputTokens, r.Spec.Config.Context.SafetyBuffer, r.Spec.Config.Context.RehydrationReserve = proto.Uint32(100), proto.Uint32(40), proto.Uint32(60)
		}},
		{"spec.config.context.recent_messages", false, func(r *request) { r.Spec.Config.Context.RecentMessages = proto.Uint32(MaxRecentMessages + 1) }},
		{"spec.config.context.recent_share", false, func(r *request) { r.Spec.Config.Context.RecentShare = proto.Float64(0) }},
		{"spec.config.context.recent_share", false, func(r *request) { r.Spec.Config.Context.RecentShare = proto.Float64(0.61) }},
		{"spec.config.context.recent_share", false, func(r *request) { r.Spec.Config.Context.RecentShare = proto.Float64(math.NaN()) }},
		{"spec.config.context.strategies[0]", false, func(r *request) { r.Spec.Config.Context.Strategies = strategies("UNSPECIFIED") }},
		{"spec.config.context.strategies[1]", false, func(r *request) { r.Spec.Config.Context.Strategies = strategies("DROP", "SHORTEN") }},
		{"spec.config.context.strategies[2]", false, func(r *request) { r.Spec.Config.Context.Strategies = strategies("DROP", "CLEAR", "DROP") }},
		{"spec.config.context.clear_tokens", false, func(r *request) { r.Spec.Config.Context.ClearTokens = proto.Uint32(0) }},
		{"spec.config.context.externalize_tokens", false, func(r *request) { r.Spec.Config.Context.ExternalizeTokens = proto.Uint32(0) }},
		{"spec.config.context.durability", true, durable(maxDurability+1, func(int, *durability) {})},
		{"spec.config.context.durability[0].tool", false, durable(1, func(_ int, d *durability) { d.Tool = "a b" })},
		{"spec.config.context.durability[1].tool", false, durable(2, func(_ int, d *durability) { d.Tool = "a" })},
		{"spec.config.context.durability[0].durability", false, durable(1, func(_ int, d *durability) { d.Durability = 0 })},
		{"spec.config.context.durability[0].durability", false, durable(1, func(_ int, d *durability) { d.Durability = 9 })},
		{"spec.config.context.durability[0].preserved_fields", true, durable(1, func(_ int, d *durability) { d.PreservedFields = make([]string, MaxPreserved+1) })},
		{"spec.config.context.durability[0].preserved_fields[1]", false, durable(1, func(_ int, d *durability) { d.PreservedFields = []string{"a", ""} })},
		{"spec.config.context.durability[0].preserved_fields[0]", true, durable(1, func(_ int, d *durability) { d.PreservedFields = []string{strings.Repeat("x", input.MaxID+1)} })},
		{"spec.config.context.durability[0].externalize_tokens", false, durable(1, func(_ int, d *durability) { d.ExternalizeTokens = proto.Uint32(0) })},
		{"spec.config.context.summarizer.model", false, summarized("gpt-5")},
		{"spec.config.context.summarizer.model", false, summarized("grpc:host")},
		{"spec.config.context.summarizer.model", false, summarized("grpc:host:0")},
		{"spec.config.context.summarizer.model", true, summarized(strings.Repeat("x", input.MaxName+1))},
		{"spec.config.context.summary_wait", false, func(r *request) { r.Spec.Config.Context.SummaryWait = durationpb.New(MinSummaryWait - 1) }},
		{"spec.config.context.summary_wait", false, func(r *request) { r.Spec.Config.Context.SummaryWait = durationpb.New(MaxSummaryWait + 1) }},
		{"spec.config.context.summary_wait", false, func(r *request) { r.Spec.Config.Context.SummaryWait = &durationpb.Duration{Nanos: -1} }},
		{"spec.config.model.max_tries", false, func(r *request) { r.Spec.Config.Model.MaxTries = proto.Uint32(0) }},
		{"spec.config.model.backoff_initial", false, func(r *request) { r.Spec.Config.Model.BackoffInitial = durationpb.New(0) }},
		{"spec.config.model.backoff_max", false, func(r *request) { r.Spec.Config.Model.BackoffMax = durationpb.New(-1) }},
		{"spec.config.model.idle_timeout", false, func(r *request) { r.Spec.Config.Model.IdleTimeout = &durationpb.Duration{Nanos: -1, Seconds: 1} }},
		{"spec.config.model.outage_retry", false, func(r *request) { r.Spec.Config.Model.OutageRetry = durationpb.New(0) }},
		{"spec.config.tools.timeout", false, func(r *request) { r.Spec.Config.Tools.Timeout = durationpb.New(-time.Second) }},
		{"spec.config.tools.shown_tokens", false, func(r *request) { r.Spec.Config.Tools.ShownTokens = proto.Uint32(0) }},
		{"spec.config.budgets.turns", false, func(r *request) { r.Spec.Config.Budgets.Turns = proto.Uint32(0) }},
		{"spec.config.budgets.tool_calls", false, func(r *request) { r.Spec.Config.Budgets.ToolCalls = proto.Uint32(0) }},
		{"spec.config.budgets.wall_clock", false, func(r *request) { r.Spec.Config.Budgets.WallClock = durationpb.New(0) }},
		{"spec.config.budgets.tokens", false, func(r *request) { r.Spec.Config.Budgets.Tokens = proto.Uint64(0) }},
		{"spec.config.budgets.cost_usd", false, func(r *request) { r.Spec.Config.Budgets.CostUsd = proto.Float64(math.Inf(1)) }},
	} {
		r := validStart()
		c.change(r)
		t.Run(c.field, func(t *testing.T) { refusedAt(t, CheckStart(r), c.field, c.size) })
	}
}

type durability = harnessv1.ToolDurability

// durable returns a change of a request to n durabilities.
func durable(n int, change func(int, *durability)) func(*harnessv1.StartRunRequest) {
	return func(r *harnessv1.StartRunRequest) {
		for i := range n {
			d := &durability{Tool: fmt.Sprintf("tool_%d", i), Durability: harnessv1.Durability_DURABILITY_EPHEMERAL}
			change(i, d)
			r.Spec.Config.Context.Durability = append(r.Spec.Config.Context.Durability, d)
		}
	}
}

func summarized(model string) func(*harnessv1.StartRunRequest) {
	return func(r *harnessv1.StartRunRequest) {
		r.Spec.Config.Context.Summarizer = &harnessv1.SummarizerConfig{Model: model}
	}
}

func strategies(names ...string) []harnessv1.CompactionAction {
	var all []harnessv1.CompactionAction
	for _, name := range names {
		all = append(all, harnessv1.CompactionAction(harnessv1.CompactionAction_value["COMPACTION_ACTION_"+name]))
	}
	return all
}

func TestContextSettingsThatAreAccepted(t *testing.T) {
	type request = harnessv1.StartRunRequest
	for name, change := range map[string]func(*request){
		"the limits of thresholds": func(r *request) {
			c := r.Spec.Config.Context
			c.Target, c.SoftThreshold, c.BlockingThreshold = proto.Float64(0.99), proto.Float64(1), proto.Float64(1)
		},
		"a low threshold without compaction": func(r *request) {
			r.Spec.Config.Context.SoftThreshold, r.Spec.Config.Context.Compaction = proto.Float64(0.2), proto.Bool(false)
		},
		"the limits of the recent part": func(r *request) {
			r.Spec.Config.Context.RecentMessages, r.Spec.Config.Context.RecentShare = proto.Uint32(MaxRecentMessages), proto.Float64(MaxRecentShare)
		},
		"no recent messages": func(r *request) { r.Spec.Config.Context.RecentMessages = proto.Uint32(0) },
		"all strategies": func(r *request) {
			r.Spec.Config.Context.Strategies = strategies("DROP", "CLEAR", "SUMMARIZE", "EXTERNALIZE")
		},
		"many tools":       durable(maxDurability, func(_ int, d *durability) { d.PreservedFields = slices.Repeat([]string{"path"}, MaxPreserved) }),
		"a model":          summarized("openai:gpt-5-mini"),
		"a custom service": summarized("grpc:localhost:7000"),
		"a short wait":     func(r *request) { r.Spec.Config.Context.SummaryWait = durationpb.New(MinSummaryWait) },
		"a long wait":      func(r *request) { r.Spec.Config.Context.SummaryWait = durationpb.New(MaxSummaryWait) },
		"a small window with the default reserve": func(r *request) { r.Spec.Config.Context.MaxInputTokens = proto.Uint32(1000) },
	} {
		r := validStart()
		change(r)
		if err := CheckStart(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRunName(t *testing.T) {
	run, err := Run("", "r1")
	if err != nil || run.Namespace != defaultNamespace {
		t.Fatal(run, err)
	}
	_, err = Run("", "")
	refusedAt(t, err, "run_id", false)
	_, err = Run("*", "r1")
	refusedAt(t, err, "namespace", false)
	if all, err := Scope("*"); err != nil || all != "" {
		t.Fatal(all, err)
	}
	refusedAt(t, input.CheckDigest(strings.Repeat("A", 64)), "digest", false)
	if err := input.CheckDigest(strings.Repeat("a", 64)); err != nil {
		t.Fatal(err)
	}
}
