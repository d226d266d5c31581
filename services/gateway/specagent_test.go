package gateway

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

const (
	deny  = harnessv1.HookAction_HOOK_ACTION_DENY
	block = harnessv1.HookAction_HOOK_ACTION_BLOCK
)

// TestCheckToolsOfSubAgents: a sub-agent that names a tool that is not there is refused at its
// place, at each level; tools of servers are known later.
func TestCheckToolsOfSubAgents(t *testing.T) {
	agent := func(tools ...string) *harnessv1.AgentSpec {
		return &harnessv1.AgentSpec{
			Mcp:    []*harnessv1.McpServer{{Name: "files", Command: "x"}},
			Agents: []*harnessv1.SubAgent{{Name: "task"}, {Name: "a", Tools: []string{"read_file"}, Agents: []*harnessv1.SubAgent{{Name: "b", Tools: tools}}}},
		}
	}
	names := append(harnesstool.Names(), "read_file")
	caller := agent("read_file", "inner")
	caller.Agents[1].Agents[0].Agents = []*harnessv1.SubAgent{{Name: "inner"}}
	if err := CheckTools(caller, names); err != nil {
		t.Errorf("its sub-agent among its tools: %v", err)
	}
	if err := CheckTools(agent("read_file", "ask_user", "mcp__files__read"), names); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"no_such_tool", "mcp__other__read", "task"} {
		err := CheckTools(agent("read_file", name), names)
		if f := fault.FieldOf(err); f == nil || f.Field != "spec.agent.agents[1].agents[0].tools[1]" || !strings.Contains(f.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// wholeStart returns a request that uses every part of an agent.
func wholeStart() *harnessv1.StartRunRequest {
	r := validStart()
	s := r.GetSpec()
	s.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
	s.Config.Stall, s.Config.DoomLoop = &harnessv1.StallConfig{Threshold: proto.Uint32(2)}, &harnessv1.DoomLoopConfig{MaxCorrections: proto.Uint32(1)}
	s.Config.Hooks = &harnessv1.HookConfig{Timeout: durationpb.New(time.Second)}
	a := s.GetAgent()
	a.Tools = []*harnessv1.ToolRule{
		{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW},
		{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, When: "args.command.contains('rm -rf')", Reason: "not here"},
		{Name: "read_file", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, Pattern: `\.env$`},
	}
	a.Jit = []*harnessv1.JitRule{
		{Id: "test-first", When: "turn == 2 && writes > 0", Text: "Run the tests before you go on."},
		{Id: "slow", When: "seconds_elapsed > 60", Text: "{{ turn }} turns took a while.", Once: proto.Bool(false)},
	}
	a.Hooks = []*harnessv1.Hook{
		{Id: "no-rm", Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, Cel: "tool == 'run_command'", Action: deny, Reason: "not here"},
		{Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Cel: "turn < 3", Action: block, Reason: "too early"},
		{Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, Callback: true},
	}
	a.Modes, a.Mode = []*harnessv1.ModeSpec{{Name: "careful", ReadOnly: true}}, "careful"
	a.WorkItemTemplates = []*harnessv1.WorkItemTemplate{{Id: "audit", Title: "Look at it again"}}
	a.ContextProviders = []*harnessv1.ContextProvider{{Name: "House rules", Text: "Be kind."}, {Name: "Wiki", Grpc: "wiki.local:443"}, {Name: "Six", Grpc: "[::1]:80"}}
	s.Contract = &harnessv1.TaskContract{
		Goal: "Write the report",
		RequiredOutputs: []*harnessv1.RequiredOutput{
			{Id: "report", Description: "The report exists", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "report.md"}},
			{Id: "cites", Description: "It cites", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT, In: "artifact:audit", Pattern: `\[1\]`}},
			{Id: "state", Description: "Few turns", Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CUSTOM, Cel: "turn < 40"}},
		},
		Questions: []*harnessv1.UserQuestion{{Id: "colour", Question: "Which?", Required: proto.Bool(true)}},
	}
	return r
}

