// Package policy decides whether a tool call runs, needs an approval or is denied. It
// compiles the tool policy of an agent. It is pure, and a compiled Policy is safe for
// concurrent use.
package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/harnessmesh/harnessmesh/pkg/agent/expr"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

const (
	maxPattern = 4 << 10 // bytes of a pattern
	maxReason  = 1 << 10 // bytes of a reason
	// maxPath bounds a path argument in bytes, maxFolders the folders of an absolute one.
	// A longer path matches every rule that restricts.
	maxPath    = 4 << 10
	maxFolders = 64
)

// Policy is the tool policy of an agent. A nil Policy has no rules.
//
// A rule matches a call if it names the tool or "*", its pattern matches the call's text
// and its condition is true. The text is the argument command of a tool that executes
// commands, otherwise the argument path, otherwise the arguments as JSON with sorted
// keys and without white space.
//
// A rule that restricts matches in case of doubt: if its pattern matches a path as
// written, cleaned, or, for an absolute path, from any of its folders on; and if its
// condition cannot be evaluated, for example because an argument has another type. A
// rule that allows matches only if its pattern matches the path as written and cleaned,
// and if its condition can be evaluated. A condition over a missing argument is false.
//
// A prefix fits a command line if each of its simple commands begins with the words, and a
// path fits the argument path, relative to the workspace. A prefix that restricts also fits a
// line with one such command, and a line that is not plain (see simpleCommands).
//
// Patterns match texts. They prevent mistakes, but they do not confine a model that
// wants to bypass them, because a command has many spellings.
type Policy struct {
	rules []policyRule
	// stricter are policies that only restrict: the strictest decision counts.
	stricter []*Policy
}

type policyRule struct {
	name    string
	policy  harnessv1.ToolDecision
	when    *expr.Program  // nil: any call
	pattern *regexp.Regexp // nil: any text
	prefix  prefix         // nil: any command
	path    *filePattern   // nil: any path
	host    *sandbox.Host  // nil: any host
	reason  string
}

// Compile checks and compiles the rules of a policy, and other policies whose decisions count where they are stricter. The error is a
// *fault.FieldError.
func Compile(rules []*harnessv1.ToolRule, stricter ...*harnessv1.ToolPolicy) (*Policy, error) {
	p, err := compile("tools", rules)
	if err != nil {
		return nil, err
	}
	for i, given := range stricter {
		other, err := compile("rules", given.GetRules())
		if err != nil {
			return nil, fault.In(fmt.Sprintf("policies[%d]", i), err)
		}
		p.stricter = append(p.stricter, other)
	}
	return p, nil
}

func compile(field string, rules []*harnessv1.ToolRule) (*Policy, error) {
	p := &Policy{rules: make([]policyRule, 0, len(rules))}
	for i, given := range rules {
		rule, err := compileRule(given)
		if err != nil {
			return nil, fault.In(fmt.Sprintf("%s[%d]", field, i), err)
		}
		p.rules = append(p.rules, rule)
	}
	return p, nil
}

func compileRule(given *harnessv1.ToolRule) (policyRule, error) {
	rule := policyRule{name: given.GetName(), policy: given.GetPolicy(), reason: given.GetReason()}
	switch {
	case !tool.ValidPattern(rule.name):
		return rule, fault.Invalid("name", "invalid tool name %q: expected * or a name that matches [A-Za-z0-9_-]{1,64}, with * for any characters", content.Clip(rule.name, 80))
	case harnessv1.ToolDecision_name[int32(rule.policy)] == "":
		return rule, fault.Invalid("policy", "unknown policy %d: expected ALLOW, ASK or DENY", rule.policy)
	case len(given.GetPattern()) > maxPattern:
		return rule, fault.Invalid("pattern", "%d bytes exceed the limit of %d", len(given.GetPattern()), maxPattern)
	case given.GetCommand() != "":
		return rule, fault.Invalid("command", "only rules of approvals have a command: use a prefix")
	case given.GetPrefix() != "" && given.GetPath() != "":
		return rule, fault.Invalid("path", "a rule has a prefix or a path: leave out one of them")
	case given.GetHost() != "" && given.GetPrefix()+given.GetPath() != "":
		return rule, fault.Invalid("host", "a rule with a host has no prefix and no path")
	case len(rule.reason) > maxReason:
		return rule, fault.Invalid("reason", "%d bytes exceed the limit of %d", len(rule.reason), maxReason)
	}
	var err error
	if given.GetPrefix() != "" {
		if rule.prefix, err = parsePrefix(given.GetPrefix()); err != nil {
			return rule, err
		}
	}
	if given.GetPath() != "" {
		if rule.path, err = parsePath(given.GetPath()); err != nil {
			return rule, err
		}
	}
	if given.GetHost() != "" {
		h, err := webtool.ParseHost(given.GetHost())
		if err != nil {
			return rule, fault.Invalid("host", "%s", err)
		}
		rule.host = &h
	}
	if given.GetWhen() != "" {
		if rule.when, err = expr.Tool.Compile(given.GetWhen()); err != nil {
			return rule, fault.In("when", err)
		}
	}
	if given.GetPattern() != "" {
		if rule.pattern, err = regexp.Compile(given.GetPattern()); err != nil {
			message := err.Error()
			var at *syntax.Error
			if errors.As(err, &at) {
				message = fmt.Sprintf("%s: %s", at.Code, content.Clip(at.Expr, 80))
			}
			return rule, fault.Invalid("pattern", "invalid regular expression (RE2): %s", message)
		}
	}
	return rule, nil
}

