package repairserver_test

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
)

// TestOrdersPokeTheChild: the worker of a child reads an order when it is stored, and not at its
// next heartbeat; an order that the child has taken is not stored again.
func TestOrdersPokeTheChild(t *testing.T) {
	b := newBed(t, repairserver.Config{})
	poked := make(chan runlog.Run, 16)
	stop, err := b.log.OnPoke(func(r runlog.Run) { poked <- r })
	b.must(err)
	defer stop()
	halts := func(id string, taken uint32) (child runlog.Run) {
		child, _ = b.begun("child-"+id, "turn")
		working := to("turn")
		working.Snapshot.Parent = &harnessv1.Parent{RunId: id, Order: taken}
		b.append(child, working)
		parent, _ := b.begun(id, "turn")
		parked := to(runlog.Park)
		parked.Snapshot.Children = []*harnessv1.Child{{RunId: child.ID, CallId: "c", Want: harnessv1.ChildWant_CHILD_WANT_HALT, Order: 2}}
		b.append(parent, parked)
		return child
	}
	taken, child := halts("former", 2), halts("newer", 1)
	select {
	case run := <-poked:
		if run != child {
			t.Errorf("%s was poked, want %s", run, child)
		}
	case <-b.ctx.Done():
		t.Fatal("the child was not poked")
	}
	last, err := b.log.LastInbox(b.ctx, child)
	b.must(err)
	items, err := b.log.Inbox(b.ctx, child, 0, last)
	b.must(err)
	if len(items) != 1 || items[0].GetInterrupt() == nil || items[0].GetOrder() != 2 {
		t.Errorf("the inbox of the child has %v", items)
	}
	if last, err := b.log.LastInbox(b.ctx, taken); err != nil || last != 0 {
		t.Errorf("a child that has taken the order was given it again: %d, %v", last, err)
	}
}
