package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// delivery is how far a call got. The transport sets it: errors of the SDK do not distinguish
// an answer of the server from a loss on the way.
type delivery struct {
	// ctx is that of the call.
	ctx context.Context //nolint:containedctx // messages that outlive the call have its values
	// sent: the server may have received the call.
	sent atomic.Bool
	// answered: the server answered the call with an error. Set only over pipes. The call has run if
	// the answer is a result that cannot be read.
	answered atomic.Bool
	// read: an answer came, over HTTP one with a result.
	read atomic.Bool
	// stray is the id of an answer that may be the one of the call, and has an id that no request had.
	stray atomic.Pointer[string]
	// status is that of the HTTP response; 0 if there was none.
	status atomic.Int32
	// last is the last request of the call. Set only over pipes.
	last atomic.Pointer[pipedCall]
}

type deliveryKey struct{}

// withDelivery returns a context for one call, and the delivery that the transport sets.
func withDelivery(ctx context.Context) (context.Context, *delivery) {
	d := &delivery{ctx: ctx}
	return context.WithValue(ctx, deliveryKey{}, d), d
}

// deliveryOf returns the delivery of the call that a message with this context belongs to; nil for
// other messages.
func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(deliveryKey{}).(*delivery)
	if d == nil || d.ctx.Err() != nil { // the notification of its cancellation is not the call
		return nil
	}
	return d
}

// outcome is the end of a call without a result.
type outcome int

const (
	// lost: the server may have carried it out.
	lost outcome = iota
	// notSent: the server did not receive it.
	notSent
	// gone: the server does not know the session, and did not carry it out.
	gone
	// answered: the server answered it with an error.
	answered
)

// outcome returns what became of a call that ended with an error.
func (d *delivery) outcome(err error) outcome {
	status := int(d.status.Load())
	switch {
	case !d.sent.Load():
		return notSent
	case d.answered.Load():
		return answered
	case errors.Is(err, mcp.ErrSessionMissing):
		return gone
	case status == http.StatusSeeOther, status == http.StatusRequestTimeout, status >= 500:
		return lost
	case status >= 300: // it was refused
		return answered
	case status >= 200 && rpcError(err) != nil:
		return answered
	}
	return lost
}

// message returns what a server that answered a call with an error wrote.
func (d *delivery) message(err error) string {
	status := int(d.status.Load())
	switch e := rpcError(err); {
	case e != nil && e.Code != rejectedCode:
		return e.Message
	case status >= 300:
		return fmt.Sprintf("HTTP status %d %s. The call did not run.", status, http.StatusText(status))
	}
	return err.Error()
}

// rejectedCode is the code of errors that the SDK makes of responses that it does not read.
const rejectedCode = -32005

// rpcError returns the error of the protocol that an error wraps; nil if there is none.
func rpcError(err error) *jsonrpc.Error {
	e, _ := errors.AsType[*jsonrpc.Error](err)
	return e
}

// trace sets how far a request gets. A request that the transport repeats, because nothing of it
// was written, begins again.
func (d *delivery) trace(request *http.Request) *http.Request {
	d.sent.Store(false)
	d.status.Store(0)
	return request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { d.sent.Store(false) },
		WroteHeaders: func() { d.sent.Store(true) },
		WroteRequest: func(httptrace.WroteRequestInfo) { d.sent.Store(true) },
	}))
}

// pipes is a transport over pipes that sets the deliveries of calls.
type pipes struct {
	mcp.Transport
	// input is the standard input of the server.
	input interface{ SetWriteDeadline(t time.Time) error }
}

// Connect connects as its transport does.
func (p pipes) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := p.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &pipe{Connection: conn, input: p.input, writing: make(chan struct{}, 1)}, nil
}

type pipe struct {
	mcp.Connection
	input interface{ SetWriteDeadline(t time.Time) error }
	// writing has a value while a message is written.
	writing chan struct{}
	// calls are those without an answer, by id.
	calls sync.Map
	// newest is the id of the newest request.
	newest atomic.Int64
}

