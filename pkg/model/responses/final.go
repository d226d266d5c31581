package responses

import (
	"encoding/json"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// The end of a response repeats its items. Servers give them other ids or other places
// there than in the events, so an item of the output is paired with the one of the events
// that agrees with it in most: an item that is not recognized would be in the answer
// twice, and its call would run twice.

// finalItem is an item of the output at the end of the response.
type finalItem struct {
	output
	place int64
	raw   json.RawMessage
	item  *item // that the events had; nil: none
}

// identity is what an item of the events and one of the output have in common.
type identity struct {
	kind, callID, id wire.String
	place            int64
}

// identities are what items are paired by, the surest first. An item without the id has
// no identity. The last pairs the items of a type in their order.
var identities = []func(o *output, place int64) (is identity, ok bool){
	func(o *output, _ int64) (identity, bool) {
		return identity{kind: o.Type, callID: o.CallID}, o.CallID != ""
	},
	func(o *output, _ int64) (identity, bool) { return identity{kind: o.Type, id: o.ID}, o.ID != "" },
	func(o *output, place int64) (identity, bool) { return identity{kind: o.Type, place: place}, true },
	func(o *output, _ int64) (identity, bool) { return identity{kind: o.Type}, true },
}

// addOutput takes the output at the end of the response: the items that the events did
// not close or did not have. It returns what their deltas left out.
func (s *stream) addOutput(list []json.RawMessage) model.Delta {
	var final []*finalItem
	for n, raw := range list {
		if o, ok := parse(raw); ok {
			final = append(final, &finalItem{output: o, place: int64(n), raw: raw})
		}
	}
	pair(final, s.inOrder())
	var delta model.Delta
	for _, f := range final {
		if f.item == nil {
			at := wire.Int(f.place)
			f.item = s.add(&at, f.output)
		}
		if f.item.raw == nil {
			d := s.close(f.item, f.output, f.raw)
			delta.Text += d.Text
			delta.Reasoning += d.Reasoning
		}
	}
	return delta
}

// pair gives each item of the output the item of the events that it repeats. No two get
// the same.
func pair(final []*finalItem, items []*item) {
	paired := map[*item]bool{}
	for _, identify := range identities {
		free := map[identity][]*item{}
		for _, i := range items {
			if is, ok := identify(&i.output, i.index); ok && !paired[i] {
				free[is] = append(free[is], i)
			}
		}
		for _, f := range final {
			is, ok := identify(&f.output, f.place)
			if !ok || f.item != nil || len(free[is]) == 0 {
				continue
			}
			f.item, free[is] = free[is][0], free[is][1:]
			paired[f.item] = true
		}
	}
}
