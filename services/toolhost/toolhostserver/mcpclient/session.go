package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// session is a server and, while it is connected, its connection.
type session struct {
	servers *Servers
	key     string
	run     Run
	server  *harnessv1.McpServer
	secrets secrets

	mu sync.Mutex
	// state and message are the last known ones.
	state   harnessv1.McpServerState
	message string
	// notice is what people should know of it while it is ready.
	notice string
	// tools are those that it listed last, if listed.
	tools   []*harnessv1.McpDefinition
	leftOut []*harnessv1.McpLeftOut
	listed  bool
	// conn is its connection; nil while there is none.
	conn *connection
	// starting is closed when the present attempt to connect has ended; nil without one.
	starting chan struct{}
	// abort ends that attempt.
	abort context.CancelCauseFunc
	// failures are those in a row; it is not started before retry.
	failures int
	retry    time.Time
	// calls are those that run, used is when the last one ended.
	calls int
	used  time.Time
	ended bool
	// account is where persons sign in; nil: its headers have a token, or it was not reached yet.
	// tried is the version of its tokens at the last request.
	account *account
	tried   string
}

// connection is a connection to a server that has been initialised.
type connection struct {
	client *mcp.ClientSession
	stop   context.CancelCauseFunc
	// gone is closed when nothing of the server is left, and cause is set before.
	gone  chan struct{}
	cause error
	// noted is closed when its session has noted that it is gone.
	noted chan struct{}
	// changed has a value while the server has reported other tools that are not listed yet. A
	// server may report them before it is connected.
	changed chan struct{}
	// service is the connection of a ToolService; nil for others, which have client.
	service *service
	// progress receives the progress of calls, by their tokens.
	progress sync.Map
	// flights are the calls in flight.
	flights flights
	// unauthorized is set when the server wants a person to sign in.
	unauthorized *atomic.Bool
}

func newSession(s *Servers, key string, run Run, server *harnessv1.McpServer) *session {
	if server.GetShared() {
		run.Key = key
	}
	return &session{servers: s, key: key, run: run, server: server, state: harnessv1.McpServerState_MCP_SERVER_STATE_STARTING, used: time.Now()}
}

// startOnce starts the server unless it is known, or has failed a short time ago. It returns the
// end of the attempt to connect; nil if there is none.
func (s *session) startOnce() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.starting != nil:
		return s.starting
	case s.conn != nil, s.ended, time.Now().Before(s.retry) && !s.mayRetry():
		return nil
	case s.state == harnessv1.McpServerState_MCP_SERVER_STATE_READY: // it was stopped because it was idle
		return nil
	}
	return s.start()
}

// start connects in a goroutine. The caller has locked mu.
func (s *session) start() <-chan struct{} {
	started := make(chan struct{})
	ctx, stop := context.WithCancelCause(context.Background())
	s.starting, s.abort = started, stop
	if !s.listed {
		s.state, s.message = harnessv1.McpServerState_MCP_SERVER_STATE_STARTING, ""
	}
	s.servers.running.Go(func() {
		conn, tools, leftOut, err := s.connect(ctx, stop)
		s.mu.Lock()
		s.starting, s.abort = nil, nil
		switch {
		case err == nil:
			s.state, s.message, s.tools, s.leftOut, s.listed = harnessv1.McpServerState_MCP_SERVER_STATE_READY, "", tools, leftOut, true
			s.conn, s.failures, s.retry, s.used = conn, 0, time.Time{}, time.Now()
		case errors.Is(err, signin.ErrNeeded):
			s.needsSignIn()
			s.backOff()
		default:
			s.state, s.message = harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, s.secrets.line(err.Error(), 400)
			s.backOff()
		}
		s.mu.Unlock()
		close(started)
		if conn != nil {
			s.servers.running.Go(func() { s.followChanges(ctx, conn) })
			s.watch(conn)
		}
	})
	return started
}

// backOff sets when the server is started again. The caller has locked mu.
func (s *session) backOff() {
	pause := min(minBackoff<<min(s.failures, 10), maxBackoff)
	s.failures++
	s.retry = time.Now().Add(pause)
}

// watch waits until a connection is gone, and stops it when it is idle.
func (s *session) watch(conn *connection) {
	defer close(conn.noted)
	tick := time.NewTicker(max(s.servers.config.Idle/5, time.Millisecond))
	defer tick.Stop()
	for idle := false; ; {
		select {
		case <-conn.gone:
			s.lost(conn, idle)
			return
		case <-tick.C:
			s.mu.Lock()
			idle = s.conn == conn && s.calls == 0 && time.Since(s.used) >= s.servers.config.Idle
			s.mu.Unlock()
			if idle {
				conn.stop(errIdle)
			}
		}
	}
}

// errIdle: a server had no call for long.
var errIdle = errors.New("it was idle")

// lost notes that a connection is gone.
func (s *session) lost(conn *connection, idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.conn = nil
	}
	switch {
	case s.ended || idle:
	case conn.unauthorized.Load():
		s.needsSignIn()
	default:
		s.state, s.message = harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, "it has ended"
		if conn.cause != nil {
			s.message = s.secrets.line(conn.cause.Error(), 400)
		}
		s.backOff()
		if s.failures == 1 { // a first failure costs the next call no time
			s.retry = time.Time{}
		}
	}
	if idle {
		time.AfterFunc(keptIdle, func() {
			s.mu.Lock()
			unused := s.conn == nil && s.starting == nil && s.calls == 0 && time.Since(s.used) >= keptIdle
			s.mu.Unlock()
			if unused {
				s.servers.forget(s)
			}
		})
	}
}

