package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// errNoResult: the stream of a call ended without a result.
var errNoResult = errors.New("the stream ended without a result")

// executeStream is the description of ToolService.Execute.
var executeStream = &harnessv1.ToolService_ServiceDesc.Streams[0]

// callService calls a tool of a ToolService.
func (s *session) callService(ctx, bounded context.Context, conn *connection, c Call, arguments string) Result {
	conn.service.calls.RLock()
	defer conn.service.calls.RUnlock()
	outgoing := metadata.NewOutgoingContext(context.WithoutCancel(ctx), conn.service.headers)
	streaming, end := context.WithCancel(outgoing)
	defer end()
	stream, err := conn.service.open(streaming, bounded, end)
	if err != nil {
		if ctx.Err() != nil {
			return Result{Interrupted: true, notRun: true}
		}
		return notRun("The server %s cannot be reached: %s. The call did not run.", s.server.GetName(), remote.Reason(err))
	}
	deadline, _ := bounded.Deadline()
	request := &harnessv1.ToolServiceExecuteRequest{
		Key: c.Key, Namespace: c.Run.Namespace, RunId: c.RunID, CallId: c.Token, Tool: c.GetTool(), Arguments: arguments,
		Timeout: durationpb.New(max(time.Until(deadline), time.Millisecond)),
	}
	ends := make(chan serviceEnd, 1)
	go func() { ends <- receive(stream, request, c.Output, &s.secrets) }()
	select {
	case e := <-ends:
		if why := unreadable(request, e.err); why != nil {
			_, _ = conn.service.cancel(outgoing, c.Key, ends) // if it was output, the call still runs
			return unreadableResult(c, why)
		}
		return s.serviceResult(ctx, conn, c, e)
	case <-bounded.Done():
	}
	if c.GetRemembered() && errors.Is(context.Cause(ctx), toolhost.ErrHostCloses) {
		return Result{Interrupted: true}
	}
	stopped, e := conn.service.cancel(outgoing, c.Key, ends)
	switch {
	case e != nil: // it ended meanwhile
		return s.serviceResult(ctx, conn, c, *e)
	case stopped && ctx.Err() != nil:
		return Result{Interrupted: true}
	}
	return Result{Unknown: true, over: true}
}

// open opens the stream of a call. After an error nothing of the call was sent.
func (c *service) open(ctx, bounded context.Context, end context.CancelFunc) (grpc.ClientStream, error) {
	release := context.AfterFunc(bounded, end)
	stream, err := c.conn.NewStream(ctx, executeStream, harnessv1.ToolService_Execute_FullMethodName, grpc.MaxCallRecvMsgSize(maxMessage), grpc.ForceCodecV2(lenientCodec()))
	if !release() && err == nil {
		return nil, status.Error(codes.Canceled, "it did not answer in time")
	}
	return stream, err
}

// serviceEnd is how the stream of a call ended: with a result, or with an error.
type serviceEnd struct {
	result *harnessv1.ToolServiceResult
	err    error
	// answered: the service has sent a part of the output.
	answered bool
}

// receive sends the request of a call and shows its output, without secrets, until it ends.
func receive(stream grpc.ClientStream, request *harnessv1.ToolServiceExecuteRequest, output io.Writer, hide *secrets) (e serviceEnd) {
	if err := stream.SendMsg(request); err == nil {
		_ = stream.CloseSend()
	} else if !errors.Is(err, io.EOF) { // EOF: RecvMsg returns the reason
		return serviceEnd{err: err}
	}
	for {
		response := &harnessv1.ToolServiceExecuteResponse{}
		if err := stream.RecvMsg(response); err != nil {
			if errors.Is(err, io.EOF) {
				err = errNoResult
			}
			e.err = err
			return e
		}
		if r := response.GetResult(); r != nil {
			return serviceEnd{result: r}
		}
		e.answered = true
		if text := response.GetOutput(); text != "" && output != nil {
			_, _ = io.WriteString(output, hide.redact(content.Clean(text)))
		}
	}
}

// cancel cancels a call. stopped: nothing of it runs any more. e is its result if it ended first.
func (c *service) cancel(ctx context.Context, key string, ends <-chan serviceEnd) (stopped bool, e *serviceEnd) {
	ctx, done := context.WithTimeout(ctx, grace)
	defer done()
	confirmed := make(chan error, 1)
	go func() {
		_, err := c.client.Cancel(ctx, &harnessv1.ToolServiceCancelRequest{Key: key})
		confirmed <- err
	}()
	err := <-confirmed // it ends with ctx
	select {
	case end := <-ends:
		if end.result != nil && !end.result.GetUnknown() {
			return false, &end
		}
	default:
	}
	return err == nil, nil
}

// serviceResult returns the result of a call that has ended, for the model.
func (s *session) serviceResult(ctx context.Context, conn *connection, c Call, e serviceEnd) Result {
	switch code := status.Code(e.err); {
	case e.err == nil && e.result.GetUnknown():
		return Result{Unknown: true, over: true}
	case e.err == nil:
		return serviceAnswer(c, e.result)
	case e.answered:
	case code == codes.Unauthenticated:
		conn.unauthorized.Store(true)
		conn.stop(signin.ErrNeeded)
		return failed("%s", notReady(s.server, harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN, ""))
	case code == codes.InvalidArgument, code == codes.NotFound, code == codes.FailedPrecondition, code == codes.PermissionDenied, code == codes.Unimplemented:
		return failed("%sThe server answered with an error: %s. The call did not run.", origin(c.GetServer()), content.Clean(remote.Reason(e.err)))
	}
	s.servers.config.Logger.WarnContext(ctx, "call of a tool service lost", "server", s.server.GetName(), "tool", c.GetTool(), "error", s.secrets.redact(e.err.Error()))
	return Result{Unknown: true}
}

// serviceAnswer returns an answer of the service for the model.
func serviceAnswer(c Call, answer *harnessv1.ToolServiceResult) Result {
	r := Result{IsError: answer.GetIsError()}
	var b strings.Builder
	if answer.GetText() != "" {
		b.WriteString(answer.GetText() + "\n")
	}
	for i, m := range answer.GetMedia() {
		if i == maxServiceMedia {
			fmt.Fprintf(&b, "[%d more files are left out.]\n", len(answer.GetMedia())-i)
			break
		}
		r.add(&b, m.GetType(), m.GetData())
	}
	r.finish(c, b.String(), "The tool ended without output.")
	return r
}

// maxServiceMedia bounds the parts of a result that are read.
const maxServiceMedia = 64
