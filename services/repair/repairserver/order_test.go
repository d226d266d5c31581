package repairserver_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
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

// TestDeletedChildren: the caller of a child that is deleted need not know it unless it waits for a report; the sender of an order
// to the child reports instead of it.
func TestDeletedChildren(t *testing.T) {
	b := newBed(t, repairserver.Config{})
	closing := func(id, parent string) runlog.Run {
		child, _ := b.begun(id, "turn")
		s := to(runlog.Park)
		s.Snapshot.Status, s.Snapshot.StopReason = harnessv1.RunStatus_RUN_STATUS_PARKED, &harnessv1.StopReason{Kind: "approval"}
		s.Snapshot.Parent = &harnessv1.Parent{RunId: "nobody-" + parent, Order: 1} // its own reports reach no run
		b.append(child, s)
		b.eventually(id+" is deleted", func() bool {
			v, err := b.log.View(b.ctx, child, 0)
			b.must(err)
			rec, err := tree.Expire(v, "nina", time.Now(), &harnessv1.Writer{Executor: "test", Nonce: nonces.Add(1)})
			b.must(err)
			_, err = b.log.Append(b.ctx, rec)
			if errors.Is(err, runlog.ErrFenced) {
				return false // repair has ended the child, whose parent is gone
			}
			b.must(err)
			return true
		})
		return child
	}
	reports := func(id string, want harnessv1.ChildWant, confirmed bool) *harnessv1.ChildReport {
		child := closing("child-"+id, id)
		parent, _ := b.begun(id, "turn")
		parked := to(runlog.Park)
		c := &harnessv1.Child{RunId: child.ID, CallId: "c", Want: want, Order: 2, Report: &harnessv1.ChildReport{RunId: child.ID, Version: 3, Order: 1, Status: harnessv1.RunStatus_RUN_STATUS_PARKED}}
		if confirmed {
			c.Order, c.Sent = 1, 1
		}
		parked.Snapshot.Children = []*harnessv1.Child{c}
		at := b.append(parent, parked)
		if confirmed { // a later order shows that the steps before were handled
			parked = to(runlog.Park)
			parked.Snapshot.Children = []*harnessv1.Child{{RunId: child.ID, CallId: "c", Want: want, Order: 3, Report: c.GetReport()}}
			b.append(parent, parked)
		}
		// The child's own report that it is parked may have been sent before it was deleted.
		var absent []*harnessv1.ChildReport
		b.eventually("a report for "+id, func() bool {
			last, err := b.log.LastInbox(b.ctx, parent)
			b.must(err)
			items, err := b.log.Inbox(b.ctx, parent, 0, last)
			b.must(err)
			absent = nil
			for _, item := range items {
				if r := item.GetChildReport(); r.GetAbsent() {
					absent = append(absent, r)
				}
			}
			return len(absent) > 0 && last > at.Sequence
		})
		if len(absent) != 1 {
			t.Errorf("%s has %v", id, absent)
		}
		return absent[0]
	}
	for id, want := range map[string]harnessv1.ChildWant{"work": harnessv1.ChildWant_CHILD_WANT_WORK, "halt": harnessv1.ChildWant_CHILD_WANT_HALT} {
		if r := reports(id, want, false); !r.GetAbsent() || r.GetOrder() != 2 || r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
			t.Errorf("an order to %s has the response %v", id, r)
		}
	}
	if r := reports("idle", harnessv1.ChildWant_CHILD_WANT_WORK, true); !r.GetAbsent() || r.GetOrder() != 3 {
		t.Errorf("a parent that expects nothing gets %v", r)
	}
}

// TestReportOfAWorktree: the report of a child that has ended names an unchanged worktree, as its tool host does.
func TestReportOfAWorktree(t *testing.T) {
	var kept atomic.Bool
	host := steptest.ToolHost(t, func(ctx context.Context, r any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		answer, err := handler(ctx, r)
		if ended, ok := answer.(*harnessv1.EndWorktreeResponse); ok {
			ended.Kept = kept.Load()
		}
		return answer, err
	})
	b := newBed(t, repairserver.Config{ToolHost: host})
	for _, c := range []struct {
		id             string
		worktree, kept bool
		want           bool
	}{{"unchanged", true, false, true}, {"changed", true, true, false}, {"shared", false, false, false}} {
		kept.Store(c.kept)
		parent, _ := b.begun(c.id, "turn")
		waits := to(runlog.Park)
		waits.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		child, _ := b.begun("child-"+c.id, "turn")
		waits.Snapshot.Children = []*harnessv1.Child{{RunId: child.ID, CallId: "c", Want: harnessv1.ChildWant_CHILD_WANT_WORK, Order: 1, Sent: 1}}
		b.append(parent, waits)
		ended := to(runlog.End)
		ended.Snapshot.Phase, ended.Snapshot.Status = harnessv1.Phase_PHASE_DONE, harnessv1.RunStatus_RUN_STATUS_DONE
		ended.Snapshot.Parent = &harnessv1.Parent{RunId: parent.ID, CallId: "c", Order: 1, Worktree: c.worktree}
		b.append(child, ended)
		var items []*harnessv1.InboxItem
		b.eventually("the report of "+c.id, func() bool {
			last, err := b.log.LastInbox(b.ctx, parent)
			b.must(err)
			items, err = b.log.Inbox(b.ctx, parent, 0, last)
			b.must(err)
			return len(items) > 0
		})
		if r := items[0].GetChildReport(); r == nil || r.GetUnchanged() != c.want {
			t.Errorf("%s: reported %v", c.id, items[0])
		}
	}
}
