package adapter

import (
	"regexp"
	"slices"
	"strconv"
	"sync"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// How services name the tool whose definition they refuse: OpenAI and those that are compatible
// by name ("Invalid schema for function 'NAME': …") and by place, in the message or as the
// parameter ("tools[3].parameters", "tools[3].function.parameters"), Anthropic by place
// ("tools.3.custom.input_schema: …"), Gemini too ("tools[0].function_declarations[3].…").
var toolPatterns = sync.OnceValue(func() (p struct{ name, declaration, place *regexp.Regexp }) {
	p.name = regexp.MustCompile("(?i)invalid (?:schema|parameters?|definition) (?:for|of) (?:the )?(?:function|tool) ['\"`]([A-Za-z0-9_.-]{1,128})['\"`]")
	p.declaration = regexp.MustCompile(`(?i)\btools\[\d+\]\.function_?declarations\[(\d{1,5})\]`)
	p.place = regexp.MustCompile(`\btools(?:\.|\[)(\d{1,5})\]?\.(?:custom|function|parameters|input_schema|name|description)\b`)
	return p
})

// refusedTool returns the name of the tool of a request whose definition a service refuses; empty
// if the refusal names none. If it names several, it is the first.
func refusedTool(fault wire.Fault, tools []*harnessv1.ToolSpec) string {
	patterns := toolPatterns()
	for _, text := range []string{fault.Message, fault.Param} {
		if found := patterns.name.FindStringSubmatch(text); found != nil {
			if slices.ContainsFunc(tools, func(t *harnessv1.ToolSpec) bool { return t.GetName() == found[1] }) {
				return found[1]
			}
			return ""
		}
		found := patterns.declaration.FindStringSubmatch(text)
		if found == nil {
			found = patterns.place.FindStringSubmatch(text)
		}
		if found == nil {
			continue
		}
		if n, err := strconv.Atoi(found[1]); err == nil && n < len(tools) {
			return tools[n].GetName()
		}
		return ""
	}
	return ""
}

// withoutRefused returns the tools of a request without those that its model refuses.
func withoutRefused(req *model.Request) []*harnessv1.ToolSpec {
	refused := func(t *harnessv1.ToolSpec) bool {
		return slices.ContainsFunc(req.Adjustments, func(a *harnessv1.ModelAdjustment) bool {
			return a.GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_TOOL && a.GetTool() == t.GetName()
		})
	}
	if !slices.ContainsFunc(req.Tools, refused) {
		return req.Tools
	}
	return slices.DeleteFunc(slices.Clone(req.Tools), refused)
}
