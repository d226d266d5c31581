package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// household is a home whose runs share one background process.
type household struct {
	t    *testing.T
	home string
	data string
}

func newHousehold(t *testing.T) *household {
	t.Helper()
	home := t.TempDir()
	h := &household{t: t, home: home, data: filepath.Join(home, "share", "harness")}
	t.Cleanup(func() {
		cmd := exec.Command(harness, "daemon", "stop", "--now")
		cmd.Env = h.env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(h.data, "daemon.log"))
			t.Logf("log of the background process:\n%s", tail(string(log)))
		}
	})
	return h
}

// env is the environment of a terminal in the home.
func (h *household) env(more ...string) []string {
	runtime := filepath.Join(h.home, "run")
	_ = os.MkdirAll(runtime, 0o700)
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + h.home, "TMPDIR=" + os.TempDir(), "XDG_DATA_HOME=" + filepath.Join(h.home, "share"),
		"XDG_CONFIG_HOME=" + filepath.Join(h.home, "config"), "XDG_RUNTIME_DIR=" + runtime, "HARNESS_LOG_LEVEL=info",
	}, more...)
}

// pid returns the process that has the data directory; 0 if there is none.
func (h *household) pid() int {
	raw, err := os.ReadFile(filepath.Join(h.data, "holder.json"))
	if err != nil {
		return 0
	}
	var holder struct {
		PID int `json:"pid"`
	}
	if err := json.Unmarshal(raw, &holder); err != nil {
		h.t.Error(err)
	}
	return holder.PID
}

// kill kills the background process and returns when it is gone.
func (h *household) kill() int {
	h.t.Helper()
	pid := h.pid()
	if pid == 0 {
		h.t.Fatal("no background process")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		h.t.Fatal(err)
	}
	return pid
}

// started returns how often a background process has started.
func (h *household) started() int {
	raw, _ := os.ReadFile(filepath.Join(h.data, "daemon.log"))
	return bytes.Count(raw, []byte("the background process has started"))
}

func (h *household) status(run string) string {
	h.t.Helper()
	code, stdout, stderr := start(h.t, h.env(), "show", run, "--output", "json").wait()
	if code != 0 {
		h.t.Fatalf("show %s: exit %d\n%s", run, code, stderr)
	}
	text, _ := object(h.t, stdout)["status"].(string)
	return text
}

// TestSystemOneBackgroundProcess: twenty runs that start at the same time in an empty home share
// one process. Terminals are closed and the process is killed twice: runs that are followed
// end by themselves, the others after a resume, and no effect happens twice.
func TestSystemOneBackgroundProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	h := newHousehold(t)
	const runs, turns = 20, 6
	var script strings.Builder
	script.WriteString("turns:\n")
	for i := range turns {
		fmt.Fprintf(&script, "  - {calls: [{name: run_command, arguments: {command: \"sleep 0.2; echo %d >> effects\"}}]}\n", i)
	}
	script.WriteString("  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	var clients []*process
	var folders []string
	for i := range runs {
		dir := t.TempDir()
		write(t, dir, "s.yaml", script.String())
		folders = append(folders, dir)
		clients = append(clients, start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+filepath.Join(dir, "s.yaml"), "--run-id", fmt.Sprintf("r%d", i), "--output", "json", "work"))
	}
	worked := func(n int) func() bool {
		return func() bool {
			sum := 0
			for _, dir := range folders {
				raw, _ := os.ReadFile(filepath.Join(dir, "effects"))
				sum += bytes.Count(raw, []byte("\n"))
			}
			return sum >= n
		}
	}
	eventually(t, "the first effects", worked(runs/2))
	if n := h.started(); n != 1 {
		t.Errorf("%d background processes have started", n)
	}
	closed := rand.Perm(runs)[:runs/3]
	for n, i := range closed {
		signal := []syscall.Signal{syscall.SIGHUP, syscall.SIGKILL, syscall.SIGTERM}[n%3]
		if err := clients[i].cmd.Process.Signal(signal); err != nil {
			t.Log(err) // its run had ended
		}
	}
	for kill := range 2 {
		former := h.kill()
		eventually(t, "another process", func() bool { return h.pid() != former && h.pid() != 0 })
		eventually(t, "more effects", worked(runs+kill*runs))
	}
	for i, c := range clients {
		code, stdout, stderr := c.wait()
		if slices.Contains(closed, i) {
			continue
		}
		if code != 0 || object(t, stdout)["status"] != "DONE" {
			t.Errorf("followed run r%d: exit %d\n%s%s", i, code, stdout, stderr)
		}
	}
	for _, i := range closed {
		run := fmt.Sprintf("r%d", i)
		if h.status(run) == "DONE" {
			continue
		}
		if code, _, stderr := start(t, h.env(), "resume", run, "--output", "json").wait(); code != 0 {
			t.Errorf("resume %s: exit %d\n%s", run, code, stderr)
		}
	}
	for i, dir := range folders {
		raw, _ := os.ReadFile(filepath.Join(dir, "effects"))
		lines := strings.Fields(string(raw))
		if slices.Sort(lines); len(slices.Compact(slices.Clone(lines))) != len(lines) {
			t.Errorf("run r%d has effects twice: %v", i, lines)
		}
		if status := h.status(fmt.Sprintf("r%d", i)); status != "DONE" {
			t.Errorf("run r%d is %s", i, status)
		}
	}
	if n := h.started(); n != 3 {
		t.Errorf("%d background processes have started, want one and one after each kill", n)
	}
}

