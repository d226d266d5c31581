package waittest

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// temporary reports whether a call may be repeated after an error.
func temporary(err error) bool { return status.Code(err) == codes.Unavailable }

// Retry repeats a call until it succeeds or is refused permanently.
func Retry[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for {
		r, err := call(ctx)
		if err == nil || !temporary(err) || ctx.Err() != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Watch follows a run from after until until, across failures of the gateway, and calls
// each with every event once. It returns the last result.
func Watch(ctx context.Context, client harnessv1.GatewayServiceClient, namespace, run string, after uint64, until harnessv1.WatchUntil, each func(*harnessv1.Event)) (*harnessv1.HarnessResult, error) {
	var result *harnessv1.HarnessResult
	last := ""
	for {
		stream, err := client.WatchRun(ctx, &harnessv1.WatchRunRequest{
			Namespace: namespace, RunId: run, AfterVersion: after, Until: until, NoDeltas: true, Tree: proto.Bool(false),
		})
		version, skip := after, last != ""
		for err == nil {
			var r *harnessv1.WatchRunResponse
			if r, err = stream.Recv(); err != nil {
				break
			}
			if u := r.GetUpdate().GetResult(); u != nil {
				result = u
			}
			e := r.GetUpdate().GetEvent()
			if e == nil {
				continue
			}
			if skip { // the events of a record up to the last received one
				skip = e.GetId() != last
				continue
			}
			// All events of the versions before have been received: a new stream may
			// continue here.
			if e.GetVersion() > version {
				after, version = version, e.GetVersion()
			}
			last = e.GetId()
			if each != nil {
				each(e)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return result, nil
		case !temporary(err) || ctx.Err() != nil:
			return result, err
		}
		select {
		case <-ctx.Done():
			return result, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
