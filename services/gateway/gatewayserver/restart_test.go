package gatewayserver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
)

// fitful is a log whose reads can be made to fail.
type fitful struct {
	*runlogtest.Faults
	failure atomic.Pointer[error]
	refused chan struct{} // has room for one
}

func newFitful() *fitful {
	return &fitful{Faults: runlogtest.NewFaults(shared), refused: make(chan struct{}, 1)}
}

func (l *fitful) leave(err error) { l.failure.Store(&err) }

func (l *fitful) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	if err := l.failure.Load(); err != nil && *err != nil {
		select {
		case l.refused <- struct{}{}:
		default:
		}
		return runlog.View{}, *err
	}
	return l.Faults.View(ctx, run, contains)
}

// A watch and a Run stream continue after an outage of the log, also if the run ends
// meanwhile, and if a replica does not know the run.
func TestWatchSurvivesAnOutage(t *testing.T) {
	for name, failure := range map[string]error{"away": runlog.ErrUnavailable, "stale": runlog.ErrNotFound} {
		t.Run(name, func(t *testing.T) {
			log := newFitful()
			b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
			h := b.started("r1")
			w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
			s := b.open(b.ctx, b.attach("r1", 0))
			w.expect("attached 1")
			s.expect("attached 1")
			turn := func(n uint32, lines ...string) {
				h.aTurn(n)
				w.expect(lines...)
				s.expect(lines...)
			}
			turn(1, "3-0 step_start", "4-0 model_response text 1", "5-0 tool_result")
			log.DropFeed(func(*runlog.Entry) bool { return true })
			log.leave(failure)
			log.Interrupt()
			h.aTurn(2)
			<-log.refused
			<-log.refused
			log.leave(nil)
			lines := []string{"8-0 step_start", "9-0 model_response text 2", "10-0 tool_result"}
			w.expect(lines...)
			s.expect(lines...)
			// The feed delivers the end. To know that nothing follows it, the gateway
			// reads the log.
			log.DropFeed(nil)
			log.leave(failure)
			h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
			lines = []string{"12-0 session_complete", "result DONE agent_done"}
			w.expect(lines...)
			s.expect(lines...)
			<-log.refused
			log.leave(nil)
			w.end()
			s.end()
		})
	}
}

// If the log stays unavailable, the watch ends with the version to continue from.
func TestWatchGivesUp(t *testing.T) {
	log := newFitful()
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log, cfg.Patience = log, 100*time.Millisecond })
	h := b.started("r1")
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	w.expect("attached 1")
	h.aTurn(1)
	w.expect("3-0 step_start", "4-0 model_response text 1", "5-0 tool_result")
	log.leave(runlog.ErrUnavailable)
	log.Interrupt()
	_, err := w.recv()
	b.refused(err, codes.Unavailable, "LOG_UNAVAILABLE")
	if want := "attach again with after_version"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
}

