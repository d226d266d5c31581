package judgement

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// A command is run in the workspace at each attempt to stop, and at no other time; the
// model gets the exit code and the end of the output of a failed one.
func TestContractCommandIsRunAtEachAttemptToStop(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractWrite("other.txt", "o"),
		contractFinish("first"),
		contractWrite("another.txt", "a"),
		contractFinish("second"),
		contractWrite("ok.txt", "ok"),
		contractFinish("third"),
	), contractOf(contractCommand("tests", `echo run >> runs.txt; test -f ok.txt || { seq 100000 100900 >&2; echo "FAIL: ok.txt is missing" >&2; exit 3; }`)))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: tests", "4: tests")
	for _, turn := range []int{2, 4} {
		told := contractToldGap(t, s, turn)
		itemsHas(t, "the gap report", told, "tests", "The tests is right", "exit 3", "FAIL: ok.txt is missing")
		itemsLacks(t, "the gap report", told, "100500")
	}
	if got := contractRead(s.Run, "runs.txt"); got != "run\nrun\nrun\n" {
		t.Errorf("the command has run %q", got)
	}
	itemsEqual(t, "the state", contractStatuses(s.State()), "tests MET command")
	if n := len(s.Names("tool.call")); n != 6 {
		t.Errorf("%d calls, want those of the model alone: %v", n, s.Names("tool.call"))
	}
}

// A command that succeeded once is run again, and what it says then counts.
func TestContractCommandThatFailsLaterIsUnmetAgain(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractWrite("ok.txt", "ok"),
		contractFinish("first"),
		live.Calls(live.Call("run_command", live.Args{"command": "rm ok.txt && touch report.md"})),
		contractFinish("second"),
		contractWrite("ok.txt", "ok again"),
		contractFinish("third"),
	), contractOf(contractCommand("tests", "test -f ok.txt"), contractFile("report", "report.md")))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "2: report", "4: tests")
}

// A command that its time is over for is killed with all that it started, and is unmet:
// tolerance for checks without an answer does not cover it.
func TestContractCommandOutOfTimeIsKilledAndUnmet(t *testing.T) {
	t.Parallel()
	slow := contractCommand("slow", "setsid sleep 600 & echo $! > child.pid; echo $$ > self.pid; echo still busy; sleep 600")
	slow.Predicate.Timeout = durationpb.New(3 * time.Second)
	s := live.Play(t, live.Replies(contractFinish("first"), contractFinish("second")), contractTurns(2), contractOf(slow),
		contractAccepts(&harnessv1.Acceptability{MaxUnknowns: proto.Uint32(5)}))
	s.Want("DONE max_turns")
	itemsEqual(t, "gaps", contractGaps(s), "1: slow")
	itemsHas(t, "the gap report", contractToldGap(t, s, 1), "slow", "time", "3s", "still busy")
	itemsEqual(t, "the state", contractStatuses(s.State()), "slow UNMET")
	contractDead(t, s.Run, "child.pid", "self.pid")
}

// contractDead fails the test while a process of the workspace lives, and ends it. Commands
// may have process ids of their namespaces, so it goes by the folder in which they work.
func contractDead(t *testing.T, r *live.Run, files ...string) {
	t.Helper()
	for _, file := range files {
		if contractRead(r, file) == "" {
			t.Errorf("%s: the command has not started a process", file)
		}
	}
	processes, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil || len(processes) == 0 {
		t.Fatal("no processes", err)
	}
	for _, process := range processes {
		if dir, err := os.Readlink(process); err != nil || dir != r.Dir {
			continue // it is gone, a dead one that waits to be reaped, or another's
		}
		t.Errorf("%s is %s", process, r.Dir)
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(process))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// contractFifo makes begun.fifo in the workspace; begun waits until a command has
// written a line into it.
func contractFifo(r *live.Run) (begun func()) {
	r.T.Helper()
	path := filepath.Join(r.Dir, "begun.fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		r.T.Fatal(err)
	}
	fifo, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		r.T.Fatal(err)
	}
	r.T.Cleanup(func() { _ = fifo.Close() })
	return func() {
		r.T.Helper()
		if err := fifo.SetReadDeadline(time.Now().Add(live.Limit)); err != nil {
			r.T.Fatal(err)
		}
		if line, err := bufio.NewReader(fifo).ReadString('\n'); err != nil {
			r.T.Fatalf("%q, %v", line, err)
		}
	}
}

