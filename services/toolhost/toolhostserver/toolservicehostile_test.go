package toolhostserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// liar is a tool service that breaks the protocol.
type liar struct {
	harnessv1.UnimplementedToolServiceServer
	describe func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error)
	execute  func(*harnessv1.ToolServiceExecuteRequest, grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]) error
	headers  chan metadata.MD
}

// Describe implements harnessv1.ToolServiceServer.
func (l *liar) Describe(ctx context.Context, r *harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
	if l.headers != nil {
		md, _ := metadata.FromIncomingContext(ctx)
		l.headers <- md
	}
	if l.describe != nil {
		return l.describe(r)
	}
	return &harnessv1.ToolServiceDescribeResponse{Tools: []*harnessv1.ToolServiceTool{{Name: "a"}}}, nil
}

// Execute implements harnessv1.ToolServiceServer.
func (l *liar) Execute(r *harnessv1.ToolServiceExecuteRequest, s grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]) error {
	return l.execute(r, s)
}

// serveLiar serves a liar, at a separate address, so that approvals of definitions do not mix.
func serveLiar(t *testing.T, l *liar) *harnessv1.McpServer {
	t.Helper()
	server, _ := startLiar(t, l)
	return server
}

// startLiar is serveLiar; stop ends the service with its connections.
func startLiar(t *testing.T, l *liar) (settings *harnessv1.McpServer, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxSendMsgSize(64<<20), grpc.ForceServerCodecV2(careless{encoding.GetCodecV2("proto")}))
	harnessv1.RegisterToolServiceServer(server, l)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return &harnessv1.McpServer{Name: "liar", Grpc: listener.Addr().String()}, server.Stop
}

// careless sends the character ¿ as two bytes that are not UTF-8.
type careless struct{ encoding.CodecV2 }

// Marshal implements encoding.CodecV2.
func (c careless) Marshal(v any) (mem.BufferSlice, error) {
	data, err := c.CodecV2.Marshal(v)
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.SliceBuffer(bytes.ReplaceAll(data.Materialize(), []byte("¿"), []byte("\xff\xfe")))}, nil
}

// TestServicesThatCannotBeUsed: each has a state and a message.
func TestServicesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	broken := func(code codes.Code) *harnessv1.McpServer {
		return serveLiar(t, &liar{describe: func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
			return nil, grpcstatus.Error(code, "no\x1b]0;t\x07\nnever")
		}})
	}
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = refused.Close()
	variable := broken(codes.Internal)
	variable.Headers = map[string]string{"authorization": "Bearer ${NO_SUCH_VARIABLE}"}
	failed, signIn := harnessv1.McpServerState_MCP_SERVER_STATE_FAILED, harnessv1.McpServerState_MCP_SERVER_STATE_NEEDS_SIGN_IN
	for name, c := range map[string]struct {
		server *harnessv1.McpServer
		state  harnessv1.McpServerState
		want   string
	}{
		"gone":          {&harnessv1.McpServer{Name: "s", Grpc: refused.Addr().String()}, failed, "cannot be reached"},
		"unimplemented": {broken(codes.Unimplemented), failed, "does not serve harness.v1.ToolService"},
		"no token":      {broken(codes.Unauthenticated), signIn, "the token in its headers"},
		"internal":      {broken(codes.Internal), failed, "list its tools: no ]0;t never"},
		"variable":      {variable, failed, "NO_SUCH_VARIABLE is not set"},
	} {
		if d := h.described(c.server)[0]; d.GetState() != c.state || d.GetListed() || !strings.Contains(d.GetMessage(), c.want) {
			t.Errorf("%s: %v %q, want %v %q", name, d.GetState(), d.GetMessage(), c.state, c.want)
		}
	}
	resp, err := h.DescribeServers(context.Background(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Servers: []*harnessv1.McpServer{{Name: "s", Grpc: silent.Addr().String()}}, Wait: durationpb.New(50 * time.Millisecond),
	})
	if err != nil || resp.GetServers()[0].GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_STARTING {
		t.Errorf("a service that does not answer: %v, %v", resp, err)
	}
	h.endServers()
}

