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
)

// serveUntilKilled is a tool host in a process of its own. It ends with the
// test too, whose end of its standard input the kernel closes.
func serveUntilKilled() {
	listener, err := net.Listen("unix", os.Getenv(socketVariable))
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	s, err := New(Config{Dir: os.Getenv(ledgerVariable), Logger: log})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(fault.ServerOptions(slog.New(slog.DiscardHandler))...)
	harnessv1.RegisterToolHostServiceServer(server, s)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _ = os.Stdout.WriteString("serving\n")
	panic(server.Serve(listener))
}

// hostProcess is a tool host in a process of its own, seen from the test.
type hostProcess struct {
	harnessv1.ToolHostServiceClient
	pid     int
	process *exec.Cmd
	lines   *bufio.Reader
	open    []io.Closer
}

// launch starts a tool host; it may not serve yet.
func launch(t testing.TB, ledger string) *hostProcess {
	t.Helper()
	dir, err := os.MkdirTemp("", "host") // short: the path of a socket has a limit
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

// serves returns when the host serves, or false when it ended before.
func (p *hostProcess) serves() bool {
	line, err := p.lines.ReadString('\n')
	return err == nil && line == "serving\n"
}

// kill is SIGKILL, to the host alone. It returns when the process is gone.
func (p *hostProcess) kill() {
	_ = p.process.Process.Kill()
	_ = p.process.Wait()
	for _, c := range p.open {
		_ = c.Close()
	}
}

// serve starts a tool host that serves.
func serve(t testing.TB, ledger string) *hostProcess {
	t.Helper()
	p := launch(t, ledger)
	if !p.serves() {
		t.Fatal("the host ended before it served")
	}
	return p
}

// ledgerID asks a host for it.
func (p *hostProcess) ledgerID(t testing.TB) string {
	t.Helper()
	resp, err := p.DescribeHost(context.Background(), &harnessv1.DescribeHostRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetLedgerId()
}

// send executes a call that has to be answered.
func (p *hostProcess) send(t testing.TB, req *harnessv1.ExecuteToolRequest) *harnessv1.ExecuteToolResponse {
	t.Helper()
	resp, err := p.ExecuteTool(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// cancel cancels a call as one that was started under a ledger.
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
