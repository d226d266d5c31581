package contract

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// lookInTranscript looks for a text in what the model said and in what tools
// answered, newest first. What stands there in the user's place (the goal, the
// contract, guidance, gap reports) does not count, nor do the arguments of
// calls, nor answers that the harness wrote for a tool that never answered.
func (o *output) lookInTranscript(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	messages, err := src.Messages(ctx)
	if err != nil {
		return nil, err
	}
	// A message that cannot be read does not hide one behind it.
	var unread error
	for _, m := range slices.Backward(messages) {
		if !counts(m) {
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
		if at := o.pattern.FindStringIndex(text); at != nil {
			return met("text", digest(text), around(text, at)), nil
		}
	}
	if unread != nil {
		return nil, unread
	}
	return unmet("nothing that you wrote and no tool result matches %s", o.shownPattern()), nil
}

func counts(m *harnessv1.Message) bool {
	return m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED &&
		(m.GetRole() == harnessv1.Role_ROLE_ASSISTANT || m.GetRole() == harnessv1.Role_ROLE_TOOL)
}

// lookForCall judges the latest call that fits by its result.
func (o *output) lookForCall(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	messages, err := src.Messages(ctx)
	if err != nil {
		return nil, err
	}
	for i, m := range slices.Backward(messages) {
		for _, call := range slices.Backward(m.GetToolCalls()) {
			if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT || call.GetName() != o.predicate().GetTool() {
				continue
			}
			fits, err := o.fits(ctx, src, call)
			if err != nil {
				return nil, err
			}
			if fits {
				return judgeCall(call, messages[i+1:]), nil
			}
		}
	}
	return unmet("%s has not been called", o.shownCall()), nil
}

// judgeCall looks for the first result of a call in the messages behind it.
func judgeCall(call *harnessv1.ToolCall, behind []*harnessv1.Message) *harnessv1.RequirementCoverage {
	for _, m := range behind {
		if m.GetRole() != harnessv1.Role_ROLE_TOOL || m.GetToolCallId() != call.GetId() {
			continue
		}
		switch {
		case m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_REPAIR:
			return unmet("nobody knows how the latest call of %s (%s) ended: %s", call.GetName(), call.GetId(), beginning(m.GetContent()))
		case m.GetIsError():
			return unmet("the latest call of %s (%s) failed: %s", call.GetName(), call.GetId(), beginning(m.GetContent()))
		}
		return met("tool_call", "", call.GetName()+" ("+call.GetId()+"): "+beginning(m.GetContent()))
	}
	return unmet("the latest call of %s (%s) has no result yet", call.GetName(), call.GetId())
}

// fits reports whether the arguments of a call match. What is no JSON object
// has no arguments.
func (o *output) fits(ctx context.Context, src Sources, call *harnessv1.ToolCall) (bool, error) {
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
		value, is := argumentOf(given, a.name)
		if !is || !a.pattern.MatchString(written(value)) {
			return false, nil
		}
	}
	return true, nil
}

// argumentOf looks an argument up: a key of that name, else the way that the
// dots lead.
func argumentOf(given map[string]any, name string) (any, bool) {
	if value, is := given[name]; is {
		return value, true
	}
	for i, c := range name {
		if c != '.' {
			continue
		}
		if inner, is := given[name[:i]].(map[string]any); is {
			if value, is := argumentOf(inner, name[i+1:]); is {
				return value, true
			}
		}
	}
	return nil, false
}

// written is a value as patterns see it: text as it is, else JSON.
func written(value any) string {
	if text, is := value.(string); is {
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

// shownCall is the call that is looked for, as it is shown to the model.
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

// beginning is the first text of a content, as far as it is known without
// reading a blob.
func beginning(c *harnessv1.Content) string {
	if blob := c.GetBlob(); blob != nil {
		return clip(blob.GetPreview(), 120)
	}
	return clip(c.GetInline(), 120)
}