// An interrupt while a command is under way kills it with all that it started and parks
// the run; after a resume it is judged.
func TestContractCommandIsKilledByAnInterrupt(t *testing.T) {
	t.Parallel()
	slow := contractCommand("slow", "test -f ok.txt && exit 0; setsid sleep 600 & echo $! > child.pid; echo $$ > self.pid; echo begun > begun.fifo; sleep 600")
	slow.Predicate.Timeout = durationpb.New(20 * time.Minute)
	r := live.Prepare(t, live.Replies(contractFinish("first"), contractFinish("second")))
	begun := contractFifo(r)
	if _, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(contractOf(slow))}); err != nil {
		t.Fatal(err)
	}
	begun()
	if _, err := live.Gateway(t).InterruptRun(t.Context(), &harnessv1.InterruptRunRequest{RunId: r.ID, Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("PARKED interrupted")
	contractDead(t, r, "child.pid", "self.pid")
	if got := s.Names("run.interrupted", "session.pause", "stop.rejected", "contract.evaluated"); !slices.Contains(got, "run.interrupted") ||
		!slices.Contains(got, "session.pause") || len(got) != 2 {
		t.Errorf("events %v", got)
	}
	r.Write("ok.txt", "ok")
	version := s.Events[len(s.Events)-1].GetVersion()
	if _, err := live.Gateway(t).ResumeRun(t.Context(), &harnessv1.ResumeRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s = r.WaitAfter(version)
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "the state", contractStatuses(s.State()), "slow MET command")
}

// A cancel while a command is under way kills it too.
func TestContractCommandIsKilledByACancel(t *testing.T) {
	t.Parallel()
	slow := contractCommand("slow", "setsid sleep 600 & echo $! > child.pid; echo $$ > self.pid; echo begun > begun.fifo; sleep 600")
	slow.Predicate.Timeout = durationpb.New(20 * time.Minute)
	r := live.Prepare(t, live.Replies(contractFinish("first")))
	begun := contractFifo(r)
	if _, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(contractOf(slow))}); err != nil {
		t.Fatal(err)
	}
	begun()
	if _, err := live.Gateway(t).CancelRun(t.Context(), &harnessv1.CancelRunRequest{RunId: r.ID}); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("CANCELLED cancelled")
	contractDead(t, r, "child.pid", "self.pid")
}

// The tools of checks are not available to the model, not even by name.
func TestContractChecksAreNotToolsOfTheModel(t *testing.T) {
	t.Parallel()
	names := []string{"check_command", "CheckCommand", "check_file", "CheckFile", "inspect_workspace", "contract_question", "command_succeeds"}
	var tries []modeltest.Call
	for _, name := range names {
		tries = append(tries, live.Call(name, live.Args{"command": "touch stolen.txt", "path": "stolen.txt", "question": "May I?"}))
	}
	s := live.Play(t, live.Replies(live.Calls(tries...), contractFinish("first")), contractOf(contractCommand("tests", "true")))
	s.Want("DONE agent_done accepted")
	for _, tool := range s.Requests[0].Tools {
		if slices.Contains(names, tool.Name) || strings.Contains(strings.ToLower(tool.Name), "check") {
			t.Errorf("the model has the tool %s", tool.Name)
		}
	}
	for i, a := range itemsAnswers(t, s, 0) {
		itemsHas(t, "the answer to "+names[i], a.text, "There is no tool")
	}
	if s.Exists("stolen.txt") || len(s.Names("tool.error")) != len(names) {
		t.Errorf("stolen %t, events %v", s.Exists("stolen.txt"), s.Names("tool.error", "tool.result"))
	}
}
