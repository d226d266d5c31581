package runlogtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

var hookCases = map[string]func(*bed){
	"hooks/answered":     hooksAnswered,
	"hooks/no client":    hooksNoClient,
	"hooks/one of many":  hooksOneOfMany,
	"hooks/client left":  hooksClientLeft,
	"hooks/late":         hooksLate,
	"hooks/concurrently": hooksConcurrently,
	"hooks/too many":     hooksTooMany,
	"hooks/large":        hooksLarge,
	"hooks/other caller": hooksCallerLeft,
}

func hookCall(key string) *harnessv1.HookRequest {
	return &harnessv1.HookRequest{
		Namespace: "suite", RunId: "r", HookId: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL,
		IdempotencyKey: key, TurnNumber: 3, Payload: `{"tool":"run_command"}`,
	}
}

type hookHandler = func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)

// answers serves the hooks of a run until the test ends.
func (b *bed) answers(run runlog.Run, handle hookHandler) (stop func()) {
	b.Helper()
	stop, err := b.log.ServeHooks(run, handle)
	b.must(err)
	stop = sync.OnceFunc(stop)
	b.Cleanup(stop)
	return stop
}

// withReason returns a handler that answers with a reason.
func withReason(reason string) hookHandler {
	return func(_ context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		return &harnessv1.HookAnswer{IdempotencyKey: req.GetIdempotencyKey(), Verdict: &harnessv1.HookVerdict{
			Action: harnessv1.HookAction_HOOK_ACTION_DENY, Reason: reason,
		}}, nil
	}
}

func hooksAnswered(b *bed) {
	run, other := b.chain("r").run, b.chain("other").run
	want := hookCall("k1")
	b.answers(other, withReason("the other run's"))
	b.answers(run, func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		if !proto.Equal(req, want) {
			return nil, fmt.Errorf("asked %v", req)
		}
		return withReason("mine")(ctx, req)
	})
	answer, err := b.log.CallHook(b.ctx, run, want)
	b.must(err)
	if answer.GetVerdict().GetReason() != "mine" || answer.GetIdempotencyKey() != "k1" || answer.GetError() != "" {
		b.Fatalf("got %v", answer)
	}
	answer, err = b.log.CallHook(b.ctx, run, hookCall("k2"))
	b.must(err)
	if answer.GetVerdict() != nil || !strings.Contains(answer.GetError(), "k2") {
		b.Fatalf("the error of the handler is not that of the answer: %v", answer)
	}
}

func hooksNoClient(b *bed) {
	run := b.chain("r").run
	_, err := b.log.CallHook(b.ctx, run, hookCall("k"))
	b.wantErr(err, runlog.ErrNoClient)
	stop := b.answers(run, withReason("there"))
	_, err = b.log.CallHook(b.ctx, run, hookCall("k"))
	b.must(err)
	stop()
	_, err = b.log.CallHook(b.ctx, run, hookCall("k"))
	b.wantErr(err, runlog.ErrNoClient)
}

// hooksOneOfMany checks that exactly one of several clients answers a call.
func hooksOneOfMany(b *bed) {
	run := b.chain("r").run
	asked := make(chan string, 100)
	for _, name := range []string{"one", "two", "three"} {
		b.answers(run, func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
			asked <- name
			return withReason(name)(ctx, req)
		})
	}
	const calls = 20
	for i := range calls {
		answer, err := b.log.CallHook(b.ctx, run, hookCall(fmt.Sprint("k", i)))
		b.must(err)
		if name := recv(b, asked, "the call"); name != answer.GetVerdict().GetReason() {
			b.Fatalf("%s received the call, %s answered", name, answer.GetVerdict().GetReason())
		}
	}
	if len(asked) != 0 {
		b.Fatalf("%d calls went to more than one client", len(asked))
	}
}

