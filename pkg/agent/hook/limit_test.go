package hook_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestTextsOfAHookAreCleaned: the model and people read them.
func TestTextsOfAHookAreCleaned(t *testing.T) {
	const hostile = "no\x1b]0;t\x07\u009b2J\u202e\n\tindeed"
	failed := hook.Limit(&harnessv1.HookOutcome{Error: hostile})
	if failed.GetError() != "no ]0;t 2J indeed" {
		t.Errorf("%q", failed.GetError())
	}
	given := &harnessv1.HookVerdict{Reason: hostile, Context: hostile, Payload: `{"a":1}`}
	v := hook.Limit(&harnessv1.HookOutcome{Verdict: given}).GetVerdict()
	for _, text := range []string{v.GetReason(), v.GetContext()} {
		if !strings.HasPrefix(text, "no\uFFFD]0;t") || !strings.HasSuffix(text, "\n\tindeed") || strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(text), content.Controls) {
			t.Errorf("%q", text)
		}
	}
	if v.GetPayload() != given.GetPayload() || given.GetReason() != hostile {
		t.Errorf("%v from %v", v, given)
	}
	// A text that grows by what replaces its characters stays within its bound.
	v = hook.Limit(&harnessv1.HookOutcome{Verdict: &harnessv1.HookVerdict{Reason: strings.Repeat("\x1b", hook.MaxReason)}}).GetVerdict()
	if len(v.GetReason()) > hook.MaxReason || v.GetReason() == "" {
		t.Errorf("a reason of %d bytes", len(v.GetReason()))
	}
}
