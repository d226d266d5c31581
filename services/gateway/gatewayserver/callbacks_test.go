package gatewayserver_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// clientStream is a client's Run stream.
type clientStream struct {
	*bed
	stream grpc.BidiStreamingClient[harnessv1.RunRequest, harnessv1.RunResponse]
	run    runlog.Run
	leave  func()
}

// talk opens a Run stream and waits until it is attached.
func (b *bed) talk(first *harnessv1.RunRequest) *clientStream {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	b.t.Cleanup(cancel)
	stream, err := b.client.Run(ctx)
	b.must(err)
	b.must(stream.Send(first))
	resp, err := stream.Recv()
	b.must(err)
	at := resp.GetUpdate().GetAttached()
	if at == nil {
		b.t.Fatalf("the first update is %s", line(resp.GetUpdate()))
	}
	return &clientStream{bed: b, stream: stream, run: runlog.Run{Namespace: at.GetNamespace(), ID: at.GetRunId()}, leave: cancel}
}

func (b *bed) attachAnswering(id string, answers bool) *harnessv1.RunRequest {
	return &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{
		Namespace: b.namespace, RunId: id, AnswersHooks: answers,
	}}}
}

// startWithCallback is a start of a run with a hook that its client answers.
func (b *bed) startWithCallback(id string) *harnessv1.RunRequest {
	start := b.start(id, "do it")
	start.Spec.Agent.Hooks = []*harnessv1.Hook{{Topic: harnessv1.HookTopic_HOOK_TOPIC_SESSION_START, Callback: true}}
	return &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: start}}
}

func hookCall(key string) *harnessv1.HookRequest {
	return &harnessv1.HookRequest{HookId: "h", Topic: harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, IdempotencyKey: key, Payload: `{"tool":"x"}`}
}

// hookResult is what a call of a hook returned.
type hookResult struct {
	answer *harnessv1.HookAnswer
	err    error
}

func (c *clientStream) call(key string) <-chan hookResult {
	ended := make(chan hookResult, 1)
	go func() {
		answer, err := c.log.CallHook(c.ctx, c.run, hookCall(key))
		ended <- hookResult{answer, err}
	}()
	return ended
}

// hook waits for a call of a hook.
func (c *clientStream) hook() *harnessv1.HookRequest {
	c.t.Helper()
	for {
		resp, err := c.stream.Recv()
		c.must(err)
		if h := resp.GetUpdate().GetHook(); h != nil {
			return h
		}
	}
}

func (c *clientStream) receipt() *harnessv1.InputReceipt {
	c.t.Helper()
	for {
		resp, err := c.stream.Recv()
		c.must(err)
		if r := resp.GetUpdate().GetReceipt(); r != nil {
			return r
		}
	}
}

func (c *clientStream) answer(id string, a *harnessv1.HookAnswer) {
	c.t.Helper()
	c.must(c.stream.Send(&harnessv1.RunRequest{RequestId: id, Request: &harnessv1.RunRequest_HookAnswer{HookAnswer: a}}))
}

func denied(key string) *harnessv1.HookAnswer {
	return &harnessv1.HookAnswer{IdempotencyKey: key, Verdict: &harnessv1.HookVerdict{
		Action: harnessv1.HookAction_HOOK_ACTION_DENY, Reason: "not now",
	}}
}

func (b *bed) get(ended <-chan hookResult) hookResult {
	b.t.Helper()
	select {
	case c := <-ended:
		return c
	case <-b.ctx.Done():
		b.t.Fatal("the call does not end")
		panic("unreachable")
	}
}

func TestAClientAnswersHooksOverItsStream(t *testing.T) {
	b := newBed(t)
	b.started("attached")
	for name, first := range map[string]*harnessv1.RunRequest{"start": b.startWithCallback("begun"), "attach": b.attachAnswering("attached", true)} {
		t.Run(name, func(t *testing.T) {
			c := b.talk(first)
			ended := c.call("k1")
			if h := c.hook(); !proto.Equal(h, hookCall("k1")) {
				t.Fatalf("asked %v", h)
			}
			c.answer("in-1", denied("k1"))
			if got := b.get(ended); got.err != nil || !proto.Equal(got.answer, denied("k1")) {
				t.Fatalf("got %v", got)
			}
			if r := c.receipt(); r.GetRequestId() != "in-1" || r.GetError() != "" {
				t.Fatalf("receipt %v", r)
			}
			ended = c.call("k2")
			c.hook()
			c.answer("in-2", &harnessv1.HookAnswer{IdempotencyKey: "k2", Error: "it broke"})
			if got := b.get(ended); got.err != nil || got.answer.GetError() != "it broke" {
				t.Fatalf("got %v", got)
			}
			c.leave()
		})
	}
}

