// Package toolservice serves tools of a Go program to runs: it is the server of
// harness.v1.ToolService, which a tool host calls.
//
//	service, err := toolservice.New(toolservice.Config{Tools: []toolservice.Tool{{
//		Name: "look_up", Description: "Returns where an order is.", Schema: schema,
//		Run: func(ctx context.Context, c *toolservice.Call) (toolservice.Result, error) { … },
//	}}})
//	service.Register(grpcServer)
//
// A call is identified by its key. A key runs at most once at the same time: a second request for
// it joins the call that runs, or returns its result while the service keeps it. With a Memory,
// keys and results outlive the process, and a key that ran is never run again. The end of a
// request does not end its call; Cancel, its time and Close do.
package toolservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Tool is a tool of a service.
type Tool struct {
	// Name is unique in the service; 1 to 256 bytes. Models call the tool SERVICE__NAME.
	Name string
	// Description is the tool's description for the model.
	Description string
	// Schema is the JSON Schema of its arguments, an object. Default: it has none.
	Schema string
	// Hints are what it does to the world. Nil: it writes, asks and runs alone.
	Hints *harnessv1.ToolServiceHints
	// Run runs a call. Its error is an error of the call, whose text the model reads. It returns
	// soon after ctx ends, when nothing of the call runs any more.
	Run func(ctx context.Context, c *Call) (Result, error)
}

// Call is a call of a tool.
type Call struct {
	// Key identifies the call among those of all runs: 64 hexadecimal digits. A tool that stores
	// it with its effect can tell a repeated call.
	Key string
	// Namespace, RunID and ID are those of the call.
	Namespace, RunID, ID string
	// Arguments are a JSON object that fits the schema of the tool.
	Arguments json.RawMessage

	output func(string)
}

// Output shows a text, such as progress, to people who watch the run. The model does not read it.
func (c *Call) Output(text string) {
	if c.output != nil {
		c.output(strings.ToValidUTF8(text, "\uFFFD"))
	}
}

// Result is how a call ended.
type Result struct {
	// Text, which is UTF-8, and Media are for the model, less than 16 MiB in all.
	Text  string
	Media []*harnessv1.ToolServiceMedia
	// IsError: the tool failed.
	IsError bool
}

// Config configures a Service. Only Tools is required.
type Config struct {
	// Tools of the service.
	Tools []Tool
	// Memory keeps keys and results over restarts. Nil: a call whose service or connection is
	// lost has an unknown end.
	Memory Memory
	// Logger; nil discards.
	Logger *slog.Logger
}

const (
	// maxKept bounds the results and the cancelled keys that are kept in memory.
	maxKept = 1000
	// defaultTimeout is the time of a call whose request has none.
	defaultTimeout = 2 * time.Minute
	// maxResult bounds a result, in bytes. A message of 16 MiB has it and its tag.
	maxResult = 16<<20 - 16
	// pageSize is how many tools a page has.
	pageSize = 200
)

// Service is the server of ToolService. It is safe for concurrent use.
type Service struct {
	harnessv1.UnimplementedToolServiceServer
	config Config
	tools  map[string]Tool

	mu     sync.Mutex
	closed bool
	calls  map[string]*execution
	// ended are the keys of calls that have ended and of those that were cancelled before they
	// ran, the oldest first; the latter have no call.
	ended   []string
	running sync.WaitGroup
}

// execution is a call.
type execution struct {
	stop context.CancelCauseFunc
	// done is closed when the call has ended; result is set before. A call that was cancelled
	// before it ran has no result.
	done   chan struct{}
	result *harnessv1.ToolServiceResult

	mu      sync.Mutex
	streams map[chan string]bool
}

var (
	errCancelled = errors.New("the call was cancelled")
	errClosed    = errors.New("the service closes")
)

