//go:build linux

package steer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/rendertest"
)

// aHeredoc is a call whose command has some lines and does harm in the last.
func aHeredoc(lines int) *harnessv1.PendingCall {
	var command strings.Builder
	command.WriteString("cat > notes.txt <<'EOF'\n")
	for i := range lines {
		fmt.Fprintf(&command, "%d. \"quoted\", \\ and <plain>, \x1b[2K\n", i+1)
	}
	command.WriteString("EOF\nrm -rf ~/notes # the end\n")
	arguments, _ := json.Marshal(map[string]string{"command": command.String()})
	call := harnesstest.AnApproval("c1")
	call.Arguments = content.Inline(string(arguments))
	call.Preview = &harnessv1.CallPreview{Digest: strings.Repeat("0123456789abcdef", 4), Command: &harnessv1.CommandPreview{
		Directory: "/srv/work", Level: harnessv1.SandboxLevel_SANDBOX_LEVEL_FULL, Network: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL,
	}}
	return call
}

// untilAnswered parks runs for a call and ends them after its answer.
func untilAnswered(f *harnesstest.Gateway, call *harnessv1.PendingCall) {
	f.Behave(func(r *harnesstest.Run) { r.Waits(call) }, func(r *harnesstest.Run, id string, input proto.Message) {
		a := input.(*harnessv1.Approval)
		r.Accept(id, "approval")
		r.Event(&harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{
			CallId: a.GetCallId(), Tool: "run_command", Decision: a.GetDecision(), Reason: a.GetReason(),
		}}})
		r.Done()
	})
}

