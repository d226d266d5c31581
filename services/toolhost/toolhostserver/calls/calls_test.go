package calls

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/background"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/guard"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/places"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newCalls returns Calls on the ledger in a folder. shut closes both.
func newCalls(t *testing.T, dir string) (c *Calls, shut func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	l, err := ledger.Open(dir, false, time.Hour, log)
	if err != nil {
		t.Fatal(err)
	}
	c = New(ledger.NewEntries(l, 1<<20, log), places.New(trust.Open(dir), log), log)
	return c, func() {
		t.Helper()
		c.Close()
		c.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// job returns a job of a workspace that executes f.
func job(id string, f func(ctx context.Context) Effect) *Job {
	return &Job{
		Key: ledger.CallKey("run", id), Run: "run", ID: id, Workspace: "/work", CommandLine: "make " + id, Output: NewOutput(),
		Prepare: func(context.Context, string) {}, Reject: func() ledger.Response { return nil },
		Execute: func(ctx context.Context, _ *guard.Watch) Effect { return f(ctx) },
	}
}

// text returns a job whose result is a text, and counts its executions.
func text(id string, count *int) *Job {
	return job(id, func(context.Context) Effect {
		*count++
		return Effect{Response: &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "text"}}
	})
}

// blocking returns a job that runs until it is stopped, and a channel that is closed when it has begun.
func blocking(id string) (j *Job, begun chan struct{}) {
	begun = make(chan struct{})
	return job(id, func(ctx context.Context) Effect {
		close(begun)
		<-ctx.Done()
		return Effect{Interrupted: true}
	}), begun
}

// TestACallHasItsEffectOnce: requests share a result, also that of the next host.
func TestACallHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	dir, count := t.TempDir(), 0
	for range 2 {
		c, shut := newCalls(t, dir)
		for range 2 {
			resp, err := c.Run(context.Background(), text("a", &count))
			if r, ok := resp.(*harnessv1.ExecuteToolResponse); err != nil || !ok || r.GetResult() != "text" {
				t.Errorf("got %v, %v", resp, err)
			}
		}
		shut()
	}
	if count != 1 {
		t.Errorf("executed %d times", count)
	}
}

// TestACallOfAClosedHostIsUnknown to the next one, and a request to the closed one is UNAVAILABLE.
func TestACallOfAClosedHostIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, shut := newCalls(t, dir)
	j, begun := blocking("a")
	failed := make(chan error, 1)
	go func() {
		_, err := c.Run(context.Background(), j)
		failed <- err
	}()
	<-begun
	if !c.Busy("/work") || c.Busy("/other") {
		t.Error("the wrong workspaces are in use")
	}
	shut()
	var e *fault.Error
	if err := <-failed; !errors.As(err, &e) || e.Code != codes.Unavailable || !strings.Contains(e.Message, "closed while the call ran") {
		t.Errorf("got %v", err)
	}
	if _, err := c.Run(context.Background(), j); !errors.As(err, &e) || e.Message != toolhost.Closing {
		t.Errorf("got %v", err)
	}
	next, shut := newCalls(t, dir)
	defer shut()
	if resp, err := next.Run(context.Background(), j); err != nil || resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("got %v, %v", resp, err)
	}
}

// TestCancel kills what runs, forbids what has not begun, and keeps what has ended.
func TestCancel(t *testing.T) {
	t.Parallel()
	c, shut := newCalls(t, t.TempDir())
	defer shut()
	count := 0
	if _, err := c.Run(context.Background(), text("ended", &count)); err != nil {
		t.Fatal(err)
	}
	j, begun := blocking("running")
	killed := make(chan ledger.Response, 1)
	go func() {
		resp, _ := c.Run(context.Background(), j)
		killed <- resp
	}()
	<-begun
	var targets []Target
	for _, id := range []string{"ended", "running", "later"} {
		targets = append(targets, Target{ID: id, Key: ledger.CallKey("run", id)})
	}
	cancelled, err := c.Cancel(targets, toolhost.Call{})
	if err != nil || cancelled.NeedsFormer() {
		t.Fatalf("got %v, %v", cancelled, err)
	}
	resp := &harnessv1.CancelToolsResponse{}
	if err := cancelled.Finish(context.Background(), resp); err != nil {
		t.Fatal(err)
	}
	if strings.Join(resp.GetFinished(), " ") != "ended" || strings.Join(resp.GetKilled(), " ") != "running" || len(resp.GetUnknown()) != 0 {
		t.Errorf("got %v", resp)
	}
	if r := <-killed; r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		t.Errorf("got %v", r)
	}
	if r, err := c.Run(context.Background(), text("later", &count)); err != nil || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED || count != 1 {
		t.Errorf("got %v, %v, executed %d times", r, err, count)
	}
	// Under another ledger it may have begun.
	foreign, err := c.Cancel([]Target{{ID: "x", Key: ledger.CallKey("run", "x")}}, toolhost.Call{ForeignLedger: true})
	if err != nil || !foreign.NeedsFormer() {
		t.Errorf("got %v, %v", foreign, err)
	}
}

// TestPauseKeepsCommandsAlone from being interrupted: with one it changes nothing.
func TestPauseKeepsCommandsAlone(t *testing.T) {
	t.Parallel()
	c, shut := newCalls(t, t.TempDir())
	defer shut()
	j, begun := blocking("a")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Run(context.Background(), j)
	}()
	<-begun
	none := func() []background.Line { return nil }
	if lines := c.Pause(none); len(lines) != 1 || lines[0] != (background.Line{Run: "run", Text: "make a"}) {
		t.Errorf("got %v", lines)
	}
	count := 0
	if _, err := c.Run(context.Background(), text("b", &count)); err != nil {
		t.Errorf("a call after a pause that failed: %v", err)
	}
	cancelled, err := c.Cancel([]Target{{ID: "a", Key: j.Key}}, toolhost.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if err := cancelled.Finish(context.Background(), &harnessv1.CancelToolsResponse{}); err != nil {
		t.Fatal(err)
	}
	<-ended
	if lines := c.Pause(none); lines != nil {
		t.Errorf("got %v", lines)
	}
	var e *fault.Error
	if _, err := c.Run(context.Background(), text("c", &count)); !errors.As(err, &e) || e.Reason != harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED {
		t.Errorf("got %v", err)
	}
	if err := c.Detach(context.Background(), time.Minute, func(context.Context) error { return nil }); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
	c.Continue()
	if _, err := c.Run(context.Background(), text("c", &count)); err != nil || count != 2 {
		t.Errorf("got %v, executed %d times", err, count)
	}
}
