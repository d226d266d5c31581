package event

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// GuidanceInjected reports that the harness told the model text. rule names the
// rule, hook or executor that it comes from, and is empty for other kinds.
func GuidanceInjected(kind, rule, text string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{
		Kind: kind, RuleId: rule, Text: content.Cut(text, content.MaxPreview),
	}}}
}

// HookResult reports the verdict of a hook.
func HookResult(hookID, topic, action, reason string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{
		HookId: hookID, Topic: topic, Action: action, Reason: reason,
	}}}
}

// HookError reports that a hook, a context provider or a just-in-time rule
// failed. failedClosed is true if the failure counts as a refusal.
func HookError(hookID, topic, message string, failedClosed bool) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{
		HookId: hookID, Topic: topic, Error: message, FailedClosed: failedClosed,
	}}}
}
