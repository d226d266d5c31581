package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

// MaxRules bounds the rules of one approval.
const MaxRules = 8

// Granted reports whether rules that approvals have stored fit a call: for a command its line
// or each of its simple commands, otherwise its path, which may be absolute in the workspace.
func Granted(rules []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, arguments, workspace string) bool {
	call := &policyCall{spec: spec, arguments: arguments}
	var prefixes, exact []prefix
	line, runs := call.command()
	for _, given := range rules {
		rule, err := compileGrant(given)
		if err == nil && rule.host != nil && visits(spec) { // what one web tool may read, the other may
			if site, ok := call.site(); ok && webtool.Visits(rule.name) && site.In([]sandbox.Host{*rule.host}) {
				return true
			}
		}
		if err != nil || rule.name != spec.GetName() {
			continue
		}
		if rule.prefix != nil {
			prefixes = append(prefixes, rule.prefix)
		}
		if given.GetCommand() != "" && runs {
			if given.GetCommand() == line {
				return true
			}
			if one, plain := simpleCommands(given.GetCommand()); plain && len(one) == 1 {
				exact = append(exact, textsOf(one[0]))
			}
		}
		if rule.path != nil && rule.path.fits(inWorkspace(call, workspace), false) {
			return true
		}
	}
	if !runs || len(prefixes)+len(exact) == 0 {
		return false
	}
	commands, plain := simpleCommands(line)
	return plain && !slices.ContainsFunc(commands, func(c []word) bool {
		return !slices.ContainsFunc(prefixes, func(p prefix) bool { return p.covers(c) }) &&
			!slices.ContainsFunc(exact, func(p prefix) bool { return len(p) == len(c) && p.fitsCommand(c) })
	})
}

// compileGrant compiles a rule of an approval, which alone may be for one exact command.
func compileGrant(given *harnessv1.ToolRule) (policyRule, error) {
	line := given.GetCommand()
	if line == "" {
		return compileRule(given)
	}
	switch {
	case given.GetPrefix()+given.GetPath()+given.GetHost() != "":
		return policyRule{}, fault.Invalid("command", "a rule with a command has no prefix, no path and no host")
	case len(line) > maxRule:
		return policyRule{}, fault.Invalid("command", "%d bytes exceed the limit of %d", len(line), maxRule)
	case strings.TrimSpace(line) == "" || !utf8.ValidString(line) || strings.ContainsFunc(line, odd):
		return policyRule{}, fault.Invalid("command", "must be a command line without control characters")
	}
	return compileRule(&harnessv1.ToolRule{Name: given.GetName(), Policy: given.GetPolicy(), When: given.GetWhen(), Pattern: given.GetPattern(), Reason: given.GetReason()})
}

// textsOf returns the words of a command that no pattern changes; nil if one has a pattern.
func textsOf(command []word) prefix {
	var texts prefix
	for _, w := range command {
		if w.expands {
			return nil
		}
		texts = append(texts, w.text)
	}
	return texts
}

// visits reports whether a tool is one of the web tools whose calls name a url.
func visits(spec *harnessv1.ToolSpec) bool {
	return webtool.Visits(spec.GetName()) && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST
}

// inWorkspace returns the path of a call relative to the workspace; unchanged if it is not in
// it, and empty if the call has none.
func inWorkspace(call *policyCall, workspace string) string {
	file, _ := call.parse()["path"].(string)
	if rest, ok := strings.CutPrefix(file, strings.TrimSuffix(workspace, "/")+"/"); ok && workspace != "" {
		return strings.TrimLeft(rest, "/")
	}
	return file
}

