package jetstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// answerers is the queue group of the clients that answer hooks: one of them receives a
// call.
const answerers = "answerers"

// withinHeader contains how long the caller waits, in milliseconds. It is a duration,
// because clocks differ.
const withinHeader = "Hm-Within"

// noClientPauses are the pauses before another try to find a client. In a cluster it
// takes some milliseconds until all servers know a new subscription.
var noClientPauses = []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}

// CallHook calls a client of a run.
func (l *Log) CallHook(ctx context.Context, run runlog.Run, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
	op := "call hook " + req.GetHookId() + " of " + run.String()
	data, err := proto.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode the call of hook %s: %w", req.GetHookId(), err)
	}
	for _, pause := range append(noClientPauses, 0) {
		var reply *nats.Msg
		reply, err = l.request(ctx, hookCall(ctx, run, data))
		if err == nil {
			answer := &harnessv1.HookAnswer{}
			if err := proto.Unmarshal(reply.Data, answer); err != nil {
				return nil, fmt.Errorf("%s: decode the answer: %w", op, err)
			}
			return answer, nil
		}
		if !errors.Is(err, nats.ErrNoResponders) || pause == 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, unavailable(op, context.Cause(ctx))
	case errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("%s: %w", op, runlog.ErrNoClient)
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, fmt.Errorf("%s: %w: %d bytes", op, runlog.ErrTooLarge, len(data))
	}
	return nil, unavailable(op, err)
}

func hookCall(ctx context.Context, run runlog.Run, data []byte) *nats.Msg {
	m := nats.NewMsg(runlog.HookSubject(run))
	m.Data = data
	if deadline, ok := ctx.Deadline(); ok {
		m.Header.Set(withinHeader, strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 1), 10))
	}
	return m
}

// ServeHooks calls handle for hooks of a run that its clients answer, until stop is called. When it returns,
// the bus knows the subscription. Servers of the same run share the hooks.
func (l *Log) ServeHooks(run runlog.Run, handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (stop func(), err error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &hookServer{handle: handle}
	sub, err := l.nc.QueueSubscribe(runlog.HookSubject(run), answerers, func(m *nats.Msg) { s.take(ctx, m) })
	if err == nil {
		// Once the flush returns, the server knows the subscription.
		bounded, done := l.bounded(ctx)
		if err = l.nc.FlushWithContext(bounded); err != nil {
			_ = sub.Unsubscribe()
		}
		done()
	}
	if err != nil {
		cancel(nil)
		return nil, unavailable("answer hooks of "+run.String(), err)
	}
	return func() {
		_ = sub.Unsubscribe()
		cancel(runlog.ErrClientLeft)
		s.close()
	}, nil
}

// hookServer answers calls, each in its own goroutine.
type hookServer struct {
	handle func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)

	mu      sync.Mutex
	closed  bool
	busy    int
	running sync.WaitGroup
}

func (s *hookServer) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.running.Wait()
}

func (s *hookServer) take(ctx context.Context, m *nats.Msg) {
	req := &harnessv1.HookRequest{}
	if proto.Unmarshal(m.Data, req) != nil || !toInbox(m) {
		return // the caller does not expect an answer
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		respond(m, runlog.HookRefusal(req, runlog.ErrNoClient))
		return
	case s.busy >= runlog.MaxHookCalls:
		respond(m, runlog.HookRefusal(req, runlog.ErrTooManyHookCalls))
		return
	}
	s.busy++
	s.running.Go(func() {
		ctx, cancel := within(ctx, m.Header.Get(withinHeader))
		defer cancel()
		answer, err := s.handle(ctx, req)
		if err != nil {
			answer = runlog.HookRefusal(req, err)
		}
		respond(m, answer)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy--
	})
}

// within returns ctx bounded by the time that the caller waits.
func within(ctx context.Context, milliseconds string) (context.Context, context.CancelFunc) {
	if n, err := strconv.ParseInt(milliseconds, 10, 64); err == nil && n > 0 && n < 1<<40 {
		return context.WithTimeout(ctx, time.Duration(n)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

func respond(m *nats.Msg, answer *harnessv1.HookAnswer) {
	data, err := proto.Marshal(answer)
	if err != nil {
		data, _ = proto.Marshal(runlog.HookRefusal(&harnessv1.HookRequest{}, fmt.Errorf("encode the answer: %w", err)))
	}
	if err := m.Respond(data); errors.Is(err, nats.ErrMaxPayload) {
		data, _ = proto.Marshal(runlog.HookRefusal(&harnessv1.HookRequest{}, fmt.Errorf("the answer is %w: %d bytes", runlog.ErrTooLarge, len(data))))
		_ = m.Respond(data)
	}
}
