package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/mcpclient/signin"
)

// Call is a call of a server's tool.
type Call struct {
	Run Run
	*harnessv1.McpCall
	// Arguments are those of the model, JSON.
	Arguments string
	// Token is the id of the call. It names it in notifications of its progress.
	Token string
	// RunID is the run, and Key identifies the call among those of all runs.
	RunID, Key string
	// Timeout is the time that the call may take, unless the settings of its server have one.
	Timeout time.Duration
	// Output receives the progress, for people who watch.
	Output io.Writer
}

// Result is how a call ended.
type Result struct {
	// Text and Media are the result for the model.
	Text    string
	Media   []*harnessv1.Media
	IsError bool
	// Unknown: the call was sent, and how it ended is not known.
	Unknown bool
	// Interrupted: the call was stopped, and nothing of its server is left.
	Interrupted bool

	// notRun: the server did not receive the call. over: sending it again does not help.
	// doubtful: the server may have carried it out, and answered something else.
	notRun, over, doubtful bool
	// Question is the question of the server before it continues; nil if the call has ended.
	Question *harnessv1.ServerQuestion
}

func notRun(format string, args ...any) Result {
	r := failed(format, args...)
	r.notRun = true
	return r
}

// refused returns the result of a call that the server must not have.
func refused(format string, args ...any) Result {
	r := notRun(format, args...)
	r.over = true
	return r
}

func failed(format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), IsError: true}
}

// Call calls a tool. What it sends a second time has the rest of the time of the call.
func (s *Servers) Call(ctx context.Context, c Call) Result {
	timeout := c.Timeout
	if t := c.GetServer().GetTimeout(); t != nil {
		timeout = t.AsDuration()
	}
	bounded, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	send := func() Result {
		result, again := s.once(ctx, bounded, c)
		if again && bounded.Err() == nil {
			result, _ = s.once(ctx, bounded, c)
		}
		return result
	}
	result := send()
	if !result.Unknown && !result.doubtful || result.over || bounded.Err() != nil || !c.repeatable() {
		return result
	}
	second := send()
	for waiting := time.Now(); c.GetRemembered() && second.notRun && !second.over && bounded.Err() == nil && time.Since(waiting) < reconnectTime; second = send() {
		select {
		case <-bounded.Done():
		case <-time.After(reconnectPause):
		}
	}
	if second.notRun { // the first one may have run
		return result
	}
	return second
}

const (
	// reconnectTime is how long a service that remembers keys may be away before the end of a
	// call that was lost is unknown, and reconnectPause the time between attempts.
	reconnectTime  = 10 * time.Second
	reconnectPause = 200 * time.Millisecond
)

// repeatable reports whether the call can be sent again after it was lost.
func (c Call) repeatable() bool {
	return c.GetRemembered() || c.reads() || slices.Contains(c.GetServer().GetIdempotent(), c.GetTool())
}

// reads reports whether the call reads a resource, which can be sent again.
func (c Call) reads() bool {
	return slices.ContainsFunc(c.GetDigests(), func(digest string) bool { return readsResources(&harnessv1.McpDefinition{Digest: digest}) })
}

