package gatewayserver_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func (b *bed) delete(id string) (*harnessv1.DeleteRunResponse, error) {
	return b.client.DeleteRun(b.ctx, &harnessv1.DeleteRunRequest{Namespace: b.namespace, RunId: id})
}

// A deleted run accepts no input and cannot be read. Its name stays in use until all of
// the run is erased.
func TestADeletedRunAcceptsAndShowsNothing(t *testing.T) {
	b := newBed(t)
	ended := b.started("ended")
	ended.snapshot.Phase = harnessv1.Phase_PHASE_DONE
	ended.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	parked := b.started("parked").park("approval", awaited("c1", "approval"))
	for _, h := range []*hand{ended, parked} {
		id := h.run.ID
		for i := range 2 {
			resp, err := b.delete(id)
			b.must(err)
			if resp.GetExisted() != (i == 1) {
				t.Errorf("%s, delete %d: %v", id, i, resp)
			}
		}
		_, err := b.sendMessage(id, "m", "hello")
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
		_, err = b.approve(id, "a", "c1")
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
		_, err = b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: id})
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
		_, err = b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: id})
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
		_, err = b.client.StartRun(b.ctx, b.start(id, "do it"))
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
		_, err = b.watched(&harnessv1.WatchRunRequest{RunId: id})
		b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")

		v, err := b.log.View(b.ctx, h.run, 0)
		b.must(err)
		step := v.Newest.Record.GetStep()
		if step.GetTo() != runlog.End || !runstate.Ended(step.GetSnapshot()) || step.GetSnapshot().GetGoalPreview() != "" {
			t.Errorf("%s is closed by %v", id, step)
		}
		b.must(runstate.CheckPhases(h.snapshot, step))
	}
	_, err := b.delete("missing")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}

func TestARunningRunIsNotDeleted(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").step("turn", nil)
	_, err := b.delete("r1")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{}}, nil)
	_, err = b.delete("r1")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	_, err = b.sendMessage("r1", "m", "hello")
	b.must(err)
}

// A watch of a deleted run ends even if its inbox has an input.
func TestAWatchOfADeletedRunEnds(t *testing.T) {
	b := newBed(t)
	b.started("r1").park("interrupted")
	_, err := b.sendMessage("r1", "m", "hello")
	b.must(err)
	stream, err := b.client.WatchRun(b.ctx, &harnessv1.WatchRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	for deleted := false; ; {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return
		}
		b.must(err)
		if !deleted && resp.GetUpdate().GetAttached() != nil {
			deleted = true
			_, err := b.delete("r1")
			b.must(err)
		}
	}
}

// slowStart is a log that erases a run while a new run of the same name starts.
type slowStart struct {
	runlog.Log
	erase func(context.Context, runlog.Run)
}

func (l slowStart) PutBlob(ctx context.Context, run runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	ref, err := l.Log.PutBlob(ctx, run, data)
	l.erase(ctx, run)
	return ref, err
}

// A start while the former run of that name is erased is refused, or its blobs are all
// stored.
func TestStartWhileTheFormerRunIsErased(t *testing.T) {
	var b *bed
	b = newBed(t, func(cfg *gatewayserver.Config) {
		cfg.Log = slowStart{shared, func(ctx context.Context, run runlog.Run) {
			newest, err := shared.Newest(ctx, run)
			if err == nil {
				err = shared.Erase(ctx, run, 0, newest)
			}
			b.must(err)
		}}
	})
	b.started("r1").park("interrupted")
	_, err := b.delete("r1")
	b.must(err)
	large := b.start("r1", strings.Repeat("large ", 4000))
	_, err = b.client.StartRun(b.ctx, large)
	b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
	run := runlog.Run{Namespace: b.namespace, ID: "r1"}
	newest, err := shared.Newest(b.ctx, run)
	b.must(err)
	b.must(shared.Erase(b.ctx, run, 0, newest)) // the run has expired
	_, err = b.client.StartRun(b.ctx, large)
	b.must(err)
	goal := b.openRun("r1")
	e, err := b.log.View(b.ctx, goal.run, 0)
	b.must(err)
	if text := b.blob("r1", e.Newest.Record.GetStep().GetRepairTrigger().GetSpec().GetGoal().GetBlob().GetDigest()); text != large.GetSpec().GetGoal().GetInline() {
		t.Errorf("the goal of the new run has %d bytes", len(text))
	}
}