// Exemptions are reasons for which a call needs no approval.
type Exemptions struct {
	// Granted are the tools that were approved for the whole run.
	Granted []string
	// Rules are those that approvals for the rest of the run have stored, and Workspace the
	// directory that their paths are relative to.
	Rules     []*harnessv1.ToolRule
	Workspace string
	// Yolo is true if no tool of this run asks.
	Yolo bool
	// Confined is true if the call is a command that the sandbox holds completely.
	Confined bool
	// Guarded is why a call that runs no command needs an approval; empty if it needs none.
	Guarded string
	// Outside is why a call that reaches a host needs an approval; empty if it needs none, or
	// reaches none.
	Outside string
	// Each is true if no approval of another call exempts this one.
	Each bool
}

// Decide decides about a call of a tool with arguments, and returns the reason. The last
// matching rule decides, but a matching denial with a condition or a pattern is final
// whatever follows it. Without a matching rule a tool that executes commands needs an
// approval, unless the sandbox holds it completely, and so does a call that writes a guarded
// file; any other call runs. Of this decision and those of the stricter policies the strictest
// counts: deny, ask, allow. A granted tool, or yolo, needs no approval, and a call that rules of
// approvals fit needs none unless it writes a guarded file; a denial still holds.
func (p *Policy) Decide(spec *harnessv1.ToolSpec, arguments string, e Exemptions) (decision harnessv1.ToolDecision, why string) {
	call := &policyCall{spec: spec, arguments: arguments}
	if decision, why = p.byRule(spec, call); decision == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED {
		decision, why = byDefault(spec, e)
	}
	decision, why = p.strictest(spec, call, decision, why)
	return p.exempt(spec, arguments, e, decision, why)
}

// byDefault returns the decision about a call that no rule matches.
func byDefault(spec *harnessv1.ToolSpec, e Exemptions) (harnessv1.ToolDecision, string) {
	switch {
	case webtool.Is(spec.GetName()) && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST:
		if e.Outside == "" {
			return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "no rule speaks against it"
		}
		return harnessv1.ToolDecision_TOOL_DECISION_ASK, e.Outside
	case spec.GetAnnotations().GetAsks() && e.Guarded == "":
		return harnessv1.ToolDecision_TOOL_DECISION_ASK, "it comes from a server"
	case !spec.GetAnnotations().GetExecutes() && e.Guarded == "":
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "no rule speaks against it"
	case spec.GetAnnotations().GetExecutes() && e.Confined:
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "it runs in the sandbox, without network"
	}
	return harnessv1.ToolDecision_TOOL_DECISION_ASK, cmp.Or(e.Guarded, "it runs commands")
}

// Restricts reports whether a rule asks for or denies some calls of a tool, and not all of them.
func (p *Policy) Restricts(name string) bool {
	if p == nil {
		return false
	}
	return slices.ContainsFunc(p.rules, func(r policyRule) bool {
		return r.policy != harnessv1.ToolDecision_TOOL_DECISION_ALLOW && tool.Matches(r.name, name) && r.narrowed()
	}) || slices.ContainsFunc(p.stricter, func(o *Policy) bool { return o.Restricts(name) })
}

// narrowed reports whether a rule is for some calls of its tools only.
func (r policyRule) narrowed() bool {
	return r.when != nil || r.pattern != nil || r.prefix != nil || r.path != nil || r.host != nil
}

// exempt returns the decision about a call that needs an approval unless it is exempt, and any
// other decision unchanged.
func (p *Policy) exempt(spec *harnessv1.ToolSpec, arguments string, e Exemptions, decision harnessv1.ToolDecision, why string) (harnessv1.ToolDecision, string) {
	if decision != harnessv1.ToolDecision_TOOL_DECISION_ASK {
		return decision, why
	}
	switch {
	case slices.Contains(e.Granted, spec.GetName()) && !e.Each:
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "granted for this run"
	case e.Guarded == "" && !e.Each && Granted(e.Rules, spec, arguments, e.Workspace):
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "a rule that was approved for this run fits"
	case e.Yolo:
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "asking is switched off for this run"
	}
	return decision, why
}