// CheckGrant checks the rules of an approval for the rest of the run: each names the tool of
// the call and has a prefix, a path or a host, and with those that are stored they fit the call. The
// error is a *fault.FieldError with a place in rules.
func CheckGrant(rules, stored []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, arguments, workspace string) error {
	if len(rules) > MaxRules {
		return fault.Invalid("rules", "%d rules exceed the limit of %d", len(rules), MaxRules)
	}
	for i, given := range rules {
		at := fmt.Sprintf("rules[%d]", i)
		rule, err := compileGrant(given)
		switch {
		case err != nil:
			return fault.In(at, err)
		case rule.name != spec.GetName():
			return fault.Invalid(at+".name", "must be the tool of the call, %s", spec.GetName())
		case rule.policy == harnessv1.ToolDecision_TOOL_DECISION_ASK, rule.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY:
			return fault.Invalid(at+".policy", "must be ALLOW")
		case rule.when != nil, rule.pattern != nil:
			return fault.Invalid(at, "must have no pattern and no when")
		case rule.host != nil && !visits(spec):
			return fault.Invalid(at+".host", "%s reaches no host that it names", spec.GetName())
		case rule.prefix == nil && rule.path == nil && rule.host == nil && given.GetCommand() == "":
			return fault.Invalid(at, "must have a prefix, a command, a path or a host: without rules the approval is for all calls of the tool")
		case given.GetCommand() != "" && !spec.GetAnnotations().GetExecutes():
			return fault.Invalid(at+".command", "%s runs no commands", spec.GetName())
		case rule.prefix != nil && !spec.GetAnnotations().GetExecutes():
			return fault.Invalid(at+".prefix", "%s runs no commands", spec.GetName())
		case rule.path != nil && spec.GetAnnotations().GetExecutes():
			return fault.Invalid(at+".path", "%s runs commands: give the prefix of its commands", spec.GetName())
		case rule.path != nil && sandbox.Guarded(inWorkspace(&policyCall{spec: spec, arguments: arguments}, workspace)) != "":
			return fault.Invalid(at+".path", "each call that writes this file is approved alone")
		}
	}
	if !Granted(slices.Concat(stored, rules), spec, arguments, workspace) {
		if visits(spec) {
			return fault.Invalid("rules", "they do not fit the call: a host must be that of its url")
		}
		return fault.Invalid("rules", "they do not fit the call: each simple command must begin with a prefix, and a path must match; "+
			"no prefix fits a command with substitutions, variables, redirections to files, assignments or groups, "+
			"or with an argument that makes its program run another one, such as -exec after go test; a command must be the line of the call")
	}
	return nil
}

// Propose returns the rules that an approval of a call for the rest of the run stores unless
// the person gives others: for a command the first words of its simple commands if their programs
// are known, the whole of the others, for a file its folder, for an address its host. There are
// none if no rule fits the call.
func Propose(spec *harnessv1.ToolSpec, arguments, workspace string) []*harnessv1.ToolRule {
	call := &policyCall{spec: spec, arguments: arguments}
	if spec.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST {
		return nil
	}
	rule := func() *harnessv1.ToolRule {
		return &harnessv1.ToolRule{Name: spec.GetName(), Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}
	}
	var rules []*harnessv1.ToolRule
	if line, ok := call.command(); ok {
		rules = proposeCommands(line, rule)
		if len(rules) == 0 || CheckGrant(rules, nil, spec, arguments, workspace) != nil {
			r := rule()
			r.Command = line
			rules = []*harnessv1.ToolRule{r}
		}
	} else if site, ok := call.site(); ok && visits(spec) {
		r := rule()
		r.Host = site.String()
		rules = append(rules, r)
	} else if file := inWorkspace(call, workspace); file != "" {
		r := rule()
		r.Path = literalGlob(path.Clean(file))
		if dir := path.Dir(path.Clean(file)); dir != "." {
			r.Path = literalGlob(dir) + "/**"
		}
		rules = append(rules, r)
	}
	if len(rules) == 0 || CheckGrant(rules, nil, spec, arguments, workspace) != nil {
		return nil
	}
	return rules
}

// proposeCommands returns a rule for each simple command of a line; none if the line is not
// plain, or if a part can only be allowed as the shell reads it now.
func proposeCommands(line string, rule func() *harnessv1.ToolRule) (rules []*harnessv1.ToolRule) {
	commands, _ := simpleCommands(line)
	for _, c := range commands {
		r := rule()
		if words := proposePrefix(c); words != nil {
			r.Prefix = written(words)
		} else if textsOf(c) != nil {
			r.Command = written(c)
		} else {
			return nil
		}
		if !slices.ContainsFunc(rules, func(o *harnessv1.ToolRule) bool {
			return o.GetPrefix() == r.GetPrefix() && o.GetCommand() == r.GetCommand()
		}) {
			rules = append(rules, r)
		}
	}
	return rules
}

// literalGlob returns the pattern that matches a path only.
func literalGlob(file string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(file)
}