// A client that attaches again after the last version it has seen receives each
// later event once, through restarts of the gateway, and an input that it sends
// again has no second effect.
func TestRunStreamAcrossRestarts(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	message := func(s stream, id string) {
		b.must(s.Send(&harnessv1.RunRequest{RequestId: id, Request: &harnessv1.RunRequest_UserMessage{UserMessage: message("more")}}))
	}
	approve := func(s stream, id string) {
		b.must(s.Send(&harnessv1.RunRequest{RequestId: id, Request: &harnessv1.RunRequest_Approval{
			Approval: &harnessv1.Approval{CallId: "c9", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}}}))
	}
	broken := func(s stream) {
		for {
			if _, err := s.recv(); err != nil {
				if status.Code(err) != codes.Unavailable {
					b.t.Fatal(err)
				}
				return
			}
		}
	}
	reattach := func(after uint64) stream {
		b.t.Helper()
		b.restart()
		b.client = b.dial() // the old connection may not have noticed that it is cut
		return b.open(b.ctx, b.attach("r1", after))
	}
	s := b.open(b.ctx, b.attach("r1", 0))
	s.expect("attached 1")
	h.aTurn(1)
	s.expect("3-0 step_start", "4-0 model_response text 1")
	message(s, "m1")
	b.eventually("the message is stored", func() bool { return len(h.inbox()) == 1 })
	old := s
	s = reattach(4) // the receipt may be lost
	broken(old)
	s.expect("attached 6", "5-0 tool_result")
	message(s, "m1")
	s.expect("receipt m1 ")
	h.holds(1)

	h.park("approval", approvalCall("c9"))
	s.expect("result PARKED approval")
	approve(s, "a1")
	s.expect("receipt a1 ")
	old = s
	s = reattach(7)
	broken(old)
	s.expect("attached 7")
	approve(s, "a1")
	s.expect("receipt a1 ") // stored before: no refusal
	approve(s, "a2")
	s.expect("receipt a2 CALL_ANSWERED")
	h.holds(2)

	// Also after repair has processed the items.
	cursor := h.drained()
	h.step("repair", func(st *harnessv1.Step) {
		st.Snapshot.InboxCursor, st.Snapshot.PendingToolCalls, st.Snapshot.StopReason = cursor, nil, nil
		st.Snapshot.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
		st.Snapshot.DrainedItems = []uint64{runlog.HashID("m1"), runlog.HashID("a1")}
		st.Snapshot.AnsweredCalls = []uint64{runlog.HashID("c9")}
	}, &harnessv1.Event{Event: &harnessv1.Event_SessionResume{SessionResume: &harnessv1.SessionResume{}}})
	s.expect("8-0 session_resume")
	old = s
	s = reattach(7) // the client has not seen the last updates
	broken(old)
	s.expect("attached 8", "8-0 session_resume")
	approve(s, "a1")
	message(s, "m1")
	s.expect("receipt a1 ", "receipt m1 ")
	h.holds(2)
	h.aTurn(2)
	s.expect("10-0 step_start", "11-0 model_response text 2", "12-0 tool_result")
	b.must(s.CloseSend())
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	s.expect("14-0 session_complete", "result DONE agent_done")
	s.end()
}

// Watches survive a restart of the NATS server: they receive the records written after it,
// each version once.
func TestWatchSurvivesARestartOfNATS(t *testing.T) {
	config := jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"}
	server, err := jetstream.StartEmbedded(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Stop() })
	config.Listen = strings.TrimPrefix(server.URL(), "nats://")
	if err := jetstream.Provision(t.Context(), jetstream.Config{URL: server.URL()}, jetstream.Layout{}); err != nil {
		t.Fatal(err)
	}
	log, err := jetstream.Open(t.Context(), jetstream.Config{URL: server.URL(), Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(log.Close)
	b := newBed(t, func(cfg *gatewayserver.Config) { cfg.Log = log })
	b.log = log
	h := b.started("r1").aTurn(1)
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	w.expect("attached 6", "3-0 step_start", "4-0 model_response text 1", "5-0 tool_result")
	runs := b.watchRuns(&harnessv1.WatchRunsRequest{ChangesOnly: true})
	runs.expect("caught up")

	server.Stop()
	if _, err := log.View(b.ctx, h.run, 0); !errors.Is(err, runlog.ErrUnavailable) {
		t.Fatalf("a server that was stopped answers: %v", err)
	}
	if server, err = jetstream.StartEmbedded(config); err != nil {
		t.Fatal(err)
	}
	b.eventually("the log is back", func() bool {
		_, err := log.View(b.ctx, h.run, 0)
		return err == nil
	})
	h.aTurn(2).end(harnessv1.RunStatus_RUN_STATUS_DONE)
	w.expect("8-0 step_start", "9-0 model_response text 2", "10-0 tool_result", "12-0 session_complete", "result DONE agent_done")
	w.end()
	runs.expect("r1 DONE 12")
}
