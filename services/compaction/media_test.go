package compaction_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
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