// TestListsOfServicesAreBounded: many tools, pages without end, names and schemas that cannot be used.
func TestListsOfServicesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	var many []*harnessv1.ToolServiceTool
	for i := range 10_000 {
		many = append(many, &harnessv1.ToolServiceTool{Name: fmt.Sprintf("tool_%d", i), Description: "d"})
	}
	endless := 0
	for name, c := range map[string]struct {
		describe       func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error)
		tools, leftOut int
		reason         string
	}{
		"many": {func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
			return &harnessv1.ToolServiceDescribeResponse{Tools: many}, nil
		}, 2000, 2000, "too many tools"},
		"pages": {func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
			endless++
			return &harnessv1.ToolServiceDescribeResponse{Tools: many[endless : endless+1], NextPageToken: fmt.Sprint(endless)}, nil
		}, 200, 0, ""},
		"odd": {func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
			return &harnessv1.ToolServiceDescribeResponse{Tools: []*harnessv1.ToolServiceTool{
				{Name: ""}, {Name: strings.Repeat("n", 300)}, {Name: "a"}, {Name: "a"}, {Name: "large", ParametersSchema: `"` + strings.Repeat("x", 300<<10) + `"`},
			}}, nil
		}, 1, 4, "its name does not have"},
	} {
		d := h.described(serveLiar(t, &liar{describe: c.describe}))[0]
		if len(d.GetTools()) != c.tools || len(d.GetLeftOut()) != c.leftOut || c.leftOut > 0 && !strings.Contains(d.GetLeftOut()[0].GetReason(), c.reason) {
			t.Errorf("%s: %v %d tools, %d left out: %.200v", name, d.GetState(), len(d.GetTools()), len(d.GetLeftOut()), d.GetLeftOut())
		}
	}
	h.endServers()
}

// TestResultsOfServicesAreBounded: what a service sends of a call is cleaned, and an end that breaks
// the protocol is unknown, unless its status means that nothing ran.
func TestResultsOfServicesAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	result := func(r *harnessv1.ToolServiceResult) *harnessv1.ToolServiceExecuteResponse {
		return &harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Result{Result: r}}
	}
	type stream = grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]
	done, unknown := harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	for name, c := range map[string]struct {
		execute func(stream) error
		outcome harnessv1.ToolOutcome
		failed  bool
		want    string
	}{
		"empty": {func(s stream) error { return s.Send(result(&harnessv1.ToolServiceResult{})) }, done, false, "The tool ended without output."},
		"invisible": {func(s stream) error {
			return s.Send(result(&harnessv1.ToolServiceResult{Text: "a\x1b[31m\u202eb\u200bc\U000e0041"}))
		}, done, false, "[data from the server liar] a\uFFFD[31m\uFFFDbc"},
		"long": {func(s stream) error {
			return s.Send(result(&harnessv1.ToolServiceResult{Text: strings.Repeat("x", 8<<20)}))
		}, done, false, "Ask for less at a time."},
		"too long": {func(s stream) error {
			return s.Send(result(&harnessv1.ToolServiceResult{Text: strings.Repeat("x", 17<<20)}))
		}, done, true, "The call has run, but its result cannot be read: it has more than 16 MiB."},
		"too long to send": {func(stream) error {
			return grpcstatus.Error(codes.ResourceExhausted, "trying to send message larger than max (9 vs. 8)")
		}, done, true, "it has more than 16 MiB"},
		"full": {func(stream) error { return grpcstatus.Error(codes.ResourceExhausted, "too many calls") }, unknown, false, ""},
		"request too long": {func(stream) error {
			return grpcstatus.Error(codes.ResourceExhausted, "grpc: received message larger than max (9 vs. 8)")
		}, unknown, false, ""},
		"no text": {func(s stream) error {
			return s.Send(result(&harnessv1.ToolServiceResult{Text: "a¿"}))
		}, done, true, "The call has run, but its result cannot be read: it is not text in UTF-8."},
		"no text to send": {func(s stream) error { return s.SendMsg(&harnessv1.ToolServiceResult{Text: "a\xff"}) }, done, true, "it is not text in UTF-8"},
		"output is no text": {func(s stream) error {
			return errors.Join(s.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Output{Output: "x¿"}}), s.Send(result(&harnessv1.ToolServiceResult{Text: "fine"})))
		}, done, false, "fine"},
		"media": {func(s stream) error {
			r := &harnessv1.ToolServiceResult{}
			for range 100 {
				r.Media = append(r.Media, &harnessv1.ToolServiceMedia{Type: "image/png\x1b", Data: []byte("no image")})
			}
			return s.Send(result(r))
		}, done, false, "36 more files are left out"},
		"nothing":     {func(stream) error { return nil }, unknown, false, ""},
		"unknown":     {func(s stream) error { return s.Send(result(&harnessv1.ToolServiceResult{Unknown: true, Text: "x"})) }, unknown, false, ""},
		"did not run": {func(stream) error { return grpcstatus.Error(codes.FailedPrecondition, "closed") }, done, true, "The call did not run."},
		"did it run":  {func(stream) error { return grpcstatus.Error(codes.Internal, "closed") }, unknown, false, ""},
		"ran, and refused": {func(s stream) error {
			return errors.Join(s.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Output{Output: "x"}}), grpcstatus.Error(codes.FailedPrecondition, "closed"))
		}, unknown, false, ""},
	} {
		server := serveLiar(t, &liar{execute: func(_ *harnessv1.ToolServiceExecuteRequest, s stream) error { return c.execute(s) }})
		r := h.execute(h.serviceCall(server, "a", `{}`))
		if r.GetOutcome() != c.outcome || r.GetIsError() != c.failed || !strings.Contains(r.GetResult(), c.want) || len(r.GetResult()) > 300<<10 || strings.ContainsAny(r.GetResult(), "\x1b\u202e") {
			t.Errorf("%s: %v %v %.300q", name, r.GetOutcome(), r.GetIsError(), r.GetResult())
		}
	}
	h.endServers()
}

