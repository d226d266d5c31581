package gatewayserver

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// queuedReceipts bounds the receipts queued for a slow client; beyond them its inputs
// wait.
const queuedReceipts = 16

// Run starts or attaches to a run, then accepts inputs and sends updates.
func (s *Server) Run(stream grpc.BidiStreamingServer[harnessv1.RunRequest, harnessv1.RunResponse]) error {
	request, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return fault.Invalid("request", "must be start or attach; the stream was closed without one")
	}
	if err != nil {
		return err
	}
	receipts := make(chan *harnessv1.InputReceipt, queuedReceipts)
	left := make(chan struct{})
	hooks := newCallbacks()
	defer hooks.end()
	w := &watcher{
		until:    harnessv1.WatchUntil_WATCH_UNTIL_END,
		text:     true,
		receipts: receipts,
		hooks:    hooks.asked,
		left:     left,
		send: func(u *harnessv1.RunUpdate) error {
			return stream.Send(&harnessv1.RunResponse{Update: u})
		},
	}
	if err := s.open(stream.Context(), request, w, hooks); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	// Recv returns when the client closes its side or this handler returns, so Close
	// waits for this goroutine.
	listen := func() {
		if err := s.listen(ctx, stream.Recv, w.run, receipts, hooks); err != nil {
			cancel(err)
			return
		}
		hooks.end() // a client that closed its side answers no more calls
		close(left)
	}
	if !s.spawn(listen) {
		return errClosing()
	}
	return s.watch(ctx, w)
}

// open carries out the first message of a Run stream.
func (s *Server) open(ctx context.Context, request *harnessv1.RunRequest, w *watcher, hooks *callbacks) (err error) {
	w.alone = request.Tree != nil && !request.GetTree()
	switch first := request.GetRequest().(type) {
	case *harnessv1.RunRequest_Start:
		start := first.Start
		if start.GetRequestId() == "" {
			start.RequestId = request.GetRequestId()
		}
		w.run, w.stays, err = s.startServing(ctx, start, hooks)
		return err
	case *harnessv1.RunRequest_Attach:
		w.stays = true
		if w.from, err = gateway.OffsetOf(first.Attach.GetAfterVersion(), first.Attach.GetAfter()); err != nil {
			return err
		}
		if w.run, err = gateway.Run(first.Attach.GetNamespace(), first.Attach.GetRunId()); err != nil {
			return err
		}
		if first.Attach.GetAnswersHooks() {
			if err := s.mayAnswerHooks(ctx, w.run, "attach.answers_hooks"); err != nil {
				return err
			}
			if err := s.serveHooks(w.run, hooks); err != nil {
				return s.failure(ctx, "answer hooks of", w.run, err)
			}
		}
		if len(first.Attach.GetClientTools()) == 0 {
			return nil
		}
		return s.declare(ctx, w.run, request.GetRequestId(), first.Attach.GetClientTools())
	}
	return fault.Invalid("request", "the first message must be start or attach")
}

// listen gives the client's inputs to the run, one at a time, until the client closes
// its side.
func (s *Server) listen(ctx context.Context, recv func() (*harnessv1.RunRequest, error), run runlog.Run, receipts chan<- *harnessv1.InputReceipt, hooks *callbacks) error {
	for {
		request, err := recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		item := &harnessv1.InboxItem{Id: request.GetRequestId()}
		switch in := request.GetRequest().(type) {
		case *harnessv1.RunRequest_UserMessage:
			item.Input = &harnessv1.InboxItem_UserMessage{UserMessage: in.UserMessage}
		case *harnessv1.RunRequest_Approval:
			item.Input = &harnessv1.InboxItem_Approval{Approval: in.Approval}
		case *harnessv1.RunRequest_ToolAnswer:
			item.Input = &harnessv1.InboxItem_ToolAnswer{ToolAnswer: in.ToolAnswer}
		case *harnessv1.RunRequest_ModelChange:
			item.Input = &harnessv1.InboxItem_ModelChange{ModelChange: in.ModelChange}
		case *harnessv1.RunRequest_ModeChange:
			item.Input = &harnessv1.InboxItem_ModeChange{ModeChange: in.ModeChange}
		case *harnessv1.RunRequest_Replan:
			item.Input = &harnessv1.InboxItem_Replan{Replan: in.Replan}
		case *harnessv1.RunRequest_Interrupt:
			item.Input = &harnessv1.InboxItem_Interrupt{Interrupt: in.Interrupt}
		case *harnessv1.RunRequest_Resume:
			item.Input = &harnessv1.InboxItem_Resume{Resume: in.Resume}
		case *harnessv1.RunRequest_Cancel:
			item.Input = &harnessv1.InboxItem_Cancel{Cancel: in.Cancel}
		case *harnessv1.RunRequest_HookAnswer: // passed to the pending call, not stored
		default:
			return fault.Invalid("request", "only the first message may be start or attach, all others must be inputs")
		}
		var id string
		if answer := request.GetHookAnswer(); answer != nil {
			err = hooks.answer(answer)
		} else {
			id, _, err = s.input(ctx, run.Namespace, run.ID, item)
		}
		if id == "" {
			id = request.GetRequestId()
		}
		r := receipt(id, err, func(err error) {
			s.logger.Error("input", "namespace", run.Namespace, "run", run.ID, "error", err)
		})
		select {
		case receipts <- r:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
