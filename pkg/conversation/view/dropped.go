package view

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// droppedText names the messages among which calls and results are dropped.
const droppedText = "[harness] Older calls and results among messages %d to %d are not shown any more. Read any of them with " + ReadArtifact + ", for example ref %s."

// DroppedTokens is about the size of the message that names what is dropped.
const DroppedTokens = framing + 40

// firstDropped returns the first message after the summary that is dropped; 0 if there is
// none.
func (r *renderer) firstDropped() uint64 {
	w := r.rules.marks[drop][anyResult]
	for id := r.rules.marks[summarize][span].GetThroughMessage() + 1; id <= min(w.GetThroughMessage(), uint64(len(r.x.Entries))); id++ {
		if action, _ := r.rules.Action(r.x.Entry(id)); action == drop {
			return id
		}
	}
	return 0
}

// droppedItem returns the item that names the dropped messages from first on. It depends on
// nothing but the plan and the messages up to its watermark.
func (r *renderer) droppedItem(first uint64) Item {
	w := r.rules.marks[drop][anyResult]
	it := Item{First: first, Last: min(w.GetThroughMessage(), uint64(len(r.x.Entries))), Action: drop, Mark: w, Tokens: DroppedTokens}
	for id := first; id <= it.Last; id++ {
		e := r.x.Entry(id)
		if action, _ := r.rules.Action(e); action == drop {
			it.First = min(it.First, e.Call)
			it.Original += e.Tokens
		}
	}
	it.Message = &harnessv1.Message{
		Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
		Content: content.Inline(fmt.Sprintf(droppedText, it.First, it.Last, SpanRef(it.First, min(it.First+9, it.Last)))),
	}
	return it
}
