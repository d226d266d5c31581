package mesh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// thinker answers from the request alone: four turns with thinking, texts and parallel
// calls, and the end.
func thinker(r *modeltest.Request) modeltest.Reply {
	turn := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			turn++
		}
	}
	call := func(n int, name, arguments string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("call-%d-%d", turn, n), Name: name, Arguments: arguments}}
	}
	thinking := modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: "A thought for people.", Size: 12 << 10}}
	parts := []modeltest.ReplyPart{thinking, {Text: "I look around before I change anything."}, call(0, "list_directory", `{}`), call(1, "read_file", `{"path":"a.txt"}`)}
	if turn == 4 {
		parts = []modeltest.ReplyPart{thinking, call(0, "work_complete", `{"summary":"seen"}`)}
	}
	return modeltest.Reply{Parts: parts, Usage: &modeltest.Usage{Input: 100, Output: 50, Reasoning: 40}}
}

// startThinking starts a mesh whose Claude is a strict server.
func startThinking(t *testing.T) (*meshtest.Mesh, *modeltest.Server) {
	t.Helper()
	s := modeltest.NewServerFunc(t, thinker)
	s.Thinking = map[string]modeltest.ThinkingMode{"claude-opus-5-5": modeltest.ThinkingAlways}
	return meshtest.Start(t, bin, meshtest.Config{Env: []string{"ANTHROPIC_BASE_URL=" + s.MessagesURL()}}), s
}

// think takes a run through the thinker and returns the bodies of its requests; equal
// ones that follow each other count once.
func think(t *testing.T, m *meshtest.Mesh, s *modeltest.Server, id, workspace string) []string {
	t.Helper()
	before := len(s.Requests())
	ctx := context.WithoutCancel(t.Context())
	spec := &harnessv1.RunSpec{
		Goal: content.Inline("Look around."), Workspace: workspace,
		Agent: &harnessv1.AgentSpec{Model: "anthropic:claude-opus-5-5"},
	}
	for _, topic := range []harnessv1.HookTopic{harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL} {
		spec.Agent.Hooks = append(spec.Agent.Hooks, &harnessv1.Hook{Topic: topic, Command: "true", Timeout: durationpb.New(time.Minute)})
	}
	_, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
		return m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, Spec: spec})
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := waittest.Watch(ctx, m.Client(), "", id, 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, nil)
	if err != nil || !result.GetAccepted() {
		t.Fatalf("%s ended with %v (%v)", id, result, err)
	}
	var bodies []string
	for _, r := range s.Requests()[before:] {
		if r.Refused != "" {
			t.Fatalf("%s: a request was refused: %s", id, r.Refused)
		}
		if body := string(r.Body); len(bodies) == 0 || bodies[len(bodies)-1] != body {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// TestSystemThinkingSurvivesKills kills the turn worker at each of its points. The requests of
// each run must have the bytes of an undisturbed run. A run meets the deaths at several points.
func TestSystemThinkingSurvivesKills(t *testing.T) {
	t.Parallel()
	m, s := startThinking(t)
	workspace := t.TempDir()
	want := think(t, m, s, "undisturbed", workspace)
	if len(want) != 5 {
		t.Fatalf("an undisturbed run has %d requests", len(want))
	}
	points := slices.DeleteFunc(failpoint.Points(workflow.Turn), func(point string) bool { return point == "killed" }) // by an interrupt only
	d := &deaths{t: t, m: m, role: workflow.Turn, points: points, kills: len(points), at: func(int) int { return 2 }}
	defer d.start()()
	for n := 0; d.left() > 0 && !t.Failed(); n++ {
		before := d.left()
		got := think(t, m, s, fmt.Sprint("killed-", n), workspace)
		if d.left() == before {
			t.Errorf("a run met no death at %s", points[len(points)-before])
		}
		if !slices.Equal(got, want) {
			t.Errorf("killed at %v: the requests differ from those of an undisturbed run: %d and %d", points[len(points)-before:], len(got), len(want))
		}
	}
}

// TestSystemThinkingIsSeenNowhere: what only the provider reads is in no log of a process and
// no answer of the API, and nothing of it is left once the run is deleted.
func TestSystemThinkingIsSeenNowhere(t *testing.T) {
	t.Parallel()
	m, s := startThinking(t)
	bodies := think(t, m, s, "secret", t.TempDir())
	last := bodies[len(bodies)-1]
	_, payload, ok := strings.Cut(last, `"signature":"`)
	if !ok {
		t.Fatal("no thinking came back")
	}
	payload = payload[:64]
	ctx, run := t.Context(), runlog.Run{Namespace: "default", ID: "secret"}
	conversation, err := m.Client().GetConversation(ctx, &harnessv1.GetConversationRequest{RunId: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	shown := protojson.Format(conversation)
	if !strings.Contains(shown, "A thought for people.") {
		t.Error("the conversation does not have the text for people")
	}
	_, err = waittest.Watch(ctx, m.Client(), "", "secret", 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, func(e *harnessv1.Event) { shown += protojson.Format(e) })
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range meshtest.Roles {
		shown += m.Process(role).Stderr()
	}
	if strings.Contains(shown, payload) {
		t.Error("what only the provider reads is in a log or an answer")
	}
	var digests []string
	for _, e := range m.Entries(run) {
		for _, message := range e.Record.GetAppended() {
			for _, p := range message.GetParts() {
				if ref := p.GetOpaque().GetBlob(); ref != nil {
					digests = append(digests, ref.GetDigest())
				}
			}
		}
	}
	if len(digests) == 0 {
		t.Fatal("no reasoning is in a blob")
	}
	if _, err := m.Client().DeleteRun(ctx, &harnessv1.DeleteRunRequest{RunId: "secret"}); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "the blobs go with the run", func() bool {
		return !slices.ContainsFunc(digests, func(digest string) bool {
			_, err := m.Log().Blob(context.WithoutCancel(ctx), run, digest)
			return err == nil
		})
	})
}
