package view

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// View makes the view of one conversation, again and again as it grows. It is not safe for
// concurrent use. The zero value is ready.
type View struct {
	// Index of the conversation.
	Index Index

	messages []*harnessv1.Message // of the conversation, numbered
	items    []Item
	final    int    // items that new messages do not change
	through  int    // messages that are in the final items
	dropped  uint64 // first message that is dropped and not summarised; 0: there is none
	plan     []byte // binary form of the plan that the items are of
	bytes    uint64 // of the messages
}

// Bytes returns the bytes of the messages that the view keeps.
func (v *View) Bytes() uint64 { return v.bytes }

// Update returns the items of the view of a conversation, in the order in which they are
// sent. plan may be nil. summary is the one that the plan refers to; nil if it refers to none. The
// result is valid until the next call and must not be changed.
func (v *View) Update(c *conversation.Conversation, plan *harnessv1.CompactionPlan, summary *harnessv1.StructuredSummary) []Item {
	changed := v.Index.Add(c)
	key := planKey(plan)
	if !bytes.Equal(key, v.plan) || changed != 0 && changed <= highest(plan) || len(c.Messages) < v.through {
		v.items, v.final, v.through, v.plan = nil, 0, 0, key
	}
	if summary == nil && plan.GetSummary() != nil {
		plan = withoutSummary(plan)
	}
	v.messages = v.messages[:min(len(v.messages), len(c.Messages))]
	for _, m := range c.Messages[len(v.messages):] {
		v.messages = append(v.messages, numbered(m, uint64(len(v.messages))+1))
	}
	v.bytes = c.Bytes
	r := &renderer{rules: NewRules(plan, &v.Index), x: &v.Index, messages: v.messages}
	if v.through == 0 {
		v.dropped = r.firstDropped()
	}
	v.items = v.items[:v.final]
	closed := v.closed()
	v.append(r, v.through, closed, plan, summary)
	v.final, v.through = len(v.items), closed
	v.append(r, closed, len(v.messages), plan, summary)
	return v.items
}

// numbered returns a message with its place in the conversation as its id, which only
// messages of other programs lack.
func numbered(m *harnessv1.Message, id uint64) *harnessv1.Message {
	if m.GetId() == id {
		return m
	}
	m = proto.CloneOf(m)
	m.Id = id
	return m
}

// planKey returns what of a plan changes the view.
func planKey(plan *harnessv1.CompactionPlan) []byte {
	shown := &harnessv1.CompactionPlan{Renderer: plan.GetRenderer(), Watermarks: plan.GetWatermarks(), Summary: plan.GetSummary()}
	key, err := proto.MarshalOptions{Deterministic: true}.Marshal(shown)
	if err != nil {
		panic("view: a plan cannot be encoded: " + err.Error()) // it was decoded, or made by a program
	}
	return key
}

// highest returns the last message that a plan does something to.
func highest(plan *harnessv1.CompactionPlan) uint64 {
	last := plan.GetSummary().GetThroughMessage()
	for _, w := range plan.GetWatermarks() {
		last = max(last, w.GetThroughMessage())
	}
	return last
}

// withoutSummary returns a plan whose summary is not known: its span is shown.
func withoutSummary(plan *harnessv1.CompactionPlan) *harnessv1.CompactionPlan {
	return &harnessv1.CompactionPlan{Renderer: plan.GetRenderer(), Watermarks: plan.GetWatermarks()}
}

// closed returns the number of messages before the first one with a call that has no
// result among them: results that arrive later do not change the messages before it.
func (v *View) closed() int {
	entries := v.Index.Entries
	closed := len(entries)
	for i := v.through; i < closed; i++ {
		if slices.Contains(entries[i].Results, 0) {
			closed = i
		}
	}
	for i := closed - 1; i >= v.through; i-- { // in other programs a result may follow later calls
		if results := entries[i].Results; len(results) > 0 && slices.Max(results) > uint64(closed) {
			closed = i
		}
	}
	return closed
}

// append adds the items of the messages after from, up to the message to.
func (v *View) append(r *renderer, from, to int, plan *harnessv1.CompactionPlan, summary *harnessv1.StructuredSummary) {
	var shown []*harnessv1.Message
	meta := map[uint64]Item{}
	notes := map[*harnessv1.Message]Item{} // of no message
	through := plan.GetSummary().GetThroughMessage()
	pending := through > uint64(from) && through <= uint64(to) //nolint:gosec // numbers of messages
	add := func(it Item) {
		shown = append(shown, it.Message)
		if meta[it.Message.GetId()] = it; it.Message.GetId() == 0 {
			notes[it.Message] = it
		}
	}
	v.Index.Between(uint64(from)+1, uint64(to), through, func(e *Entry) bool { //nolint:gosec // numbers of messages
		if pending && e.ID > through {
			add(summaryItem(plan, summary, r))
			pending = false
		}
		if e.ID == v.dropped {
			add(r.droppedItem(e.ID))
		}
		if it, ok := r.item(e); ok {
			add(it)
		}
		return true
	})
	if pending {
		add(summaryItem(plan, summary, r))
	}
	for _, m := range conversation.View(shown) {
		it, noted := notes[m]
		if !noted {
			it = meta[m.GetId()]
		}
		if m.GetId() == 0 && m.GetKind() == harnessv1.MessageKind_MESSAGE_KIND_REPAIR {
			it = Item{Tokens: framing + noteTokens/2}
		}
		it.Message = m // with a text, if it had none
		v.items = append(v.items, it)
	}
}

// summaryItem returns the item that shows a summary.
func summaryItem(plan *harnessv1.CompactionPlan, summary *harnessv1.StructuredSummary, r *renderer) Item {
	ref := plan.GetSummary()
	it := Item{
		Message: SummaryMessage(summary), First: firstOf(summary), Last: ref.GetThroughMessage(), Action: summarize, Mark: r.rules.marks[summarize][span],
		Tokens: ref.GetTokens(),
	}
	it.Original = r.x.tokensThrough(it.Last)
	r.x.Between(1, it.Last, it.Last, func(e *Entry) bool {
		if action, _ := r.rules.Action(e); action != summarize {
			it.Original -= min(it.Original, e.Tokens)
		}
		return true
	})
	if it.Tokens == 0 {
		it.Tokens = summaryTokens(summary)
	}
	return it
}

// Messages returns the messages of items, which share their memory.
func Messages(items []Item) []*harnessv1.Message {
	messages := make([]*harnessv1.Message, len(items))
	for i := range items {
		messages[i] = items[i].Message
	}
	return messages
}
