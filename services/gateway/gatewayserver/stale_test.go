package gatewayserver_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// staleReplica is a log whose replica near the gateway has stopped: View returns the
// records of that time, unless the caller asks for a newer message.
type staleReplica struct {
	runlog.Log
	mu  sync.Mutex
	had map[runlog.Run]*runlog.View // nil: it did not have the run
}

// stop stops the replica at the current state of a run.
func (l *staleReplica) stop(b *bed, id string) {
	b.t.Helper()
	run := runlog.Run{Namespace: b.namespace, ID: id}
	v, err := l.Log.View(b.ctx, run, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(err, runlog.ErrNotFound) {
		l.had[run] = nil
		return
	}
	b.must(err)
	l.had[run] = &v
}

func (l *staleReplica) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	l.mu.Lock()
	v, stopped := l.had[run]
	l.mu.Unlock()
	switch {
	case stopped && v == nil && contains == 0:
		return runlog.View{}, runlog.ErrNotFound
	case stopped && v != nil && contains <= max(v.Newest.Sequence, v.InboxSequence):
		return *v, nil
	}
	return l.Log.View(ctx, run, contains)
}

// Runs shows no run: the gateway's feed is stale too.
func (l *staleReplica) Runs(ctx context.Context, caughtUp func(), _ func(runlog.Entry)) error {
	caughtUp()
	<-ctx.Done()
	return context.Cause(ctx)
}

// A gateway that reads a stale replica accepts every input that the current state of
// the run accepts.
func TestGatewayAtAStaleReplica(t *testing.T) {
	log := &staleReplica{Log: shared, had: map[runlog.Run]*runlog.View{}}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	started := func(id string) *hand {
		t.Helper()
		_, err := b.log.Append(b.ctx, &harnessv1.Record{Namespace: b.namespace, RunId: id, Version: 1, Schema: runlog.Schema,
			Writer: &harnessv1.Writer{Executor: "test", Nonce: 1}, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{From: "test", To: "turn",
				Snapshot: &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING}}}})
		b.must(err)
		return b.openRun(id)
	}
	item := func(h *hand, id string, input *harnessv1.InboxItem) {
		t.Helper()
		input.Id = id
		_, _, err := b.log.AppendInbox(b.ctx, h.run, input, 0)
		b.must(err)
	}

	h := started("approval")
	log.stop(b, "approval")
	h.park("approval", awaited("a1", "approval"))
	_, err := b.approve("approval", "i1", "a1")
	b.must(err)
	h.holds(1)

	h = started("resume")
	log.stop(b, "resume")
	h.park("interrupted")
	resumed, err := b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "resume"})
	b.must(err)
	if resumed.GetAlreadyRunning() {
		t.Error("already_running is set for a parked run")
	}
	h.holds(1)

	h = started("interrupt").park("interrupted")
	log.stop(b, "interrupt")
	item(h, "m1", &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: message("go on")}})
	_, err = b.client.InterruptRun(b.ctx, &harnessv1.InterruptRunRequest{Namespace: b.namespace, RunId: "interrupt"})
	b.must(err)
	h.holds(2)

	h = started("cancel").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	log.stop(b, "cancel")
	item(h, "m1", &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: message("more")}})
	_, err = b.client.CancelRun(b.ctx, &harnessv1.CancelRunRequest{Namespace: b.namespace, RunId: "cancel"})
	b.must(err)
	h.holds(2)

	log.stop(b, "young")
	h = started("young")
	_, err = b.sendMessage("young", "m1", "hello")
	b.must(err)
	h.holds(1)

	h = started("delete")
	log.stop(b, "delete")
	h.park("interrupted")
	_, err = b.delete("delete")
	b.must(err)

	// Permanent refusals remain.
	log.stop(b, "approval")
	_, err = b.approve("approval", "i2", "missing")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.sendMessage("missing", "m1", "hello")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}
