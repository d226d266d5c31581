package gatewayserver_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func (b *bed) same(got []string, want ...string) {
	b.t.Helper()
	if !slices.Equal(got, want) {
		b.t.Fatalf("got:\n  %s\nwant:\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// updates is a stream of updates that the test reads one by one.
type updates struct {
	b    *bed
	recv func() (*harnessv1.RunUpdate, error)
}

func (b *bed) watch(r *harnessv1.WatchRunRequest) updates {
	b.t.Helper()
	r.Namespace = b.namespace
	stream, err := b.client.WatchRun(b.ctx, r)
	b.must(err)
	return updates{b, func() (*harnessv1.RunUpdate, error) {
		resp, err := stream.Recv()
		return resp.GetUpdate(), err
	}}
}

// expect reads exactly these updates.
func (u updates) expect(want ...string) {
	u.b.t.Helper()
	for i, w := range want {
		got, err := u.recv()
		if err != nil {
			u.b.t.Fatalf("update %d: %v, want %q", i, err, w)
		}
		if line(got) != w {
			u.b.t.Fatalf("update %d: got %q, want %q", i, line(got), w)
		}
	}
}

func (u updates) end() {
	u.b.t.Helper()
	if got, err := u.recv(); !errors.Is(err, io.EOF) {
		u.b.t.Fatalf("got %s, %v; want the end of the stream", line(got), err)
	}
}

func TestWatchStored(t *testing.T) {
	b := newBed(t)
	b.started("r1").aTurn(1).park("interrupted").resume().aTurn(2).end(harnessv1.RunStatus_RUN_STATUS_DONE)
	all := []string{
		"3-0 step_start", "4-0 model_response text 1", "5-0 tool_result", "result PARKED interrupted",
		"8-0 session_resume", "10-0 step_start", "11-0 model_response text 2", "12-0 tool_result",
		"14-0 session_complete", "result DONE agent_done",
	}
	for _, until := range []harnessv1.WatchUntil{0, harnessv1.WatchUntil_WATCH_UNTIL_END, harnessv1.WatchUntil_WATCH_UNTIL_REST, harnessv1.WatchUntil_WATCH_UNTIL_NOW} {
		got, err := b.watched(&harnessv1.WatchRunRequest{RunId: "r1", Until: until})
		b.must(err)
		b.same(got, append([]string{"attached 14"}, all...)...)
	}
	// From any version the rest is the same.
	for after := range uint64(15) {
		got, err := b.watched(&harnessv1.WatchRunRequest{RunId: "r1", AfterVersion: after})
		b.must(err)
		want := []string{"attached 14"}
		for _, l := range all {
			version, _ := strconv.ParseUint(strings.Split(l, "-")[0], 10, 64)
			if version > after || l == "result PARKED interrupted" && after < 7 || l == "result DONE agent_done" {
				want = append(want, l)
			}
		}
		b.same(got, want...)
	}
	_, err := b.watched(&harnessv1.WatchRunRequest{RunId: "other"})
	b.refused(err, codes.NotFound, "RUN_NOT_FOUND")
	_, err = b.watched(&harnessv1.WatchRunRequest{RunId: "r1", Until: 9})
	b.refused(err, codes.InvalidArgument, "INVALID_FIELD")
}

func TestWatchLive(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	end := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	rest := b.watch(&harnessv1.WatchRunRequest{RunId: "r1", Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	end.expect("attached 1")
	rest.expect("attached 1")
	h.aTurn(1).park("approval", approvalCall("c9"))
	turn := []string{"3-0 step_start", "4-0 model_response text 1", "5-0 tool_result", "result PARKED approval"}
	end.expect(turn...)
	rest.expect(turn...)
	rest.end()
	h.resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)
	end.expect("8-0 session_resume", "9-0 session_complete", "result DONE agent_done")
	end.end()
}

// A watch that starts after a resume does not end at the park that the resume is about
// to end, and has no result of it.
func TestWatchUntilParkAfterResume(t *testing.T) {
	b := newBed(t)
	h := b.started("r1").park("interrupted")
	_, err := b.client.ResumeRun(b.ctx, &harnessv1.ResumeRunRequest{Namespace: b.namespace, RunId: "r1"})
	b.must(err)
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1", AfterVersion: 2, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	w.expect("attached 2")
	got, err := b.watched(&harnessv1.WatchRunRequest{RunId: "r1", AfterVersion: 2, Until: harnessv1.WatchUntil_WATCH_UNTIL_NOW})
	b.must(err)
	b.same(got, "attached 2", "result PARKED interrupted")
	h.resume().end(harnessv1.RunStatus_RUN_STATUS_DONE)
	w.expect("3-0 session_resume", "4-0 session_complete", "result DONE agent_done")
	w.end()
	got, err = b.watched(&harnessv1.WatchRunRequest{RunId: "r1", AfterVersion: 4, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST})
	b.must(err)
	b.same(got, "attached 4", "result DONE agent_done")
}

func (h *hand) write(turn, attempt, try uint32, offset uint64, text string) {
	h.b.t.Helper()
	h.b.must(h.b.log.PublishDelta(h.run, &harnessv1.Delta{TurnNumber: turn, Attempt: attempt, Try: try, Offset: offset, Text: text}))
}

func TestWatchDeltas(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	with := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	without := b.watch(&harnessv1.WatchRunRequest{RunId: "r1", NoDeltas: true})
	with.expect("attached 1")
	without.expect("attached 1")
	// Nothing is lost once something has arrived.
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ExecutorFailed{}}, nil, &harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{}}})
	with.expect("2-0 executor_error")

	started := func(turn, attempt uint32) {
		h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: turn, Attempt: attempt}}}, nil,
			&harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{}}})
	}
	h.write(1, 1, 1, 0, "too ") // before its record: waits for it
	started(1, 1)
	with.expect("3-0 step_start", "delta too ")
	h.write(1, 1, 1, 4, "early")
	with.expect("delta early")
	h.write(1, 1, 2, 0, "second try")
	with.expect("delta second try")
	h.write(1, 1, 1, 9, "first try") // late: dropped
	started(1, 2)
	with.expect("4-0 step_start")
	h.write(1, 1, 2, 10, "first attempt") // dropped
	h.write(1, 2, 1, 0, "takeover")
	with.expect("delta takeover")
	h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{}}},
		[]*harnessv1.Message{{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("takeover and all")}},
		&harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{}}})
	with.expect("5-0 model_response takeover and all")
	h.write(1, 2, 1, 8, " and all") // committed already: dropped
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	with.expect("6-0 session_complete", "result DONE agent_done")
	with.end()
	without.expect("2-0 executor_error", "3-0 step_start", "4-0 step_start", "5-0 model_response takeover and all", "6-0 session_complete", "result DONE agent_done")
	without.end()
}