// withQuality returns a change that sets how work is judged.
func withQuality(c *harnessv1.QualityConfig) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) { s.Config.Quality = c }
}

func sourcesOf(n int) (sources []*harnessv1.Source) {
	for i := range n {
		sources = append(sources, &harnessv1.Source{Id: "s" + strconv.Itoa(i)})
	}
	return sources
}

// TestTasksThatAreAccepted at their bounds.
func TestTasksThatAreAccepted(t *testing.T) {
	for name, change := range map[string]func(*harnessv1.RunSpec){
		"200 sources": func(s *harnessv1.RunSpec) {
			s.Task = &harnessv1.Task{Kind: "synthesis", Sources: sourcesOf(maxSources)}
		},
		"own kind": func(s *harnessv1.RunSpec) {
			s.Agent.Kinds = []*harnessv1.WorkKind{{
				Name: "review", MaxAttempts: proto.Uint32(10), Score: "doc_qs", Perspectives: []string{"style"}, Prompts: map[string]string{"verifier_style": "Judge the style."},
				ArtifactKinds: []string{"finding"}, Counts: []*harnessv1.ArtifactCount{{Kind: "finding", Count: 200}},
			}}
			s.Task = &harnessv1.Task{Kind: "review", Profile: strings.Repeat("p", maxProfile)}
		},
		"limits": withQuality(&harnessv1.QualityConfig{Iterations: proto.Uint32(5), Retry: &harnessv1.QualityRetryConfig{
			MaxAttemptsSynthesis: proto.Uint32(10), GoodEnoughScore: proto.Float64(1), LowQualityThreshold: proto.Float64(1),
		}}),
	} {
		r := wholeStart()
		change(r.GetSpec())
		if err := CheckStart(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPartsOfAnAgent(t *testing.T) {
	if err := CheckStart(wholeStart()); err != nil {
		t.Fatal(err)
	}
	type spec = harnessv1.RunSpec
	counted := func(p *harnessv1.Predicate) func(*spec) {
		return func(s *spec) {
			p.Type = harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT
			s.Contract.RequiredOutputs[0].Predicate = p
		}
	}
	provider := func(p *harnessv1.ContextProvider) func(*spec) {
		return func(s *spec) { s.Agent.ContextProviders[1] = p }
	}
	for _, c := range []struct {
		field  string
		size   bool
		change func(*spec)
	}{
		{"spec.agent.tools[1].when", false, func(s *spec) { s.Agent.Tools[1].When = "nonsense(" }},
		{"spec.agent.tools[1].when", false, func(s *spec) { s.Agent.Tools[1].When = "'text'" }},
		{"spec.agent.tools[2].pattern", false, func(s *spec) { s.Agent.Tools[2].Pattern = "(" }},
		{"spec.agent.jit[0].id", false, func(s *spec) { s.Agent.Jit[0].Id = "a b" }},
		{"spec.agent.jit[1].id", false, func(s *spec) { s.Agent.Jit[1].Id = s.Agent.Jit[0].GetId() }},
		{"spec.agent.jit[1].id", false, func(s *spec) { s.Agent.Jit[1].Id = "approaching_turn_limit" }},
		{"spec.agent.jit[1].when", false, func(s *spec) { s.Agent.Jit[1].When = "turns > 1" }},
		{"spec.agent.jit[1].when", false, func(s *spec) { s.Agent.Jit[1].When = "turn + 1" }},
		{"spec.agent.jit[1].text", false, func(s *spec) { s.Agent.Jit[1].Text = "{{ missing }}" }},
		{"spec.agent.jit", false, func(s *spec) { s.Agent.Jit = make([]*harnessv1.JitRule, 65) }},
		{"spec.agent.hooks[1].topic", false, func(s *spec) { s.Agent.Hooks[1].Topic = 0 }},
		{"spec.agent.hooks[1].action", false, func(s *spec) { s.Agent.Hooks[1].Action = deny }},
		{"spec.agent.hooks[1].cel", false, func(s *spec) { s.Agent.Hooks[1].Cel = "turn <" }},
		{"spec.agent.modes[0].name", false, func(s *spec) { s.Agent.Modes[0].Name = "plan" }},
		{"spec.agent.mode", false, func(s *spec) { s.Agent.Mode = "hasty" }},
		{"spec.agent.work_item_templates[0].title", false, func(s *spec) { s.Agent.WorkItemTemplates[0].Title = " " }},
		{"spec.agent.work_item_templates", false, func(s *spec) { s.Config.WorkItems.Enabled = proto.Bool(false) }},
		{"spec.agent.web.allow[0]", false, func(s *spec) { s.Agent.Web = &harnessv1.Web{Allow: []string{"https://a.example"}} }},
		{"spec.agent.web.search.backend", false, func(s *spec) { s.Agent.Web = &harnessv1.Web{Search: &harnessv1.WebSearch{Backend: "x"}} }},
		{"spec.agent.tools[0].host", false, func(s *spec) { s.Agent.Tools[0].Host = "a b" }},
		{"spec.agent.context_providers[1].name", false, provider(&harnessv1.ContextProvider{Text: "x"})},
		{"spec.agent.context_providers[1].name", false, provider(&harnessv1.ContextProvider{Name: "a\nb", Text: "x"})},
		{"spec.agent.context_providers[1].name", false, provider(&harnessv1.ContextProvider{Name: "House rules", Text: "x"})},
		{"spec.agent.context_providers[1].name", true, provider(&harnessv1.ContextProvider{Name: strings.Repeat("x", input.MaxName+1), Text: "x"})},
		{"spec.agent.context_providers[1]", false, provider(&harnessv1.ContextProvider{Name: "x"})},
		{"spec.agent.swarm.specialists[1]", false, func(s *spec) {
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "explore"}, {Name: "research"}}
			s.Agent.Swarm = &harnessv1.Swarm{Specialists: []string{"explore", "nowhere"}, Aggregator: "research"}
		}},
		{"spec.agent.kinds", true, func(s *spec) { s.Agent.Kinds = make([]*harnessv1.WorkKind, maxKinds+1) }},
		{"spec.agent.kinds[0]", false, func(s *spec) { s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", MaxAttempts: proto.Uint32(0)}} }},
		{"spec.agent.kinds[0]", false, func(s *spec) { s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", Score: "stars"}} }},
		{"spec.agent.kinds[0]", false, func(s *spec) { s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "chat"}} }},
		{"spec.agent.kinds[0]", false, func(s *spec) {
			s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", GoodEnoughScore: 0.4, LowQualityThreshold: 0.5}}
		}},
		{"spec.agent.kinds[0]", false, func(s *spec) {
			s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", Perspectives: []string{"style"}}}
		}},
		{"spec.agent.kinds[0]", false, func(s *spec) {
			s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", Prompts: map[string]string{"x": "x"}}}
		}},
		{"spec.agent.kinds[0]", false, func(s *spec) {
			s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review", Counts: []*harnessv1.ArtifactCount{{Kind: "finding", Count: 1}}}}
		}},
		{"spec.agent.kinds[1].name", false, func(s *spec) { s.Agent.Kinds = []*harnessv1.WorkKind{{Name: "review"}, {Name: "review"}} }},
		{"spec.task.kind", false, func(s *spec) { s.Task = &harnessv1.Task{Kind: "review"} }},
		{"spec.task.profile", true, func(s *spec) { s.Task = &harnessv1.Task{Profile: strings.Repeat("p", maxProfile+1)} }},
		{"spec.task.sources", true, func(s *spec) { s.Task = &harnessv1.Task{Sources: sourcesOf(maxSources + 1)} }},
		{"spec.task.sources[1].id", false, func(s *spec) { s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a"}, {Id: "a"}}} }},
		{"spec.task.sources[0].id", false, func(s *spec) { s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a b"}}} }},
		{"spec.task.sources[0].title", true, func(s *spec) {
			s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a", Title: strings.Repeat("t", 301)}}}
		}},
		{"spec.task.sources[0].uri", true, func(s *spec) {
			s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a", Uri: strings.Repeat("u", 2001)}}}
		}},
		{"spec.task.sources[0].path", false, func(s *spec) { s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a", Path: "../secret"}}} }},
		{"spec.task.sources[0].path", false, func(s *spec) { s.Task = &harnessv1.Task{Sources: []*harnessv1.Source{{Id: "a", Path: "/etc/passwd"}}} }},
		{"spec.config.quality.model", false, withQuality(&harnessv1.QualityConfig{Model: "nowhere"})},
		{"spec.config.quality.iterations", false, withQuality(&harnessv1.QualityConfig{Iterations: proto.Uint32(0)})},
		{"spec.config.quality.iterations", false, withQuality(&harnessv1.QualityConfig{Iterations: proto.Uint32(6)})},
		{"spec.config.quality.timeout", false, withQuality(&harnessv1.QualityConfig{Timeout: durationpb.New(999 * time.Millisecond)})},
		{"spec.config.quality.timeout", false, withQuality(&harnessv1.QualityConfig{Timeout: durationpb.New(601 * time.Second)})},
		{"spec.config.quality.retry.max_attempts_synthesis", false, withQuality(&harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{MaxAttemptsSynthesis: proto.Uint32(0)}})},
		{"spec.config.quality.retry.max_attempts_chat", false, withQuality(&harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{MaxAttemptsChat: proto.Uint32(11)}})},
		{"spec.config.quality.retry.max_attempts_default", false, withQuality(&harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{MaxAttemptsDefault: proto.Uint32(11)}})},
		{"spec.config.quality.retry", false, withQuality(&harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{GoodEnoughScore: proto.Float64(1.1)}})},
		{"spec.config.quality.retry", false, withQuality(&harnessv1.QualityConfig{Retry: &harnessv1.QualityRetryConfig{LowQualityThreshold: proto.Float64(0.71)}})},
		{"spec.agent.swarm.kinds[0]", false, func(s *spec) {
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "explore"}, {Name: "research"}, {Name: "task"}}
			s.Agent.Swarm = &harnessv1.Swarm{Specialists: []string{"explore", "research"}, Aggregator: "task", Kinds: []string{"novel"}}
		}},
		{"spec.agent.context_providers[1]", false, provider(&harnessv1.ContextProvider{Name: "x", Text: "x", Grpc: "h:1"})},
		{"spec.agent.context_providers[1].text", true, provider(&harnessv1.ContextProvider{Name: "x", Text: strings.Repeat("x", maxContextText+1)})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: "localhost"})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: ":443"})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: "h:0"})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: "h:70000"})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: "::1:80"})},
		{"spec.agent.context_providers[1].grpc", false, provider(&harnessv1.ContextProvider{Name: "x", Grpc: "http://h:80"})},
		{"spec.agent.context_providers", true, func(s *spec) { s.Agent.ContextProviders = make([]*harnessv1.ContextProvider, maxProviders+1) }},
		{"spec.config.stall.threshold", false, func(s *spec) { s.Config.Stall.Threshold = proto.Uint32(1) }},
		{"spec.config.stall.threshold", false, func(s *spec) { s.Config.Stall.Threshold = proto.Uint32(maxStall + 1) }},
		{"spec.config.hooks.timeout", false, func(s *spec) { s.Config.Hooks.Timeout = durationpb.New(0) }},
		{"spec.config.hooks.timeout", false, func(s *spec) { s.Config.Hooks.Timeout = durationpb.New(MaxHookTimeout + 1) }},
		{"spec.contract.required_outputs[0].predicate.path", false, func(s *spec) { s.Contract.RequiredOutputs[0].Predicate.Path = "" }},
		{"spec.contract.required_outputs[0].predicate.path", false, func(s *spec) { s.Contract.RequiredOutputs[0].Predicate.Path = "../x" }},
		{"spec.contract.required_outputs[1].id", false, func(s *spec) { s.Contract.RequiredOutputs[1].Id = "report" }},
		{"spec.contract.required_outputs[1].predicate.pattern", false, func(s *spec) { s.Contract.RequiredOutputs[1].Predicate.Pattern = "(" }},
		{"spec.contract.required_outputs[1].predicate.in", false, func(s *spec) {
			s.Config.WorkItems, s.Agent.WorkItemTemplates = nil, nil
		}},
		{"spec.contract.required_outputs[0].predicate.kind", false, counted(&harnessv1.Predicate{Kind: "Odd kind"})},
		{"spec.contract.required_outputs[0].predicate.kind", false, counted(&harnessv1.Predicate{})},
		{"spec.contract.required_outputs[0].predicate.min", false, counted(&harnessv1.Predicate{Kind: "finding", Min: proto.Uint32(0)})},
		{"spec.contract.required_outputs[0].predicate.min", false, counted(&harnessv1.Predicate{Kind: "finding", Min: proto.Uint32(201)})},
		{"spec.contract.required_outputs[0].predicate.type", false, func(s *spec) {
			counted(&harnessv1.Predicate{Kind: "finding"})(s)
			s.Agent.Tools = append(s.Agent.Tools, &harnessv1.ToolRule{Name: "save_*", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY})
		}},
		{"spec.agent.agents[0].agents[0].policy[1].when", false, func(s *spec) {
			inner := &harnessv1.SubAgent{Name: "explore", Policy: []*harnessv1.ToolRule{{Name: "a", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}, {Name: "b", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, When: "("}}}
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "task", Agents: []*harnessv1.SubAgent{inner}}}
		}},
		{"spec.agent.policies[0].rules[0].pattern", false, func(s *spec) {
			s.Agent.Policies = []*harnessv1.ToolPolicy{{Rules: []*harnessv1.ToolRule{{Name: "a", Pattern: "("}}}}
		}},
		{"spec.agent.agents[0].contract.required_outputs[0].predicate.min", false, func(s *spec) {
			counted(&harnessv1.Predicate{Kind: "finding", Min: proto.Uint32(0)})(s)
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "explore", Contract: s.GetContract()}}
			s.Contract = nil
		}},
		{"spec.agent.agents[0].agents[0].contract.required_outputs", false, func(s *spec) {
			s.Agent.Agents = []*harnessv1.SubAgent{{Name: "explore", Agents: []*harnessv1.SubAgent{{Name: "research", Contract: &harnessv1.TaskContract{}}}}}
		}},
		{"spec.contract.required_outputs[2].predicate.cel", false, func(s *spec) { s.Contract.RequiredOutputs[2].Predicate.Cel = "turn" }},
		{"spec.output_schema", false, func(s *spec) { s.OutputSchema = `{"type":"string","minLength":5,"maxLength":2}` }},
		{"spec", true, func(s *spec) {
			for i := range 4 {
				s.Agent.ContextProviders = append(s.Agent.ContextProviders, &harnessv1.ContextProvider{Name: strconv.Itoa(i), Text: strings.Repeat("x", maxContextText)})
			}
		}},
	} {
		r := wholeStart()
		c.change(r.GetSpec())
		t.Run(c.field, func(t *testing.T) { refusedAt(t, CheckStart(r), c.field, c.size) })
	}
}

