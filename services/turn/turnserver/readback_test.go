package turnserver_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// TestMessagesAreReadBack: the model gets messages of the run whole, page by page, with what
// is in blobs, and never more than it is shown of a result.
func TestMessagesAreReadBack(t *testing.T) {
	t.Parallel()
	for _, compaction := range []bool{true, false} {
		readBack(t, compaction)
	}
}

func readBack(t *testing.T, compaction bool) {
	t.Helper()
	b := newBed(t, calls(
		call("first", "read_artifact", "ref", "m3"), call("found", "read_artifact", "ref", "m1-m3", "pattern", "needle|number"),
		call("call", "read_artifact", "ref", "m2"), call("none", "read_artifact", "ref", "m4")), calls(done))
	s := b.state()
	s.MessageCount, s.Config.Tools.ShownTokens, s.Config.Context.Compaction = 3, proto.Uint32(400), &compaction
	text := strings.Repeat("a line of the file\n", 2000) + "a needle\n"
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
		&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)},
		&harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "read_file", Arguments: b.Blob(`{"path":"a.txt"}`)}}},
		&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c", ToolName: "read_file", Content: b.Blob(text)},
	)
	b.start()
	journal, _ := b.records()
	b.is(journal, "turn_started model_responded calls_judged")
	results := b.results(journal...)
	if got := results["first"]; !strings.HasPrefix(got, "[m3: result of read_file") || !strings.Contains(got, "\na line of the file\n") ||
		!strings.Contains(got, "[More is left. Continue with ref m3, offset ") || len(got) < 1000 || len(got) > 2500 {
		t.Errorf("the first page has %d bytes:\n%s", len(got), got)
	}
	if got := results["found"]; got != "[m1: user]\nline 1, offset 0: Find the number.\n[m3: result of read_file {\"path\":\"a.txt\"}, called in m2, turn 1]\nline 2001, offset 38000: a needle" {
		t.Errorf("found:\n%s", got)
	}
	if got := results["call"]; got != "[m2: assistant, turn 1]\nCall of read_file: {\"path\":\"a.txt\"}" {
		t.Errorf("the call:\n%s", got)
	}
	if got := results["none"]; got != "ref m4: not found; this run has messages m1 to m3." {
		t.Errorf("a message that does not exist:\n%s", got)
	}
}

// TestEveryRunReadsOn: without compaction the text of the tool has no word of it.
func TestEveryRunReadsOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	client := harnessv1.NewTurnServiceClient(b.dial())
	for _, compaction := range []bool{true, false, true} {
		s := b.state()
		s.Config.Context.Compaction = proto.Bool(compaction)
		r, err := client.Prepare(b.Context(), &harnessv1.PrepareRequest{
			Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
			Conversation: []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		description := ""
		for _, tool := range r.GetRequest().GetTools() {
			if tool.GetName() == "read_artifact" {
				description = tool.GetDescription()
			}
		}
		if description == "" || strings.Contains(description, "summary") != compaction || strings.Contains(description, "cleared") != compaction {
			t.Errorf("compaction %t: %q", compaction, description)
		}
	}
}

// TestWhatIsNotShownIsNotSeen: a read counts as new if the view of the request did not show
// the former one, whether or not this worker made the request.
func TestWhatIsNotShownIsNotSeen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		through  uint64
		distinct uint32
	}{{2, 0}, {3, 1}} {
		b := newBed(t, calls(call("c2", "read_file", "path", "a.txt")))
		b.write("a.txt", "forty-two")
		s := b.state()
		s.MessageCount = 3
		s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: 1, Watermarks: []*harnessv1.Watermark{{
			Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_RESULT, ThroughMessage: c.through,
		}}}
		b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
			&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)},
			&harnessv1.Message{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "read_file", Arguments: content.Inline(`{"path":"a.txt"}`)}}},
			&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c", ToolName: "read_file", Content: content.Inline("forty-two")},
		)
		b.start()
		journal, outcome := b.records()
		p := outcome.GetStep().GetSnapshot().GetProgressTracker()
		if p.GetDistinctOutcomes() != c.distinct || p.GetRepeatedOutcomes() != 1 || p.GetFreshOutcomes() != 0 {
			t.Errorf("cleared through %d, read %q: %v", c.through, b.results(journal...)["c2"], p)
		}
	}
}

// TestImagesAreReadBack: the result has the image of the message that was read.
func TestImagesAreReadBack(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("look", "read_artifact", "ref", "m1")), calls(done))
	s := b.state()
	s.MessageCount = 1
	data, err := b.Log.PutBlob(b.Context(), b.Run, []byte("an image"))
	if err != nil {
		t.Fatal(err)
	}
	image := &harnessv1.Media{Type: media.PNG, Width: 30, Height: 20, Name: "a.png", Blob: &harnessv1.BlobRef{Digest: data.GetDigest(), Size: data.GetSize()}}
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}},
		&harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal), Parts: media.Parts([]*harnessv1.Media{image})})
	b.start()
	journal, _ := b.records()
	for _, rec := range journal {
		for _, m := range rec.GetAppended() {
			if m.GetToolCallId() == "look" && len(m.GetParts()) == 1 && proto.Equal(m.GetParts()[0].GetMedia(), image) {
				return
			}
		}
	}
	t.Errorf("no result has the image: %v", journal)
}
