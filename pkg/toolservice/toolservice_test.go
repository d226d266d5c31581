package toolservice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/toolservice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve serves tools and returns a client.
func serve(t *testing.T, config toolservice.Config) harnessv1.ToolServiceClient {
	t.Helper()
	s, err := toolservice.New(config)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	s.Register(server)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(listener) })
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		s.Close()
		served.Wait()
	})
	return harnessv1.NewToolServiceClient(conn)
}

const key = "0a"

// execute runs a call to its end.
func execute(ctx context.Context, c harnessv1.ToolServiceClient, key, tool string) (output string, result *harnessv1.ToolServiceResult, err error) {
	stream, err := c.Execute(ctx, &harnessv1.ToolServiceExecuteRequest{Key: key, Tool: tool, Arguments: `{}`, Timeout: durationpb.New(time.Minute)})
	for err == nil {
		var r *harnessv1.ToolServiceExecuteResponse
		if r, err = stream.Recv(); err == nil {
			output += r.GetOutput()
			result = r.GetResult()
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return output, result, err
}

// counted is a tool that counts its calls, and waits for release or for the end of the call.
func counted(calls *atomic.Int32, begun chan<- struct{}, release <-chan struct{}) toolservice.Tool {
	return toolservice.Tool{Name: "count", Run: func(ctx context.Context, c *toolservice.Call) (toolservice.Result, error) {
		n := calls.Add(1)
		c.Output("counting")
		begun <- struct{}{}
		select {
		case <-release:
			return toolservice.Result{Text: fmt.Sprint(n)}, nil
		case <-ctx.Done():
			return toolservice.Result{}, ctx.Err()
		}
	}}
}

// TestKeyRunsOnce: a second request joins the call, a later one gets its result, and the end of a
// request does not end the call.
func TestKeyRunsOnce(t *testing.T) {
	var calls atomic.Int32
	begun, release := make(chan struct{}, 10), make(chan struct{})
	c := serve(t, toolservice.Config{Tools: []toolservice.Tool{counted(&calls, begun, release)}})
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := execute(ctx, c, key, "count")
		left <- err
	}()
	<-begun
	joined := make(chan string, 1)
	go func() {
		_, r, err := execute(t.Context(), c, key, "count")
		joined <- fmt.Sprint(r.GetText(), err)
	}()
	leave()
	if err := <-left; status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	close(release)
	if got := <-joined; got != "1<nil>" {
		t.Errorf("joined: %s", got)
	}
	if output, r, err := execute(t.Context(), c, key, "count"); err != nil || r.GetText() != "1" || output != "" {
		t.Errorf("after its end: %q %v %v", output, r, err)
	}
	if output, r, err := execute(t.Context(), c, "0b", "count"); err != nil || r.GetText() != "2" || output != "counting" {
		t.Errorf("another key: %q %v %v", output, r, err)
	}
}

// TestCancelEndsCalls: Cancel returns when the call has ended, and a key that was cancelled before
// never runs.
func TestCancelEndsCalls(t *testing.T) {
	var calls atomic.Int32
	begun := make(chan struct{}, 10)
	c := serve(t, toolservice.Config{Tools: []toolservice.Tool{counted(&calls, begun, nil)}})
	ended := make(chan *harnessv1.ToolServiceResult, 1)
	go func() {
		_, r, _ := execute(t.Context(), c, key, "count")
		ended <- r
	}()
	<-begun
	for _, k := range []string{key, key, "0b"} {
		if _, err := c.Cancel(t.Context(), &harnessv1.ToolServiceCancelRequest{Key: k}); err != nil {
			t.Errorf("%s: %v", k, err)
		}
	}
	if r := <-ended; !r.GetUnknown() {
		t.Errorf("a cancelled call: %v", r)
	}
	if _, _, err := execute(t.Context(), c, "0b", "count"); status.Code(err) != codes.FailedPrecondition || calls.Load() != 1 {
		t.Errorf("a key that was cancelled before it ran: %v, %d calls", err, calls.Load())
	}
}

// TestMemoryOutlivesTheService: a result is returned by the next service. A call that was interrupted
// is unknown, unless it can be repeated.
func TestMemoryOutlivesTheService(t *testing.T) {
	dir := t.TempDir()
	memory := func() toolservice.Memory {
		m, err := toolservice.Folder(dir)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	var calls atomic.Int32
	begun, release := make(chan struct{}, 10), make(chan struct{})
	close(release)
	tool, again := counted(&calls, begun, release), counted(&calls, begun, release)
	again.Name, again.Hints = "again", &harnessv1.ToolServiceHints{Idempotent: true}
	first := serve(t, toolservice.Config{Tools: []toolservice.Tool{tool}, Memory: memory()})
	if _, r, err := execute(t.Context(), first, key, "count"); err != nil || r.GetText() != "1" {
		t.Fatal(r, err)
	}
	for _, k := range []string{"0b", "0c"} { // as if the service had died in the call
		if _, begun, err := memory().Start(k); begun || err != nil {
			t.Fatal(begun, err)
		}
	}
	second := serve(t, toolservice.Config{Tools: []toolservice.Tool{tool, again}, Memory: memory()})
	if d, err := second.Describe(t.Context(), &harnessv1.ToolServiceDescribeRequest{}); err != nil || !d.GetRemembersKeys() {
		t.Errorf("%v, %v", d, err)
	}
	if _, r, err := execute(t.Context(), second, key, "count"); err != nil || r.GetText() != "1" || calls.Load() != 1 {
		t.Errorf("%v, %v after %d calls", r, err, calls.Load())
	}
	if _, r, err := execute(t.Context(), second, "0b", "count"); err != nil || !r.GetUnknown() || calls.Load() != 1 {
		t.Errorf("an interrupted call: %v, %v after %d calls", r, err, calls.Load())
	}
	if _, r, err := execute(t.Context(), second, "0c", "again"); err != nil || r.GetText() != "2" {
		t.Errorf("one that can be repeated: %v, %v", r, err)
	}
	if _, r, err := execute(t.Context(), second, "../x", "count"); err != nil || !r.GetIsError() || calls.Load() != 2 {
		t.Errorf("a key that leads out of the folder: %v, %v", r, err)
	}
}

// TestToolsThatFail: errors and panics are results, an unknown tool and a missing key are no calls.
func TestToolsThatFail(t *testing.T) {
	run := func(f func() error) func(context.Context, *toolservice.Call) (toolservice.Result, error) {
		return func(context.Context, *toolservice.Call) (toolservice.Result, error) { return toolservice.Result{}, f() }
	}
	returns := func(r toolservice.Result) func(context.Context, *toolservice.Call) (toolservice.Result, error) {
		return func(context.Context, *toolservice.Call) (toolservice.Result, error) { return r, nil }
	}
	c := serve(t, toolservice.Config{Tools: []toolservice.Tool{
		{Name: "fails", Run: run(func() error { return errors.New("no paper") })}, {Name: "panics", Run: run(func() error { panic("x") })},
		{Name: "large", Run: returns(toolservice.Result{Text: strings.Repeat("x", 16<<20)})}, {Name: "bytes", Run: returns(toolservice.Result{Text: "a\xff"})},
		{Name: "kind", Run: returns(toolservice.Result{Media: []*harnessv1.ToolServiceMedia{{Type: "\xff"}}})}, {Name: "error", Run: run(func() error { return errors.New("\xff") })},
		{Name: "shows", Run: func(_ context.Context, c *toolservice.Call) (toolservice.Result, error) {
			c.Output("a\xffb")
			return toolservice.Result{}, nil
		}},
	}})
	for tool, want := range map[string]string{
		"fails": "no paper", "panics": "for a reason that lies with its service",
		"large": "The call has run, but its result cannot be read: it has 16777221 bytes; at most 16777200 are allowed.", "bytes": "it is not text in UTF-8", "kind": "it is not text in UTF-8",
		"error": "it is not text in UTF-8",
	} {
		if _, r, err := execute(t.Context(), c, tool, tool); err != nil || !r.GetIsError() || !strings.Contains(r.GetText(), want) {
			t.Errorf("%s: %v, %v", tool, r, err)
		}
	}
	if output, r, err := execute(t.Context(), c, "output", "shows"); err != nil || output != "a\uFFFDb" || r.GetIsError() {
		t.Errorf("an output that is not text: %q %v, %v", output, r, err)
	}
	if _, _, err := execute(t.Context(), c, key, "other"); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
	if _, _, err := execute(t.Context(), c, "", "fails"); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
}

func TestToolsArePagedAndChecked(t *testing.T) {
	run := func(context.Context, *toolservice.Call) (toolservice.Result, error) { return toolservice.Result{}, nil }
	var tools []toolservice.Tool
	for i := range 450 {
		tools = append(tools, toolservice.Tool{Name: fmt.Sprint("t", i), Run: run})
	}
	c := serve(t, toolservice.Config{Tools: tools})
	names, pages, token := map[string]bool{}, 0, ""
	for pages == 0 || token != "" {
		page, err := c.Describe(t.Context(), &harnessv1.ToolServiceDescribeRequest{PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range page.GetTools() {
			names[tool.GetName()] = true
		}
		pages, token = pages+1, page.GetNextPageToken()
	}
	if len(names) != 450 || pages != 3 {
		t.Errorf("%d tools in %d pages", len(names), pages)
	}
	if _, err := c.Describe(t.Context(), &harnessv1.ToolServiceDescribeRequest{PageToken: "x"}); status.Code(err) != codes.InvalidArgument {
		t.Error(err)
	}
	for want, bad := range map[string][]toolservice.Tool{
		"1 to 256 bytes": {{Run: run}}, "duplicate": {{Name: "a", Run: run}, {Name: "a", Run: run}}, "missing Run": {{Name: "a"}}, "not JSON": {{Name: "a", Run: run, Schema: "{"}},
	} {
		if _, err := toolservice.New(toolservice.Config{Tools: bad}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
