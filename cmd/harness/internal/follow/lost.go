package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// hold holds back a result. It counts if nothing else arrives within Grace.
func (f *follower) hold(r *harnessv1.HarnessResult) {
	f.held = r
	if f.grace == nil {
		f.grace = time.After(f.Grace)
	}
}

// ended decides what the end of a stream means.
func (f *follower) ended(ctx context.Context, err error) error {
	if errors.Is(err, io.EOF) || err == nil {
		if len(f.awaiting) > 0 || f.asking.open() {
			f.again(200 * time.Millisecond)
			return nil
		}
		answer, getErr := f.Client.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: f.Namespace, RunId: f.Run})
		if getErr == nil {
			waiting := !f.Stored && runstate.IsWaiting(answer.GetRun().GetStatus(), answer.GetResult().GetReason())
			if answer.GetRun().GetStatus() != harnessv1.RunStatus_RUN_STATUS_RUNNING && answer.GetResult() != nil && !waiting {
				f.rest(ctx, answer.GetResult())
				return nil
			}
			if f.Stored {
				return ErrStored
			}
			f.again(200 * time.Millisecond)
			return nil
		}
		err = getErr
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !f.away(err) {
		return err
	}
	f.grace = nil // continues when the gateway is back
	why := "the gateway is unavailable"
	if f.Rejoin != nil && status.Code(err) == codes.Unavailable {
		client, sent, rejoinErr := f.Rejoin(ctx, !f.out.Interrupted)
		switch {
		case errors.Is(rejoinErr, ErrStopped):
			return rejoinErr
		case rejoinErr != nil && !f.away(rejoinErr):
			return rejoinErr
		case rejoinErr != nil:
			err, why = rejoinErr, content.Line(content.Clean(status.Convert(rejoinErr).Message()), maxRefusal)
		default:
			f.Client = client
			if sent != "" {
				f.awaiting[sent] = true
				f.held = nil
			}
			f.again(20 * time.Millisecond)
			return nil
		}
	}
	if f.failing.IsZero() {
		f.failing = time.Now()
		if status.Code(err) == codes.ResourceExhausted { // the message has the number, and what to do
			why = "the gateway refuses: " + content.Line(content.Clean(status.Convert(err).Message()), maxRefusal)
		}
		f.Printer.Remark(fmt.Sprintf("%s; retrying for up to %v", why, f.Patience))
	}
	if time.Since(f.failing) > f.Patience {
		return err
	}
	f.again(min(100*time.Millisecond<<min(f.waits, 6), 5*time.Second))
	return nil
}

// maxRefusal bounds the text of a refusal that is shown, in bytes.
const maxRefusal = 300

// back records that the gateway has answered.
func (f *follower) back() {
	if !f.failing.IsZero() {
		f.Printer.Remark("gateway back")
	}
	f.failing, f.waits, f.answered = time.Time{}, 0, true
}

// away reports whether a call failed because the gateway, or its log, is unavailable. A proxy that
// has lost its gateway may answer that it knows no such path. Where no gateway has answered yet, that
// is another server.
func (f *follower) away(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.ResourceExhausted, codes.DeadlineExceeded:
		return true
	case codes.Unimplemented:
		return (f.Answered || f.answered) && strings.HasPrefix(status.Convert(err).Message(), notFound)
	}
	return false
}

// notFound begins the message of a response with the HTTP status 404 that no gRPC server has sent.
const notFound = "unexpected HTTP status code received from server: 404 "

func (f *follower) again(wait time.Duration) {
	f.waits++
	f.retry = time.After(wait)
}

// insist retries a call until the gateway answers, for up to Patience. The call has an
// id, so that it has one effect. A signal ends it.
func (f *follower) callWithRetry(ctx context.Context, signals <-chan os.Signal, call func(context.Context) error) error {
	end := time.Now().Add(f.Patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		try, cancel := context.WithTimeout(ctx, 20*time.Second)
		err := call(try)
		cancel()
		if !f.away(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-signals:
			return ErrLeft
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