// TestTheFollowerWaitsForAProcessThatCannotStart: a terminal whose background process has died, while the
// next one cannot start, prints the reason and continues when it can.
func TestTheFollowerWaitsForAProcessThatCannotStart(t *testing.T) {
	t.Parallel()
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.05; done\"}}]}\n"+
		"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--run-id", "waits", "--output", "jsonl", "work")
	run.until(is("tool.call"))
	log := filepath.Join(h.data, "daemon.log")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(log, 0o700); err != nil {
		t.Fatal(err)
	}
	h.kill()
	run.printed("the background process cannot start")
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "go", "")
	run.until(is("session.complete"))
	if code, _, stderr := run.wait(); code != 0 {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// TestTerminalsHaveTheirEnvironment: each run reaches the server of its terminal with its
// key, and its commands have its PATH. No key is in a file, the log or a command line. A run
// whose key is gone parks without a timer and names the variable.
func TestTerminalsHaveTheirEnvironment(t *testing.T) {
	h := newHousehold(t)
	keys := []string{"sk-first-terminal-0123456789", "sk-second-terminal-0123456789"}
	for i, key := range keys {
		server := modeltest.NewServer(t, calls(call("a", "run_command", `{"command":"interpreter"}`)), complete)
		server.Key = key
		bin, dir := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(bin, "interpreter"), fmt.Appendf(nil, "#!/bin/sh\necho interpreter-%d key=$OPENAI_API_KEY\n", i), 0o755); err != nil {
			t.Fatal(err)
		}
		env := h.env("OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+server.BaseURL())
		env = append(env, "PATH="+bin+":"+os.Getenv("PATH"))
		code, stdout, stderr := start(t, env, "run", "--workspace", dir, "--agent", write(t, dir, "agent.yaml", "sandbox: {level: off}\n"), "--yolo", "--model", "openai:test-model", "--output", "json", "work").wait()
		if code != 0 {
			t.Fatalf("terminal %d: exit %d\n%s%s", i, code, stdout, stderr)
		}
		if last := string(server.Requests()[1].Body); !strings.Contains(last, fmt.Sprintf(`interpreter-%d key=`, i)) || strings.Contains(last, key) {
			t.Errorf("terminal %d: the command did not have its environment:\n%s", i, last)
		}
	}
	server := modeltest.NewServer(t, calls(call("a", "run_command", `{"command":"true"}`)), complete)
	server.Key = keys[0]
	env := h.env("OPENAI_API_KEY="+keys[0], "OPENAI_BASE_URL="+server.BaseURL())
	dir := t.TempDir()
	ask := write(t, dir, "agent.yaml", "tools: [{name: run_command, policy: ask}]\n")
	if code, _, stderr := start(t, env, "run", "--workspace", dir, "--agent", ask, "--model", "openai:test-model", "--run-id", "gone", "work").wait(); code != 4 {
		t.Fatalf("the run did not park: %d\n%s", code, stderr)
	}
	h.kill()
	if code, _, stderr := start(t, h.env("OPENAI_BASE_URL=https://api.openai.com/v1"), "approve", "gone").wait(); code != 0 {
		t.Fatalf("approve: exit %d\n%s", code, stderr)
	}
	var shown map[string]any
	eventually(t, "the park", func() bool {
		_, stdout, _ := start(t, h.env(), "show", "gone", "--output", "json").wait()
		shown = object(t, stdout)
		return strings.Contains(stdout, "provider_unavailable")
	})
	if text := fmt.Sprint(shown); !strings.Contains(text, "OPENAI_API_KEY") || shown["wake_at"] != nil {
		t.Errorf("parked as %v", text)
	}
	if code, _, stderr := start(t, env, "resume", "gone").wait(); code != 0 {
		t.Errorf("resume with the key: exit %d\n%s", code, stderr)
	}
	for _, key := range keys {
		for _, path := range append(filesWith(t, h.home, key), filesWith(t, fmt.Sprintf("/proc/%d", h.pid()), key)...) {
			t.Errorf("a key is in %s", path)
		}
	}
}

// filesWith returns the files below a folder that contain a text; of a process, its command
// line and environment.
func filesWith(t *testing.T, root, text string) []string {
	t.Helper()
	var found []string
	check := func(path string) {
		if raw, err := os.ReadFile(path); err == nil && bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
	}
	if strings.HasPrefix(root, "/proc/") {
		check(root + "/cmdline")
		check(root + "/environ")
		return found
	}
	if err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			check(path)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	return found
}

// TestDaemonVerbs: status, logs, restart with a run at work, and stop.
func TestDaemonVerbs(t *testing.T) {
	h := newHousehold(t)
	verb := func(args ...string) (int, string, string) {
		return start(t, h.env(), append([]string{"daemon"}, args...)...).wait()
	}
	if code, stdout, _ := verb("status"); code != 0 || !strings.Contains(stdout, "no background process uses "+h.data) {
		t.Errorf("status of nothing: %d %s", code, stdout)
	}
	dir := t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: \"while ! [ -e go ]; do sleep 0.1; done; echo x >> effects\"}}]}\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	client := start(t, h.env(), "run", "--workspace", dir, "--yolo", "--model", "script:"+script, "--run-id", "busy", "--output", "jsonl", "work")
	client.until(is("tool.call"))
	if code, stdout, _ := verb("status"); code != 0 || !strings.Contains(stdout, "working  busy") || !strings.Contains(stdout, "clients  1") {
		t.Errorf("status: %d\n%s", code, stdout)
	}
	if code, _, stderr := verb("stop"); code != 1 || !strings.Contains(stderr, "works on busy") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("stop without an answer: %d\n%s", code, stderr)
	}
	former := h.pid()
	write(t, dir, "go", "")
	if code, _, stderr := verb("restart"); code != 0 || !strings.Contains(stderr, "replaces") || h.pid() == former {
		t.Errorf("restart: %d\n%s", code, stderr)
	}
	if code, _, stderr := client.wait(); code != 0 {
		t.Errorf("the client of the run: exit %d\n%s", code, stderr)
	}
	if raw, _ := os.ReadFile(filepath.Join(dir, "effects")); string(raw) != "x\n" {
		t.Errorf("effects %q", raw)
	}
	if code, stdout, _ := verb("logs"); code != 0 || strings.Count(stdout, "has started") != 2 {
		t.Errorf("logs: %d\n%s", code, stdout)
	}
	if code, _, stderr := verb("stop"); code != 0 || !strings.Contains(stderr, "has ended") {
		t.Errorf("stop: %d\n%s", code, stderr)
	}
}

