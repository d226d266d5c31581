package show

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/target"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

const (
	// shownWaits bounds the runs whose pending calls are listed below a table.
	shownWaits = 20
	// maxReads bounds the concurrent reads of runs.
	maxReads = 8
)

// runKey identifies a run across namespaces.
type runKey struct{ namespace, run string }

func keyOf(r *harnessv1.Run) runKey { return runKey{r.GetNamespace(), r.GetRunId()} }

// waitingCall identifies a call of a run.
type waitingCall struct {
	run  runKey
	call string
}

// runResults are the results of parked runs that were read.
type runResults map[runKey]*harnessv1.HarnessResult

func (s runResults) of(r *harnessv1.Run) *harnessv1.HarnessResult { return s[keyOf(r)] }

// waiting returns the runs that wait for an answer or a timer, without those that only
// wait for a resume.
func waiting(runs []*harnessv1.Run) (calls, timers []*harnessv1.Run) {
	for _, r := range runs {
		switch kind := r.GetReason().GetKind(); {
		case r.GetStatus() != harnessv1.RunStatus_RUN_STATUS_PARKED:
		case kind == "provider_unavailable", kind == runstate.KindPoison, kind == runstate.KindWait, kind == runstate.KindAgent:
			timers = append(timers, r)
		case kind != "interrupted" && !strings.HasPrefix(kind, target.BudgetExceeded):
			calls = append(calls, r)
		}
	}
	return calls, timers
}

// all reads what all runs wait for.
func (c *ListCmd) all(ctx context.Context, s *backend.Session, runs []*harnessv1.Run) (runResults, error) {
	calls, timers := waiting(runs)
	results, err := c.ask(ctx, s, timers)
	if err != nil || len(calls) == 0 {
		return results, err
	}
	pending, err := target.PendingOf(ctx, s, c.Namespace, "")
	for _, p := range pending {
		key := runKey{p.GetNamespace(), p.GetRunId()}
		if results[key] == nil {
			results[key] = &harnessv1.HarnessResult{}
		}
		r := results[key]
		r.Pending = append(r.Pending, p.GetCall())
		if d := p.GetCall().GetDeadline(); d != nil && (r.WakeAt == nil || d.AsTime().Before(r.GetWakeAt().AsTime())) {
			r.WakeAt = d
		}
	}
	return results, err
}

// ask reads the results of some runs.
func (c *ListCmd) ask(ctx context.Context, s *backend.Session, runs []*harnessv1.Run) (runResults, error) {
	results := runResults{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxReads)
	var mu sync.Mutex
	for _, r := range runs {
		group.Go(func() error {
			answer, err := s.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: r.GetNamespace(), RunId: r.GetRunId()})
			if code := status.Code(err); code == codes.NotFound || code == codes.FailedPrecondition {
				return nil // deleted meanwhile
			}
			mu.Lock()
			defer mu.Unlock()
			results[keyOf(r)] = answer.GetResult()
			return err
		})
	}
	return results, group.Wait()
}

// below returns the lines below the table: the waits of the newest runs, each call with the
// command that answers it.
func (c *ListCmd) below(ctx context.Context, a *console.Console, s *backend.Session, runs []*harnessv1.Run) (string, error) {
	calls, timers := waiting(runs)
	shown := append(calls, timers...)
	left := max(len(shown)-shownWaits, 0)
	shown = shown[:len(shown)-left]
	results, err := c.ask(ctx, s, shown)
	if err != nil {
		return "", err
	}
	style, now := a.Style(a.Out), time.Now()
	var text strings.Builder
	printed := map[waitingCall]bool{} // a call of a sub-agent is one of the run above it, too
	for _, r := range shown {
		own := c.Target
		own.Namespace = r.GetNamespace()
		pending := results.of(r).GetPending()
		for _, p := range pending {
			in := &harnessv1.Run{Namespace: r.GetNamespace(), RunId: cmp.Or(p.GetRunId(), r.GetRunId())}
			if key := (waitingCall{keyOf(in), p.GetCallId()}); printed[key] {
				continue
			} else {
				printed[key] = true
			}
			call := render.PendingCall{Call: p, Run: c.name(in), Command: target.Answering(target.RunOf(r.GetRunId(), p, pending), p, own.Words(a))}
			text.WriteString("\n" + strings.Join(style.PendingLines(call, now), "\n") + "\n")
		}
		if wakes := style.WakeLine(results.of(r), now); wakes != "" {
			fmt.Fprintf(&text, "\n%s %s\n", render.Clean(c.name(r)), wakes)
		}
	}
	if left > 0 {
		fmt.Fprintf(&text, "\nmore runs that wait: %d (harness show RUN says for what)\n", left)
	}
	return text.String(), nil
}

// runJSON returns a run with its pending calls and the time at which it continues by
// itself, null if it does not.
func runJSON(r *harnessv1.Run, current *harnessv1.HarnessResult) ([]byte, error) {
	run, err := eventjson.Run(r)
	if err != nil {
		return nil, err
	}
	pending, err := eventjson.Pending(current.GetPending())
	if err != nil {
		return nil, err
	}
	return with(with(run, "pending", pending), "wake_at", eventjson.Time(current.GetWakeAt())), nil
}

// with returns an object with one more field.
func with(object []byte, name string, value []byte) []byte {
	return fmt.Appendf(object[:len(object)-1], `,%q:%s}`, name, value)
}