// TestServicesGetHeadersAndKeys: metadata with the values of variables, and a separate key for each call.
func TestServicesGetHeadersAndKeys(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Environment: func(string) []string { return []string{"BILLING=secret"} }})
	requests := make(chan *harnessv1.ToolServiceExecuteRequest, 3)
	l := &liar{headers: make(chan metadata.MD, 1), execute: func(r *harnessv1.ToolServiceExecuteRequest, s grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]) error {
		requests <- r
		return s.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Result{Result: &harnessv1.ToolServiceResult{Text: "my token is secret"}}})
	}}
	server := serveLiar(t, l)
	server.Headers = map[string]string{"Authorization": "Bearer ${BILLING}"}
	call := h.serviceCall(server, "a", `{}`)
	if md := <-l.headers; len(md.Get("authorization")) != 1 || md.Get("authorization")[0] != "Bearer secret" {
		t.Errorf("headers %v", md)
	}
	other := h.serviceCall(server, "a", `{}`)
	if r := h.execute(call); r.GetResult() != "[data from the server liar] my token is [credential]" {
		t.Errorf("a service that returns its token: %v", r)
	}
	h.execute(other)
	first, second := <-requests, <-requests
	if len(first.GetKey()) != 64 || first.GetKey() == second.GetKey() || first.GetCallId() != call.GetCallId() || first.GetRunId() != "r" || first.GetNamespace() != "n" || first.GetTimeout().AsDuration() <= 0 {
		t.Errorf("%v, %v", first, second)
	}
	if bytes.Contains([]byte(first.GetKey()), []byte("/")) {
		t.Error("a key is no name of a file")
	}
	h.endServers()
}

// TestLostCallsAreSentAgain: with the same key, once, and only to a service that remembers keys. A
// second attempt that does not reach the service leaves the end of the first one unknown.
func TestLostCallsAreSentAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	type stream = grpc.ServerStreamingServer[harnessv1.ToolServiceExecuteResponse]
	for _, remembers := range []bool{true, false} {
		var keys []string
		server := serveLiar(t, &liar{
			describe: func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
				return &harnessv1.ToolServiceDescribeResponse{RemembersKeys: remembers, Tools: []*harnessv1.ToolServiceTool{{Name: "a"}}}, nil
			},
			execute: func(r *harnessv1.ToolServiceExecuteRequest, s stream) error {
				if keys = append(keys, r.GetKey()); len(keys) == 1 {
					return grpcstatus.Error(codes.Unavailable, "lost")
				}
				return s.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Result{Result: &harnessv1.ToolServiceResult{Text: "joined"}}})
			},
		})
		r := h.execute(h.serviceCall(server, "a", `{}`))
		switch {
		case remembers && (len(keys) != 2 || keys[0] != keys[1] || !strings.HasSuffix(r.GetResult(), "joined")):
			t.Errorf("it remembers keys: %v after the keys %v", r, keys)
		case !remembers && (len(keys) != 1 || r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN):
			t.Errorf("it does not: %v after the keys %v", r, keys)
		}
	}
	calls := 0
	large := serveLiar(t, &liar{
		describe: func(*harnessv1.ToolServiceDescribeRequest) (*harnessv1.ToolServiceDescribeResponse, error) {
			return &harnessv1.ToolServiceDescribeResponse{RemembersKeys: true, Tools: []*harnessv1.ToolServiceTool{{Name: "a"}}}, nil
		},
		execute: func(_ *harnessv1.ToolServiceExecuteRequest, s stream) error {
			calls++
			return s.Send(&harnessv1.ToolServiceExecuteResponse{Value: &harnessv1.ToolServiceExecuteResponse_Result{Result: &harnessv1.ToolServiceResult{Text: strings.Repeat("x", 17<<20)}}})
		},
	})
	if r := h.execute(h.serviceCall(large, "a", `{}`)); calls != 1 || !r.GetIsError() {
		t.Errorf("a result that is too large: %d calls, %v", calls, r.GetOutcome())
	}
	var stop func()
	l := &liar{execute: func(*harnessv1.ToolServiceExecuteRequest, stream) error {
		go stop()
		return grpcstatus.Error(codes.Unavailable, "lost")
	}}
	server, end := startLiar(t, l)
	stop = end
	server.Idempotent = []string{"a"}
	if r := h.execute(h.serviceCall(server, "a", `{}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("a service that goes away: %v", r)
	}
	h.endServers()
}