// pipedCall is a request that was sent over pipes.
type pipedCall struct {
	*delivery
	// over is closed when the server has answered, also if that is after the end of the call.
	over chan struct{}
}

// over is closed when the server has answered the last request of the call; nil if none was sent.
func (d *delivery) over() <-chan struct{} {
	if last := d.last.Load(); last != nil {
		return last.over
	}
	return nil
}

// keptCancelled is how long the answer of a call that was cancelled is waited for.
const keptCancelled = 10 * grace

// Write writes a message.
func (p *pipe) Write(ctx context.Context, message jsonrpc.Message) error {
	d, request := deliveryOf(ctx), asCall(message)
	if request != nil {
		if n, ok := request.ID.Raw().(int64); ok {
			p.newest.Store(n)
		}
	}
	if d == nil || request == nil {
		return p.write(ctx, message)
	}
	sent := &pipedCall{delivery: d, over: make(chan struct{})}
	d.last.Store(sent)
	p.calls.Store(request.ID, sent)
	context.AfterFunc(ctx, func() {
		time.AfterFunc(keptCancelled, func() { p.calls.Delete(request.ID) })
	})
	d.sent.Store(true)
	err := p.write(ctx, message)
	// No process can read it any more, or this one has closed its end, because the server has died.
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) || errors.Is(err, errNotWritten) {
		d.sent.Store(false)
	}
	return err
}

// errNotWritten: other messages fill the pipe.
var errNotWritten = errors.New("the server does not read")

// write writes a message. A server that does not read cannot keep it from ending: a grace period after
// ctx, the write fails, and the connection with it, because a part of a message may have been
// written.
func (p *pipe) write(ctx context.Context, message jsonrpc.Message) error {
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return errNotWritten
	}
	defer func() { <-p.writing }()
	stop := context.AfterFunc(ctx, func() { _ = p.input.SetWriteDeadline(time.Now().Add(grace)) })
	err := p.Connection.Write(ctx, message)
	if !stop() && err == nil {
		_ = p.input.SetWriteDeadline(time.Time{})
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		_ = p.Connection.Close()
	}
	return err
}

func asCall(message jsonrpc.Message) *jsonrpc.Request {
	if r, ok := message.(*jsonrpc.Request); ok && r.IsCall() {
		return r
	}
	return nil
}

// Read reads a message.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := p.Connection.Read(ctx)
	if r, ok := message.(*jsonrpc.Response); ok && err == nil {
		if sent, found := p.calls.LoadAndDelete(r.ID); found {
			sent.(*pipedCall).answered.Store(r.Error != nil)
			sent.(*pipedCall).read.Store(true)
			close(sent.(*pipedCall).over)
		} else {
			p.recordStray(r)
		}
	}
	return message, err
}

// recordStray records the id of a response that no request has had, at the request that waits if it is the
// only one. Its answer may still follow.
func (p *pipe) recordStray(r *jsonrpc.Response) {
	if n, ok := r.ID.Raw().(int64); ok && n > 0 && n <= p.newest.Load() {
		return // a late answer
	}
	var only *pipedCall
	calls := 0
	p.calls.Range(func(_, sent any) bool {
		only = sent.(*pipedCall)
		calls++
		return calls < 2
	})
	if calls == 1 {
		stray := fmt.Sprint(r.ID.Raw())
		only.stray.Store(&stray)
	}
}

// strayed returns why the answer of a call cannot be read: one with an id that no request has had came
// while it waited. It is nil without one.
func (d *delivery) strayed() error {
	stray := d.stray.Load()
	if stray == nil {
		return nil
	}
	return strayID(*stray)
}

// errStray is the error of an answer with an id that no request had.
var errStray = errors.New("the only answer that came has the id")

func strayID(id string) error {
	return fmt.Errorf("%w %s, which no request had", errStray, content.Line(content.Clean(id), 100))
}

// replaced reports whether an error has the code of those that replace an answer.
func replaced(err error, code int64) bool {
	e := rpcError(err)
	return e != nil && e.Code == code
}