// TestContractsMayNameSavedArtifacts where a run saves some: its work is judged, or its contract
// counts artifacts. A rule that denies some calls of save_artifact is no obstacle.
func TestContractsMayNameSavedArtifacts(t *testing.T) {
	count := func(s *harnessv1.RunSpec) {
		s.Contract.RequiredOutputs[0].Predicate = &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: "finding"}
	}
	rule := func(r *harnessv1.ToolRule) func(*harnessv1.RunSpec) {
		return func(s *harnessv1.RunSpec) {
			count(s)
			s.Agent.Tools = append(s.Agent.Tools, r)
		}
	}
	for name, change := range map[string]func(*harnessv1.RunSpec){
		"judged":          func(s *harnessv1.RunSpec) { s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true)} },
		"counted":         count,
		"denied in part":  rule(&harnessv1.ToolRule{Name: "save_artifact", When: "args.kind == 'letter'", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}),
		"asked":           rule(&harnessv1.ToolRule{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ASK}),
		"denied, allowed": rule(&harnessv1.ToolRule{Name: "save_artifact", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}),
		"optional, denied": func(s *harnessv1.RunSpec) {
			rule(&harnessv1.ToolRule{Name: "save_artifact", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY})(s)
			s.Contract.RequiredOutputs[0].Optional = true
		},
	} {
		r := wholeStart()
		r.GetSpec().Config.WorkItems, r.GetSpec().Agent.WorkItemTemplates = nil, nil
		if name == "denied, allowed" {
			r.GetSpec().Agent.Tools = append(r.GetSpec().Agent.Tools, &harnessv1.ToolRule{Name: "*", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY})
		}
		change(r.GetSpec())
		if err := CheckStart(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An error in an expression has its position in the text and in the metadata.
func TestExpressionErrorHasItsPlace(t *testing.T) {
	for field, change := range map[string]func(*harnessv1.RunSpec){
		"spec.agent.tools[1].when":                        func(s *harnessv1.RunSpec) { s.Agent.Tools[1].When = "true &&\n  missing" },
		"spec.agent.jit[0].when":                          func(s *harnessv1.RunSpec) { s.Agent.Jit[0].When = "true &&\n  missing" },
		"spec.agent.hooks[0].cel":                         func(s *harnessv1.RunSpec) { s.Agent.Hooks[0].Cel = "true &&\n  missing" },
		"spec.contract.required_outputs[2].predicate.cel": func(s *harnessv1.RunSpec) { s.Contract.RequiredOutputs[2].Predicate.Cel = "true &&\n  missing" },
	} {
		r := wholeStart()
		change(r.GetSpec())
		var e *fault.Error
		if err := CheckStart(r); !errors.As(err, &e) || !strings.HasPrefix(e.Message, field+": line 2, column 3: ") {
			t.Errorf("%s: got %v", field, err)
			continue
		}
		if !slices.Equal(e.Metadata, []string{"field", field, "line", "2", "column", "3"}) {
			t.Errorf("%s: metadata %q", field, e.Metadata)
		}
	}
}

func TestUnknownToolsAreRefused(t *testing.T) {
	names := append(harnesstool.Names(), "read_file", "run_command")
	r := wholeStart()
	s := r.GetSpec()
	s.Agent.Hooks[0].Tools = []string{"run_command", "work_item_add"}
	s.Agent.Modes[0].Tools = []string{"read_file"}
	s.Contract.RequiredOutputs[0].Predicate = &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_TOOL_RESULT_SUCCESS, Tool: "run_command"}
	if err := CheckNamed(s, names); err != nil || !NamesTools(s) {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*harnessv1.RunSpec){
		"spec.agent.hooks[0].tools[1]":                     func(s *harnessv1.RunSpec) { s.Agent.Hooks[0].Tools[1] = "runcommand" },
		"spec.agent.modes[0].tools[0]":                     func(s *harnessv1.RunSpec) { s.Agent.Modes[0].Tools[0] = "runcommand" },
		"spec.contract.required_outputs[0].predicate.tool": func(s *harnessv1.RunSpec) { s.Contract.RequiredOutputs[0].Predicate.Tool = "runcommand" },
	} {
		changed := proto.CloneOf(s)
		change(changed)
		refusedAt(t, CheckNamed(changed, names), field, false)
	}
	if NamesTools(&harnessv1.RunSpec{}) {
		t.Error("an empty spec names tools")
	}
	for _, name := range []string{"work_item_add", "task_complete", "contract_question", "read_file"} {
		refusedAt(t, CheckClientNames("spec.client_tools", []*harnessv1.ToolSpec{{Name: name}}, names), "spec.client_tools[0].name", false)
	}
}
