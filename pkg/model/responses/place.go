package responses

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// Events name their item by its place in the response and by its id. Compatible servers
// leave either out, give each item the same place, or change the id from event to
// event. The place decides, and the id only where the place has several items.

// find returns the item that an event is about, the newest one with its place; nil if
// there is none. Without a place, an id that is not known is that of the newest item.
func (s *stream) find(index *wire.Int, id string) *item {
	if i := s.byID[id]; id != "" && i != nil && (index == nil || i.index == int64(*index)) {
		return i
	}
	if index != nil {
		return s.byIndex[int64(*index)]
	}
	if n := len(s.items); n > 0 {
		return s.items[n-1]
	}
	return nil
}

// add appends an item.
func (s *stream) add(index *wire.Int, o output) *item {
	i := &item{index: int64(len(s.items)), output: o}
	if index != nil {
		i.index = int64(*index)
	}
	s.items = append(s.items, i)
	s.size += adapter.PieceBytes
	s.byIndex[i.index] = i
	if o.ID != "" {
		s.byID[string(o.ID)] = i
	}
	return i
}

// openItem returns the item that a delta belongs to; nil if that is closed, when its
// deltas have nothing to add. A delta without an item opens one of the kind.
func (s *stream) openItem(e *event, kind wire.String) *item {
	i := s.find(e.Index, string(e.ItemID))
	switch {
	case i == nil, i.raw != nil && differ(i.ID, e.ItemID):
		return s.add(e.Index, output{Type: kind, ID: e.ItemID})
	case i.raw != nil:
		return nil
	}
	return i
}

// itemAdded takes the start of an item. Its contents so far may be incomplete.
func (s *stream) itemAdded(e *event) {
	o, ok := parse(e.Item)
	if !ok {
		return
	}
	i := s.find(e.Index, string(o.ID))
	if i == nil || differ(i.ID, o.ID) || o.ID == "" && (i.raw != nil || e.Index == nil && i.opened) {
		i = s.add(e.Index, o)
	}
	i.opened = true
	if i.raw == nil { // deltas came first, or the event is repeated
		i.output = o
		s.count(i, len(e.Item))
	}
}

// itemDone takes the whole of an item and returns what its deltas left out.
func (s *stream) itemDone(e *event) model.Delta {
	o, ok := parse(e.Item)
	if !ok {
		return model.Delta{}
	}
	i := s.find(e.Index, string(o.ID))
	switch {
	case i == nil:
		i = s.add(e.Index, o)
	case i.raw == nil:
	case bytes.Equal(i.raw, e.Item), o.ID != "" && o.ID == i.ID && !otherCall(&i.output, &o): // repeated
		return model.Delta{}
	default:
		i = s.add(e.Index, o)
	}
	return s.close(i, o, e.Item)
}

// otherCall reports whether two items with one id are different calls.
func otherCall(a, b *output) bool {
	return b.Type == itemCall && (differ(a.CallID, b.CallID) || a.Name != b.Name || a.Arguments != b.Arguments)
}

// close takes the whole of an item and returns the text that its deltas left out.
func (s *stream) close(i *item, o output, raw json.RawMessage) model.Delta {
	i.output, i.raw = o, raw
	s.count(i, len(raw))
	var d model.Delta
	switch o.Type {
	case itemMessage:
		d.Text = rest(i.text(), i.pieces.text.String())
	case itemReasoning:
		streamed := i.pieces.reasoning.String()
		d.Reasoning = rest(i.reasoning(), streamed)
		if d.Reasoning != "" && streamed == "" && s.shown != nil {
			d.Reasoning = partBreak + d.Reasoning
		}
		if d.Reasoning != "" {
			s.shown = i
		}
	}
	return d
}

// rest returns what a text has after the streamed part of it; empty if it does not begin
// with that.
func rest(text, streamed string) string {
	if after, ok := strings.CutPrefix(text, streamed); ok {
		return after
	}
	return ""
}

// differ reports whether two ids are of different items.
func differ(a, b wire.String) bool { return a != "" && b != "" && a != b }

// parse reads an item; ok reports whether it is an object with a type.
func parse(raw json.RawMessage) (o output, ok bool) {
	return o, !wire.Absent(raw) && wire.Unmarshal(raw, &o) == nil && o.Type != ""
}
