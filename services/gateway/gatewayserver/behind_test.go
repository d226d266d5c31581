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

// behind is a log whose replica near the gateway has stood still: it answers what
// it had then, to all who do not show that there is more.
type behind struct {
	runlog.Log
	mu  sync.Mutex
	had map[runlog.Run]*runlog.View // nil: it did not have the run
}

// stands lets the replica have of a run what there is now, and nothing later.
func (l *behind) stands(b *bed, id string) {
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

func (l *behind) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	l.mu.Lock()
	v, stands := l.had[run]
	l.mu.Unlock()
	switch {
	case stands && v == nil && contains == 0:
		return runlog.View{}, runlog.ErrNotFound
	case stands && v != nil && contains <= max(v.Newest.Sequence, v.InboxSequence):
		return *v, nil
	}
	return l.Log.View(ctx, run, contains)
}

// Runs shows nothing: the gateway's own feed is behind too.
func (l *behind) Runs(ctx context.Context, caughtUp func(), _ func(runlog.Entry)) error {
	caughtUp()
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestAGatewayAtAReplicaThatIsBehind refuses nothing and leaves nothing undone that
// the run as it stands would take.
func TestAGatewayAtAReplicaThatIsBehind(t *testing.T) {
	log := &behind{Log: shared, had: map[runlog.Run]*runlog.View{}}
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	started := func(id string) *hand {
		t.Helper()
		_, err := b.log.Append(b.ctx, &harnessv1.Record{Namespace: b.namespace, RunId: id, Version: 1, Schema: runlog.Schema,
			Writer: &harnessv1.Writer{Executor: "test", Nonce: 1}, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{From: "test", To: "turn",
				Snapshot: &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING}}}})
		b.must(err)
		return b.takeUp(id)
	}
	item := func(h *hand, id string, input *harnessv1.InboxItem) {
		t.Helper()
		input.Id = id
		_, _, err := b.log.AppendInbox(b.ctx, h.run, input, 0)
		b.must(err)
	}

	h := started("approval")
	log.stands(b, "approval")
	h.park("approval", awaited("a1", "approval"))
	_, err := b.approve("approval", "i1", "a1")
	b.must(err)
	h.holds(1)

	h = started("resume")
	log.stands(b, "resume")
	h.park("interrupted")
	resumed, err := b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "resume"})
	b.must(err)
	if resumed.GetAlreadyRunning() {
		t.Error("a run that rests is said to run")
	}
	h.holds(1)

	h = started("interrupt").park("interrupted")
	log.stands(b, "interrupt")
	item(h, "m1", &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: message("go on")}})
	_, err = b.client.InterruptRun(b.ctx, &harnessv1.InterruptRunRequest{Namespace: b.namespace, RunId: "interrupt"})
	b.must(err)
	h.holds(2)

	h = started("cancel").end(harnessv1.RunStatus_RUN_STATUS_DONE)
	log.stands(b, "cancel")
	item(h, "m1", &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: message("more")}})
	_, err = b.client.CancelRun(b.ctx, &harnessv1.CancelRunRequest{Namespace: b.namespace, RunId: "cancel"})
	b.must(err)
	h.holds(2)

	log.stands(b, "young")
	h = started("young")
	_, err = b.say("young", "m1", "hello")
	b.must(err)
	h.holds(1)

	h = started("delete")
	log.stands(b, "delete")
	h.park("interrupted")
	_, err = b.delete("delete")
	b.must(err)

	// What is refused for good still is.
	log.stands(b, "approval")
	_, err = b.approve("approval", "i2", "nobody")
	b.refused(err, codes.FailedPrecondition, "CALL_NOT_PENDING")
	_, err = b.say("nobody", "m1", "hello")
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
}
