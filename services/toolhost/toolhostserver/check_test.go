package toolhostserver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// checkRequest returns a check of run r.
func checkRequest(workspace, key, command string) *harnessv1.CheckCommandRequest {
	return &harnessv1.CheckCommandRequest{
		Namespace: "n", RunId: "r", Key: key, FirstSequence: 7, Command: command, Workspace: workspace,
	}
}

func (h *host) check(req *harnessv1.CheckCommandRequest) *harnessv1.CheckCommandResponse {
	h.t.Helper()
	resp, err := h.CheckCommand(context.Background(), req)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp
}

type checkOutcome struct {
	resp *harnessv1.CheckCommandResponse
	err  error
}

// startCheck runs a check in the background.
func (h *host) startCheck(req *harnessv1.CheckCommandRequest) <-chan checkOutcome {
	outcomes := make(chan checkOutcome, 1)
	go func() {
		resp, err := h.CheckCommand(context.Background(), req)
		outcomes <- checkOutcome{resp, err}
	}()
	return outcomes
}

func TestCheckSeparatesOutputAndErrors(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := checkRequest(h.dir, "k", "cat; pwd; echo wrong >&2; exit 3")
	req.Input = "read this\n"
	resp := h.check(req)
	if resp.GetOutcome() != done || resp.GetExitCode() != 3 || resp.GetError() != "" ||
		resp.GetOutput() != "read this\n"+h.dir+"\n" || resp.GetErrorOutput() != "wrong\n" {
		t.Fatalf("got %v", resp)
	}
	if resp := h.check(checkRequest(h.dir, "no input", "cat; echo end")); resp.GetOutput() != "end\n" {
		t.Fatalf("got %v", resp)
	}
}

func TestCheckInheritsNoCredentials(t *testing.T) {
	t.Setenv("SOME_API_KEY", "secret")
	t.Setenv("HARNESS_X", "secret")
	h := newHost(t, Config{})
	if resp := h.check(checkRequest(h.dir, "k", "env")); resp.GetOutput() == "" || strings.Contains(resp.GetOutput(), "secret") {
		t.Fatalf("got %v", resp)
	}
}

func TestCheckInputCanBeLargerThanAPipe(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	input := strings.Repeat("0123456789abcde\n", 1<<16)
	for command, want := range map[string]string{
		"wc -c":                  "1048576\n",
		"head -c 3":              "012",
		"exec 0<&-; echo closed": "closed\n",
		"true":                   "",
	} {
		req := checkRequest(h.dir, command, command)
		req.Input = input
		if resp := h.check(req); resp.GetExitCode() != 0 || strings.TrimLeft(resp.GetOutput(), " ") != want {
			t.Errorf("%s: got %v", command, resp)
		}
	}
}

func TestSecondCheckJoinsAndLaterOnesGetTheResult(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	awaitGate := gate(t, h.dir)
	req := checkRequest(h.dir, "k", appendLine+"echo > gate; cat gate; cat out; exit 7")
	first := h.startCheck(req)
	awaitGate()
	second := h.startCheck(req)
	h.write("gate", "") // ends the command
	a, b := <-first, <-second
	if a.err != nil || b.err != nil || !proto.Equal(a.resp, b.resp) || a.resp.GetExitCode() != 7 {
		t.Fatalf("%v and %v", a, b)
	}
	workspace := h.dir
	h.close()
	h = newHost(t, Config{Dir: dir})
	if resp := h.check(req); !proto.Equal(resp, a.resp) {
		t.Fatalf("got %v, want %v", resp, a.resp)
	}
	if out, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(out) != "line\n" {
		t.Fatalf("ran more than once: %q, %v", out, err)
	}
}

func TestCheckExitCodeIs124_WhenTimeIsUp(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time limit")
	}
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	req := checkRequest(h.dir, "k", "echo before; echo wrong >&2; setsid sleep "+sleep+" & sleep "+sleep)
	req.Timeout = seconds(2)
	resp := h.check(req)
	if resp.GetOutcome() != done || resp.GetExitCode() != 124 || resp.GetOutput() != "before\n" || resp.GetErrorOutput() != "wrong\n" {
		t.Fatalf("got %v", resp)
	}
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	if again := h.check(req); !proto.Equal(again, resp) {
		t.Fatalf("got %v", again)
	}
}

func TestCheckOutputIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	for name, source := range map[string]string{
		"lines": "yes 'a line of some length'", "one line": "tr '\\0' x < /dev/zero", "NUL bytes": "cat /dev/zero", "invalid UTF-8": "yes $(printf '\\377x\\376')",
	} {
		part := source + " | head -c 3000000"
		resp := h.check(checkRequest(h.dir, name, "echo first; "+part+"; echo last; (echo first; "+part+"; echo last) >&2"))
		for limit, text := range map[int]string{64 << 10: resp.GetOutput(), 16 << 10: resp.GetErrorOutput()} {
			if len(text) > limit || len(text) < limit/4 || !strings.HasPrefix(text, "first\n") || !strings.HasSuffix(text, "last\n") ||
				!strings.Contains(text, "left out here") {
				t.Errorf("%s: %d bytes of %d: %.20q … %.20q", name, len(text), limit, text, text[max(0, len(text)-20):])
			}
		}
	}
	if resp := h.check(checkRequest(h.dir, "fits", "yes | head -c 65000")); len(resp.GetOutput()) != 65_000 {
		t.Errorf("%d bytes", len(resp.GetOutput()))
	}
}