// hooksClientLeft checks that a call ends when its client disconnects.
func hooksClientLeft(b *bed) {
	run := b.chain("r").run
	asked := make(chan struct{})
	stop := b.answers(run, func(ctx context.Context, _ *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		close(asked)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	ended := make(chan *harnessv1.HookAnswer, 1)
	b.background(func(ctx context.Context) error {
		answer, err := b.log.CallHook(ctx, run, hookCall("k"))
		ended <- answer
		return err
	})
	recv(b, asked, "the call")
	stop()
	if answer := recv(b, ended, "the end of the call"); answer.GetError() != runlog.ErrClientLeft.Error() {
		b.Fatalf("got %v", answer)
	}
}

// hooksLate checks that a call lasts as long as the caller's context, and that the
// handler's context ends with it.
func hooksLate(b *bed) {
	run := b.chain("r").run
	ended := make(chan error, 1)
	b.answers(run, func(ctx context.Context, _ *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Millisecond)
	defer cancel()
	answer, err := b.log.CallHook(ctx, run, hookCall("k"))
	if err != nil {
		b.wantErr(err, runlog.ErrUnavailable)
	} else if answer.GetError() == "" { // the client was faster
		b.Fatalf("got %v", answer)
	}
	if err := recv(b, ended, "the end of the client's time"); !errors.Is(err, context.DeadlineExceeded) {
		b.Fatalf("the client's time ended with %v", err)
	}
}

func hooksCallerLeft(b *bed) {
	run := b.chain("r").run
	asked, release := make(chan struct{}, 2), make(chan struct{})
	b.answers(run, func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		asked <- struct{}{}
		<-release
		return withReason("late")(ctx, req)
	})
	stop := b.background(func(ctx context.Context) error {
		_, err := b.log.CallHook(ctx, run, hookCall("k"))
		return err
	})
	recv(b, asked, "the call")
	b.wantErr(stop(), runlog.ErrUnavailable)
	close(release)
	if answer, err := b.log.CallHook(b.ctx, run, hookCall("k")); err != nil || answer.GetVerdict().GetReason() != "late" {
		b.Fatalf("the client has gone with its caller: %v, %v", answer, err)
	}
}

// hooksConcurrently checks that calls do not wait for each other.
func hooksConcurrently(b *bed) {
	run := b.chain("r").run
	const calls = 10
	var all sync.WaitGroup
	all.Add(calls)
	b.answers(run, func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		all.Done()
		all.Wait()
		return withReason(req.GetIdempotencyKey())(ctx, req)
	})
	var callers sync.WaitGroup
	for i := range calls {
		key := fmt.Sprint("k", i)
		callers.Go(func() {
			answer, err := b.log.CallHook(b.ctx, run, hookCall(key))
			if err != nil || answer.GetVerdict().GetReason() != key {
				b.Errorf("%s: %v, %v", key, answer, err)
			}
		})
	}
	callers.Wait()
}

func hooksTooMany(b *bed) {
	run := b.chain("r").run
	asked, release := make(chan struct{}, runlog.MaxHookCalls+1), make(chan struct{})
	b.answers(run, func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		asked <- struct{}{}
		<-release
		return withReason("yes")(ctx, req)
	})
	var callers sync.WaitGroup
	for i := range runlog.MaxHookCalls {
		callers.Go(func() {
			if answer, err := b.log.CallHook(b.ctx, run, hookCall(fmt.Sprint("k", i))); err != nil || answer.GetError() != "" {
				b.Errorf("call %d: %v, %v", i, answer, err)
			}
		})
		recv(b, asked, "a call")
	}
	answer, err := b.log.CallHook(b.ctx, run, hookCall("more"))
	b.must(err)
	if answer.GetError() != runlog.ErrTooManyHookCalls.Error() || len(asked) > 0 {
		b.Errorf("got %v", answer)
	}
	close(release)
	callers.Wait()
}

// hooksLarge checks that the largest permitted payload and answer fit.
func hooksLarge(b *bed) {
	run := b.chain("r").run
	text := strings.Repeat("x", 900<<10)
	b.answers(run, func(_ context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		return &harnessv1.HookAnswer{Verdict: &harnessv1.HookVerdict{Payload: req.GetPayload()}}, nil
	})
	req := hookCall("k")
	req.Payload = text
	answer, err := b.log.CallHook(b.ctx, run, req)
	b.must(err)
	if answer.GetVerdict().GetPayload() != text {
		b.Fatalf("%d bytes came back", len(answer.GetVerdict().GetPayload()))
	}
}
