package follow

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// wholeTool is what a user writes instead of a rule for all calls of the tool.
const wholeTool = "*"

// Rules returns the rules that texts of a user mean for a call: first words of commands, exactly and a
// command line, hosts, or patterns for paths.
func Rules(call *harnessv1.PendingCall, texts []string) ([]*harnessv1.ToolRule, error) {
	var rules, patterns []*harnessv1.ToolRule
	for _, text := range texts {
		text = strings.TrimSpace(text)
		rule := &harnessv1.ToolRule{Name: call.GetTool(), Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}
		command, exact := render.ExactCommand(text)
		switch {
		case text == "", exact && command == "":
			return nil, fmt.Errorf("a rule is empty: expected such as %s", example(call))
		case call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT:
			return nil, fmt.Errorf("%s is a tool of a client, for which there are no rules", call.GetTool())
		case isCommand(call) && exact:
			rule.Command = command
			rules = append(rules, rule)
			continue
		case isCommand(call):
			rule.Prefix = text
		case webtool.Visits(call.GetTool()):
			rule.Host = text
		default:
			rule.Path = text
		}
		rules, patterns = append(rules, rule), append(patterns, rule)
	}
	if _, err := policy.Compile(patterns); err != nil {
		return nil, fmt.Errorf("no rule: %s", strings.TrimPrefix(err.Error(), "tools[0]."))
	}
	return rules, nil
}

// granted returns what an approval with rules allows for the rest of a run, for people.
func granted(call *harnessv1.PendingCall, rules []*harnessv1.ToolRule) string {
	return render.Granted(call.GetTool(), rules)
}

func isCommand(call *harnessv1.PendingCall) bool { return call.GetPreview().GetCommand() != nil }

// example returns a rule for calls like a call.
func example(call *harnessv1.PendingCall) string {
	if isCommand(call) {
		return "go test"
	}
	if webtool.Visits(call.GetTool()) {
		return "example.com"
	}
	return "docs/**"
}

// written returns rules as a user writes them.
func written(rules []*harnessv1.ToolRule) string {
	var texts []string
	for _, r := range rules {
		texts = append(texts, render.Rule(r))
	}
	return strings.Join(texts, " ; ")
}

// grant is the dialogue about the rules of an approval.
type grant struct {
	rules []*harnessv1.ToolRule
	// whole: all calls of the tool are allowed.
	whole bool
}

// proposed returns the dialogue with the rules that the harness proposes.
func proposed(call *harnessv1.PendingCall) *grant {
	return &grant{rules: call.GetPreview().GetRules(), whole: call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT}
}

// ask shows what would be stored, and prompts for it.
func (g *grant) ask(p *Prompt, call *harnessv1.PendingCall) {
	tool := p.clean(call.GetTool())
	switch {
	case g.whole:
		p.print("For this run: %s, whatever their arguments.\n[Enter] allow them  [n] back: ", granted(call, nil))
	case len(g.rules) > 0:
		p.print("For this run: %s.\n[Enter] allow them, or write another rule (%s: all calls of %s, ; between two)  [n] back\nRule [%s]: ",
			granted(call, g.rules), wholeTool, tool, p.clean(written(g.rules)))
	default:
		p.print("No rule is proposed for this call.\nWrite one, such as %s (%s: all calls of %s)  [Enter] back\nRule: ", example(call), wholeTool, tool)
	}
}

// take processes a line. done is true if the user accepts the rules, back if the user wants none.
func (g *grant) take(p *Prompt, call *harnessv1.PendingCall, line string) (done, back bool) {
	line = strings.TrimSpace(line)
	switch {
	case line == "" && (g.whole || len(g.rules) > 0):
		return true, false
	case line == "", strings.EqualFold(line, "n"), strings.EqualFold(line, "no"):
		return false, true
	case line == wholeTool:
		g.rules, g.whole = nil, true
	default:
		rules, err := Rules(call, strings.Split(line, ";"))
		if err != nil {
			p.print("%s\n", p.clean(err.Error()))
			break
		}
		g.rules, g.whole = rules, false
	}
	g.ask(p, call)
	return false, false
}
