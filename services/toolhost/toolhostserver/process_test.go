package toolhostserver

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	ledgerVariable = "TOOLHOST_TEST_LEDGER"
	socketVariable = "TOOLHOST_TEST_SOCKET"
	tokensVariable = "TOOLHOST_TEST_TOKENS"
)

// serveUntilKilled runs a tool host in this process. It ends with the test process too:
// the kernel closes the other end of its standard input.
func serveUntilKilled() {
	listener, err := net.Listen("unix", os.Getenv(socketVariable))
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := New(Config{Dir: os.Getenv(ledgerVariable), Tokens: os.Getenv(tokensVariable), Logger: log})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(fault.ServerOptions(slog.New(slog.DiscardHandler))...)
	harnessv1.RegisterToolHostServiceServer(server, s)
	// A host that serves has found out how it can confine commands, as in a mesh.
	if _, err := s.DescribeHost(context.Background(), &harnessv1.DescribeHostRequest{}); err != nil {
		panic(err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _ = os.Stdout.WriteString("serving\n")
	panic(server.Serve(listener))
}

// hostProcess is a client of a tool host in a separate process.
type hostProcess struct {
	harnessv1.ToolHostServiceClient
	pid     int
	process *exec.Cmd
	lines   *bufio.Reader
	open    []io.Closer
}

// launch starts a tool host and does not wait until it serves.
func launch(t testing.TB, ledger string) *hostProcess {
	t.Helper()
	dir, err := os.MkdirTemp("", "host") // short, because the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	p := &hostProcess{process: exec.Command(os.Args[0])}
	p.process.Env = append(os.Environ(), ledgerVariable+"="+ledger, socketVariable+"="+socket)
	p.process.Stderr = os.Stderr
	in, err1 := p.process.StdinPipe()
	out, err2 := p.process.StdoutPipe()
	conn, err3 := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err := errors.Join(err1, err2, err3, p.process.Start()); err != nil {
		t.Fatal(err)
	}
	p.ToolHostServiceClient = harnessv1.NewToolHostServiceClient(conn)
	p.pid, p.lines, p.open = p.process.Process.Pid, bufio.NewReader(out), []io.Closer{in, conn}
	t.Cleanup(p.kill)
	return p
}

// serves waits until the host serves, and reports whether it does.
func (p *hostProcess) serves() bool {
	line, err := p.lines.ReadString('\n')
	return err == nil && line == "serving\n"
}

// kill sends SIGKILL to the host only and waits for its end.
func (p *hostProcess) kill() {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
	for _, c := range p.open {
		_ = c.Close()
	}
}

// serve starts a tool host and waits until it serves.
func serve(t testing.TB, ledger string) *hostProcess {
	t.Helper()
	p := launch(t, ledger)
	if !p.serves() {
		t.Fatal("the host ended before it served")
	}
	return p
}

// ledgerID returns the id of the host's ledger.
func (p *hostProcess) ledgerID(t testing.TB) string {
	t.Helper()
	resp, err := p.DescribeHost(context.Background(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetLedgerId()
}

// send executes a call.
func (p *hostProcess) send(t testing.TB, req *harnessv1.ExecuteToolRequest) *harnessv1.ExecuteToolResponse {
	t.Helper()
	resp, err := p.ExecuteTool(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// cancel cancels a call that was started under a ledger.
func (p *hostProcess) cancel(t testing.TB, ledgerID, id string) *harnessv1.CancelToolsResponse {
	t.Helper()
	resp, err := p.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, CallIds: []string{id}, LedgerId: ledgerID,
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}
