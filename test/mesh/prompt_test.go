package mesh

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemPromptsAreReplaced: a prompt that is set counts for runs that start later, and one that is
// unset is the built-in one again.
func TestSystemPromptsAreReplaced(t *testing.T) {
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
	waittest.Eventually(t, "the next run has the prompt", func() bool { return strings.Contains(prompt(), text) })
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
	waittest.Eventually(t, "the built-in prompt is back", func() bool { return !strings.Contains(prompt(), text) })
}

// TestSystemJudgeReceivesThePromptOfTheTier: the request of the verifier that a strict server of the
// provider receives begins with the text of the tier of the token that started the run, keeps the
// form of the answer, and the log has the digest.
func TestSystemJudgeReceivesThePromptOfTheTier(t *testing.T) {
	t.Parallel()
	judge := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: `{"passed":true,"score":0.9,"issues":[],"feedback":"Good.","level":"MEDIUM","reason":"one question","subtask_count":1}`}
	})
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{"gateway"}, Env: []string{"ANTHROPIC_BASE_URL=" + judge.MessagesURL()}})
	m.Start("gateway", meshtest.Args("--tokens", m.Write("tokens", "token-of-the-gold-tier * tier=gold\ntoken-without-a-tier *\n")))
	m.AwaitReady("gateway")
	conn, err := grpc.NewClient(m.Gateway(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	client := harnessv1.NewGatewayServiceClient(conn)
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	const gold, all = "Only for gold: be strict.", "For all: be kind."
	for tier, text := range map[string]string{"gold": gold, "": all} {
		if _, err := client.SetPrompt(as("token-without-a-tier"), &harnessv1.SetPromptRequest{Id: quality.PromptVerifier, Tier: tier, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	for token, want := range map[string]string{"token-of-the-gold-tier": gold, "token-without-a-tier": all} {
		s := spec(scriptFile("brief", brief), newWorkspace(t))
		withQuality("chat")(s)
		s.Config.Quality.Model = "anthropic:claude-opus-5-5"
		before := len(judge.Requests())
		if _, err := client.StartRun(as(token), &harnessv1.StartRunRequest{RunId: token, RequestId: token, Spec: s}); err != nil {
			t.Fatal(err)
		}
		m.Ended(runlog.Run{Namespace: "default", ID: token}, 0)
		found := 0
		for _, r := range judge.Requests()[before:] {
			body := string(r.Body)
			if r.Refused != "" {
				t.Errorf("refused: %s", r.Refused)
			}
			if want != gold && strings.Contains(body, gold) || want != all && strings.Contains(body, all) {
				t.Errorf("%s has the text of another tier: %s", token, body)
			}
			if strings.Contains(body, want) && strings.Contains(body, "OUTPUT") && strings.Contains(body, "JSON") {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d requests have %q", token, found, want)
		}
	}
}
