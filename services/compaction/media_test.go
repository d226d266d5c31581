package compaction_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// attach adds a message of the user with a file, whose weight includes the file as the model
// is sent it.
func (a *agent) attach(tokens uint32, file *harnessv1.Media) uint64 {
	return a.add(tokens, &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("What is this?"),
		Parts: []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: file}}},
	})
}

// document is a PDF file with a number of pages.
func document(pages uint32) *harnessv1.Media {
	return &harnessv1.Media{Type: media.PDF, Pages: pages, Name: "report.pdf", Blob: &harnessv1.BlobRef{Digest: "d", Size: 9000}}
}

// mediaMark returns up to which message images and documents are cleared, and how many
// messages the last pass counts.
func (a *agent) mediaMark() (through uint64, messages uint32) {
	for _, w := range a.s.GetCompactionPlan().GetWatermarks() {
		if w.GetClass() == harnessv1.MessageClass_MESSAGE_CLASS_MEDIA {
			through = w.GetThroughMessage()
		}
	}
	for _, c := range a.completed() {
		for _, change := range c.GetChanges() {
			if change.GetClass() == harnessv1.MessageClass_MESSAGE_CLASS_MEDIA {
				messages = change.GetMessages()
			}
		}
	}
	return through, messages
}

// TestMediaAreClearedForWhatTheyWeigh: a document that the model is sent as a line of text
// fills no window, and clearing it frees nothing.
func TestMediaAreClearedForWhatTheyWeigh(t *testing.T) {
	for name, c := range map[string]struct {
		weight  uint32
		cleared bool
	}{
		"a model that takes documents": {4 + 4 + 2400, true},
		"a model that takes none":      {4 + 4 + 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, 10_000, nil)
			id := a.attach(c.weight, document(1))
			for len(a.completed()) == 0 && a.s.GetTurnCount() < 30 {
				a.turn(600, nonReplayable)
				a.step()
			}
			if through, messages := a.mediaMark(); (through >= id) != c.cleared || (messages == 1) != c.cleared {
				t.Errorf("%d messages with media are cleared, up to %d; the document is in %d", messages, through, id)
			}
		})
	}
}

// TestMediaThatOnlyAFallbackTakes: a fallback model that is sent a document refuses the
// request as too long. The document is cleared and the request sent again, although it has no
// weight for the run's model.
func TestMediaThatOnlyAFallbackTakes(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	id := a.attach(40, document(20))
	for range 8 {
		a.turn(100, nonReplayable)
	}
	b := a.s.GetTokenBudget()
	b.Exceeded, b.Refusals, b.ReportedTokens, b.ReportedMessages, b.UnreportedBytes = true, 1, 50_000, a.s.GetMessageCount(), 0
	out := a.step()
	if through, messages := a.mediaMark(); out.GetOutcome().GetStep().GetTo() != workflow.Turn || through < id || messages != 1 {
		t.Errorf("%d messages with media are cleared, up to %d, and the run goes to %v", messages, through, out.GetOutcome().GetStep())
	}
}

// screenshot is an image of a number of bytes, as it is sent.
func screenshot(sent uint64) *harnessv1.Media {
	return &harnessv1.Media{Type: media.PNG, Width: 500, Height: 450, Name: "a.png", Blob: &harnessv1.BlobRef{Digest: "d", Size: sent / 4 * 3}}
}

// readImages is a turn with results that are screenshots.
func (a *agent) readImages(results int, sent uint64) {
	a.s.TurnCount++
	var calls []*harnessv1.ToolCall
	for i := range results {
		calls = append(calls, &harnessv1.ToolCall{Id: fmt.Sprintf("look%d-%d", a.s.GetTurnCount(), i), Name: "read_file", Arguments: content.Inline(`{"path":"a.png"}`)})
	}
	a.add(40, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Looking."), ToolCalls: calls})
	for _, c := range calls {
		m := &harnessv1.Message{
			Role: harnessv1.Role_ROLE_TOOL, ToolCallId: c.GetId(), ToolName: c.GetName(), Durability: replayable, Content: content.Inline("An image."),
			Parts: media.Parts([]*harnessv1.Media{screenshot(sent)}),
		}
		a.add(310, m)
		runstate.AddMedia(a.s, media.MessageRoom(m))
	}
}

// request returns the messages of the view, and the room that its images and documents need.
func (a *agent) request() ([]*harnessv1.Message, media.Room) {
	var v view.View
	messages := view.Messages(v.Update(&a.c, a.s.GetCompactionPlan(), nil))
	var room media.Room
	for _, m := range messages {
		room = room.Plus(media.MessageRoom(m))
	}
	return messages, room
}

// TestMediaFitIntoTheRequest: whatever the tokens, the view never shows more images and
// documents than a request has room for, so that the request shows what the view does.
func TestMediaFitIntoTheRequest(t *testing.T) {
	all := media.Takes{Images: true, Documents: true}
	for name, c := range map[string]struct {
		change  func(*harnessv1.ContextConfig)
		results int
		sent    uint64
		passes  int // at most
	}{
		"bytes":             {nil, 1, 1_000_000, 31},
		"items":             {nil, 1, 4, 5},
		"bytes of one turn": {nil, 30, 1_000_000, 300},
		"items of one turn": {nil, 120, 4, 300},
		"without the strategy": {func(c *harnessv1.ContextConfig) {
			c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_DROP}
		}, 1, 1_000_000, 31},
		"a large one each turn": {nil, 1, 12_000_000, 300},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t, 1_000_000, c.change)
			for range 300 {
				a.readImages(c.results, c.sent)
				if a.s.GetMessageCount() > 600 {
					break
				}
				a.step()
				messages, room := a.request()
				if room.Exceeds(media.RequestRoom) || room.Items == 0 {
					t.Fatalf("the view after turn %d needs room for %v", a.s.GetTurnCount(), room)
				}
				if sent := media.Show(messages, all, true); !slices.Equal(sent, messages) {
					t.Fatalf("the request after turn %d hides what the view shows", a.s.GetTurnCount())
				}
			}
			if n := len(a.completed()); n == 0 || n > c.passes {
				t.Errorf("%d passes, want 1 to %d", n, c.passes)
			}
		})
	}
}

// TestMediaThatTheModelIsNotSentNeedNoRoom: lines replace them anyway.
func TestMediaThatTheModelIsNotSentNeedNoRoom(t *testing.T) {
	a := newAgent(t, 1_000_000, nil)
	for range 30 {
		a.turn(50, replayable)
		m := a.c.Messages[a.attach(45, screenshot(1_000_000))-1]
		runstate.AddMedia(a.s, media.MessageRoom(m))
		a.step()
	}
	if through, _ := a.mediaMark(); through > 0 || len(a.completed()) > 0 {
		t.Errorf("images are cleared up to %d", through)
	}
}
