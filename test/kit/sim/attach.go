package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// stream is a watcher's stream into an observer.
type stream struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // required by the interface
	receive func(*harnessv1.RunUpdate)
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Send(r *harnessv1.WatchRunResponse) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.receive(r.GetUpdate())
	return nil
}

// dialog is a client's bidirectional stream. Its updates are checked for order, but not
// for completeness.
type dialog struct {
	stream
	requests chan *harnessv1.RunRequest
	begun    bool // the first request was received
}

func (s *dialog) Recv() (*harnessv1.RunRequest, error) {
	if s.begun { // later than the first request, or the effects of both would have no fixed order
		sleep(s.ctx, 10*time.Millisecond)
	}
	s.begun = true
	select {
	case r, more := <-s.requests:
		if !more {
			return nil, io.EOF
		}
		return r, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

func (s *dialog) Send(r *harnessv1.RunResponse) error {
	return s.stream.Send(&harnessv1.WatchRunResponse{Update: r.GetUpdate()})
}

// Attach attaches to a run for some seconds, declares tools and sends a message.
func (c *Clients) Attach(ctx context.Context, run runlog.Run, random *rand.Rand, id string) {
	stay, cancel := context.WithTimeoutCause(ctx, time.Duration(1000+random.IntN(10_000))*time.Millisecond, errLeft)
	defer cancel()
	o := &Observer{w: c.w, run: run}
	o.Attach()
	requests := make(chan *harnessv1.RunRequest, 2)
	attach := &harnessv1.AttachRun{Namespace: run.Namespace, RunId: run.ID}
	if random.IntN(2) == 0 {
		attach.ClientTools = ClientTools()
	}
	requests <- &harnessv1.RunRequest{RequestId: id, Tree: proto.Bool(false), Request: &harnessv1.RunRequest_Attach{Attach: attach}}
	if random.IntN(2) == 0 {
		requests <- &harnessv1.RunRequest{RequestId: id + "-said", Request: &harnessv1.RunRequest_UserMessage{
			UserMessage: &harnessv1.UserMessage{Content: content.Inline(uniqueText + id + "-said")},
		}}
	}
	if random.IntN(2) == 0 {
		close(requests)
	}
	name := c.gateways[random.IntN(len(c.gateways))]
	_, _ = Call(stay, c.w, name, func(ctx context.Context, p *Process) (struct{}, error) {
		c.w.mu.Lock()
		g := p.gateway
		c.w.mu.Unlock()
		if g == nil {
			return struct{}{}, away(name)
		}
		return struct{}{}, g.Run(&dialog{requests: requests, stream: stream{ctx: ctx, receive: func(u *harnessv1.RunUpdate) {
			if p.Dead() {
				return
			}
			if r := u.GetReceipt(); r != nil && r.GetError() == "" {
				c.w.Acknowledged(run, r.GetRequestId())
				return
			}
			o.Receive(u)
		}}})
	})
}

var errLeft = errors.New("the watcher has left")

// watch watches a run until ctx ends, reconnecting at random times, and answers most of
// its questions.
func (c *Clients) watch(ctx context.Context, run runlog.Run, random *rand.Rand) {
	o := c.w.Observe(run)
	answered, followed := 0, 0
	pause := 1
	for ctx.Err() == nil && !o.deleted() {
		before := o.Last
		stay, cancel := context.WithTimeoutCause(ctx, time.Duration(random.IntN(60_000))*time.Millisecond+time.Second, errLeft)
		o.Attach()
		name := c.gateways[random.IntN(len(c.gateways))]
		_, _ = Call(stay, c.w, name, func(ctx context.Context, p *Process) (struct{}, error) {
			c.w.mu.Lock()
			g := p.gateway
			c.w.mu.Unlock()
			if g == nil {
				return struct{}{}, away(name)
			}
			return struct{}{}, g.WatchRun(&harnessv1.WatchRunRequest{
				Namespace: run.Namespace, RunId: run.ID, AfterVersion: o.Last, Until: harnessv1.WatchUntil_WATCH_UNTIL_END, Tree: proto.Bool(false),
			}, &stream{ctx: ctx, receive: func(u *harnessv1.RunUpdate) {
				if p.Dead() {
					return // its connections are closed
				}
				o.Receive(u)
				for ; followed < len(o.Agents); followed++ {
					c.follow(runlog.Run{Namespace: run.Namespace, ID: o.Agents[followed]})
				}
				for answered < len(o.Awaited) && !c.w.Healing() {
					c.consider(run, random, answered, o.Awaited[answered])
					answered++
				}
			}})
		})
		cancel()
		if pause = min(2*pause, 8); o.Last != before {
			pause = 1
		}
		sleep(ctx, time.Duration(200+random.IntN(2500*pause))*time.Millisecond)
	}
}

// consider decides which clients answer a call that waits, and when.
func (c *Clients) consider(run runlog.Run, random *rand.Rand, n int, call pendingCall) {
	if random.IntN(8) == 0 {
		return // no client answers
	}
	for who := range 1 + random.IntN(2) {
		id := fmt.Sprintf("%s-answer-%d-%d", run.ID, n, who)
		pause := time.Duration(random.IntN(8000)) * time.Millisecond
		c.w.Client(id, func(ctx context.Context) {
			if sleep(ctx, pause) {
				c.Answer(ctx, run, c.w.Random(id), id, call)
			}
		})
	}
}
