package toolhostserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// escaping returns a command that tries to escape its supervisor: it ignores signals,
// forks twice, leaves its session and clears its environment.
func escaping(sleep string) string {
	return strings.ReplaceAll(escapingScript, "SLEEP", sleep)
}

const escapingScript = `trap '' TERM INT HUP
(setsid sh -c 'trap "" TERM HUP; (env -i sleep SLEEP &) ; sleep SLEEP' &)
nohup setsid sleep SLEEP >/dev/null 2>&1 &
(env -i setsid sh -c 'sleep SLEEP & sleep SLEEP' &)
echo before
echo line >> out
echo > gate
while :; do sleep SLEEP; done`

// TestTimeoutKillsAllProcesses takes a longer limit if the command, on a busy machine, was
// killed before it had started all of its processes.
func TestTimeoutKillsAllProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time limit")
	}
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	for seconds := 1; ; seconds *= 2 {
		req := h.request(tools.RunCommand, fmt.Sprintf("c%d", seconds), map[string]any{
			"command": strings.ReplaceAll(escaping(sleep), "> gate", "> started"), "timeout_seconds": seconds,
		})
		a := h.execute(req)
		if left := sleeping(sleep); left != nil {
			t.Fatalf("processes left: %v", left)
		}
		if _, err := os.Stat(filepath.Join(h.dir, "started")); err != nil && seconds < 64 {
			continue
		}
		expect(t, a, done, true, fmt.Sprintf("before\n[Stopped: it had not ended after %ds. Everything that it started was killed. For more time set timeout_seconds.]", seconds))
		if a.GetExitCode() != 124 {
			t.Errorf("exit code %d", a.GetExitCode())
		}
		return
	}
}

func TestCancelKillsAllProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	awaitGate, sleep := gate(t, h.dir), uniqueSleep()
	req := h.request(tools.RunCommand, "c", map[string]any{"command": escaping(sleep)})
	first := h.startCall(context.Background(), req)
	awaitGate()
	begin := time.Now()
	if resp := h.cancel("c"); !slices.Equal(resp.GetKilled(), []string{"c"}) {
		t.Fatalf("got %v", resp)
	}
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left after %v: %v", time.Since(begin), left)
	}
	t.Logf("killed in %v", time.Since(begin))
	a := <-first
	expect(t, a.resp, cancelled, false)
	expect(t, h.execute(req), cancelled, false)
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	h2 := newHost(t, Config{Dir: dir})
	expect(t, h2.execute(req), cancelled, false)
	if got := h.read("out"); got != "line\n" {
		t.Fatalf("got %q", got)
	}
}

func TestBackgroundProcessesAreKilled_WhenTheShellEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	// The background processes keep standard output open. The shell ends once both are the program that they are named by.
	started := "until [ \"$(pgrep -fc '^sleep " + sleep + "')\" = 2 ]; do :; done"
	resp := h.command("setsid sleep " + sleep + " & setsid sleep " + sleep + " & " + started + "; echo hello")
	expect(t, resp, done, false, "hello\n[exit code 0; killed the processes that it left running: sleep (2)]")
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
}

func TestOutputOfAPipelineIsComplete(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	expect(t, h.command("mkfifo gate; (read -r x < gate; echo late) & echo early; echo go > gate"), done, false, "early\nlate\n[exit code 0]")
}

func TestCommandKillsItsSupervisor(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	req := h.request(tools.RunCommand, "", map[string]any{"command": "setsid sleep " + sleep + " & kill -9 $PPID; sleep " + sleep})
	req.Confinement = &harnessv1.Confinement{Level: sandbox.Off} // no other level lets it
	resp := h.execute(req)
	expect(t, resp, done, true, "how far it had come is not known")
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
}