// byRule returns the decision of the rules, unspecified if none matches.
func (p *Policy) byRule(spec *harnessv1.ToolSpec, call *policyCall) (harnessv1.ToolDecision, string) {
	decision, why := harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED, ""
	if p != nil {
		decided := false
		for _, rule := range slices.Backward(p.rules) {
			final := rule.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY && rule.narrowed()
			if decided && !final {
				continue
			}
			matches, reason := rule.matches(spec, call)
			if !matches {
				continue
			}
			if final {
				return rule.policy, reason
			}
			decided, decision, why = true, rule.policy, reason
		}
	}
	return decision, why
}

// matches reports whether the rule matches a call, and its reason if it does.
func (r policyRule) matches(spec *harnessv1.ToolSpec, call *policyCall) (matches bool, why string) {
	if !tool.Matches(r.name, spec.GetName()) {
		return false, ""
	}
	why = r.reason
	if strings.TrimSpace(why) == "" {
		why = fmt.Sprintf("the rule for %q decides", r.name)
		if r.pattern != nil {
			why = fmt.Sprintf("the rule for %q with the pattern %q decides", r.name, content.Clip(r.pattern.String(), 200))
		}
		if r.prefix != nil {
			why = fmt.Sprintf("the rule for %q with the prefix %q decides", r.name, content.Clip(strings.Join(r.prefix, " "), 200))
		}
		if r.path != nil {
			why = fmt.Sprintf("the rule for %q with the path %q decides", r.name, content.Clip(strings.Join(r.path.Pattern, "/"), 200))
		}
	}
	if r.host != nil && strings.TrimSpace(r.reason) == "" {
		why = fmt.Sprintf("the rule for %q with the host %q decides", r.name, r.host.Name)
	}
	restricts := r.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY || r.policy == harnessv1.ToolDecision_TOOL_DECISION_ASK
	if r.pattern != nil && !call.found(r.pattern, restricts) || !r.fits(call, restricts) {
		return false, ""
	}
	if r.when == nil {
		return true, why
	}
	holds, err := call.holds(r.when)
	if err != nil {
		return restricts, why + " (its condition cannot be evaluated for this call: " + content.Clip(err.Error(), 200) + ")"
	}
	return holds, why
}

// policyCall is a call as rules see it.
type policyCall struct {
	spec      *harnessv1.ToolSpec
	arguments string

	parsed bool
	args   map[string]any // nil when the arguments are no object
}

func (c *policyCall) parse() map[string]any {
	if !c.parsed {
		c.parsed = true
		text := c.arguments
		if strings.TrimSpace(text) == "" {
			text = "{}"
		}
		if value, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			c.args, _ = value.(map[string]any)
		}
	}
	return c.args
}

// holds evaluates a condition over the call.
func (c *policyCall) holds(when *expr.Program) (bool, error) {
	args := c.parse()
	if args == nil {
		return false, errors.New("the arguments are not a JSON object")
	}
	return when.Holds(map[string]any{"tool": c.spec.GetName(), "args": args})
}

// found reports whether a pattern matches the text of the call: any of its spellings for
// a rule that restricts, all of them for a rule that allows.
func (c *policyCall) found(pattern *regexp.Regexp, restricts bool) bool {
	args := c.parse()
	if command, ok := args["command"].(string); ok && c.spec.GetAnnotations().GetExecutes() {
		return pattern.MatchString(command)
	}
	file, ok := args["path"].(string)
	switch {
	case !ok:
		return pattern.MatchString(c.text())
	case len(file) > maxPath: // too long for the path of a file
		return restricts
	case !restricts:
		return pattern.MatchString(file) && pattern.MatchString(path.Clean(file))
	}
	cleaned := path.Clean(file)
	if pattern.MatchString(file) || pattern.MatchString(cleaned) {
		return true
	}
	if !path.IsAbs(cleaned) {
		return false
	}
	if strings.Count(cleaned, "/") > maxFolders {
		return true
	}
	for i := range cleaned { // the workspace may be any of its folders
		if cleaned[i] == '/' && pattern.MatchString(cleaned[i+1:]) {
			return true
		}
	}
	return false
}

// text returns the arguments in one spelling; unchanged if they are no JSON object.
func (c *policyCall) text() string {
	if c.args == nil {
		return c.arguments
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(c.args) != nil {
		return c.arguments
	}
	return strings.TrimSuffix(b.String(), "\n")
}