// end stops the server permanently and returns when nothing of it is left.
func (s *session) end(cause error) {
	s.mu.Lock()
	s.ended = true
	conn, starting, abort := s.conn, s.starting, s.abort
	s.mu.Unlock()
	if starting != nil {
		abort(cause)
		<-starting
		s.mu.Lock()
		conn = s.conn
		s.mu.Unlock()
	}
	if conn != nil {
		conn.stop(cause)
		<-conn.gone
	}
}

// kill stops the present connection, and returns when nothing of it is left.
func (c *connection) kill(cause error) {
	c.stop(cause)
	<-c.gone
}

// drop stops a connection that is dead, and returns when the next call connects again.
func (s *session) drop(ctx context.Context, conn *connection) {
	conn.stop(errEnded)
	select {
	case <-conn.noted:
	case <-ctx.Done():
	}
}

// connection returns the connection of the server for a call, and starts it if it is not
// connected. The error is for the model.
func (s *session) connection(ctx context.Context) (*connection, error) {
	for {
		s.mu.Lock()
		if s.ended {
			s.mu.Unlock()
			return nil, errClosed
		}
		if s.conn != nil {
			s.calls++
			conn := s.conn
			s.mu.Unlock()
			return conn, nil
		}
		pause := time.Until(s.retry)
		var started <-chan struct{} = s.starting
		if s.starting == nil && (pause <= 0 || s.mayRetry()) {
			started = s.start()
		}
		failures, state, message := s.failures, s.state, s.message
		s.mu.Unlock()
		if started == nil { // it failed a short time ago
			if state != harnessv1.McpServerState_MCP_SERVER_STATE_FAILED || pause > shortPause {
				return nil, notReady(s.server, state, message)
			}
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
				return nil, notReady(s.server, state, message)
			}
		}
		select {
		case <-started:
		case <-ctx.Done():
			return nil, notReady(s.server, harnessv1.McpServerState_MCP_SERVER_STATE_STARTING, "")
		}
		s.mu.Lock()
		failed := s.conn == nil && s.failures > failures
		state, message = s.state, s.message
		s.mu.Unlock()
		if failed {
			return nil, notReady(s.server, state, message)
		}
	}
}

func notReady(server *harnessv1.McpServer, state harnessv1.McpServerState, message string) error {
	if message != "" {
		message = ": " + message
	}
	switch state {
	case harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN:
		return fmt.Errorf("The server %s cannot be used%s. The call did not run; do without it, or ask the user to sign in.", server.GetName(), message) //nolint:staticcheck // for the model
	case harnessv1.McpServerState_MCP_SERVER_STATE_STARTING:
		return fmt.Errorf("The server %s is starting%s. The call did not run; try again later.", server.GetName(), message) //nolint:staticcheck // for the model
	default:
		return fmt.Errorf("The server %s cannot be used now%s. The call did not run; try again later or do without it.", server.GetName(), message) //nolint:staticcheck // for the model
	}
}

// retain records the start of a call in addition to that of the connection's user.
func (s *session) retain() {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
}

// release records the end of a call.
func (s *session) release() {
	s.mu.Lock()
	s.calls--
	s.used = time.Now()
	s.mu.Unlock()
}

// signedOut records that a call was refused for want of a sign-in. The connection is replaced when
// no other call uses it. It returns what a person types.
func (s *session) signedOut(conn *connection) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needsSignIn()
	if s.account != nil {
		s.tried = s.account.version()
	}
	if s.calls == 1 {
		conn.stop(signin.ErrNeeded)
		if s.conn == conn {
			s.conn = nil
		}
	}
	return s.message
}

// succeeded records that the server has answered a call.
func (s *session) succeeded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN {
		s.state, s.message = harnessv1.McpServerState_MCP_SERVER_STATE_READY, ""
	}
}

// describe returns how the server is.
func (s *session) describe(server *harnessv1.McpServer) *harnessv1.DescribedServer {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &harnessv1.DescribedServer{Server: server.GetName(), State: s.state, Message: s.message, Listed: s.listed, Tools: s.tools, LeftOut: s.leftOut}
	if s.state == harnessv1.McpServerState_MCP_SERVER_STATE_READY {
		d.Message = cmp.Or(s.message, s.notice)
	}
	if s.listed {
		d.Approved, d.ApprovedDigests = s.servers.config.Approvals.Compare(s.run.Namespace, server, s.tools)
	}
	return d
}

// skippedLine records a line of the server's standard output that is no message.
func (s *session) skippedLine(ctx context.Context, line []byte) {
	text := s.secrets.line(string(line), 300)
	s.servers.config.Logger.InfoContext(ctx, "a server wrote a line that is no message to its standard output", "server", s.server.GetName(), "line", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notice == "" {
		s.notice = "it writes lines to its standard output that are no messages: " + text
	}
}

func (s *session) setNotice(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notice = text
}

// definition returns a tool as the server defines it now.
func (s *session) definition(tool string) *harnessv1.McpDefinition {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.tools {
		if d.GetTool() == tool {
			return d
		}
	}
	return nil
}

// followChanges lists the tools again whenever the server has reported that they changed, until ctx
// ends.
func (s *session) followChanges(ctx context.Context, conn *connection) {
	lists := rate.NewLimiter(1, 5) // a server may report others whenever it lists them
	for {
		select {
		case <-conn.changed:
			if lists.Wait(ctx) != nil {
				return
			}
			s.relist(ctx, conn)
		case <-ctx.Done():
			return
		}
	}
}

// relist lists the tools again.
func (s *session) relist(ctx context.Context, conn *connection) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tools, leftOut, err := s.listAll(ctx, conn.client)
	if err != nil {
		return // the tools that it listed before count
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.tools, s.leftOut = tools, leftOut
	}
}
