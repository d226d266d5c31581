package gatewayserver_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func (b *bed) delete(id string) (*harnessv1.DeleteRunResponse, error) {
	return b.client.DeleteRun(b.ctx, &harnessv1.DeleteRunRequest{Namespace: b.namespace, RunId: id})
}

// TestADeletedRunTakesNothingAndShowsNothing more, and its name stays taken until
// the last of it is gone.
func TestADeletedRunTakesNothingAndShowsNothing(t *testing.T) {
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
		_, err := b.say(id, "m", "hello")
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
	_, err := b.delete("nobody")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}

func TestARunThatWorksIsNotDeleted(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").step("turn", nil)
	_, err := b.delete("r1")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{}}, nil)
	_, err = b.delete("r1")
	b.refused(err, codes.FailedPrecondition, "RUN_ACTIVE")
	_, err = b.say("r1", "m", "hello")
	b.must(err)
}

// A watcher that is there when its run is deleted is told of the end.
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
				t.Errorf("it ended %v", r)
			}
			return
		}
	}
}