// TestHooksOfAnotherTokensRunNeedTheRightToApprove: an answer to a hook permits a call, so a token without the right
// approve answers those of runs that it has started only.
func TestHooksOfAnotherTokensRunNeedTheRightToApprove(t *testing.T) {
	b := newBed(t)
	caller := func(headers ...string) context.Context { return metadata.AppendToOutgoingContext(b.ctx, headers...) }
	_, err := b.client.StartRun(caller("harness-caller", "owner"), b.startWithCallback("r").GetStart())
	b.must(err)
	for name, c := range map[string]struct {
		ctx  context.Context
		want codes.Code
	}{
		"its owner":                           {caller("harness-caller", "owner"), codes.OK},
		"its owner, who may not approve":      {caller("harness-caller", "owner", "harness-no-approvals", "true"), codes.OK},
		"another, who may approve":            {caller("harness-caller", "other"), codes.OK},
		"another, who may not approve":        {caller("harness-caller", "other", "harness-no-approvals", "true"), codes.PermissionDenied},
		"another, of a run that is not there": {caller("harness-caller", "other", "harness-no-approvals", "true"), codes.NotFound},
	} {
		id := "r"
		if c.want == codes.NotFound {
			id = "none"
		}
		ctx, cancel := context.WithCancel(c.ctx)
		stream, err := b.client.Run(ctx)
		b.must(err)
		b.must(stream.Send(b.attachAnswering(id, true)))
		if _, err = stream.Recv(); status.Code(err) != c.want || c.want == codes.PermissionDenied && !strings.Contains(err.Error(), "may=approve") {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		cancel()
	}
}

// The gateway serves the hooks of a new run before it stores the run, under the
// generated id.
func TestHooksAreServedBeforeTheRunIsStored(t *testing.T) {
	log := &callLog{Log: shared}
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = log })
	c := b.talk(b.startWithCallback(""))
	log.mu.Lock()
	defer log.mu.Unlock()
	if want := []string{"serve " + c.run.String(), "append " + c.run.String()}; !slices.Equal(log.calls, want) {
		t.Fatalf("got %v, want %v", log.calls, want)
	}
}

// TestAStartOfAnotherTokensRunGetsNoHooks: neither of a run that exists, nor of one that another token stores while the
// start is about to. The token that has started the run answers them again with the same request.
func TestAStartOfAnotherTokensRunGetsNoHooks(t *testing.T) {
	log := &callLog{Log: shared, handled: make(chan struct{})}
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = log })
	owner := metadata.AppendToOutgoingContext(b.ctx, "harness-caller", "owner", "harness-no-approvals", "true")
	other := metadata.AppendToOutgoingContext(b.ctx, "harness-caller", "other", "harness-no-approvals", "true")
	// begin opens a Run stream, and returns what its client receives first.
	begin := func(ctx context.Context, first *harnessv1.RunRequest) (*harnessv1.RunResponse, error) {
		t.Helper()
		ctx, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		stream, err := b.client.Run(ctx)
		b.must(err)
		b.must(stream.Send(first))
		return stream.Recv()
	}
	changed := func(id string) *harnessv1.RunRequest {
		r := b.startWithCallback(id)
		r.GetStart().Spec.Agent.Instructions = "other"
		return r
	}
	_, err := b.client.StartRun(owner, b.startWithCallback("r").GetStart())
	b.must(err)
	if _, err := begin(other, b.startWithCallback("r")); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "start: answers hooks") {
		t.Errorf("the same request of another token: %v", err)
	}
	if _, err := begin(other, changed("r")); status.Code(err) != codes.AlreadyExists {
		t.Errorf("another request: %v", err)
	}
	serves := func() int {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(slices.DeleteFunc(slices.Clone(log.calls), func(call string) bool { return !strings.HasPrefix(call, "serve ") }))
	}
	if n := serves(); n != 0 {
		t.Errorf("another token was registered for hooks %d times", n)
	}

	for id, first := range map[string]*harnessv1.RunRequest{"same": b.startWithCallback("same"), "changed": changed("changed")} {
		called := make(chan hookResult, 1)
		log.mu.Lock()
		log.before = func() { // the owner's run is stored first, and its first hook is called
			_, err := b.client.StartRun(owner, b.startWithCallback(id).GetStart())
			b.must(err)
			go func() {
				answer, err := b.log.CallHook(b.ctx, runlog.Run{Namespace: b.namespace, ID: id}, hookCall("k"))
				called <- hookResult{answer, err}
			}()
			<-log.handled
		}
		log.mu.Unlock()
		if got, err := begin(other, first); status.Code(err) != codes.PermissionDenied && status.Code(err) != codes.AlreadyExists {
			t.Errorf("%s: received %v, %v", id, got, err)
		}
		if got := b.get(called); got.err != nil || got.answer.GetVerdict() != nil || got.answer.GetError() == "" {
			t.Errorf("%s: the hook has the answer %v", id, got)
		}
	}
	again, err := begin(owner, b.startWithCallback("r"))
	if err != nil || again.GetUpdate().GetAttached() == nil || serves() != 3 {
		t.Errorf("the owner's request again: %v, %v, %d", again, err, serves())
	}
}

