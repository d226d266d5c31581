package gatewayhttp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// queuedUpdates is how many updates are read ahead of a client, so that a history is
// written in batches.
const queuedUpdates = 64

// retryMilliseconds is how long a client waits before it reconnects to a stream that the
// server ended.
const retryMilliseconds = 1000

// watch is the watch that a client requests.
type watch struct {
	request *harnessv1.WatchRunRequest
	place   place
	seed    bool
}

// watchOf reads the watch of a request.
func (s *server) watchOf(r *http.Request, q *query) (*watch, error) {
	w := &watch{request: &harnessv1.WatchRunRequest{
		Namespace: q.namespace(), RunId: r.PathValue("run_id"), Until: q.until(), NoDeltas: q.flag("no_deltas"), Tree: q.choice("tree"),
	}, seed: q.seedNames()}
	if q.err != nil {
		return nil, q.err
	}
	text, field := r.Header.Get("Last-Event-ID"), "Last-Event-ID"
	if text == "" { // a reconnecting EventSource sends both, and the header is newer
		text, field = q.text("after"), "after"
	}
	w.place = place{whole: true}
	if text != "" {
		var err error
		if w.place, err = placeOf(text, field); err != nil {
			return nil, err
		}
	}
	if w.request.After = w.place.offset(); w.request.GetAfter() == "" {
		w.request.AfterVersion = w.place.after()
	}
	return w, nil
}

// events streams the events of a run.
func (s *server) events(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(r, formEvents, formLines)
	if err != nil {
		return err
	}
	watch, err := s.watchOf(r, queryOf(r, "after", "until", "no_deltas", "names", "tree"))
	if err != nil {
		return err
	}
	if watch.place.result != "" {
		if over, err := s.over(calling(r), watch); err != nil {
			return err
		} else if over {
			w.WriteHeader(http.StatusNoContent) // otherwise an EventSource reconnects forever
			return nil
		}
	}
	return s.stream(w, r, form, http.StatusOK, watch)
}

// over reports whether a client has seen everything that its watch would send.
func (s *server) over(ctx context.Context, w *watch) (bool, error) {
	run, err := s.gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: w.request.GetNamespace(), RunId: w.request.GetRunId()})
	if err != nil || run.GetResult() == nil || len(run.GetWaiting()) > 0 {
		return false, err
	}
	if runstate.IsWaiting(run.GetResult().GetStatus(), run.GetResult().GetReason()) {
		return false, nil // it continues by itself
	}
	if run.GetResult().GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && w.request.GetUntil() == harnessv1.WatchUntil_WATCH_UNTIL_END {
		return false, nil
	}
	line, err := s.resultLine(ctx, w, run.GetResult())
	return err == nil && resultHash(line) == w.place.result, err
}

func (s *server) resultLine(ctx context.Context, w *watch, r *harnessv1.HarnessResult) ([]byte, error) {
	r, err := s.whole(ctx, w.request.GetNamespace(), w.request.GetRunId(), r)
	if err != nil {
		return nil, err
	}
	return eventjson.ResultLine(w.request.GetRunId(), r)
}

// stream sends the events of a run until the watch is over or the client has left.
func (s *server) stream(w http.ResponseWriter, r *http.Request, form string, code int, watch *watch) error {
	ctx, cancel := context.WithCancel(calling(r))
	defer cancel()
	updates, err := s.gateway.WatchRun(ctx, watch.request)
	if err != nil {
		return err
	}
	return relay(ctx, cancel, s, s.lines(w, form), code, updates, func(l *lines, m *harnessv1.WatchRunResponse) error {
		return s.writeUpdate(ctx, l, watch, m.GetUpdate())
	})
}

// writeUpdate writes an update, unless the client has seen it.
func (s *server) writeUpdate(ctx context.Context, l *lines, w *watch, u *harnessv1.RunUpdate) error {
	switch u := u.GetUpdate().(type) {
	case *harnessv1.RunUpdate_Attached:
		line, err := eventjson.Message(u.Attached)
		if err != nil {
			return err
		}
		return l.event("", "attached", withType("attached", line))
	case *harnessv1.RunUpdate_Event:
		fresh, err := w.place.see(u.Event)
		if err != nil || !fresh {
			return err
		}
		name, line, err := eventLine(u.Event, w.seed)
		if err != nil {
			return err
		}
		return l.event(w.place.String(), name, line)
	case *harnessv1.RunUpdate_Delta:
		return writeDelta(l, u.Delta)
	case *harnessv1.RunUpdate_Result:
		line, err := s.resultLine(ctx, w, u.Result)
		if err != nil || !w.place.rest(line) {
			return err
		}
		return l.event(w.place.String(), "result", line)
	}
	return nil // of a newer gateway
}