// New returns a service. The error names the first tool that is not valid.
func New(config Config) (*Service, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{config: config, tools: map[string]Tool{}, calls: map[string]*execution{}}
	for _, t := range config.Tools {
		switch _, twice := s.tools[t.Name]; {
		case t.Name == "" || len(t.Name) > 256:
			return nil, fmt.Errorf("tool %q: its name must have 1 to 256 bytes", t.Name)
		case twice:
			return nil, fmt.Errorf("tool %q: duplicate name", t.Name)
		case t.Run == nil:
			return nil, fmt.Errorf("tool %q: missing Run", t.Name)
		case t.Schema != "" && !json.Valid([]byte(t.Schema)):
			return nil, fmt.Errorf("tool %q: its schema is not JSON", t.Name)
		}
		s.tools[t.Name] = t
	}
	return s, nil
}

// Register registers the service with a gRPC server.
func (s *Service) Register(r grpc.ServiceRegistrar) { harnessv1.RegisterToolServiceServer(r, s) }

// Close cancels the calls that run and returns when they have ended. No call starts after it.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	for _, c := range s.calls {
		c.stop(errClosed)
	}
	s.mu.Unlock()
	s.running.Wait()
}

// Describe implements harnessv1.ToolServiceServer.
func (s *Service) Describe(_ context.Context, r *harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
	from := 0
	if r.GetPageToken() != "" {
		if n, err := fmt.Sscanf(r.GetPageToken(), "%d", &from); n != 1 || err != nil || from < 0 || from > len(s.config.Tools) {
			return nil, status.Error(codes.InvalidArgument, "page_token: expected one of a response")
		}
	}
	page := &harnessv1.ToolServiceDescribeResponse{RemembersKeys: s.config.Memory != nil}
	for _, t := range s.config.Tools[from:min(from+pageSize, len(s.config.Tools))] {
		page.Tools = append(page.Tools, &harnessv1.ToolServiceTool{Name: t.Name, Description: t.Description, ParametersSchema: t.Schema, Hints: t.Hints})
	}
	if from += pageSize; from < len(s.config.Tools) {
		page.NextPageToken = fmt.Sprint(from)
	}
	return page, nil
}

// Execute implements harnessv1.ToolServiceServer.
func (s *Service) Execute(r *harnessv1.ToolServiceExecuteRequest, stream grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]) error {
	c, output, err := s.join(r)
	if err != nil {
		return err
	}
	defer c.leave(output)
	for {
		select {
		case text := <-output:
			if err := stream.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Output{Output: text}}); err != nil {
				return err
			}
		case <-c.done:
			for len(output) > 0 {
				text := <-output
				if err := stream.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Output{Output: text}}); err != nil {
					return err
				}
			}
			if c.result == nil {
				return status.Error(codes.FailedPrecondition, "the call was cancelled before it ran")
			}
			return stream.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Result{Result: c.result}})
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}

