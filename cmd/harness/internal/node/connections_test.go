package node

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// watchAll watches runs over a connection, and returns once the stored records were
// sent.
func watchAll(t *testing.T, conn *grpc.ClientConn) harnessv1.GatewayService_WatchRunsClient {
	t.Helper()
	stream, err := harnessv1.NewGatewayServiceClient(conn).WatchRuns(t.Context(), &harnessv1.WatchRunsRequest{})
	for err == nil {
		var r *harnessv1.WatchRunsResponse
		if r, err = stream.Recv(); r.GetCaughtUp() != nil {
			return stream
		}
	}
	t.Fatal(err)
	return nil
}

// ends waits until a connection is closed by its server.
func ends(t *testing.T, conn *grpc.ClientConn) {
	t.Helper()
	for state := conn.GetState(); state == connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(t.Context(), state) {
			t.Fatal("the connection did not end")
		}
	}
}

// TestIdleConnectionsEnd: of gRPC, of a client that never makes a call, and of HTTP/1.1. A
// stream on which nothing happens is not idle, and the local socket is not bounded.
func TestIdleConnectionsEnd(t *testing.T) {
	g := startGateway(t, Config{Confined: func() bool { return true }, IdleTimeout: 300 * time.Millisecond, Roles: []string{workflow.AllRoles}})
	address, key := g.Addr(workflow.Gateway), g.key(t)
	watching := dialPlain(t, address, key)
	stream := watchAll(t, watching)
	local := dialPlain(t, g.socket(), key)
	if _, err := harnessv1.NewGatewayServiceClient(local).ListRuns(t.Context(), &harnessv1.ListRunsRequest{}); err != nil {
		t.Fatal(err)
	}
	idle := dialPlain(t, address, key)
	if _, err := harnessv1.NewGatewayServiceClient(idle).ListRuns(t.Context(), &harnessv1.ListRunsRequest{}); err != nil {
		t.Fatal(err)
	}
	silent := speak(t, address, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	web := speak(t, address, "GET / HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
	answer, err := http.ReadResponse(bufio.NewReader(web), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	ends(t, idle)
	if got := frames(t, silent); got != goAway {
		t.Errorf("a client without calls gets frame %d before the end, want GOAWAY", got)
	}
	if _, err := io.Copy(io.Discard, web); err != nil {
		t.Errorf("HTTP/1.1: %v", err)
	}
	if state := local.GetState(); state != connectivity.Ready {
		t.Errorf("the local socket is %s", state)
	}
	if _, err := harnessv1.NewGatewayServiceClient(local).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "r", Spec: &harnessv1.RunSpec{
		Goal: content.Inline("Begin."), Workspace: t.TempDir(), Agent: &harnessv1.AgentSpec{Model: "script:none"},
	}}); err != nil {
		t.Fatal(err)
	}
	if r, err := stream.Recv(); err != nil || r.GetRun().GetRunId() != "r" {
		t.Errorf("the stream: %v, %v", r, err)
	}
	if state := watching.GetState(); state != connectivity.Ready {
		t.Errorf("the connection of the stream is %s", state)
	}
}

// speak connects and sends bytes.
func speak(t *testing.T, address, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// goAway is the type of an HTTP/2 frame.
const goAway = 7

// frames reads HTTP/2 frames up to a GOAWAY, and returns the type of the last one.
func frames(t *testing.T, conn net.Conn) byte {
	t.Helper()
	head, last := make([]byte, 9), byte(0)
	for last != goAway {
		if _, err := io.ReadFull(conn, head); err != nil {
			return last
		}
		last = head[3]
		if _, err := io.CopyN(io.Discard, conn, int64(head[0])<<16|int64(head[1])<<8|int64(head[2])); err != nil {
			return last
		}
	}
	return last
}

// TestConnectionsOfAPeerAreBounded at the gateway's address, and not at the local socket.
func TestConnectionsOfAPeerAreBounded(t *testing.T) {
	g := startGateway(t, Config{Confined: func() bool { return true }, PeerConnections: 3})
	key := g.key(t)
	var streams []harnessv1.GatewayService_WatchRunsClient
	for range 3 {
		streams = append(streams, watchAll(t, dialPlain(t, g.Addr(workflow.Gateway), key)))
	}
	fourth := speak(t, g.Addr(workflow.Gateway), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if n, err := fourth.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a fourth connection: %d bytes, %v", n, err)
	}
	for range 5 {
		watchAll(t, dialPlain(t, g.socket(), key))
	}
	for _, s := range streams {
		if err := s.CloseSend(); err != nil && !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}

// TestHeadersOfACallAreBounded: they are received before the token of the call is checked, on every listener over TCP.
func TestHeadersOfACallAreBounded(t *testing.T) {
	g := startGateway(t, Config{Confined: func() bool { return true }, Roles: []string{workflow.AllRoles}})
	list := func(bytes int) error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-text", strings.Repeat("a", bytes))
		_, err := harnessv1.NewGatewayServiceClient(dialPlain(t, g.Addr(workflow.Gateway), g.key(t))).ListRuns(ctx, &harnessv1.ListRunsRequest{})
		return err
	}
	if err := list(maxHeaders / 2); err != nil {
		t.Error(err)
	}
	if err := list(maxHeaders); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "header list size") {
		t.Errorf("headers of more than %d bytes: %v", maxHeaders, err)
	}
}
