package mesh

import (
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// TestPromptsAreReplaced: a prompt that is set counts for runs that start later, and one that is
// unset is the built-in one again.
func TestPromptsAreReplaced(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	ctx, client := t.Context(), m.Client()
	workspace := newWorkspace(t)
	runs := 0
	prompt := func() string {
		t.Helper()
		runs++
		run := runlog.Run{Namespace: "default", ID: fmt.Sprint("judged", runs)}
		s := spec(scriptFile("brief", brief), workspace)
		withQuality("synthesis")(s)
		if _, err := client.StartRun(ctx, &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
			t.Fatal(err)
		}
		m.Ended(run, 0)
		c, err := client.GetConversation(ctx, &harnessv1.GetConversationRequest{RunId: run.ID})
		if err != nil || len(c.GetMessages()) == 0 {
			t.Fatalf("%v %v", c, err)
		}
		return c.GetMessages()[0].GetContent().GetInline()
	}
	const text = "In this house, good work is short."
	for _, c := range []struct{ id, tier, text string }{{"quality_preamble", "", text}, {"quality_preamble", "gold", "Only for gold."}} {
		if _, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Id: c.id, Tier: c.tier, Text: c.text}); err != nil {
			t.Fatal(err)
		}
	}
	meshtest.Eventually(t, "the next run has the prompt", func() bool { return strings.Contains(prompt(), text) })
	for _, c := range []struct{ id, text, want string }{
		{"unknown", "x", "unknown prompt"}, {"healing", strings.Repeat("x", 20<<10), "at most 16384"},
	} {
		if _, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Id: c.id, Text: c.text}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.id, err)
		}
	}
	list, err := client.GetPrompts(ctx, &harnessv1.GetPromptsRequest{})
	if err != nil || len(list.GetPrompts()) != 11 {
		t.Errorf("%v %v", list, err)
	}
	if _, err := client.SetPrompt(ctx, &harnessv1.SetPromptRequest{Id: "quality_preamble"}); err != nil {
		t.Fatal(err)
	}
	meshtest.Eventually(t, "the built-in prompt is back", func() bool { return !strings.Contains(prompt(), text) })
}
