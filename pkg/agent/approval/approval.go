// Package approval checks what a person gives with an approval: rules that are stored for the
// rest of the run, and arguments with which a call runs instead of the model's. It is pure. The
// gateway checks an answer with it before the answer is stored, and repair again before it
// counts.
package approval

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/policy"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
)

const (
	// maxValue bounds what a result repeats of one changed argument, in bytes, and maxChanges
	// what it repeats of all.
	maxValue   = 1 << 10
	maxChanges = 4 << 10
)

// Needed reports whether an approval has something that is checked against the call.
func Needed(a *harnessv1.Approval) bool { return len(a.GetRules()) > 0 || a.GetArguments() != nil }

// Tool returns the tool of a call that waits for an approval or a review, as it was when the
// call was made; nil if the run does not know it.
func Tool(s runstate.TurnFields, call *harnessv1.PendingCall) *harnessv1.PendingTool {
	for _, t := range s.GetPendingTools() {
		if t.GetName() == call.GetTool() {
			return t
		}
	}
	return nil
}

// Spec returns the specification of a tool. schema is the text of its parameters_schema.
func Spec(t *harnessv1.PendingTool, schema string) *harnessv1.ToolSpec {
	return &harnessv1.ToolSpec{Name: t.GetName(), Origin: t.GetOrigin(), Annotations: t.GetAnnotations(), ParametersSchema: schema}
}

// Reached returns the tool whose rules hold for a call: spec, but for a wait for an address the
// one that reads it.
func Reached(call *harnessv1.PendingCall, spec *harnessv1.ToolSpec) *harnessv1.ToolSpec {
	if call.GetWait().GetUrl() == "" {
		return spec
	}
	return &harnessv1.ToolSpec{Name: webtool.Fetch, Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Reads: true}}
}

// Call is a call that waits for an approval, with all texts that a check needs.
type Call struct {
	Snapshot *harnessv1.Snapshot
	Pending  *harnessv1.PendingCall
	// Tool is its specification; nil if the run was parked by an earlier version.
	Tool *harnessv1.ToolSpec
	// Arguments are those that the call has.
	Arguments string
	// Policy of the agent.
	Policy *policy.Policy
}

// Check checks the rules and the arguments of an approval. arguments is the text of those. The
// error is a *fault.FieldError with a place in the approval.
func Check(c Call, a *harnessv1.Approval, arguments string) error {
	switch {
	case a.GetArguments() != nil && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE:
		return fault.Invalid("arguments", "need the decision ONCE")
	case len(a.GetRules()) > 0 && a.GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN:
		return fault.Invalid("rules", "need the decision RUN")
	case c.Tool == nil:
		return fault.Invalid("call_id", "the run was parked by an earlier version, so rules and arguments cannot be checked: approve the call once, or deny it")
	}
	if a.GetArguments() != nil {
		if err := checkArguments(c, arguments); err != nil {
			return err
		}
	}
	switch {
	case len(a.GetRules()) == 0:
		return nil
	case c.Pending.GetOnlyOnce():
		return fault.Invalid("rules", "this call is approved alone: no rule can allow another one like it")
	}
	return policy.CheckGrant(a.GetRules(), c.Snapshot.GetGrants(), Reached(c.Pending, c.Tool), c.Arguments, c.Snapshot.GetWorkspace())
}

// checkArguments checks the arguments of a changed call as those of the model were checked.
func checkArguments(c Call, arguments string) error {
	const field = "arguments"
	if c.Pending.GetWait() != nil {
		return fault.Invalid(field, "what %s waits for cannot be changed: deny it, with a reason", c.Pending.GetTool())
	}
	set, err := tool.NewSet([]*harnessv1.ToolSpec{c.Tool})
	if err != nil {
		return fault.Invalid(field, "%s", err)
	}
	if err := set.Validate(c.Tool.GetName(), arguments); err != nil {
		finding, _, _ := strings.Cut(err.Error(), "\n") // the schema follows, for the model
		return fault.Invalid(field, "%s", finding)
	}
	before, after := members(c.Arguments), members(arguments)
	if c.Tool.GetAnnotations().GetExecutes() {
		for _, name := range []string{"unconfined", "hosts"} {
			if !bytes.Equal(before[name], after[name]) {
				return fault.Invalid(field+"."+name, "decides how the command is confined and cannot be changed: deny the call, with a reason")
			}
		}
	}
	decision, why := c.Policy.Decide(c.Tool, arguments, policy.Exemptions{})
	if decision == harnessv1.ToolDecision_TOOL_DECISION_DENY {
		return fault.Invalid(field, "the policy of the agent denies this call: %s", why)
	}
	return nil
}