// TestDaemonLingers: the process ends by itself after its last client.
func TestDaemonLingers(t *testing.T) {
	h := newHousehold(t)
	dir := t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	if code, _, stderr := start(t, h.env("HARNESS_LINGER=400ms"), "run", "--workspace", dir, "--model", "script:"+script, "work").wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	pid := h.pid()
	eventually(t, "the end of the process", func() bool { return h.pid() == 0 })
	if err := syscall.Kill(pid, 0); err == nil {
		eventually(t, "the end", func() bool { return syscall.Kill(pid, 0) != nil })
	}
}

// TestDaemonBadInput: each is one line with what to do.
func TestDaemonBadInput(t *testing.T) {
	h := newHousehold(t)
	dir := t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	run := func() (int, string) {
		code, _, stderr := start(t, h.env(), "run", "--workspace", dir, "--model", "script:"+script, "--output", "json", "work").wait()
		return code, stderr
	}
	if code, stderr := run(); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	holder := filepath.Join(h.data, "holder.json")
	raw, err := os.ReadFile(holder)
	if err != nil {
		t.Fatal(err)
	}
	for level, says := range map[string]string{
		`"api":99`: "is newer than this program", `"api":0`: "of an older version: wait for its end",
	} {
		changed := strings.Replace(string(raw), `"api":1`, level, 1)
		if err := os.WriteFile(holder, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, stderr := run(); code != 1 || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit %d\n%s", level, code, stderr)
		}
	}
	if err := os.WriteFile(holder, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	h.kill() // leaves its socket and its file
	if code, stderr := run(); code != 0 {
		t.Errorf("with a stale socket: exit %d\n%s", code, stderr)
	}
}

// TestCompletionStartsNoProcess: a shell that completes ids lists the runs without a
// background process.
func TestCompletionStartsNoProcess(t *testing.T) {
	h := newHousehold(t)
	complete := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := start(t, h.env(), append([]string{"complete", "--"}, args...)...).wait()
		if code != 0 || stderr != "" {
			t.Errorf("%v: exit %d\n%s", args, code, stderr)
		}
		return stdout
	}
	complete("show", "")
	if n := h.started(); n != 0 || h.pid() != 0 {
		t.Fatalf("an empty home has %d processes", n)
	}
	dir := t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	if code, _, stderr := start(t, h.env(), "run", "--workspace", dir, "--run-id", "known", "--model", "script:"+script, "work").wait(); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if code, _, stderr := start(t, h.env(), "daemon", "stop").wait(); code != 0 {
		t.Fatalf("stop: exit %d\n%s", code, stderr)
	}
	eventually(t, "the end of the process", func() bool { return h.pid() == 0 })
	for _, words := range [][]string{{"show", ""}, {"approve", "kn"}, {"resume", ""}} {
		if out := complete(words...); !strings.Contains(out, "known") {
			t.Errorf("%v: completed as %q", words, out)
		}
	}
	if n := h.started(); n != 1 || h.pid() != 0 {
		t.Errorf("%d processes were started, %d is there", n, h.pid())
	}
}

