package mesh

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// markedDocument returns a document with a marker, and the forms in which its bytes may be shown.
func markedDocument(pages int, marker string) (document []byte, forms []string) {
	forms = []string{marker, fmt.Sprintf("%x", marker)}
	for shift := range 3 { // base64 depends on what precedes
		text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", shift) + marker))
		forms = append(forms, text[4:len(text)-4])
	}
	return append(mediatest.PDF(pages), "% "+marker+"\n"...), forms
}

// TestSystemMediaAreSeenNowhere: the bytes of a document that came with the goal, and of one that
// a tool read, reach the model. They are in no log of a process, no span, no event and no
// answer of the API, and nothing of them is left once the run is deleted.
func TestSystemMediaAreSeenNowhere(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServer(t,
		modeltest.Reply{Calls: []modeltest.Call{{ID: "a", Name: "read_file", Arguments: `{"path":"report.pdf"}`}}},
		modeltest.Reply{Calls: []modeltest.Call{{ID: "b", Name: "work_complete", Arguments: `{"summary":"read"}`}}})
	collector := oteltest.Start(t)
	m := meshtest.Start(t, bin, meshtest.Config{Env: append(collector.Env(),
		"OPENAI_BASE_URL="+s.BaseURL(), "HARNESS_LOG_LEVEL=debug", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")})
	goal, forms := markedDocument(3, "a-marker-that-comes-with-the-goal")
	report, more := markedDocument(4, "a-marker-that-is-in-the-workspace")
	workspace := t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "report.pdf"), report, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, run := t.Context(), runlog.Run{Namespace: "default", ID: "pictures"}
	_, err := m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: run.ID, Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Read both."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5"},
		Media: []*harnessv1.Media{{Name: "goal.pdf", Data: goal}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	result, err := waittest.Watch(ctx, m.Client(), "", run.ID, 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, func(e *harnessv1.Event) { shown.WriteString(protojson.Format(e)) })
	if err != nil || !result.GetAccepted() {
		t.Fatalf("ended with %v (%v)", result, err)
	}
	requests := s.Requests()
	for _, data := range [][]byte{goal, report} {
		if !strings.Contains(string(requests[len(requests)-1].Body), base64.StdEncoding.EncodeToString(data)) {
			t.Error("a document did not reach the model")
		}
	}
	conversation, err := m.Client().GetConversation(ctx, &harnessv1.GetConversationRequest{RunId: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	state, err := m.Client().GetState(ctx, &harnessv1.GetStateRequest{RunId: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	status, err := m.Client().GetRun(ctx, &harnessv1.GetRunRequest{RunId: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	shown.WriteString(protojson.Format(conversation) + protojson.Format(state) + protojson.Format(status))
	if !strings.Contains(shown.String(), "goal.pdf") || !strings.Contains(shown.String(), "report.pdf") {
		t.Error("the answers do not name the files")
	}
	digests := []string{content.Digest(goal), content.Digest(report)}
	for _, digest := range digests {
		if _, err := m.Log().Blob(ctx, run, digest); err != nil {
			t.Errorf("a document is not stored: %v", err)
		}
	}
	if _, err := m.Client().DeleteRun(ctx, &harnessv1.DeleteRunRequest{RunId: run.ID}); err != nil {
		t.Fatal(err)
	}
	waittest.Eventually(t, "the blobs go with the run", func() bool {
		return !slices.ContainsFunc(digests, func(digest string) bool {
			_, err := m.Log().Blob(t.Context(), run, digest)
			return err == nil
		})
	})
	for _, role := range meshtest.Roles {
		m.Process(role).Terminate() // sends the rest of the spans
		shown.WriteString(m.Process(role).Stderr())
	}
	spans := collector.Spans()
	if !slices.ContainsFunc(spans, func(s oteltest.Span) bool { return strings.Contains(fmt.Sprint(s.Attributes), "Read both.") }) {
		t.Error("no span has the text of the goal, so none shows what would be captured")
	}
	for _, span := range spans {
		fmt.Fprintf(&shown, "%+v\n", span)
	}
	for _, form := range append(forms, more...) {
		if strings.Contains(shown.String(), form) {
			t.Errorf("the bytes of a document are shown as %s", form)
		}
	}
}
