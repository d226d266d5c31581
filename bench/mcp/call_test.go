package mcp

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.etcd.io/bbolt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/servicetest"
)

const (
	each      = 50 // calls of each side, an iteration
	arguments = `{"line":"left"}`
)

// BenchmarkCall reports the median of a call through a tool host as a ratio to that of the same
// call by the bare client.
func BenchmarkCall(b *testing.B) {
	for _, sync := range []string{"interval", "always"} {
		for _, transport := range []string{"stdio", "http", "grpc"} {
			b.Run("transport="+transport+"/sync="+sync, func(b *testing.B) {
				h := newHost(b, sync == "always")
				var server *harnessv1.McpServer
				var bare func() string
				tool, want := "widget_000", "widget 0 left"
				switch transport {
				case "stdio":
					server = servertest.Server("notes", servertest.Tools+"=1")
					bare = bareServer(b, stdio(server))
				case "http":
					p := servertest.Start(b, servertest.Tools+"=1")
					server = &harnessv1.McpServer{Name: "notes", Url: p.URL()}
					bare = bareServer(b, &mcp.StreamableClientTransport{Endpoint: p.URL(), DisableStandaloneSSE: true})
				case "grpc":
					p := servicetest.Start(b, servicetest.Lines+"="+os.DevNull)
					server = &harnessv1.McpServer{Name: "notes", Grpc: p.Address}
					tool, want = "append", "appended left"
					bare = bareService(b, p.Address, tool)
				}
				compare(b, h, h.caller(server, tool), bare, want)
			})
		}
	}
}

// compare calls both sides in turns, and in between does what a call through a host needs at least:
// a request over gRPC, and two commits of an entry.
func compare(b *testing.B, h *host, through, bare func() string, want string) {
	b.Helper()
	commit := newCommits(b, h.sync)
	sides := []func() string{through, bare, h.request, commit}
	times := make([][]time.Duration, len(sides))
	round := func() {
		for i, call := range sides {
			began := time.Now()
			got := call()
			times[i] = append(times[i], time.Since(began))
			if i < 2 && !strings.HasSuffix(got, want) {
				b.Fatalf("got %q, want %q at the end", got, want)
			}
		}
	}
	for range each { // what all do once
		round()
	}
	times = make([][]time.Duration, len(sides))
	for b.Loop() {
		for range each {
			round()
		}
	}
	host, alone, request, entry := median(times[0]), median(times[1]), median(times[2]), median(times[3])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(millis(host), "host-ms")
	b.ReportMetric(millis(alone), "bare-ms")
	b.ReportMetric(millis(request), "request-ms")
	b.ReportMetric(millis(entry), "commit-ms")
	b.ReportMetric(float64(host)/float64(alone), "host/bare")
	b.ReportMetric(float64(host)/float64(alone+request+2*entry), "host/floor")
}

// request is a request to the host over gRPC that does nothing.
func (h *host) request() string {
	_, err := h.client.ReadCallOutput(h.b.Context(), &harnessv1.ReadCallOutputRequest{Namespace: "n", RunId: "r", FirstSequence: 1, CallId: "none"})
	must(h.b, err)
	return ""
}

// newCommits returns a function that commits an entry to a database like that of the ledger.
func newCommits(b *testing.B, sync bool) func() string {
	b.Helper()
	db, err := bbolt.Open(filepath.Join(b.TempDir(), "db"), 0o600, &bbolt.Options{NoSync: !sync, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	must(b, err)
	b.Cleanup(func() { _ = db.Close() })
	entries := 0
	return func() string {
		entries++
		must(b, db.Update(func(tx *bbolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("calls"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Append(nil, "call", entries), make([]byte, 64))
		}))
		return ""
	}
}

// host is a tool host that is called over gRPC.
type host struct {
	b      *testing.B
	client harnessv1.ToolHostServiceClient
	dir    string
	sync   bool
}

func newHost(b *testing.B, sync bool) *host {
	b.Helper()
	s, err := toolhostserver.New(toolhostserver.Config{Dir: b.TempDir(), Sync: sync})
	must(b, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	server := grpc.NewServer()
	harnessv1.RegisterToolHostServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	b.Cleanup(func() {
		server.Stop()
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return &host{b: b, sync: sync, client: harnessv1.NewToolHostServiceClient(dial(b, listener.Addr().String())), dir: b.TempDir()}
}

func dial(b *testing.B, address string) *grpc.ClientConn {
	b.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(b, err)
	b.Cleanup(func() { _ = conn.Close() })
	return conn
}

// caller returns a function that calls a tool through the host, each time as another call.
func (h *host) caller(server *harnessv1.McpServer, tool string) func() string {
	h.b.Helper()
	ctx := h.b.Context()
	described, err := h.client.DescribeServers(ctx, &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 1, Workspace: h.dir, Servers: []*harnessv1.McpServer{server}, Local: true, Wait: durationpb.New(20 * time.Second),
	})
	must(h.b, err)
	calls := 0
	for _, d := range described.GetServers()[0].GetTools() {
		if d.GetTool() != tool {
			continue
		}
		return func() string {
			calls++
			r, err := h.client.ExecuteTool(ctx, &harnessv1.ExecuteToolRequest{
				Namespace: "n", RunId: "r", FirstSequence: 1, CallId: fmt.Sprint("c", calls), Tool: "mcp__notes__" + tool, Arguments: arguments, Workspace: h.dir,
				Mcp: &harnessv1.McpCall{Server: server, Tool: tool, Schema: d.GetSchema(), Digests: []string{d.GetDigest()}, Local: true},
			})
			must(h.b, err)
			if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || r.GetIsError() {
				h.b.Fatal(r)
			}
			return r.GetResult()
		}
	}
	h.b.Fatalf("no tool %s: %v", tool, described)
	return nil
}

// stdio returns the transport of the bare client to the program of a server.
func stdio(server *harnessv1.McpServer) mcp.Transport {
	cmd := exec.Command(server.GetCommand(), server.GetArgs()...)
	cmd.Env = os.Environ()
	for name, value := range server.GetEnv() {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return &mcp.CommandTransport{Command: cmd}
}

// bareServer returns a function that calls the tool by the client of the SDK.
func bareServer(b *testing.B, transport mcp.Transport) func() string {
	b.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "bare", Version: "1"}, nil).Connect(b.Context(), transport, nil)
	must(b, err)
	b.Cleanup(func() { _ = session.Close() })
	return func() string {
		r, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "widget_000", Arguments: map[string]any{"line": "left"}})
		must(b, err)
		return r.Content[0].(*mcp.TextContent).Text
	}
}

// bareService returns a function that calls a tool of a service by the generated client.
func bareService(b *testing.B, address, tool string) func() string {
	b.Helper()
	client := harnessv1.NewToolServiceClient(dial(b, address))
	calls := 0
	return func() string {
		calls++
		stream, err := client.Execute(b.Context(), &harnessv1.ToolServiceExecuteRequest{Key: fmt.Sprint("bare", calls), Tool: tool, Arguments: arguments})
		must(b, err)
		for {
			r, err := stream.Recv()
			must(b, err)
			if result := r.GetResult(); result != nil {
				return result.GetText()
			}
		}
	}
}