// writeDelta writes the pieces of a delta, each as an event of its kind.
func writeDelta(l *lines, d *harnessv1.Delta) error {
	if d.GetToolOutput() != nil {
		line, err := eventjson.ToolOutput(d)
		if err != nil {
			return err
		}
		return l.event("", eventjson.TypeToolOutput, line)
	}
	if d.GetAlert() != nil {
		line, err := eventjson.Alert(d)
		if err != nil {
			return err
		}
		return l.event("", eventjson.TypeAlert, line)
	}
	if d.GetReasoning() != "" {
		line, err := eventjson.ReasoningDelta(d)
		if err != nil {
			return err
		}
		if err := l.event("", eventjson.TypeReasoning, line); err != nil || d.GetText() == "" {
			return err
		}
	}
	line, err := eventjson.Delta(d)
	if err != nil {
		return err
	}
	return l.event("", "delta", line)
}

// withType returns an object with its type as the first field.
func withType(kind string, object []byte) []byte {
	out := append([]byte(`{"type":"`+kind+`"`), ',')
	if len(object) == len("{}") {
		out = out[:len(out)-1]
	}
	return append(out, object[1:]...)
}

// runEvents streams the status of runs, and then each run that changes.
func (s *server) runEvents(w http.ResponseWriter, r *http.Request) error {
	form, err := formOf(r, formEvents, formLines)
	if err != nil {
		return err
	}
	q := queryOf(r, "status", "changes_only")
	request := &harnessv1.WatchRunsRequest{Namespace: q.namespace(), Statuses: q.statuses(), ChangesOnly: q.flag("changes_only")}
	if q.err != nil {
		return q.err
	}
	ctx, cancel := context.WithCancel(calling(r))
	defer cancel()
	updates, err := s.gateway.WatchRuns(ctx, request)
	if err != nil {
		return err
	}
	return relay(ctx, cancel, s, s.lines(w, form), http.StatusOK, updates, func(l *lines, m *harnessv1.WatchRunsResponse) error {
		if m.GetCaughtUp() != nil {
			return l.event("", "caught_up", []byte(`{"type":"caught_up"}`))
		}
		line, err := eventjson.Run(m.GetRun())
		if err != nil {
			return err
		}
		return l.event("", "run", withType("run", line))
	})
}

// relay reads a stream of the gateway and writes each message, until the stream ends or
// the client leaves. An error before the first message is returned, because the answer
// has not started; a later one becomes the last event.
func relay[M any](ctx context.Context, cancel context.CancelFunc, s *server, l *lines, code int, from grpc.ServerStreamingClient[M], tell func(*lines, *M) error) error {
	first, err := from.Recv()
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if berr := l.sendHead(code); berr != nil || err != nil {
		return nil // the client has left, or there is nothing to send
	}
	messages, ended := make(chan *M, queuedUpdates), make(chan error, 1)
	go func() {
		defer close(messages)
		for m, err := first, error(nil); ; m, err = from.Recv() {
			if err != nil {
				ended <- err
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
				ended <- context.Cause(ctx)
				return
			}
		}
	}()
	defer func() {
		cancel()
		for range messages { // until the reader has ended
		}
	}()
	quiet := time.NewTicker(s.keepAlive)
	defer quiet.Stop()
	for {
		select {
		case m, more := <-messages:
			if !more {
				s.farewell(ctx, l, <-ended)
				return nil
			}
			if err := tell(l, m); err != nil {
				s.farewell(ctx, l, err)
				return nil
			}
			if len(messages) == 0 {
				if err := l.flush(); err != nil {
					return nil // the client has left or does not read
				}
			}
			quiet.Reset(s.keepAlive)
		case <-quiet.C:
			if err := l.alive(); err != nil {
				return nil
			}
		}
	}
}

// farewell ends a stream with the reason, if there is one.
func (s *server) farewell(ctx context.Context, l *lines, err error) {
	if err == nil || errors.Is(err, io.EOF) {
		_ = l.flush()
		return
	}
	if ctx.Err() != nil && status.Code(err) == codes.Canceled {
		return // the client has left, and its token is still valid
	}
	p, _ := problemOf(err)
	body, _ := json.Marshal(struct {
		Type  string  `json:"type"`
		Error problem `json:"error"`
	}{"stream.error", p}) // strings only: it cannot fail
	if l.retry(retryMilliseconds) == nil && l.event("", "stream.error", body) == nil {
		_ = l.flush()
	}
}
