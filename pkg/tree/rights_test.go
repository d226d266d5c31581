package tree_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

type notes = harnessv1.ToolAnnotations

const (
	host   = harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
	client = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
)

var (
	readFile   = &harnessv1.ToolSpec{Name: "read_file", Origin: host, Annotations: &notes{Reads: true}}
	searchFile = &harnessv1.ToolSpec{Name: "search_files", Origin: host, Annotations: &notes{Explores: true}}
	calculate  = &harnessv1.ToolSpec{Name: "calculate", Origin: host, Annotations: &notes{}}
	writeFile  = &harnessv1.ToolSpec{Name: "write_file", Origin: host, Annotations: &notes{Writes: true}}
	runCommand = &harnessv1.ToolSpec{Name: "run_command", Origin: host, Annotations: &notes{Executes: true}}
	listed     = &harnessv1.ToolSpec{Name: "mcp__s__list", Origin: host, Annotations: &notes{Reads: true}}
	order      = &harnessv1.ToolSpec{Name: "order", Origin: client}
	browse     = &harnessv1.ToolSpec{Name: "browse", Origin: client, Annotations: &notes{Reads: true}}
)

// TestReadersHaveToolsThatReadOnly: what a sub-agent may change follows from the tools that it has.
func TestReadersHaveToolsThatReadOnly(t *testing.T) {
	all := []*harnessv1.ToolSpec{readFile, searchFile, calculate, writeFile, runCommand, listed, order, browse}
	reading := []*harnessv1.ToolSpec{readFile, searchFile, order}
	for name, c := range map[string]struct {
		only     []string
		of       []*harnessv1.ToolSpec
		whole    bool
		readOnly bool
		reads    bool
	}{
		"reads and searches":            {[]string{"read_file", "search_files", "calculate"}, all, true, false, true},
		"writes too":                    {[]string{"read_file", "write_file"}, all, true, false, false},
		"runs commands":                 {[]string{"run_command"}, all, true, false, false},
		"reads from a server":           {[]string{"mcp__s__*"}, all, false, false, true},
		"tool that is not there yet":    {[]string{"read_file", "mcp__late__list"}, all, false, false, false},
		"tool of the harness":           {[]string{"read_file", "work_item_add"}, all, true, false, true},
		"one of its sub-agents":         {[]string{"read_file", "inner"}, all, true, false, true},
		"client's tool":                 {[]string{"order"}, all, true, false, false},
		"client's tool that reads":      {[]string{"browse"}, all, true, false, true},
		"all tools":                     {nil, all, true, false, false},
		"all, of a caller that reads":   {nil, reading, true, false, true},
		"all, and servers may have any": {nil, reading, false, false, false},
		"all, which are not known":      {nil, nil, true, false, false},
		"caller is read-only":           {nil, nil, false, true, true},
	} {
		a := &harnessv1.SubAgent{Name: "a", Tools: c.only, Agents: []*harnessv1.SubAgent{{Name: "inner"}}}
		if got := tree.Readers([]*harnessv1.SubAgent{a}, c.readOnly, c.of, c.whole); got[0].GetReadOnly() != c.reads || a.GetReadOnly() {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestToolsOfAChildAreThoseOfItsParent: the tools of a definition are at most those that its parent has, at every level.
func TestToolsOfAChildAreThoseOfItsParent(t *testing.T) {
	for _, c := range []struct{ parent, own, of, not string }{
		{"", "", "read_file write_file", ""},
		{"read_file", "", "read_file", "write_file"},
		{"read_file", "write_file", "", "read_file write_file"},
		{"read_file search_files", "read_file write_file", "read_file", "search_files write_file"},
		{"mcp__s__*", "mcp__s__list", "mcp__s__list", "mcp__s__add"},
		{"mcp__s__list", "mcp__*", "mcp__s__list", "mcp__s__add"},
		{"mcp__*", "mcp__s__*", "mcp__s__list", "mcp__t__list"},
	} {
		spec := &harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{OnlyTools: strings.Fields(c.parent)}}
		got := tree.Spec(spec, &harnessv1.Snapshot{}, &harnessv1.SubAgent{Name: "a", Tools: strings.Fields(c.own)}, &harnessv1.Child{}, content.Inline("go")).GetAgent()
		has := func(name string) bool {
			return tree.Listed(got.GetOnlyTools(), &harnessv1.ToolSpec{Name: name, Origin: host})
		}
		for _, name := range strings.Fields(c.of) {
			if !has(name) {
				t.Errorf("%q of %q: %s is missing", c.own, c.parent, name)
			}
		}
		for _, name := range strings.Fields(c.not) {
			if has(name) {
				t.Errorf("%q of %q has %s", c.own, c.parent, name)
			}
		}
		if !tree.Listed(got.GetOnlyTools(), &harnessv1.ToolSpec{Name: "inner", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT}) {
			t.Errorf("%q of %q: it has no sub-agents", c.own, c.parent)
		}
	}
}

// TestPoliciesAreInherited: a child has the rules of its parent, the policies of all definitions above it and its own, in this order.
func TestPoliciesAreInherited(t *testing.T) {
	rule := func(name string) []*harnessv1.ToolRule { return []*harnessv1.ToolRule{{Name: name}} }
	spec := &harnessv1.RunSpec{Agent: &harnessv1.AgentSpec{Tools: rule("root")}}
	for i, c := range []struct{ own, all string }{{"one", "one"}, {"", "one"}, {"two", "one two"}} {
		def := &harnessv1.SubAgent{Name: "a"}
		if c.own != "" {
			def.Policy = rule(c.own)
		}
		spec = tree.Spec(spec, &harnessv1.Snapshot{}, def, &harnessv1.Child{}, content.Inline("go"))
		var names []string
		for _, p := range spec.GetAgent().GetPolicies() {
			names = append(names, p.GetRules()[0].GetName())
		}
		if got := strings.Join(names, " "); got != c.all || spec.GetAgent().GetTools()[0].GetName() != "root" {
			t.Errorf("level %d: %q, want %q", i+1, got, c.all)
		}
		d, _ := agent.StoredForm(spec)
		if len(d.GetPolicies()) != len(names) {
			t.Errorf("level %d stores %v", i+1, d.GetPolicies())
		}
	}
}
