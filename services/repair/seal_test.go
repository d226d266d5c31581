package repair_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// TestForgedInputsHaveNoEffect: an approval, an answer, a resume or a change of the mode without a valid seal has none,
// and an event reports it; an input of the gateway with its id counts. All other inputs count without a seal.
func TestForgedInputsHaveNoEffect(t *testing.T) {
	unsealed := func(item *harnessv1.InboxItem) *harnessv1.InboxItem {
		item = proto.CloneOf(item)
		item.Id, item.Caller, item.Unsealed = "chosen", "nina", true
		return item
	}
	answer := &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: "a"}}}
	mode := &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}}
	order := proto.CloneOf(resume(nil))
	order.Order = 2
	for name, c := range map[string]struct {
		from *harnessv1.Snapshot
		item *harnessv1.InboxItem
		to   string
	}{
		"an approval": {waiting(), approve("a", all), "park approval"}, "an answer": {waiting(), answer, "park approval"},
		"a resume": {parked("interrupted"), resume(nil), "park interrupted"}, "a mode": {running(), mode, "compaction"}, "an order": {parked("interrupted"), order, "park interrupted"},
	} {
		before := c.from.GetPendingToolCalls()
		o := drain(t, c.from, unsealed(c.item))
		if got := verdict(o) + ": " + events(o); got != c.to+": input.rejected" || runstate.Drained(o.GetStep().GetSnapshot(), "chosen") {
			t.Errorf("%s: %s", name, got)
		}
		for _, e := range o.GetEvents() {
			if r := e.GetInputRejected(); r != nil && (r.GetCaller() != "" || !strings.Contains(r.GetReason(), "no valid seal of the gateway")) {
				t.Errorf("%s: %v", name, r)
			}
		}
		for i, call := range o.GetStep().GetSnapshot().GetPendingToolCalls() {
			if !proto.Equal(call, before[i]) {
				t.Errorf("%s changes a call: %v", name, call)
			}
		}
	}
	genuine := approve("a", once)
	genuine.Id = "chosen"
	o := drain(t, waiting(), unsealed(approve("a", deny)), genuine)
	if got := events(o); got != "input.rejected approval.answered input.accepted" {
		t.Errorf("the answer of a person with the same id: %s", got)
	}
	for _, item := range []*harnessv1.InboxItem{userMessage("x"), interrupt(), cancel()} {
		if got := events(drain(t, running(), unsealed(item))); !strings.HasPrefix(got, "input.accepted") {
			t.Errorf("%v: %s", item, got)
		}
	}
}

// TestInputOfNoProgramWaitsForNone: an item that cannot be read and has no seal is rejected; with one it waits for a newer
// program, as do the items after it.
func TestInputOfNoProgramWaitsForNone(t *testing.T) {
	for _, unsealed := range []bool{true, false} {
		read := repair.InboxRead{State: repair.InboxReading}
		_, action := read.Next(repair.Items{Items: []*harnessv1.InboxItem{{Id: "unreadable-7", Sequence: 7, Unsealed: unsealed}, approve("a", once)}})
		observe, ok := action.(repair.Observe)
		if ok != unsealed || ok && len(observe.Batch.GetItems()) != 2 {
			t.Errorf("unsealed %v: %v", unsealed, action)
		}
	}
	o := drain(t, waiting(), &harnessv1.InboxItem{Id: "unreadable-7", Unsealed: true}, approve("a", once))
	if got := events(o); got != "input.rejected approval.answered input.accepted" {
		t.Errorf("got %s", got)
	}
}
