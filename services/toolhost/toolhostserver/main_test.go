package toolhostserver

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/servicetest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	servertest.Enter()
	servicetest.Enter()
	if os.Getenv(socketVariable) != "" {
		serveUntilKilled()
	}
	if len(os.Args) == 2 && filepath.Base(os.Args[0]) == peerName {
		peer(os.Args[1])
	}
	storetest.InMemory()
	// Under the race detector a process sleeps for a second before it exits, and each
	// command waits for its supervisor's exit.
	_ = os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	_ = flag.Set("test.parallel", "8") // most tests wait for processes
	goleak.VerifyTestMain(m)
}

// ledgerFile is the name of the file of a ledger.
const ledgerFile = ledger.File

// host is a Server with a workspace.
type host struct {
	*Server
	t   testing.TB
	dir string
}

func newHost(t testing.TB, config Config) *host {
	t.Helper()
	if config.Dir == "" {
		config.Dir = t.TempDir()
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &host{Server: s, t: t, dir: t.TempDir()}
}

// found returns the path of a workspace that a run stores when it starts.
func (h *host) found(path string) string {
	h.t.Helper()
	r, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: path})
	if err != nil {
		h.t.Fatal(err)
	}
	return r.GetEnvironment().GetFolder().GetPath()
}

// request returns a call of run r, with a random id if id is empty.
func (h *host) request(tool, id string, arguments map[string]any) *harnessv1.ExecuteToolRequest {
	h.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		h.t.Fatal(err)
	}
	if arguments == nil {
		text = nil
	}
	if id == "" {
		id = disk.RandomName(8)
	}
	return &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", CallId: id, FirstSequence: 7,
		Tool: tool, Arguments: string(text), Workspace: h.dir,
	}
}

func (h *host) execute(req *harnessv1.ExecuteToolRequest) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	resp, err := h.ExecuteTool(context.Background(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func (h *host) call(tool string, arguments map[string]any) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	return h.execute(h.request(tool, "", arguments))
}

func (h *host) command(line string) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	return h.call(tools.RunCommand, map[string]any{"command": line})
}

// startCall executes a call in the background.
func (h *host) startCall(ctx context.Context, req *harnessv1.ExecuteToolRequest) <-chan outcome {
	outcomes := make(chan outcome, 1)
	go func() {
		resp, err := h.ExecuteTool(ctx, req)
		outcomes <- outcome{resp, err}
	}()
	return outcomes
}

type outcome struct {
	resp *harnessv1.ExecuteToolResponse
	err  error
}

func (h *host) cancel(ids ...string) *harnessv1.CancelToolsResponse {
	h.t.Helper()
	resp, err := h.CancelTools(context.Background(), &harnessv1.CancelToolsRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, CallIds: ids,
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

func (h *host) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read(name string) string {
	h.t.Helper()
	content, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return string(content)
}

// gate makes a named pipe. await returns when a command has written to it.
func gate(t testing.TB, dir string) (await func()) {
	t.Helper()
	path := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
}

// uniqueSleep returns an argument for sleep, about an hour, that no other process has.
func uniqueSleep() string {
	var n uint64
	_, _ = fmt.Sscanf(disk.RandomName(6), "%x", &n)
	return fmt.Sprintf("3600.%d", n)
}

// sleeping returns the command lines that contain text.
func sleeping(text string) (found []string) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(line), text) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// expect checks a response. Each of parts must be in its result.
func expect(t testing.TB, resp *harnessv1.ExecuteToolResponse, outcome harnessv1.ToolOutcome, isError bool, parts ...string) {
	t.Helper()
	if resp.GetOutcome() != outcome || resp.GetIsError() != isError {
		t.Fatalf("got %v, is_error %v: %q", resp.GetOutcome(), resp.GetIsError(), resp.GetResult())
	}
	for _, part := range parts {
		if !strings.Contains(resp.GetResult(), part) {
			t.Fatalf("no %q in %q", part, resp.GetResult())
		}
	}
}

func seconds(n int64) *durationpb.Duration { return &durationpb.Duration{Seconds: n} }

const (
	done      = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	unknown   = harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
	cancelled = harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
)

// commandRequest returns a call of run r that runs a command.
func commandRequest(workspace, id, command string) *harnessv1.ExecuteToolRequest {
	arguments, _ := json.Marshal(map[string]any{"command": command})
	return &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", CallId: id, FirstSequence: 7,
		Tool: tools.RunCommand, Arguments: string(arguments), Workspace: workspace,
	}
}
