package tools_test

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// serve starts a tool host with the default tools and returns a client of it.
func serve(t *testing.T) harnessv1.ToolHostServiceClient {
	t.Helper()
	host, err := toolhostserver.New(toolhostserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(fault.ServerOptions(slog.New(slog.DiscardHandler))...)
	harnessv1.RegisterToolHostServiceServer(server, host)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.GracefulStop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := host.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return harnessv1.NewToolHostServiceClient(conn)
}

func TestToolInOneFileRunsThroughTheService(t *testing.T) {
	ctx, client, workspace := context.Background(), serve(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("one two\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	described, err := client.DescribeHost(ctx, &harnessv1.DescribeHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	specs := described.GetTools()
	if last := specs[len(specs)-1]; last.GetName() != tools.CountWords || !last.GetAnnotations().GetIdempotent() || last.GetUsage() == "" {
		t.Errorf("DescribeHost lists %v last, want %s", last, tools.CountWords)
	}
	for _, c := range []struct {
		id, tool, arguments, want string
		isError                   bool
	}{
		{"runs", "count_words", `{"path":"a.txt"}`, "a.txt: 3 words.", false},
		{"fails", "count_words", `{"path":"b.txt"}`, "b.txt: no such file or folder.", true},
		{"invalid", "count_words", `{}`, "missing property 'path'", true},
		{"misspelled", "count_word", `{"path":"a.txt"}`, "Did you mean count_words?", true},
	} {
		resp, err := client.ExecuteTool(ctx, &harnessv1.ExecuteToolRequest{
			Namespace: "n", RunId: "r", FirstSequence: 1, CallId: c.id,
			Tool: c.tool, Arguments: c.arguments, Workspace: workspace,
		})
		if err != nil || resp.GetIsError() != c.isError || !strings.Contains(resp.GetResult(), c.want) {
			t.Errorf("%s: got %v, %v, want %q", c.id, resp, err, c.want)
		}
	}
}
