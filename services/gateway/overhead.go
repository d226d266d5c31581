package gateway

import (
	"cmp"
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// usualOverhead is more than the tools of the tool host and the harness need, in tokens.
const usualOverhead = 32 << 10

// resolvedContext returns the window of a run and its model.
func resolvedContext(s *harnessv1.RunSpec) *harnessv1.ContextConfig {
	return runstate.Resolve(s.GetConfig(), catalogue.Lookup(s.GetAgent().GetModel()).Window).GetContext()
}

// MayFillWindow reports whether the instructions and tools of a run may need its whole
// window, by their bytes.
func MayFillWindow(s *harnessv1.RunSpec) bool {
	need := usualOverhead + len(s.GetAgent().GetInstructions())
	for _, t := range s.GetClientTools() {
		need += len(t.GetDescription()) + len(t.GetParametersSchema())
	}
	c := resolvedContext(s)
	return uint64(need)+uint64(c.GetSafetyBuffer()) >= uint64(c.GetMaxInputTokens())
}

// WindowField returns the path of the field of a spec that sets its window, for errors.
func WindowField(s *harnessv1.RunSpec) string {
	if c := s.GetConfig().GetContext(); c != nil && c.MaxInputTokens != nil {
		return contextField + "max_input_tokens"
	}
	return "spec.agent.model"
}

// CheckOverhead returns an error with the sizes if the instructions and tools of a run fill
// its window. host are the tools of the tool host.
func CheckOverhead(s *harnessv1.RunSpec, host []*harnessv1.ToolSpec) error {
	a := s.GetAgent()
	resolved := resolvedContext(s)
	tools := slices.Concat(host, harnesstool.Specs(harnesstool.Setting{
		WorkItems: s.GetConfig().GetWorkItems().GetEnabled(), Questions: !a.GetAutonomous(), Compaction: resolved.GetCompaction(),
		OutputSchema: s.GetOutputSchema(), WaitURL: webtool.Reaches(a.GetWeb()),
		Wait: s.GetConfig().GetTools() == nil || s.GetConfig().GetTools().Wait == nil || s.GetConfig().GetTools().GetWait(),
	}), s.GetClientTools())
	start := cmp.Or(a.GetMode(), mode.Execute)
	tools = slices.DeleteFunc(tools, func(t *harnessv1.ToolSpec) bool { return !mode.Allows(start, a.GetModes(), t) })
	return runstate.CheckOverhead(a.GetModel(), resolved, a.GetInstructions(), tools)
}
