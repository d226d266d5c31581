package mcpclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// connect starts the server, initialises the connection, and lists the tools.
func (s *session) connect(ctx context.Context, stop context.CancelCauseFunc) (*connection, []*harnessv1.McpDefinition, []*harnessv1.McpLeftOut, error) {
	if mcptool.IsService(s.server) {
		return s.connectService(ctx, stop)
	}
	conn := &connection{stop: stop, gone: make(chan struct{}), noted: make(chan struct{}), changed: make(chan struct{}, 1), unauthorized: &atomic.Bool{}}
	bounded, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("it did not answer within %v", startTimeout))
	defer cancel()
	transport, gone, explain, err := s.transport(ctx, conn)
	if err != nil {
		stop(err)
		return nil, nil, nil, err
	}
	fail := func(err error) (*connection, []*harnessv1.McpDefinition, []*harnessv1.McpLeftOut, error) {
		if cause := context.Cause(bounded); cause != nil {
			err = cause
		}
		stop(err)
		<-gone
		if conn.unauthorized.Load() {
			err = signin.ErrNeeded
		}
		return nil, nil, nil, explain(err)
	}
	reports := rate.NewLimiter(maxReports, 10*maxReports)
	client := mcp.NewClient(&mcp.Implementation{Name: "harnessmesh", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler: func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return conn.elicit(ctx, r.Params, s.secrets.line(r.Params.Message, 400))
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			if !reports.Allow() {
				stop(errFlood)
			}
			select {
			case conn.changed <- struct{}{}:
			default: // its tools are listed again already
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			conn.showProgress(r.Params, &s.secrets)
		},
	})
	conn.client, err = client.Connect(bounded, transport, nil)
	if err != nil {
		return fail(err)
	}
	tools, leftOut, err := s.listAll(bounded, conn.client)
	if err != nil {
		return fail(fmt.Errorf("list its tools: %w", err))
	}
	go func() {
		err := conn.client.Wait()
		if cause := context.Cause(ctx); cause == nil {
			conn.cause = explain(cmp.Or(err, errEnded))
		}
		stop(errEnded)
		<-gone
		close(conn.gone)
	}()
	go func() { // what stops the connection ends Wait
		<-ctx.Done()
		_ = conn.client.Close()
	}()
	return conn, tools, leftOut, nil
}

// maxReports bounds how often in a second, and ten times as often in a burst, a server may report other tools.
const maxReports = 100

var errFlood = errors.New("it reported other tools without end")

var errEnded = errors.New("it has ended")

// transport returns a connection to the server. gone is closed when nothing of the server is
// left after ctx has ended; explain adds the cause to an error, if it is known.
func (s *session) transport(ctx context.Context, conn *connection) (t mcp.Transport, gone <-chan struct{}, explain func(error) error, err error) {
	if s.server.GetUrl() != "" {
		return s.overHTTP(ctx, conn)
	}
	return s.overPipes(ctx, conn)
}

var errMisaddressed = errors.New("it answered initialize")

// initializeID is the id of the first request, which is initialize. No other one is open until its response.
const initializeID = "1"

// misaddressed returns why the first response does not answer initialize; nil if it does. The SDK ignores a response
// to a request that it has not sent, and would wait for another one.
func (s *session) misaddressed(e envelope) error {
	if id := numericID(e.ID); string(id) != initializeID {
		reason := fmt.Errorf("%w, whose id is %s, with the id %s", errMisaddressed, initializeID, s.secrets.line(cmp.Or(string(e.ID), "null"), 100))
		if e.Error != nil && string(e.Error) != "null" {
			return fmt.Errorf("%w: %s", reason, s.secrets.line(string(readableError(e.Error)), 300))
		}
		return reason
	}
	return nil
}