func TestCommandResults(t *testing.T) {
	t.Setenv("SOME_API_KEY", "leaked")
	t.Setenv("HARNESS_THING", "leaked")
	h := newHost(t, Config{})
	for name, c := range map[string]struct {
		line  string
		code  int32
		parts []string
	}{
		"no output":         {"true", 0, []string{"[exit code 0]"}},
		"output":            {"echo out; echo err >&2", 0, []string{"out\nerr\n[exit code 0]"}},
		"no final newline":  {"printf x", 0, []string{"x\n[exit code 0]"}},
		"failure":           {"echo x; exit 3", 3, []string{"x\n[exit code 3]"}},
		"signal":            {"kill -9 $$", 137, []string{"[exit code 137"}},
		"not found":         {"no-such-program", 127, []string{"not found"}},
		"syntax":            {"if", 2, []string{"[exit code 2]"}},
		"workspace":         {"pwd; echo $PWD", 0, []string{h.dir + "\n" + h.dir}},
		"no input":          {"cat; read x || echo eof", 0, []string{"eof"}},
		"no credentials":    {"env | grep -c leaked", 1, []string{"0\n"}},
		"default signals":   {"sh -c 'kill -TERM $$'; echo $?", 0, []string{"143"}},
		"binary":            {`printf 'a\377b\000c'`, 0, []string{"a\uFFFDb\uFFFDc"}},
		"no open files":     {"ls /proc/self/fd | tr '\\n' ' '", 0, []string{"0 1 2 3 \n[exit"}},
		"background output": {"echo a & wait; echo b", 0, []string{"a\nb\n"}},
	} {
		resp := h.command(c.line)
		if resp.GetExitCode() != c.code || resp.ExitCode == nil || !utf8.ValidString(resp.GetResult()) {
			t.Errorf("%s: exit code %v: %q", name, resp.ExitCode, resp.GetResult())
		}
		if resp.GetIsError() != (c.code != 0) {
			t.Errorf("%s: is_error %v", name, resp.GetIsError())
		}
		for _, part := range c.parts {
			if !strings.Contains(resp.GetResult(), part) {
				t.Errorf("%s: no %q in %q", name, part, resp.GetResult())
			}
		}
	}
}

func TestLargeOutputIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the largest sizes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	resp := h.command("echo first; head -c 30000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo; echo last")
	expect(t, resp, done, false, "first\n", "left out here", "last\n[exit code 0]")
	if n := len(resp.GetResult()); n > h.config.Limits.ResultBytes || n < 64<<10 {
		t.Fatalf("%d bytes", n)
	}
}

func TestEndlessOutputIsStopped(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a time limit")
	}
	t.Parallel()
	h := newHost(t, Config{})
	for limit := int64(1); ; limit *= 4 { // on a busy machine a command may begin late
		req := h.request(tools.RunCommand, "", map[string]any{"command": "yes"})
		req.Timeout = seconds(limit)
		resp := h.execute(req)
		if !strings.Contains(resp.GetResult(), "left out here") && limit < 16 {
			continue
		}
		expect(t, resp, done, true, "left out here", fmt.Sprintf("[Stopped: it had not ended after %ds.", limit))
		break
	}
}

func TestForkBombIsKilled(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	sleep := uniqueSleep()
	awaitGate := gate(t, h.dir)
	// Bounded, so that a failing test does not stop the machine.
	req := h.request(tools.RunCommand, "c", map[string]any{"command": `
echo > gate
f() { [ $1 -gt 7 ] && sleep ` + sleep + `; f $(($1+1)) & f $(($1+1)) & wait; }
f 1`})
	first := h.startCall(context.Background(), req)
	awaitGate()
	h.cancel("c")
	if left := sleeping(sleep); left != nil {
		t.Fatalf("processes left: %v", left)
	}
	expect(t, (<-first).resp, cancelled, false)
}

// TestProgressIsItsLastFrame: the result of a command, and the errors of a check, appear as on a
// terminal at the end. Line ends, and the standard output of a check, which programs parse, stay.
func TestProgressIsItsLastFrame(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	const progress = `printf 'one\r\n'; for i in 1 2 3; do printf '\r%s%%' $i; done; printf '\na 1\nb 1\n\033[2A\033[2Ka 2\n\033[2Kb 2\n'`
	const shown = "one\r\n3%\na 2\nb 2\n"
	expect(t, h.execute(h.request(tools.RunCommand, "c1", map[string]any{"command": progress})), done, false, shown+"[exit code 0]")

	r := h.check(checkRequest(h.dir, "k", "{ "+progress+"; } >&2; printf '1\\r2'"))
	if r.GetErrorOutput() != shown || r.GetOutput() != "1\r2" {
		t.Errorf("the check: %v", r)
	}
}