// once sends a call at most once, until bounded ends, which ends with ctx. again reports that
// the connection was dead before it was sent, so that it can be sent through another one.
func (s *Servers) once(ctx, bounded context.Context, c Call) (result Result, again bool) {
	if c.GetQuestion().GetLedgerId() != "" {
		return s.continueHeld(ctx, bounded, c), false
	}
	have, err := s.session(c.Run, c.GetServer())
	if err != nil {
		return Result{Interrupted: true, notRun: true}, false
	}
	arguments, err := s.conversions.original(c.GetSchema(), c.Arguments)
	if err != nil {
		return failed("The arguments were refused: %s.", err), false
	}
	conn, err := have.connection(bounded)
	if err != nil {
		if ctx.Err() != nil {
			return Result{Interrupted: true, notRun: true}, false
		}
		return notRun("%s", err), false
	}
	defer have.release()
	defer func() {
		result.Text = have.secrets.redact(result.Text)
		have.secrets.redactQuestion(result.Question)
	}()
	d := have.definition(c.GetTool())
	stays := "did not run"
	if c.GetQuestion() != nil {
		stays = "was given up after its question"
	}
	switch {
	case d == nil:
		return refused("The server %s does not have the tool %s any more. The call %s.", c.GetServer().GetName(), c.GetTool(), stays), false
	case !slices.Contains(c.GetDigests(), d.GetDigest()):
		return refused("The server %s has changed the definition of the tool %s, which a person has to approve first. The call %s; make it again to ask.",
			c.GetServer().GetName(), c.GetTool(), stays), false
	case c.GetApproved():
		s.config.Approvals.Approve(c.Run.Namespace, c.GetServer(), d)
	}
	if conn.service != nil {
		return have.callService(ctx, bounded, conn, c, arguments), false
	}
	sending, way := withDelivery(bounded)
	if readsResources(d) {
		result, err := conn.callResources(sending, c, d, arguments)
		if err != nil {
			return have.broken(ctx, bounded, conn, c, way, err)
		}
		return result, false
	}
	params := &mcp.CallToolParams{Name: c.GetTool(), Arguments: json.RawMessage(arguments)}
	params.SetProgressToken(c.Token)
	switch again, err := afterVisit(c.GetQuestion()); {
	case !conn.asksDuring():
	case err != nil:
		return failed("The call did not run: %s.", err), false
	case again || c.GetQuestion() == nil && c.GetAsks():
		return have.callHeld(ctx, bounded, conn, c, params)
	}
	conn.progress.Store(c.Token, c.Output)
	defer conn.progress.Delete(c.Token)
	result, answered, err := have.callTool(sending, conn, c, params)
	if err == nil {
		have.succeeded()
		return result, false
	}
	result, again = have.broken(ctx, bounded, conn, c, way, err)
	if answered && (again || result.notRun) { // a part of it has run
		return Result{Unknown: true}, false
	}
	return result, again
}

var errTimeout = errors.New("the call took too long")

// broken returns the result of a call without an answer, and whether it can be sent through
// another connection.
func (s *session) broken(ctx, bounded context.Context, conn *connection, c Call, way *delivery, err error) (result Result, again bool) {
	became := way.outcome(err)
	var unsent unsentError
	switch {
	case bounded.Err() != nil:
		// It was notified of the cancellation.
		s.stopAlone(conn, way, ctx.Err() != nil)
		if ctx.Err() != nil && s.alone() {
			return Result{Interrupted: true}, false
		}
		if became == notSent {
			return s.unreachable(), false
		}
		if why := way.strayed(); why != nil && ctx.Err() == nil {
			return unreadableResult(c, why), false
		}
		return Result{Unknown: true}, false
	case errors.As(err, &unsent):
		return s.unsent(conn, unsent), false
	case tooLarge(err):
		return unreadableResult(c, errTooLarge), false
	case replaced(err, unreadableCode):
		return unreadableResult(c, errors.New(content.Clean(way.message(err)))), false
	case replaced(err, doubtfulCode):
		r := failed("%sThe call may have run, but its answer cannot be read: %s. The call is not sent again.", origin(c.GetServer()), content.Clean(way.message(err)))
		r.doubtful = true
		return r, false
	case way.read.Load() && rpcError(err) == nil:
		return unreadableResult(c, err), false
	case became == answered:
		return failed("%sThe server answered with an error: %s", origin(c.GetServer()), content.Clean(way.message(err))), false
	case became == gone, became == notSent && errors.Is(err, mcp.ErrConnectionClosed):
		s.drop(bounded, conn)
		return s.unreachable(), true
	case became == notSent:
		return s.unreachable(), false
	}
	s.servers.config.Logger.WarnContext(ctx, "call of a server lost", "server", s.server.GetName(), "tool", c.GetTool(), "error", s.secrets.redact(err.Error()))
	return Result{Unknown: true}, false
}

// alone reports whether the server is a process of this run, which other runs do not use.
func (s *session) alone() bool { return !s.server.GetShared() && s.server.GetCommand() != "" }

// stopAlone kills the process of a server after a call was cancelled, unless other runs share it.
// At an interrupt, which a person waits for, one that does not read gets less time.
func (s *session) stopAlone(conn *connection, way *delivery, interrupted bool) {
	if !s.alone() {
		return
	}
	reading := grace
	if interrupted {
		reading = pingTime
	}
	conn.awaitEnd(way, grace, reading)
	conn.kill(errCancelled)
}

// unreachable is the result of a call that did not reach its server.
func (s *session) unreachable() Result {
	return notRun("The server %s cannot be reached. The call did not run.", s.server.GetName())
}