// A client that reads late receives every record, and its backlog of text does not block
// the gateway.
func TestWatchSlowClient(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	w.expect("attached 1")
	const records = 1500
	fill := strings.Repeat("x", 1000)
	for i := range records {
		h.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: uint32(i + 1), Attempt: 1}}}, nil,
			&harnessv1.Event{Event: &harnessv1.Event_ExecutorError{ExecutorError: &harnessv1.ExecutorError{Error: fill}}})
		h.write(uint32(i+1), 1, 1, 0, fill)
	}
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	next := uint64(2)
	for next < records+2 {
		u, err := w.recv()
		b.must(err)
		if e := u.GetEvent(); e != nil {
			if e.GetVersion() != next {
				t.Fatalf("version %d, want %d", e.GetVersion(), next)
			}
			next++
		}
	}
	for {
		u, err := w.recv()
		b.must(err)
		if u.GetResult() != nil {
			break
		}
	}
	w.end()
}

func TestCloseEndsWatches(t *testing.T) {
	b := newBed(t)
	b.started("r1")
	w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1"})
	w.expect("attached 1")
	b.server.Close()
	if _, err := w.recv(); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	if _, err := b.watched(&harnessv1.WatchRunRequest{RunId: "r1"}); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
}

// Many watchers of one run see the same.
func TestWatchersAgree(t *testing.T) {
	b := newBed(t)
	h := b.started("r1")
	results := make(chan string, 8)
	for range cap(results) {
		w := b.watch(&harnessv1.WatchRunRequest{RunId: "r1", NoDeltas: true})
		go func() {
			var lines []string
			for {
				u, err := w.recv()
				if err != nil {
					results <- fmt.Sprint(lines, err)
					return
				}
				if u.GetAttached() == nil {
					lines = append(lines, line(u))
				}
			}
		}()
	}
	for i := range uint32(20) {
		h.aTurn(i + 1)
	}
	h.end(harnessv1.RunStatus_RUN_STATUS_DONE)
	first := <-results
	for range cap(results) - 1 {
		if other := <-results; other != first {
			t.Fatalf("got %s, and %s", first, other)
		}
	}
	if !strings.HasSuffix(first, "result DONE agent_done] EOF") {
		t.Fatalf("got %s", first)
	}
}

// TestWatchAfterLoss checks that the error for a client that continues after a version that
// the log does not have names the newest that it has.
func TestWatchAfterLoss(t *testing.T) {
	b := newBed(t)
	b.started("r")
	_, err := b.watched(&harnessv1.WatchRunRequest{Namespace: b.namespace, RunId: "r", AfterVersion: 7})
	b.refused(err, codes.DataLoss, "NOT_STORED")
	if !strings.Contains(status.Convert(err).Message(), "after_version 1") {
		t.Errorf("refused with %v", err)
	}
}