// join returns the call of a key, which it starts if it is new, and what receives its output.
func (s *Service) join(r *harnessv1.ToolServiceExecuteRequest) (*execution, chan string, error) {
	t, found := s.tools[r.GetTool()]
	switch {
	case r.GetKey() == "":
		return nil, nil, status.Error(codes.InvalidArgument, "key: missing")
	case !found:
		return nil, nil, status.Errorf(codes.NotFound, "there is no tool %q", r.GetTool())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[r.GetKey()]
	if c == nil {
		if s.closed {
			return nil, nil, status.Error(codes.FailedPrecondition, "the service closes")
		}
		timeout := r.GetTimeout().AsDuration()
		if timeout <= 0 {
			timeout = defaultTimeout
		}
		ctx, stop := context.WithCancelCause(context.Background())
		bounded, cancel := context.WithTimeout(ctx, timeout)
		c = &execution{stop: stop, done: make(chan struct{}), streams: map[chan string]bool{}}
		s.calls[r.GetKey()] = c
		s.running.Go(func() {
			defer cancel()
			c.result = s.run(bounded, t, c, r)
			close(c.done)
			stop(nil)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.keep(r.GetKey())
		})
	}
	output := make(chan string, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams[output] = true
	return c, output, nil
}

// keep forgets the oldest calls that have ended. The caller has locked mu.
func (s *Service) keep(key string) {
	s.ended = append(s.ended, key)
	for len(s.ended) > maxKept {
		delete(s.calls, s.ended[0])
		s.ended = s.ended[1:]
	}
}

// leave ends the output of a call for one stream.
func (c *execution) leave(output chan string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, output)
}

// show sends a text to all streams of a call. One that is slow misses it.
func (c *execution) show(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for output := range c.streams {
		select {
		case output <- text:
		default:
		}
	}
}

// run runs a call, unless the memory has its result.
func (s *Service) run(ctx context.Context, t Tool, c *execution, r *harnessv1.ToolServiceExecuteRequest) *harnessv1.ToolServiceResult {
	memory := s.config.Memory
	if memory != nil {
		known, begun, err := memory.Start(r.GetKey())
		switch {
		case err != nil:
			s.config.Logger.Error("call not run: its key cannot be stored", "key", r.GetKey(), "error", err)
			return &harnessv1.ToolServiceResult{Text: "The service cannot store calls now. The call did not run.", IsError: true}
		case known != nil:
			return known
		case begun && !t.Hints.GetIdempotent():
			return &harnessv1.ToolServiceResult{Unknown: true}
		}
	}
	result := sendable(s.perform(ctx, t, &Call{
		Key: r.GetKey(), Namespace: r.GetNamespace(), RunID: r.GetRunId(), ID: r.GetCallId(), Arguments: json.RawMessage(r.GetArguments()), output: c.show,
	}))
	if memory != nil {
		if err := memory.End(r.GetKey(), result); err != nil {
			s.config.Logger.Error("result of a call cannot be stored", "key", r.GetKey(), "error", err)
		}
	}
	return result
}

// sendable returns a result, or the error of one that gRPC or the tool host would not take.
func sendable(r *harnessv1.ToolServiceResult) *harnessv1.ToolServiceResult {
	text := utf8.ValidString(r.GetText()) && !slices.ContainsFunc(r.GetMedia(), func(m *harnessv1.ToolServiceMedia) bool { return !utf8.ValidString(m.GetType()) })
	switch size := proto.Size(r); {
	case !text:
		return &harnessv1.ToolServiceResult{Text: "The call has run, but its result cannot be read: it is not text in UTF-8.", IsError: true}
	case size > maxResult:
		return &harnessv1.ToolServiceResult{Text: fmt.Sprintf("The call has run, but its result cannot be read: it has %d bytes; at most %d are allowed. Ask for less at a time.", size, maxResult), IsError: true}
	}
	return r
}

// perform runs a call.
func (s *Service) perform(ctx context.Context, t Tool, call *Call) (result *harnessv1.ToolServiceResult) {
	defer func() {
		if p := recover(); p != nil {
			s.config.Logger.Error("tool panicked", "tool", t.Name, "panic", p, "stack", string(debug.Stack()))
			result = &harnessv1.ToolServiceResult{Text: "The tool failed for a reason that lies with its service.", IsError: true}
		}
	}()
	done, err := t.Run(ctx, call)
	switch {
	case err != nil && ctx.Err() != nil:
		return &harnessv1.ToolServiceResult{Unknown: true}
	case err != nil:
		return &harnessv1.ToolServiceResult{Text: err.Error(), IsError: true}
	}
	return &harnessv1.ToolServiceResult{Text: done.Text, IsError: done.IsError, Media: done.Media}
}

// Cancel implements harnessv1.ToolServiceServer.
func (s *Service) Cancel(ctx context.Context, r *harnessv1.ToolServiceCancelRequest) (*harnessv1.ToolServiceCancelResponse, error) {
	s.mu.Lock()
	c := s.calls[r.GetKey()]
	if c == nil { // no later request runs it
		c = &execution{stop: func(error) {}, done: make(chan struct{}), streams: map[chan string]bool{}}
		close(c.done)
		s.calls[r.GetKey()] = c
		s.keep(r.GetKey())
	}
	s.mu.Unlock()
	c.stop(errCancelled)
	select {
	case <-c.done:
		return &harnessv1.ToolServiceCancelResponse{}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}