// Change replaces the arguments of a call by those of an approval, which Check has accepted.
// It changes call.
func Change(c Call, call *harnessv1.PendingCall, given *harnessv1.Content, arguments string) {
	call.Changes = changes(members(c.Arguments), members(arguments))
	if call.GetChanges() == "" {
		return
	}
	call.Arguments = proto.CloneOf(given)
	var path struct {
		Path string `json:"path"`
	}
	_ = json.Unmarshal([]byte(arguments), &path) // its schema was checked
	a := c.Tool.GetAnnotations()
	call.Guarded = a.GetWrites() && !a.GetExecutes() && c.Tool.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST &&
		path.Path != "" && sandbox.Guarded(path.Path) != ""
	if call.GetPreview() != nil { // the person has read the arguments instead of the diff
		call.Preview = proto.CloneOf(call.GetPreview())
		call.Preview.Files = nil
	}
}

// Covers reports whether rules of an approval fit another call that waits for one. Arguments
// that are stored as a blob are not read, so no rule fits them.
func Covers(s *harnessv1.Snapshot, call *harnessv1.PendingCall, rules []*harnessv1.ToolRule) bool {
	t := Tool(s, call)
	if t == nil || call.GetOnlyOnce() || call.GetGuarded() || call.GetWait() != nil || call.GetArguments().GetBlob() != nil {
		return false
	}
	return policy.Granted(slices.Concat(s.GetGrants(), rules), Spec(t, ""), call.GetArguments().GetInline(), s.GetWorkspace())
}

// changes returns what differs between arguments, for the model; empty if nothing does.
func changes(before, after map[string]json.RawMessage) string {
	names := slices.Sorted(maps.Keys(before))
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == nil {
			names = append(names, name)
		}
	}
	var b strings.Builder
	for _, name := range names {
		switch value := after[name]; {
		case bytes.Equal(before[name], value):
		case value == nil:
			fmt.Fprintf(&b, "- %s: left out\n", content.Clip(name, 80))
		default:
			text := content.Cut(string(value), maxValue)
			if len(text) < len(value) {
				text += fmt.Sprintf("… (%d bytes)", len(value))
			}
			fmt.Fprintf(&b, "- %s: %s\n", content.Clip(name, 80), text)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return changedCall + content.Cut(b.String(), maxChanges) + itsResult
}

const (
	// changedCall begins the result of a call that the user changed, itsResult ends the changes.
	changedCall = "The user changed this call before it ran. It ran with:\n"
	itsResult   = "Its result:\n"
)

// Result returns the result of a call without what it says of changes of the user.
func Result(text string) string {
	if rest, found := strings.CutPrefix(text, changedCall); found {
		if _, result, found := strings.Cut(rest, itsResult); found {
			return result
		}
	}
	return text
}

// members returns the arguments of a call in one spelling; nil if they are no object.
func members(arguments string) map[string]json.RawMessage {
	var values map[string]any
	decoder := json.NewDecoder(strings.NewReader(cmp.Or(strings.TrimSpace(arguments), "{}")))
	decoder.UseNumber()
	if decoder.Decode(&values) != nil {
		return nil
	}
	all := make(map[string]json.RawMessage, len(values))
	for name, value := range values {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if encoder.Encode(value) == nil {
			all[name] = bytes.TrimSuffix(b.Bytes(), []byte("\n"))
		}
	}
	return all
}

// Disguised returns the parts of the arguments of a call that read otherwise than they are, see
// content.Disguised.
func Disguised(arguments string) []string {
	var values any
	if json.Unmarshal([]byte(arguments), &values) != nil {
		return content.Disguised(arguments)
	}
	var texts strings.Builder
	collect(&texts, values)
	return content.Disguised(texts.String())
}

// collect writes the names and the texts of a value, each on separate lines.
func collect(texts *strings.Builder, value any) {
	switch v := value.(type) {
	case string:
		texts.WriteString(v + "\n")
	case []any:
		for _, item := range v {
			collect(texts, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			texts.WriteString(name + "\n")
			collect(texts, v[name])
		}
	}
}