// TestTheCatalogueOfTheProcess: a run with a catalogue file starts the process with it, and is
// refused in one line by a process with another one.
func TestTheCatalogueOfTheProcess(t *testing.T) {
	h, dir := newHousehold(t), t.TempDir()
	script := write(t, dir, "s.yaml", "turns:\n  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n")
	one, other := write(t, dir, "one.yaml", "models: []\n"), write(t, dir, "other.yaml", "models: []\n")
	run := func(more ...string) (int, string) {
		code, _, stderr := start(t, h.env(), append([]string{"run", "--workspace", dir, "--model", "script:" + script, "--output", "json", "work"}, more...)...).wait()
		return code, stderr
	}
	for range 2 {
		if code, stderr := run("--catalogue", one); code != 0 {
			t.Fatalf("exit %d\n%s", code, stderr)
		}
	}
	if code, stderr := run(); code != 0 {
		t.Errorf("without a file: exit %d\n%s", code, stderr)
	}
	if code, stderr := run("--catalogue", other); code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "uses "+one+": HARNESS_CATALOGUE="+other+" harness daemon restart") {
		t.Errorf("another file: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := start(t, h.env("HARNESS_CATALOGUE="+other), "daemon", "restart").wait(); code != 0 {
		t.Fatalf("restart: exit %d\n%s", code, stderr)
	}
	if code, stderr := run("--catalogue", other); code != 0 {
		t.Errorf("after the restart: exit %d\n%s", code, stderr)
	}
}
