package toolhostserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

const appendLine = "echo line >> out; "

func code(err error) codes.Code {
	st, _ := fault.Status(err)
	return st.Code()
}

func TestExecuteToolRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for name, change := range map[string]func(*harnessv1.ExecuteToolRequest){
		"no namespace":       func(r *harnessv1.ExecuteToolRequest) { r.Namespace = "" },
		"no run":             func(r *harnessv1.ExecuteToolRequest) { r.RunId = "" },
		"no call":            func(r *harnessv1.ExecuteToolRequest) { r.CallId = "" },
		"NUL in the call":    func(r *harnessv1.ExecuteToolRequest) { r.CallId = "a\x00b" },
		"no workspace":       func(r *harnessv1.ExecuteToolRequest) { r.Workspace = "" },
		"relative workspace": func(r *harnessv1.ExecuteToolRequest) { r.Workspace = "a" },
		"negative timeout":   func(r *harnessv1.ExecuteToolRequest) { r.Timeout = seconds(-1) },
	} {
		req := h.request(tools.ListDirectory, "", nil)
		change(req)
		if _, err := h.ExecuteTool(context.Background(), req); code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInvalidCallsAreResults(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := h.request("reed_file", "", nil)
	expect(t, h.execute(req), done, true, "no tool named", "read_file")
	req = h.request(tools.RunCommand, "", nil)
	req.Arguments = `{"comand":"true"`
	expect(t, h.execute(req), done, true, "not valid JSON")
	expect(t, h.call(tools.ReadFile, map[string]any{"file": "a"}), done, true, "missing property 'path'", "Expected JSON Schema")
	req = h.request(tools.ListDirectory, "", nil)
	req.Workspace = filepath.Join(h.dir, "gone")
	expect(t, h.execute(req), done, true, "workspace cannot be used")
}

func TestToolPanicIsAResult(t *testing.T) {
	t.Parallel()
	broken := tools.New(&harnessv1.ToolSpec{
		Name: "broken", ParametersSchema: `{}`, Annotations: &harnessv1.ToolAnnotations{Idempotent: true},
	}, func(context.Context, *tools.Environment, struct{}) tools.Result { panic("broken") })
	h := newHost(t, Config{Tools: []tools.Tool{broken}})
	expect(t, h.call("broken", nil), done, true, "The tool failed for a reason that lies with the tool host.")
	expect(t, h.call(tools.ReadFile, nil), done, true, "There is no tool named", "The tools are: broken")
}

func TestConfigRejectsInvalidTools(t *testing.T) {
	t.Parallel()
	twice := tools.New(&harnessv1.ToolSpec{Name: "twice", ParametersSchema: `{}`},
		func(context.Context, *tools.Environment, struct{}) tools.Result { return tools.Result{} })
	_, err := New(Config{Dir: t.TempDir(), Tools: []tools.Tool{twice, twice}})
	if err == nil || !strings.Contains(err.Error(), `duplicate tool "twice"`) {
		t.Fatalf("got %v", err)
	}
}

func TestSecondRequestJoins(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate := gate(t, h.dir)
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "echo > gate; cat gate; cat out"})
	first := h.startCall(context.Background(), req)
	awaitGate()
	second := h.startCall(context.Background(), req)
	h.write("gate", "") // ends the command
	a, b := <-first, <-second
	if a.err != nil || b.err != nil || !proto.Equal(a.resp, b.resp) {
		t.Fatalf("%v and %v", a, b)
	}
	expect(t, h.execute(req), done, false, "line\n[exit code 0]")
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("the call ran more than once: %q", got)
	}
}

func TestCallContinues_WhenItsRequestEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	awaitGate := gate(t, h.dir)
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "echo > gate; cat gate"})
	ctx, leave := context.WithCancel(context.Background())
	first := h.startCall(ctx, req)
	awaitGate()
	leave()
	if a := <-first; !errors.Is(a.err, context.Canceled) {
		t.Fatalf("got %v", a)
	}
	second := h.startCall(context.Background(), req)
	h.write("gate", "")
	a := <-second
	expect(t, a.resp, done, false)
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestCallNeverStarts_WhenCancelledBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	if resp := h.cancel("c", "d"); len(resp.GetKilled())+len(resp.GetFinished()) != 0 {
		t.Fatalf("got %v", resp)
	}
	writes := h.request(tools.WriteFile, "d", map[string]any{"path": "x", "content": "y"})
	runs := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})
	expect(t, h.execute(runs), cancelled, false)
	expect(t, h.execute(writes), cancelled, false)

	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	h2 := newHost(t, Config{Dir: dir})
	expect(t, h2.execute(runs), cancelled, false)
	expect(t, h2.execute(writes), cancelled, false)
	if names, _ := os.ReadDir(h.dir); len(names) != 0 {
		t.Fatalf("the calls ran and left files: %v", names)
	}
}

func TestCancelReportsFinishedCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := h.request(tools.RunCommand, "c", map[string]any{"command": "echo done"})
	h.execute(req)
	h.execute(h.request(tools.ListDirectory, "d", nil))
	resp := h.cancel("c", "d", "e")
	if !slices.Equal(resp.GetFinished(), []string{"c", "d"}) || len(resp.GetKilled()) != 0 {
		t.Fatalf("got %v", resp)
	}
	expect(t, h.execute(req), done, false, "done")
}

func TestResultsSurviveARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir, Sync: true})
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "exit 3"})
	first := h.execute(req)
	expect(t, first, done, true, "[exit code 3]")
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	h2 := newHost(t, Config{Dir: dir})
	if h2.ledger.ID != h.ledger.ID {
		t.Fatalf("ledger %s became %s", h.ledger.ID, h2.ledger.ID)
	}
	if again := h2.execute(req); !proto.Equal(first, again) || again.GetExitCode() != 3 {
		t.Fatalf("got %v, then %v", first, again)
	}
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestForgottenCallsNeverRunAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})
	h.execute(req)
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(dir, false, -time.Hour, h.log) // forgets results from before the next hour
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	h2 := newHost(t, Config{Dir: dir})
	expect(t, h2.execute(req), unknown, false)
	if resp := h2.cancel("c"); !slices.Equal(resp.GetFinished(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
}

func TestCallUnderAnotherLedgerIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	runs := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})
	runs.LedgerId = "another"
	expect(t, h.execute(runs), unknown, false)
	lists := h.request(tools.ListDirectory, "d", nil)
	lists.LedgerId = "another"
	expect(t, h.execute(lists), done, false, "[The folder is empty.]")
	runs.LedgerId = h.ledger.ID
	expect(t, h.execute(runs), done, false)
}

func TestRunsWithTheSameNameAreSeparate(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine})
	h.execute(req)
	req.FirstSequence++
	h.execute(req)
	if got := h.read("out"); got != "line\nline\n" {
		t.Fatalf("got %q", got)
	}
}

func TestCallIsUnknown_WhenItsHostWasClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	awaitGate, sleep := gate(t, h.dir), uniqueSleep()
	req := h.request(tools.RunCommand, "c", map[string]any{"command": appendLine + "echo > gate; sleep " + sleep})
	first := h.startCall(context.Background(), req)
	awaitGate()
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if a := <-first; code(a.err) != codes.Unavailable {
		t.Fatalf("got %v", a)
	}
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if _, err := h.ExecuteTool(context.Background(), req); code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	h2 := newHost(t, Config{Dir: dir})
	expect(t, h2.execute(req), unknown, false)
}

func TestLedgerHasOneHost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newHost(t, Config{Dir: dir})
	expectInUse := func() {
		t.Helper()
		begin := time.Now()
		_, err := New(Config{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "in use by another tool host") {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(begin); took > 3*time.Second {
			t.Fatalf("took %v", took)
		}
	}
	expectInUse()
	// Deleting the file of a running host does not let another one start.
	if err := os.Remove(filepath.Join(dir, ledgerFile)); err != nil {
		t.Fatal(err)
	}
	expectInUse()
}

func TestDamagedLedgerIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ledgerFile), []byte(strings.Repeat("no ledger ", 5000)), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, Config{Dir: dir})
	expect(t, h.command("true"), done, false)
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	host, err := h.DescribeHost(context.Background(), nil)
	if err != nil || len(host.GetTools()) != 15 || host.GetLedgerId() == "" {
		t.Fatalf("got %v, %v", host, err)
	}
	for _, name := range []string{"a.txt", ".git/HEAD", "node_modules/x/y", "src/deep/er.go", "src/main.go"} {
		h.write(name, "")
	}
	resp, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	const want = ".git/\na.txt\nnode_modules/\nsrc/\nsrc/deep/\nsrc/main.go\n"
	if env := resp.GetEnvironment(); env.GetListing() != want || env.GetWorkingDirectory() != h.dir || env.GetPlatform() == "" {
		t.Fatalf("got %v", env)
	}
	for name, dir := range map[string]string{
		"relative": "a", "missing": h.dir + "/none", "a file": h.dir + "/a.txt", "empty": "",
	} {
		_, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: dir})
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != codes.InvalidArgument || e.Reason != harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestListingIsCapped(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{ListingEntries: 20}})
	for _, folder := range "abcdefghij" {
		for _, file := range "0123456789" {
			h.write(string(folder)+"/"+string(file), "")
		}
	}
	resp, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir})
	if err != nil {
		t.Fatal(err)
	}
	text := resp.GetEnvironment().GetListing()
	if !strings.HasSuffix(text, "i/\nj/\n") || strings.Count(text, "\n") > 30 {
		t.Fatalf("got %q", text)
	}
}
