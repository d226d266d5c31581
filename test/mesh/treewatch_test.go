package mesh

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemWatchersOfATreeOutliveGateways: watchers of a tree continue with their offsets while the gateway is killed again and
// again, and none misses an event, or sees one twice or out of order. With -rounds 20 there are 100 of them.
func TestSystemWatchersOfATreeOutliveGateways(t *testing.T) {
	t.Parallel()
	a := newAsker(t, "watched")
	spec := deep()
	spec.Workspace = newWorkspace(t)
	_, err := a.client.StartRun(a.ctx, &harnessv1.StartRunRequest{RunId: a.run, Spec: spec})
	a.must(err)
	seen := make([][]*harnessv1.Event, 5)
	if *rounds >= 20 {
		seen = make([][]*harnessv1.Event, 100)
	}
	var watchers sync.WaitGroup
	for i := range seen {
		watchers.Go(func() { seen[i] = a.watchOn() })
	}
	kill := func() {
		for range max(1, *rounds/2) {
			a.m.Process("gateway").Kill()
			a.m.Start("gateway")
			a.m.AwaitReady("gateway")
		}
	}
	kill()
	asked := a.restOfTree()
	kill()
	call := a.onlyPending(asked, "question", 2)
	a.must(a.sendOn(&harnessv1.SendInputRequest{RunId: a.run, RequestId: "answer", Input: &harnessv1.SendInputRequest_ToolAnswer{
		ToolAnswer: &harnessv1.ToolAnswer{CallId: call.GetCallId(), Result: content.Inline("out")},
	}}))
	kill()
	call = a.onlyPending(a.restOfTree(), "approval", 3)
	a.must(a.sendOn(&harnessv1.SendInputRequest{RunId: a.run, RequestId: "approval", Input: &harnessv1.SendInputRequest_Approval{
		Approval: &harnessv1.Approval{CallId: call.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
	}}))
	kill()
	watchers.Wait()
	whole := a.eventsAfter("", nil)
	a.sound(whole)
	for i, events := range seen {
		a.sound(events)
		if !slices.Equal(eventIDs(events), eventIDs(whole)) {
			t.Errorf("watcher %d saw %v, expected %v", i, eventIDs(events), eventIDs(whole))
		}
	}
}

// eventIDs returns the ids of events by run, those of each run in their order: runs side by side have none.
func eventIDs(events []*harnessv1.Event) (ids []string) {
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b *harnessv1.Event) int { return cmp.Compare(a.GetRunId(), b.GetRunId()) })
	for _, e := range events {
		ids = append(ids, e.GetId())
	}
	return ids
}

// watchOn watches the tree until its root has ended, over as many streams as it takes.
func (a *asker) watchOn() (events []*harnessv1.Event) {
	after := ""
	for a.ctx.Err() == nil {
		stream, err := a.client.WatchRun(a.ctx, &harnessv1.WatchRunRequest{RunId: a.run, After: after, Until: harnessv1.WatchUntil_WATCH_UNTIL_END})
		for err == nil {
			var r *harnessv1.WatchRunResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			if e := r.GetUpdate().GetEvent(); e != nil {
				events = append(events, e)
				if after = e.GetOffset(); after == "" {
					after = e.GetId()
				}
				if e.GetRunId() == "" && e.GetSessionComplete() != nil {
					return events
				}
			}
		}
		timer := time.NewTimer(20 * time.Millisecond) // between two streams
		select {
		case <-timer.C:
		case <-a.ctx.Done():
		}
	}
	return events
}

// restOfTree waits until the whole tree is parked, also over a gateway that restarts, and returns its result. A call
// below is listed as soon as its own run is parked; the reason of the root names it once the reports have arrived there.
func (a *asker) restOfTree() (result *harnessv1.HarnessResult) {
	a.Helper()
	waittest.Eventually(a, "the tree is parked", func() bool {
		r, err := a.client.GetRun(a.ctx, &harnessv1.GetRunRequest{RunId: a.run})
		result = r.GetResult()
		if err != nil || len(result.GetPending()) != 1 {
			return false
		}
		waits := result.GetPending()[0].GetRunId()
		return waits != "" && result.GetReason().GetDetails().GetRunId() == waits
	})
	return result
}

// sendOn sends an input until a gateway has answered it.
func (a *asker) sendOn(r *harnessv1.SendInputRequest) error {
	_, err := waittest.Retry(a.ctx, func(ctx context.Context) (*harnessv1.SendInputResponse, error) { return a.client.SendInput(ctx, r) })
	return err
}