// callLog is a log that records the order of its calls.
type callLog struct {
	runlog.Log
	mu    sync.Mutex
	calls []string
	// before is called once before a record is stored.
	before func()
	// handled receives a value for each hook that a client is called for; may be nil.
	handled chan struct{}
}

func (n *callLog) record(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, what)
}

func (n *callLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	n.record("append " + rec.GetNamespace() + "/" + rec.GetRunId())
	n.mu.Lock()
	before := n.before
	n.before = nil
	n.mu.Unlock()
	if before != nil {
		before()
	}
	return n.Log.Append(ctx, rec)
}

func (n *callLog) ServeHooks(run runlog.Run, handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (func(), error) {
	n.record("serve " + run.String())
	return n.Log.ServeHooks(run, func(ctx context.Context, r *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		if n.handled != nil {
			n.handled <- struct{}{}
		}
		return handle(ctx, r)
	})
}

func TestAClientReceivesNoHooksUnlessItRequestsThem(t *testing.T) {
	b := newBed(t)
	b.started("r")
	for name, first := range map[string]*harnessv1.RunRequest{
		"attached":         b.attachAnswering("r", false),
		"no callback hook": {Request: &harnessv1.RunRequest_Start{Start: b.start("plain", "do it")}},
	} {
		c := b.talk(first)
		if got := b.get(c.call("k")); !errors.Is(got.err, runlog.ErrNoClient) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAnAnswerToANonPendingCallIsRefused(t *testing.T) {
	b := newBed(t)
	b.started("r")
	c := b.talk(b.attachAnswering("r", true))
	refused := func(id, reason string) {
		t.Helper()
		if r := c.receipt(); r.GetRequestId() != id || r.GetReason() != reason || r.GetError() == "" {
			t.Fatalf("got %v, want %s", r, reason)
		}
	}
	c.answer("unknown", denied("nothing"))
	refused("unknown", "CALL_NOT_PENDING")
	ended := c.call("k")
	c.hook()
	for id, bad := range map[string]*harnessv1.HookAnswer{
		"no key": {Verdict: &harnessv1.HookVerdict{}}, "nothing": {IdempotencyKey: "k"},
		"both": {IdempotencyKey: "k", Verdict: &harnessv1.HookVerdict{}, Error: "x"},
	} {
		c.answer(id, bad)
		refused(id, "INVALID_FIELD")
	}
	c.answer("first", denied("k"))
	if r := c.receipt(); r.GetRequestId() != "first" || r.GetError() != "" {
		t.Fatalf("the call is no longer pending: %v", r)
	}
	c.answer("second", denied("k"))
	refused("second", "CALL_NOT_PENDING")
	if got := b.get(ended); got.err != nil || got.answer.GetVerdict().GetReason() != "not now" {
		t.Fatalf("got %v", got)
	}
}

func TestHookCallsEndWithTheirStream(t *testing.T) {
	b := newBed(t)
	b.started("r")
	for name, end := range map[string]func(c *clientStream){
		"the client leaves":             func(c *clientStream) { c.leave() },
		"the client closes its side":    func(c *clientStream) { b.must(c.stream.CloseSend()) },
		"the client breaks the rules":   func(c *clientStream) { b.must(c.stream.Send(b.attachAnswering("r", true))) },
		"the server closes all streams": func(*clientStream) { b.server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				b.restart()
				b.client = b.dial() // the old connection may not have noticed that it is cut
			}()
			c := b.talk(b.attachAnswering("r", true))
			ended := c.call("k")
			c.hook()
			end(c)
			if got := b.get(ended); got.err != nil || got.answer.GetError() != runlog.ErrClientLeft.Error() {
				t.Fatalf("got %v", got)
			}
			b.eventually("the hook has no client", func() bool {
				_, err := b.log.CallHook(b.ctx, c.run, hookCall("k2"))
				return errors.Is(err, runlog.ErrNoClient)
			})
		})
	}
}
