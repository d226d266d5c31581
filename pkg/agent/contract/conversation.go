package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// checkTranscript searches the texts of the model and the results of tools, newest
// first. It does not search messages in the user's place (the goal, the contract,
// guidance, gap reports), arguments of calls, or results that the harness wrote for a
// tool without a result. What an error repeats of the arguments of its call is not the
// tool's own text.
func (o *output) checkTranscript(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	messages, err := src.Messages(ctx)
	if err != nil {
		return nil, err
	}
	// A message that cannot be read does not hide the others.
	var unread error
	for _, m := range slices.Backward(messages) {
		if !isSearched(m) {
			continue
		}
		text, err := src.Text(ctx, m.GetContent())
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			unread = err
			continue
		}
		given, err := givenTexts(ctx, src, messages, m)
		if err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			unread = err
			continue
		}
		if at := findOwn(o.pattern, text, given); at != nil {
			return met("text", digest(text), around(text, at)), nil
		}
	}
	if unread != nil {
		return nil, unread
	}
	return unmet("nothing that you wrote and no tool result matches %s", o.shownPattern()), nil
}

func isSearched(m *harnessv1.Message) bool {
	return m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED &&
		(m.GetRole() == harnessv1.Role_ROLE_ASSISTANT || m.GetRole() == harnessv1.Role_ROLE_TOOL)
}

// checkCall finds the latest call that matches, and returns whether it succeeded.
func (o *output) checkCall(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	messages, err := src.Messages(ctx)
	if err != nil {
		return nil, err
	}
	for i, m := range slices.Backward(messages) {
		for _, call := range slices.Backward(m.GetToolCalls()) {
			if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT || call.GetName() != o.predicate().GetTool() {
				continue
			}
			match, err := o.matches(ctx, src, call)
			if err != nil {
				return nil, err
			}
			if match {
				return callCoverage(call, messages[i+1:]), nil
			}
		}
	}
	return unmet("%s has not been called", o.shownCall()), nil
}

// callCoverage returns the coverage from the first result of a call in the messages that
// follow it.
func callCoverage(call *harnessv1.ToolCall, following []*harnessv1.Message) *harnessv1.RequirementCoverage {
	for _, m := range following {
		if m.GetRole() != harnessv1.Role_ROLE_TOOL || m.GetToolCallId() != call.GetId() {
			continue
		}
		switch {
		case m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_REPAIR:
			return unmet("nobody knows how the latest call of %s (%s) ended: %s", call.GetName(), call.GetId(), excerpt(m.GetContent()))
		case m.GetIsError():
			return unmet("the latest call of %s (%s) failed: %s", call.GetName(), call.GetId(), excerpt(m.GetContent()))
		}
		return met("tool_call", "", call.GetName()+" ("+call.GetId()+"): "+excerpt(m.GetContent()))
	}
	return unmet("the latest call of %s (%s) has no result yet", call.GetName(), call.GetId())
}

// matches reports whether the arguments of a call match. Arguments that are no JSON
// object match no condition.
func (o *output) matches(ctx context.Context, src Sources, call *harnessv1.ToolCall) (bool, error) {
	if len(o.arguments) == 0 {
		return true, nil
	}
	text, err := src.Text(ctx, call.GetArguments())
	if err != nil {
		return false, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var given map[string]any
	if decoder.Decode(&given) != nil {
		return false, nil
	}
	for _, a := range o.arguments {
		value, ok := findArgument(given, a.name)
		if !ok || !a.pattern.MatchString(argumentText(value)) {
			return false, nil
		}
	}
	return true, nil
}

// findArgument returns the argument with a name: the key of that name, otherwise the
// path of keys that the dots separate.
func findArgument(given map[string]any, name string) (any, bool) {
	if value, ok := given[name]; ok {
		return value, true
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if inner, ok := given[name[:i]].(map[string]any); ok {
			if value, ok := findArgument(inner, name[i+1:]); ok {
				return value, true
			}
		}
	}
	return nil, false
}

// argumentText returns a value as patterns see it: text unchanged, other values as JSON.
func argumentText(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return ""
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// shownCall describes the required call for the model.
func (o *output) shownCall() string {
	p := o.predicate()
	text := p.GetTool()
	for i, a := range p.GetArguments() {
		word := " and "
		if i == 0 {
			word = " with "
		}
		text += word + a.GetName() + " matching /" + clip(a.GetPattern(), 60) + "/"
		if len(text) > 160 {
			return clip(text, 160)
		}
	}
	return text
}

// excerpt returns the first 120 bytes of a content, for a blob those of its preview.
func excerpt(c *harnessv1.Content) string {
	if blob := c.GetBlob(); blob != nil {
		return clip(blob.GetPreview(), 120)
	}
	return clip(c.GetInline(), 120)
}