// unsent returns the result of a call that the server has not taken.
func (s *session) unsent(conn *connection, err unsentError) Result {
	var scope scopeError
	switch {
	case errors.Is(err, signin.ErrNeeded):
		return notRun("%s", notReady(s.server, harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN, s.signedOut(conn)))
	case errors.As(err, &scope):
		return notRun("The server %s refuses the call: %s; %s. The call did not run.", s.server.GetName(), scope, signInText(s.run.Namespace, s.server, true))
	}
	return notRun("The server %s cannot be used: %s. The call did not run.", s.server.GetName(), s.secrets.line(err.Error(), 300))
}

// unreadableResult is the result of a call that has run, and why its own cannot be read.
func unreadableResult(c Call, why error) Result {
	return failed("%sThe call has run, but its result cannot be read: %s. The call is not sent again.", origin(c.GetServer()), why)
}

var errCancelled = errors.New("a call was cancelled")

// origin marks what comes from a server.
func origin(server *harnessv1.McpServer) string {
	return "[data from the server " + server.GetName() + "] "
}

// resultOf returns the result of an answer for the model.
func resultOf(c Call, answer *mcp.CallToolResult) Result {
	r := Result{IsError: answer.IsError}
	var b strings.Builder
	for _, part := range answer.Content {
		switch p := part.(type) {
		case *mcp.TextContent:
			b.WriteString(p.Text + "\n")
		case *mcp.ImageContent:
			r.add(&b, p.MIMEType, p.Data)
		case *mcp.AudioContent:
			fmt.Fprintf(&b, "[Audio of %d bytes, %s, is left out.]\n", len(p.Data), p.MIMEType)
		case *mcp.ResourceLink:
			fmt.Fprintf(&b, "[Resource %s: %s]\n", p.URI, p.Name)
		case *mcp.EmbeddedResource:
			r.resource(&b, p.Resource)
		}
	}
	if answer.StructuredContent != nil {
		if data, err := json.Marshal(answer.StructuredContent); err == nil && !repeats(b.String(), data) {
			b.Write(data)
		}
	}
	r.finish(c, b.String(), "The tool ended without output.")
	return r
}

// repeats reports whether a text is the JSON of structured content, as the protocol asks servers to
// repeat it.
func repeats(text string, structured []byte) bool {
	var said, meant any
	return json.Unmarshal([]byte(text), &said) == nil && json.Unmarshal(structured, &meant) == nil && reflect.DeepEqual(said, meant)
}

// finish sets the text of a result; empty is that of one without text and media.
func (r *Result) finish(c Call, text, empty string) {
	text = strings.TrimRight(content.Clean(strings.ToValidUTF8(text, "\uFFFD")), "\n")
	if text == "" && len(r.Media) == 0 {
		text = empty
	}
	r.Text = origin(c.GetServer()) + text
}

func (r *Result) resource(b *strings.Builder, contents *mcp.ResourceContents) {
	switch {
	case contents == nil:
	case contents.Text != "":
		b.WriteString(contents.Text + "\n")
	case len(contents.Blob) > 0:
		r.add(b, contents.MIMEType, contents.Blob)
	}
}

// add adds an image or a document, or the reason why it is left out.
func (r *Result) add(b *strings.Builder, kind string, data []byte) {
	switch {
	case len(r.Media) >= media.MaxParts:
		fmt.Fprintf(b, "[A file of %d bytes is left out: there are too many.]\n", len(data))
	case len(data) > media.MaxData:
		fmt.Fprintf(b, "[A file of %d bytes is left out: it is larger than %d bytes.]\n", len(data), media.MaxData)
	default:
		m, checked, err := media.Check("", bytes.Clone(data))
		if err != nil {
			fmt.Fprintf(b, "[A file of %d bytes, %s, is left out: %s.]\n", len(data), content.Line(content.Clean(kind), 80), err)
			return
		}
		m.Data = checked
		r.Media = append(r.Media, m)
	}
}

// showProgress shows the progress of a call to people who watch, without secrets.
func (c *connection) showProgress(p *mcp.ProgressNotificationParams, hide *secrets) {
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	output, ok := c.progress.Load(token)
	if !ok || output.(io.Writer) == nil {
		return
	}
	line := hide.line(p.Message, 400)
	if p.Total > 0 {
		line = fmt.Sprintf("%g/%g %s", p.Progress, p.Total, line)
	} else if line == "" {
		line = fmt.Sprintf("%g", p.Progress)
	}
	_, _ = io.WriteString(output.(io.Writer), strings.TrimSpace(line)+"\n")
}

var _ http.RoundTripper = (*requests)(nil)