// overPipes starts the process of the server.
func (s *session) overPipes(ctx context.Context, conn *connection) (mcp.Transport, <-chan struct{}, func(error) error, error) {
	environ, err := s.environ()
	if err != nil {
		return nil, nil, nil, err
	}
	line, err := s.line()
	if err != nil {
		return nil, nil, nil, err
	}
	inputEnd, input, err := os.Pipe()
	if err != nil {
		return nil, nil, nil, err
	}
	output, outputEnd := io.Pipe()
	errorsTail := &tail{}
	gone := make(chan struct{})
	var failure error
	go func() {
		defer close(gone)
		failure = s.servers.config.Process(ctx, Process{
			Run: s.run, Server: s.server, Line: line, Environ: environ, Input: inputEnd, Output: outputEnd, Errors: errorsTail, Notice: s.setNotice,
		})
		_ = outputEnd.CloseWithError(io.EOF)
		_ = input.Close()
	}()
	go func() {
		<-ctx.Done()
		_ = output.CloseWithError(io.ErrClosedPipe)
	}()
	explain := func(err error) error {
		if errors.Is(err, errMisaddressed) {
			return err
		}
		select {
		case <-gone:
			if failure != nil {
				return failure
			}
			err = errEnded
		default:
		}
		if last := errorsTail.last(); last != "" {
			return fmt.Errorf("%w; it wrote: %s", err, s.secrets.line(last, 300))
		}
		return err
	}
	lines := newMessages(output)
	lines.first = func(e envelope) {
		if err := s.misaddressed(e); err != nil {
			conn.stop(err)
		}
	}
	lines.skipped = func(line []byte) {
		_, _ = errorsTail.Write(append([]byte("standard output: "), line...))
		s.skippedLine(ctx, line)
	}
	return pipes{&mcp.IOTransport{Reader: messagePipe{lines, output}, Writer: input, MaxLineLength: sdkMessage}, input}, gone, explain, nil
}

// overHTTP returns the transport to the address of the server.
func (s *session) overHTTP(ctx context.Context, conn *connection) (mcp.Transport, <-chan struct{}, func(error) error, error) {
	address, err := s.expand(s.server.GetUrl())
	if err != nil {
		return nil, nil, nil, err
	}
	home, err := url.Parse(address)
	if err != nil {
		return nil, nil, nil, err
	}
	headers, err := headersOf(s.server, s.expand)
	if err != nil {
		return nil, nil, nil, err
	}
	for name, values := range headers {
		s.secrets.addHeader(name, values[0])
	}
	tokens, err := s.tokens()
	if err != nil {
		return nil, nil, nil, err
	}
	gone := make(chan struct{})
	go func() {
		<-ctx.Done()
		close(gone)
	}()
	return &mcp.StreamableClientTransport{
		Endpoint: address, MaxRetries: -1, MaxEventSize: sdkMessage,
		HTTPClient: &http.Client{
			Transport: &requests{
				next: s.servers.config.Transport(s.server, address, s.run.Local), home: home, headers: headers, tokens: tokens, unauthorized: conn.unauthorized,
			},
			CheckRedirect: follow(home),
		},
	}, gone, explainRequest, nil
}

// line returns the command line of the server.
func (s *session) line() (string, error) {
	words := []string{"exec", quote(s.server.GetCommand())}
	for _, arg := range s.server.GetArgs() {
		arg, err := s.expand(arg)
		if err != nil {
			return "", err
		}
		words = append(words, quote(arg))
	}
	return strings.Join(words, " "), nil
}

// quote quotes a word for sh.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// environ returns the variables of the server, NAME=VALUE.
func (s *session) environ() ([]string, error) {
	var environ []string
	for name, value := range s.server.GetEnv() {
		value, err := s.expand(value)
		if err != nil {
			return nil, err
		}
		environ = append(environ, name+"="+value)
	}
	slices.Sort(environ)
	return environ, nil
}

// expand replaces ${NAME} and ${NAME:-TEXT} by values of variables.
func (s *session) expand(text string) (string, error) {
	return mcptool.Expand(text, func(name string) (string, bool) {
		value, found := s.servers.config.Variable(s.run, name)
		s.secrets.add(value)
		return value, found
	})
}

// listAll lists the tools of a server and those for its resources, as list does.
func (s *session) listAll(ctx context.Context, client *mcp.ClientSession) (tools []*harnessv1.McpDefinition, leftOut []*harnessv1.McpLeftOut, err error) {
	if tools, leftOut, err = list(ctx, client); err != nil {
		return nil, nil, err
	}
	more, out := resourceTools(ctx, client, func(tool string) bool {
		return slices.ContainsFunc(tools, func(d *harnessv1.McpDefinition) bool { return d.GetTool() == tool })
	})
	tools, leftOut = s.secrets.without(append(tools, more...), append(leftOut, out...))
	slices.SortFunc(tools, func(a, b *harnessv1.McpDefinition) int { return cmp.Compare(a.GetTool(), b.GetTool()) })
	return tools, leftOut, nil
}
