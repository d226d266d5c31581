package turnserver_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// resultOf returns the result of a call in a journal.
func resultOf(journal []*harnessv1.Record, id string) *harnessv1.Message {
	for _, rec := range journal {
		for _, m := range rec.GetAppended() {
			if m.GetToolCallId() == id {
				return m
			}
		}
	}
	return nil
}

// TestResultsStoreTheirMedia: the record of a call refers to the image that its tool read.
func TestResultsStoreTheirMedia(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("a", "read_file", "path", "chart.png")))
	b.write("chart.png", string(mediatest.PNG(mediatest.Noise(300, 250))))
	b.run(b.state())
	journal, outcome := b.records()
	result := resultOf(journal, "a")
	m := result.GetParts()[0].GetMedia()
	data, err := b.Log.Blob(b.Context(), b.Run, m.GetBlob().GetDigest())
	if err != nil || media.TypeOf(data) != media.PNG {
		t.Fatalf("the blob has %d bytes: %v", len(data), err)
	}
	want := &harnessv1.Media{Type: media.PNG, Width: 300, Height: 250, Name: "chart.png", Blob: &harnessv1.BlobRef{Digest: m.GetBlob().GetDigest(), Size: uint64(len(data))}}
	if len(result.GetParts()) != 1 || !proto.Equal(m, want) || !strings.HasPrefix(result.GetContent().GetInline(), "image/png 300×250, ") {
		t.Errorf("stored %v, want the image alone", result)
	}
	if weight := outcome.GetStep().GetSnapshot().GetTokenBudget().GetUnreportedBytes(); weight < 400 || weight > 500 {
		t.Errorf("the messages weigh %d bytes, want their texts and 100 tokens", weight)
	}
}

// TestMediaOfOtherHostsAreChecked has a tool host that checks nothing.
func TestMediaOfOtherHostsAreChecked(t *testing.T) {
	t.Parallel()
	intercept := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		if r, ok := resp.(*harnessv1.ExecuteToolResponse); ok && err == nil {
			r = proto.CloneOf(r)
			for range 30 {
				r.Media = append(r.Media, &harnessv1.Media{Data: mediatest.JPEG(mediatest.Noise(30, 20)), Name: "photo"})
			}
			r.Media[1] = &harnessv1.Media{Type: media.PNG, Width: 9, Height: 9, Data: mediatest.PNGHeader(50_000, 50_000)}
			return r, nil
		}
		return resp, err
	}
	b := newBedWith(t, intercept, func(*turnserver.Config) {}, calls(call("a", "read_file", "path", "a.txt")))
	b.write("a.txt", "forty")
	b.run(b.state())
	journal, _ := b.records()
	result := resultOf(journal, "a")
	const refusal = "forty\n[An attached file cannot be shown: the image has 50000×50000 pixels, 2500 megapixels; expected at most 50; scale it down first.]"
	if result.GetContent().GetInline() != refusal {
		t.Errorf("the result is %q, want %q", result.GetContent().GetInline(), refusal)
	}
	if len(result.GetParts()) != media.MaxParts-1 {
		t.Fatalf("%d files are stored, want %d", len(result.GetParts()), media.MaxParts-1)
	}
	for _, p := range result.GetParts() {
		if m := p.GetMedia(); m.GetType() != media.JPEG || m.GetWidth() != 30 || m.GetName() != "photo" || len(m.GetData()) > 0 || m.GetBlob() == nil {
			t.Fatalf("stored %v", m)
		}
	}
}

// TestReplacedResultsHaveNoMedia: a subscriber that hides a result hides its image too.
func TestReplacedResultsHaveNoMedia(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("a", "read_file", "path", "chart.png")))
	b.write("chart.png", string(mediatest.PNG(mediatest.Noise(30, 20))))
	b.run(hooks(b.state(), &harnessv1.Hook{
		Topic: harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, Command: `echo '{"action":"replace","payload":{"result":"hidden"}}'`,
	}))
	journal, _ := b.records()
	if result := resultOf(journal, "a"); result.GetContent().GetInline() != "hidden" || len(result.GetParts()) > 0 {
		t.Errorf("the result is %v, want the text of the subscriber alone", result)
	}
}

// TestTurnServiceReturnsMedia: a turn without a log returns the bytes themselves.
func TestTurnServiceReturnsMedia(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("a", "read_file", "path", "chart.png")))
	chart := mediatest.PNG(mediatest.Noise(30, 20))
	b.write("chart.png", string(chart))
	updates, _ := collect(t, b, &harnessv1.TurnRequest{
		Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: &harnessv1.Step{To: "turn", Snapshot: b.state()}},
		Conversation: []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}},
	})
	result := resultOf([]*harnessv1.Record{{Appended: updates[len(updates)-1].GetOutcome().GetAppended()}}, "a")
	if len(result.GetParts()) != 1 || !bytes.Equal(result.GetParts()[0].GetMedia().GetData(), chart) || result.GetParts()[0].GetMedia().GetBlob() != nil {
		t.Errorf("the result has %d files, want the chart with its data", len(result.GetParts()))
	}
}
