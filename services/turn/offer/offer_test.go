package offer_test

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/contract"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// snapshot returns the state of a run without guidance.
func snapshot() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{Config: runstate.Resolve(&harnessv1.LoopConfig{}, 0)}
}

// withClients are the tools of the other tests with one that a client runs.
func withClients(t *testing.T, s *harnessv1.Snapshot) *tool.Set {
	t.Helper()
	host := []*harnessv1.ToolSpec{{Name: "read_file", ParametersSchema: `{"type":"object"}`, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST}}
	client := func(name string) *harnessv1.ToolSpec {
		return &harnessv1.ToolSpec{Name: name, ParametersSchema: `{"type":"object"}`, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT}
	}
	made, err := agent.FromStep(&harnessv1.Step{Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	offer, err := offer.New(s, host, &harnessv1.ClientTools{Tools: []*harnessv1.ToolSpec{
		client("get_weather"), client("read_file"), client("work_complete"), client("ask_user"), client("task_complete"), client("get_weather"),
	}}, nil, made)
	if err != nil {
		t.Fatal(err)
	}
	return offer.Set
}

func rule(name string, policy harnessv1.ToolDecision) *harnessv1.ToolRule {
	return &harnessv1.ToolRule{Name: name, Policy: policy}
}

// TestAvailableToolsFollowTheRun: a run has the tools of the host, those of the harness,
// and those of clients with other names; questions only if a user is present and the
// policy allows them.
func TestAvailableToolsFollowTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*harnessv1.Snapshot)
		want   string
	}{
		"plain":      {func(*harnessv1.Snapshot) {}, "read_file work_complete ask_user wait read_artifact get_weather"},
		"autonomous": {func(s *harnessv1.Snapshot) { s.Autonomous = true }, "read_file work_complete wait read_artifact get_weather"},
		"denied": {func(s *harnessv1.Snapshot) {
			s.ToolRules = append(s.ToolRules, rule("ask_user", harnessv1.ToolDecision_TOOL_DECISION_DENY))
		}, "read_file work_complete wait read_artifact get_weather"},
		"all denied": {func(s *harnessv1.Snapshot) {
			s.ToolRules = append(s.ToolRules, rule("*", harnessv1.ToolDecision_TOOL_DECISION_DENY))
		}, "read_file work_complete read_artifact get_weather"},
		"without waits":      {func(s *harnessv1.Snapshot) { s.Config.Tools.Wait = proto.Bool(false) }, "read_file work_complete ask_user read_artifact get_weather"},
		"without compaction": {func(s *harnessv1.Snapshot) { s.Config.Context.Compaction = proto.Bool(false) }, "read_file work_complete ask_user wait read_artifact get_weather"},
		"counting artifacts": {counting, "read_file save_artifact work_complete ask_user wait read_artifact get_weather"},
		"counting in a contract that is off": {func(s *harnessv1.Snapshot) {
			counting(s)
			s.Config.Contract = &harnessv1.ContractConfig{Enabled: proto.Bool(false)}
		}, "read_file work_complete ask_user wait read_artifact get_weather"},
		"counting in plan mode": {func(s *harnessv1.Snapshot) { counting(s); s.Mode = "plan" }, "save_artifact work_complete ask_user wait read_artifact"},
		"in plan mode":          {func(s *harnessv1.Snapshot) { s.Mode = "plan" }, "work_complete ask_user wait read_artifact"},
		"all asked": {func(s *harnessv1.Snapshot) {
			s.ToolRules = append(s.ToolRules, rule("*", harnessv1.ToolDecision_TOOL_DECISION_ASK))
		}, "read_file work_complete ask_user wait read_artifact get_weather"},
	} {
		s := snapshot()
		c.change(s)
		var got []string
		for _, spec := range withClients(t, s).Specs() {
			got = append(got, spec.GetName())
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: available are %v, want %s", name, got, c.want)
		}
	}
}

// counting gives a run a contract that counts findings and documents.
func counting(s *harnessv1.Snapshot) {
	s.TaskContract = contract.Resolve(&harnessv1.TaskContract{})
	for _, kind := range []string{"finding", "document"} {
		s.TaskContract.RequiredOutputs = append(s.TaskContract.RequiredOutputs, &harnessv1.RequiredOutput{
			Id: kind, Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_ARTIFACT_COUNT, Kind: kind},
		})
	}
}

// TestSaveArtifactTakesWhatCounts: the kinds of the run's work first, if it is judged, then those
// of its contract, each once.
func TestSaveArtifactTakesWhatCounts(t *testing.T) {
	judged := func(s *harnessv1.Snapshot) { s.Quality = &harnessv1.QualityState{Kind: quality.Synthesis} }
	for name, c := range map[string]struct {
		change []func(*harnessv1.Snapshot)
		takes  string
	}{
		"counting":            {[]func(*harnessv1.Snapshot){counting}, "finding document"},
		"judged":              {[]func(*harnessv1.Snapshot){judged}, "insight recommendation document"},
		"judged and counting": {[]func(*harnessv1.Snapshot){judged, counting}, "insight recommendation document finding"},
	} {
		s := snapshot()
		for _, change := range c.change {
			change(s)
		}
		set := withClients(t, s)
		var takes []string
		for _, kind := range []string{"insight", "recommendation", "document", "finding", "letter"} {
			if set.Validate("save_artifact", `{"kind":"`+kind+`","title":"T","content":"C"}`) == nil {
				takes = append(takes, kind)
			}
		}
		definition, err := agent.FromStep(&harnessv1.Step{Snapshot: s})
		if err != nil {
			t.Fatal(err)
		}
		got := definition.ArtifactKinds(s)
		slices.SortFunc(takes, func(a, b string) int { return slices.Index(got, a) - slices.Index(got, b) })
		if strings.Join(got, " ") != c.takes || !slices.Equal(takes, got) {
			t.Errorf("%s: kinds %v, and it takes %v", name, got, takes)
		}
	}
}

// TestASubAgentKeepsItsName: a tool that the tool host gets while the run works, with the name of a
// sub-agent, does not replace it.
func TestASubAgentKeepsItsName(t *testing.T) {
	s := snapshot()
	s.Definition = &harnessv1.Definition{Agents: []*harnessv1.SubAgent{{Name: "read_file", Description: "Reads.", Instructions: "Read."}}}
	found := 0
	for _, spec := range withClients(t, s).Specs() {
		if spec.GetName() == "read_file" && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d sub-agents have the name read_file", found)
	}
}

// TestPlanModeHasReadersOnly: a sub-agent that may write, and delegate with one, are not available in plan mode.
func TestPlanModeHasReadersOnly(t *testing.T) {
	s := snapshot()
	s.Mode = "plan"
	s.Definition = &harnessv1.Definition{Agents: tree.Resolve([]*harnessv1.SubAgent{{Name: "explore"}, {Name: "task"}})}
	definition, err := agent.Compile(s.GetDefinition(), nil)
	if err != nil {
		t.Fatal(err)
	}
	offer, err := offer.New(s, nil, nil, nil, definition)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, spec := range offer.Specs() {
		if spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT {
			names = append(names, spec.GetName())
		}
	}
	if got := strings.Join(names, " "); got != "explore agent_wait" || !offer.Blocked["task"] || !offer.Blocked["delegate"] {
		t.Errorf("available are %q, blocked %v", got, offer.Blocked)
	}
}