func TestCheckAndCallWithTheSameIDAreSeparate(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	expect(t, h.execute(commandRequest(h.dir, "k", "echo call")), done, false, "call\n")
	if resp := h.check(checkRequest(h.dir, "k", "echo check")); resp.GetOutput() != "check\n" {
		t.Fatalf("got %v", resp)
	}
	expect(t, h.execute(commandRequest(h.dir, "k", "echo call")), done, false, "call\n")
}

func TestModelsCannotRunChecks(t *testing.T) {
	t.Parallel()
	for _, tool := range tools.All() {
		if name := tool.Spec.GetName(); strings.Contains(name, "check") {
			t.Errorf("models can call %s", name)
		}
	}
	h := newHost(t, Config{})
	// With this call id, the ledger key would be that of a check.
	req := commandRequest(h.dir, "\x00k", "true")
	if _, err := h.ExecuteTool(context.Background(), req); code(err) != codes.InvalidArgument {
		t.Fatalf("got %v", err)
	}
}

func TestCheckNeverStarts_WhenCancelledBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	req := checkRequest(h.dir, "k", appendLine)
	for range 2 {
		for range 2 {
			if resp := h.cancel("k"); len(resp.GetKilled())+len(resp.GetFinished())+len(resp.GetUnknown()) != 0 {
				t.Fatalf("got %v", resp)
			}
			if resp := h.check(req); resp.GetOutcome() != cancelled {
				t.Fatalf("got %v", resp)
			}
		}
		workspace := h.dir
		h.close()
		h = newHost(t, Config{Dir: dir})
		h.dir = workspace
	}
	if names, _ := os.ReadDir(h.dir); len(names) != 0 {
		t.Fatalf("the check ran and left files: %v", names)
	}
}

func TestCancelReportsFinishedChecks(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	want := h.check(checkRequest(h.dir, "k", "echo out"))
	if resp := h.cancel("k"); !slices.Equal(resp.GetFinished(), []string{"k"}) || len(resp.GetKilled())+len(resp.GetUnknown()) != 0 {
		t.Fatalf("got %v", resp)
	}
	if resp := h.check(checkRequest(h.dir, "k", "echo out")); !proto.Equal(resp, want) {
		t.Fatalf("got %v", resp)
	}
}

func TestCancelCoversCallAndCheckWithTheSameID(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.check(checkRequest(h.dir, "k", "true"))
	awaitGate := gate(t, h.dir)
	running := h.startCall(context.Background(), commandRequest(h.dir, "k", "echo > gate; sleep "+uniqueSleep()))
	awaitGate()
	resp := h.cancel("k")
	if !slices.Equal(resp.GetFinished(), []string{"k"}) || !slices.Equal(resp.GetKilled(), []string{"k"}) {
		t.Fatalf("got %v", resp)
	}
	expect(t, (<-running).resp, cancelled, false)
}

func TestCheckCommandRejectsInvalidRequests(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for name, change := range map[string]func(*harnessv1.CheckCommandRequest){
		"no namespace":       func(r *harnessv1.CheckCommandRequest) { r.Namespace = "" },
		"no run":             func(r *harnessv1.CheckCommandRequest) { r.RunId = "" },
		"no key":             func(r *harnessv1.CheckCommandRequest) { r.Key = "" },
		"NUL in the key":     func(r *harnessv1.CheckCommandRequest) { r.Key = "a\x00b" },
		"no command":         func(r *harnessv1.CheckCommandRequest) { r.Command = "" },
		"NUL in the command": func(r *harnessv1.CheckCommandRequest) { r.Command = "true\x00" },
		"too much input":     func(r *harnessv1.CheckCommandRequest) { r.Input = strings.Repeat("x", 4<<20+1) },
		"no workspace":       func(r *harnessv1.CheckCommandRequest) { r.Workspace = "" },
		"relative workspace": func(r *harnessv1.CheckCommandRequest) { r.Workspace = "a" },
		"negative timeout":   func(r *harnessv1.CheckCommandRequest) { r.Timeout = seconds(-1) },
	} {
		req := checkRequest(h.dir, "k", "true")
		change(req)
		if _, err := h.CheckCommand(context.Background(), req); code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckReportsWhyItCannotRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	resp := h.check(checkRequest(filepath.Join(h.dir, "gone"), "gone", "true"))
	if resp.GetOutcome() != done || !strings.Contains(resp.GetError(), "workspace cannot be used") {
		t.Fatalf("got %v", resp)
	}
	resp = h.check(checkRequest(h.dir, "long", "true "+strings.Repeat("x", 300_000)))
	if resp.GetOutcome() != done || !strings.Contains(resp.GetError(), "could not be started") {
		t.Fatalf("got %v", resp)
	}
}

func TestDrainStartsNoCheck(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	before := h.check(checkRequest(h.dir, "before", "echo out"))
	if err := h.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.CheckCommand(context.Background(), checkRequest(h.dir, "after", appendLine)); code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	if resp := h.check(checkRequest(h.dir, "before", "echo out")); !proto.Equal(resp, before) {
		t.Fatalf("got %v", resp)
	}
}
