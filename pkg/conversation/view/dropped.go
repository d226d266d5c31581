package view

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Texts that name the messages among which calls and results are dropped, and older texts too.
const (
	droppedText  = "[harness] Older calls and results among messages %d to %d are not shown any more. Read any of them with " + ReadArtifact + ", for example ref %s."
	droppedTexts = "[harness] Older messages of yours among messages %d to %d are not shown any more. Read any of them with " + ReadArtifact + ", for example ref %s."
)

// DroppedTokens is about the size of the message that names what is dropped.
const DroppedTokens = framing + 40

// firstDropped returns the first message after the summary that is dropped; 0 if there is
// none.
func (r *renderer) firstDropped() uint64 {
	last, _ := r.dropped()
	for id := r.rules.marks[summarize][span].GetThroughMessage() + 1; id <= last; id++ {
		if action, _ := r.rules.Action(r.x.Entry(id)); action == drop {
			return id
		}
	}
	return 0
}

// dropped returns the last message that may be dropped, and its watermark; 0 and nil if none
// may be.
func (r *renderer) dropped() (last uint64, by *harnessv1.Watermark) {
	for _, class := range [...]harnessv1.MessageClass{anyResult, assistant, span} {
		if w := r.rules.marks[drop][class]; w.GetThroughMessage() > by.GetThroughMessage() {
			by = w
		}
	}
	return min(by.GetThroughMessage(), uint64(len(r.x.Entries))), by
}

// droppedItem returns the item that names the dropped messages from first on. It depends on
// nothing but the plan and the messages up to its watermark.
func (r *renderer) droppedItem(first uint64) Item {
	last, w := r.dropped()
	it := Item{First: first, Last: last, Action: drop, Mark: w, Tokens: DroppedTokens}
	for id := first; id <= it.Last; id++ {
		e := r.x.Entry(id)
		if action, _ := r.rules.Action(e); action == drop {
			if it.Original += e.Tokens; e.Call > 0 {
				it.First = min(it.First, e.Call)
			}
		}
	}
	text := droppedText
	if r.rules.marks[drop][assistant] != nil || r.rules.marks[drop][span] != nil {
		text = droppedTexts
	}
	it.Message = &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
		Content: content.Inline(fmt.Sprintf(text, it.First, it.Last, SpanRef(it.First, min(it.First+9, it.Last)))),
	}
	return it
}