// A client that watches a run when it is deleted receives the deletion.
func TestWatchersSeeTheDeletion(t *testing.T) {
	b := newBed(t)
	b.started("r1").park("interrupted")
	stream, err := b.client.WatchRun(b.ctx, &harnessv1.WatchRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	for {
		resp, err := stream.Recv()
		b.must(err)
		if r := resp.GetUpdate().GetResult(); r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED {
			_, err := b.delete("r1")
			b.must(err)
		} else if r != nil {
			if r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
				t.Errorf("the watch ended with %v", r)
			}
			return
		}
	}
}

// A child alone is deleted only when its call is over.
func TestAChildThatIsAwaitedIsNotDeleted(t *testing.T) {
	b := newBed(t)
	parent := b.started("parent")
	first := parent.snapshot.GetFirstSequence()
	child := b.started("child").step("turn", func(s *harnessv1.Step) {
		s.Snapshot.Parent = &harnessv1.Parent{RunId: "parent", FirstSequence: first, CallId: "c1", Order: 1}
	}).park("approval", awaited("c2", "approval"))
	ledger := &harnessv1.Child{RunId: "child", CallId: "c1", Agent: "helper", Want: harnessv1.ChildWant_CHILD_WANT_WORK, Order: 1}
	parent.step("turn", func(s *harnessv1.Step) { s.Snapshot.Children = append(s.Snapshot.Children, ledger) }).park("agent", awaited("c1", "agent"))
	_, err := b.delete("child")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	if !strings.Contains(err.Error(), "a call of run parent waits for run child") {
		t.Error(err)
	}
	parent.step("turn", func(s *harnessv1.Step) { s.Snapshot.PendingToolCalls = nil })
	_, err = b.delete("child")
	b.must(err)
	if v, err := b.log.View(b.ctx, child.run, 0); err != nil || v.Newest.Record.GetStep().GetTo() != runlog.End {
		t.Errorf("%v, %v", v.Newest, err)
	}
}

// The runs below a run are deleted before it, the lowest first; none is deleted if one below works.
func TestChildrenAreDeletedFirst(t *testing.T) {
	b := newBed(t)
	leaf, middle, root := b.started("leaf"), b.started("middle"), b.started("root")
	ledger := func(h *hand, status harnessv1.RunStatus) *harnessv1.Child {
		return &harnessv1.Child{
			RunId: h.run.ID, CallId: "c-" + h.run.ID, Agent: "a", Want: harnessv1.ChildWant_CHILD_WANT_WORK, Order: 1,
			Report: &harnessv1.ChildReport{RunId: h.run.ID, Version: 5, Order: 1, Status: status, Reason: &harnessv1.StopReason{Kind: "approval"}},
		}
	}
	calls := func(h, below *hand, status harnessv1.RunStatus) {
		h.step("turn", func(s *harnessv1.Step) { s.Snapshot.Children = []*harnessv1.Child{ledger(below, status)} })
	}
	calls(middle, leaf, harnessv1.RunStatus_RUN_STATUS_PARKED)
	middle.park("agent", awaited("c-leaf", "agent"))
	calls(root, middle, harnessv1.RunStatus_RUN_STATUS_PARKED)
	root.park("agent", awaited("c-middle", "agent"))
	leaf.step("turn", nil)
	_, err := b.delete("root")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	for _, id := range []string{"leaf", "middle", "root"} {
		_, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: id})
		b.must(err)
	}
	leaf.park("approval", awaited("c1", "approval"))
	_, err = b.delete("root")
	b.must(err)
	var before uint64
	for _, h := range []*hand{leaf, middle, root} {
		v, err := b.log.View(b.ctx, h.run, 0)
		b.must(err)
		if !runstate.Expired(v.Step.Record.GetStep().GetSnapshot()) || v.Newest.Sequence <= before {
			t.Errorf("%s is closed at %d, the run below it at %d: %v", h.run.ID, v.Newest.Sequence, before, v.Step.Record.GetStep().GetSnapshot())
		}
		before = v.Newest.Sequence
	}
}
