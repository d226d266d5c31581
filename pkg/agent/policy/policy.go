// Package policy decides whether a call of a tool runs, asks a person first or is denied:
// the tool policy of an agent, compiled once. It is pure; a compiled Policy may be used
// by many goroutines.
package policy

import (
	"bytes"
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
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

const (
	// Bytes of a rule's pattern and of its reason.
	maxPattern = 4 << 10
	maxReason  = 1 << 10
	// Bytes of an argument that can be the path of a file, and folders in one that is
	// absolute; longer ones fit all rules that restrict.
	maxPath    = 4 << 10
	maxFolders = 64
)

// Policy is the tool policy of an agent. A nil Policy has no rules.
//
// A rule fits a call when it names the tool or "*", its pattern finds the call's
// text and its condition holds. The text is the argument command of a tool that
// executes, else the argument path, else the arguments as JSON with sorted keys
// and without white space. Rules that restrict are cautious, in favour of the
// restriction: a path is looked at as it is written, cleaned, and, where it is
// absolute, from each of its folders on; a condition that cannot be evaluated,
// for example over an argument of another type, fits. A rule that allows fits
// only if the path matches as it is written and cleaned, and if its condition can
// be evaluated. A condition over an argument that is not there does not hold.
//
// Patterns look at texts. They are a guard against mistakes, and no border for a
// model that wants to get around them: there are many ways to spell a command.
type Policy struct{ rules []policyRule }

type policyRule struct {
	name    string
	policy  harnessv1.ToolDecision
	when    *expr.Program  // nil: not asked
	pattern *regexp.Regexp // nil: not asked
	reason  string
}

// Compile checks and compiles the rules of a policy. The error is a
// *fault.FieldError.
func Compile(rules []*harnessv1.ToolRule) (*Policy, error) {
	p := &Policy{rules: make([]policyRule, 0, len(rules))}
	for i, given := range rules {
		rule, err := compileRule(given)
		if err != nil {
			return nil, fault.In(fmt.Sprintf("tools[%d]", i), err)
		}
		p.rules = append(p.rules, rule)
	}
	return p, nil
}

func compileRule(given *harnessv1.ToolRule) (policyRule, error) {
	rule := policyRule{name: given.GetName(), policy: given.GetPolicy(), reason: given.GetReason()}
	switch {
	case rule.name != "*" && !tool.ValidName(rule.name):
		return rule, fault.Invalid("name", "%q is neither * nor the name of a tool, which matches [A-Za-z0-9_-]{1,64}", content.Clip(rule.name, 80))
	case harnessv1.ToolDecision_name[int32(rule.policy)] == "":
		return rule, fault.Invalid("policy", "%d is no policy; it must be ALLOW, ASK or DENY", rule.policy)
	case len(given.GetPattern()) > maxPattern:
		return rule, fault.Invalid("pattern", "has %d bytes; at most %d are allowed", len(given.GetPattern()), maxPattern)
	case len(rule.reason) > maxReason:
		return rule, fault.Invalid("reason", "has %d bytes; at most %d are allowed", len(rule.reason), maxReason)
	}
	var err error
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
			return rule, fault.Invalid("pattern", "is no regular expression (RE2): %s", message)
		}
	}
	return rule, nil
}

// Decide says whether a call of the tool with these arguments runs, and why. The
// last rule that fits decides, and a denial with a condition or a pattern that
// fits stands whatever comes after it; without a rule a tool that executes
// commands is asked for and any other runs. A granted tool and yolo turn a
// question into a yes, never a denial.
func (p *Policy) Decide(spec *harnessv1.ToolSpec, arguments string, granted []string, yolo bool) (decision harnessv1.ToolDecision, why string) {
	decision, why = p.byRule(spec, &policyCall{spec: spec, arguments: arguments})
	if decision != harnessv1.ToolDecision_TOOL_DECISION_ASK {
		return decision, why
	}
	switch {
	case slices.Contains(granted, spec.GetName()):
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "granted for this run"
	case yolo:
		return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "asking is switched off for this run"
	}
	return decision, why
}

// Decide is Policy.Decide for a tool of which no call is known: rules with a
// condition or a pattern are passed over.
func Decide(rules []*harnessv1.ToolRule, spec *harnessv1.ToolSpec, granted []string, yolo bool) (decision harnessv1.ToolDecision, why string) {
	plain := &Policy{}
	for _, rule := range rules {
		if rule.GetWhen() == "" && rule.GetPattern() == "" {
			plain.rules = append(plain.rules, policyRule{name: rule.GetName(), policy: rule.GetPolicy(), reason: rule.GetReason()})
		}
	}
	return plain.Decide(spec, "", granted, yolo)
}

func (p *Policy) byRule(spec *harnessv1.ToolSpec, call *policyCall) (harnessv1.ToolDecision, string) {
	decision, why := harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED, ""
	if p != nil {
		decided := false
		for _, rule := range slices.Backward(p.rules) {
			stands := rule.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY && (rule.when != nil || rule.pattern != nil)
			if decided && !stands {
				continue
			}
			fits, because := rule.fits(spec, call)
			if !fits {
				continue
			}
			if stands {
				return rule.policy, because
			}
			decided, decision, why = true, rule.policy, because
		}
	}
	switch {
	case decision != harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED:
		return decision, why
	case spec.GetAnnotations().GetExecutes():
		return harnessv1.ToolDecision_TOOL_DECISION_ASK, "it runs commands"
	}
	return harnessv1.ToolDecision_TOOL_DECISION_ALLOW, "no rule speaks against it"
}

// fits says whether the rule fits a call, and why it decides then.
func (r policyRule) fits(spec *harnessv1.ToolSpec, call *policyCall) (fits bool, why string) {
	if r.name != "*" && r.name != spec.GetName() {
		return false, ""
	}
	why = r.reason
	if strings.TrimSpace(why) == "" {
		why = fmt.Sprintf("the rule for %q decides", r.name)
		if r.pattern != nil {
			why = fmt.Sprintf("the rule for %q with the pattern %q decides", r.name, content.Clip(r.pattern.String(), 200))
		}
	}
	restricts := r.policy == harnessv1.ToolDecision_TOOL_DECISION_DENY || r.policy == harnessv1.ToolDecision_TOOL_DECISION_ASK
	if r.pattern != nil && !call.found(r.pattern, restricts) {
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

// policyCall is a call as rules look at it.
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

// found says whether a pattern finds the text of the call: in any of its
// spellings for a rule that restricts, in all of them for one that does not.
func (c *policyCall) found(pattern *regexp.Regexp, restricts bool) bool {
	args := c.parse()
	if command, ok := args["command"].(string); ok && c.spec.GetAnnotations().GetExecutes() {
		return pattern.MatchString(command)
	}
	file, ok := args["path"].(string)
	switch {
	case !ok:
		return pattern.MatchString(c.text())
	case len(file) > maxPath: // no path of a file
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

// text is the arguments in one spelling, or as they are where they are no object.
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