// TestALongCallIsReadToItsEndFirst: no yes counts before the last line was on the screen.
func TestALongCallIsReadToItsEndFirst(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	call := aHeredoc(600)
	if n := len(call.GetArguments().GetInline()); n < 22_900 {
		t.Fatalf("only %d bytes", n)
	}
	untilAnswered(f, call)
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	const more = "[n] no: "
	screen.Expect(t, more, 1)
	for i, early := range []string{"y", "a", "yes", "Y", "what"} {
		fmt.Fprintln(keyboard, early)
		screen.Expect(t, more, i+2)
	}
	pages := 6
	for !strings.Contains(screen.String(), "# the end") {
		if strings.Contains(screen.String(), "[y] once") {
			t.Fatalf("a yes is taken before the end:\n%s", screen)
		}
		fmt.Fprintln(keyboard)
		pages++
		screen.Expect(t, more, pages)
	}
	if len(f.Approvals()) > 0 {
		t.Errorf("an early yes was sent: %v", f.Approvals())
	}
	for i := range 600 {
		if !strings.Contains(screen.String(), fmt.Sprintf("│ %d. \"quoted\", \\ and <plain>, <U+001B>[2K", i+1)) {
			t.Fatalf("line %d was not shown", i+1)
		}
	}
	fmt.Fprintln(keyboard, "y")
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	want := &harnessv1.Approval{CallId: "c1", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, Digest: call.GetPreview().GetDigest()}
	if got := f.Approvals(); len(got) != 1 || !proto.Equal(got[0], want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestApprovalOnTerminals draws the prompt of a call of two pages on terminals of two widths.
func TestApprovalOnTerminals(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{80, 140} {
		f := harnesstest.ServeGateway(t)
		call := aHeredoc(22)
		call.Why = "it runs commands"
		untilAnswered(f, call)
		cmd := harnesstest.Program(t, "run", "--server", f.Address, "--workspace", "/", "go")
		cmd.Env = append(cmd.Env, fmt.Sprintf("COLUMNS=%d", columns))
		screen, keyboard := harnesstest.OnTerminal(t, cmd)
		screen.Expect(t, "[n] no: ", 1)
		fmt.Fprintln(keyboard, "y")
		screen.Expect(t, "[n] no: ", 2)
		fmt.Fprintln(keyboard)
		screen.Expect(t, "[n] no: ", 3)
		fmt.Fprintln(keyboard, "n list them instead")
		screen.Expect(t, "run_command denied: list them instead", 1)
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
		terminal := rendertest.New(columns, 60)
		text := screen.String()
		_, _ = terminal.Write([]byte(text[strings.Index(text, "\r\nrun_command"):strings.Index(text, "run_command denied")]))
		var lines []string
		for _, line := range terminal.All() {
			lines = append(lines, strings.TrimRight(line, " "))
		}
		got := strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
		file := filepath.Join("testdata", fmt.Sprintf("approval-%d.txt", columns))
		if *harnesstest.Update {
			if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%v; got:\n%s\nwant:\n%s", err, got, want)
		}
	}
}

// TestALongCallInAPager: the pager has all of it, and its end is on the screen afterwards. A
// pager that fails changes nothing.
func TestALongCallInAPager(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	untilAnswered(f, aHeredoc(600))
	seen := filepath.Join(t.TempDir(), "seen")
	for pager, want := range map[string]string{"cat > " + seen: "Allow it? [y] once", "no-such-pager": `the pager "no-such-pager" failed (exit status 127): set PAGER to another; read it here`} {
		cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
		cmd.Env = append(cmd.Env, "PAGER="+pager)
		screen, keyboard := harnesstest.OnTerminal(t, cmd)
		screen.Expect(t, "[v] pager", 1)
		fmt.Fprintln(keyboard, "v")
		screen.Expect(t, want, 1)
		ended := strings.Contains(screen.String(), "# the end")
		if works := strings.HasPrefix(pager, "cat"); ended != works {
			t.Errorf("%s: the end is shown: %t", pager, ended)
		}
		fmt.Fprintln(keyboard, "n no")
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d:\n%s", code, screen)
		}
	}
	if text, err := os.ReadFile(seen); err != nil || strings.Count(string(text), "\n") < 600 || !strings.Contains(string(text), "# the end") {
		t.Errorf("the pager got %d bytes, %v", len(text), err)
	}
}

// TestApproveShowsTheCallFirst: at a terminal it prompts and then follows the run; elsewhere it
// prints what it approves.
func TestApproveShowsTheCallFirst(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	call1 := aHeredoc(2)
	untilAnswered(f, call1)
	parked := func(id string) { f.Add(id, "default", harnesstest.ASpec()).Waits(call1) }
	parked("r")
	cmd := harnesstest.Program(t, "approve", "r", "--server", f.Address)
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	if got := screen.String(); !strings.Contains(got, "│ rm -rf ~/notes # the end") || len(f.Approvals()) > 0 {
		t.Errorf("%s", got)
	}
	fmt.Fprintln(keyboard, "y")
	screen.Expect(t, "The agent is done.", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 0 {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	// Ctrl-C keeps the question.
	parked("left")
	cmd = harnesstest.Program(t, "approve", "left", "--server", f.Address)
	screen, keyboard = harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	fmt.Fprint(keyboard, "\x03")
	screen.Expect(t, "the call still waits: harness approve left c1", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 4 || len(f.Approvals()) != 1 {
		t.Errorf("exit code %d, %v", code, f.Approvals())
	}
	// With a decision there is no prompt, and --no-resume does not follow.
	cmd = harnesstest.Program(t, "approve", "left", "--server", f.Address, "--yes", "--no-resume")
	screen, _ = harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "the answer to c1 is stored", 1)
	if code := harnesstest.ExitCode(t, cmd); code != 0 || !strings.Contains(screen.String(), "# the end") {
		t.Errorf("exit code %d:\n%s", code, screen)
	}
	parked("away")
	got := harnesstest.Call(t, nil, "", "approve", "away", "--server", f.Address)
	if got.Code != 0 || !strings.Contains(got.Err, "# the end") || !strings.Contains(got.Err, "is stored; harness watch away") {
		t.Errorf("%+v", got)
	}
	parked("followed")
	if got := harnesstest.Call(t, nil, "", "approve", "followed", "--resume", "--digest", "01234567", "--server", f.Address); got.Code != 0 || !strings.Contains(got.Err, "✓ DONE: ") {
		t.Errorf("%+v", got)
	}
	parked("changed")
	for digest, want := range map[string]string{"fedcba98": "is not the one that was shown", "xyz": "--digest", "012": "--digest"} {
		if got := harnesstest.Call(t, nil, "", "approve", "changed", "--digest", digest, "--server", f.Address); got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: %+v", digest, got)
		}
	}
	if n := len(f.Approvals()); n != 4 {
		t.Errorf("%d answers", n)
	}
}

// TestACallThatCannotBeReadIsNotApproved at a prompt.
func TestACallThatCannotBeReadIsNotApproved(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	call := aHeredoc(2)
	call.Arguments = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "gone", Size: 1 << 40, Preview: `{"command":"`}}}
	untilAnswered(f, call)
	cmd := harnesstest.Program(t, "run", "--server", f.Address, "go")
	screen, keyboard := harnesstest.OnTerminal(t, cmd)
	screen.Expect(t, "[n] no: ", 1)
	fmt.Fprintln(keyboard, "y")
	screen.Expect(t, "it cannot be approved here. [n] no: ", 2)
	fmt.Fprintln(keyboard, "n no")
	if code := harnesstest.ExitCode(t, cmd); code != 0 || f.Approvals()[0].GetDecision() != harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
		t.Errorf("exit code %d, %v:\n%s", code, f.Approvals(), screen)
	}
}
