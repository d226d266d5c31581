package scripttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCountsOfRealRuns runs go test over packages that pass and fail in each way.
func TestCountsOfRealRuns(t *testing.T) {
	const head = "package p\n\nimport \"testing\"\n\n"
	for _, c := range []struct{ name, source, want string }{
		{"passes", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}", "2 0 0"},
		{"fails", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Error(\"reason\") }", "1 1 0"},
		{"skips", "func TestA(t *testing.T) { t.Skip() }", "0 0 1"},
		{"counts subtests once", "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(*testing.T) {})\n\tt.Run(\"y\", func(t *testing.T) { t.Error(\"deep\") })\n}", "1 1 0"},
		{"fails above passing subtests", "func TestA(t *testing.T) {\n\tt.Run(\"x\", func(*testing.T) {})\n\tt.Error(\"above\")\n}", "1 1 0"},
		{"panics", "func TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { panic(\"boom\") }", "1 1 0"},
		{"does not build", "func TestA(t *testing.T) { undefined() }", "0 1 0"},
		{"exits outside its tests", "func TestA(t *testing.T) {}\nfunc TestMain(m *testing.M) { m.Run(); panic(\"leak\") }", "1 1 0"},
		{"runs fuzz seeds", "func FuzzA(f *testing.F) {\n\tf.Add(1)\n\tf.Add(2)\n\tf.Fuzz(func(*testing.T, int) {})\n}", "2 0 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/p\n\ngo 1.26\n")
			write(t, filepath.Join(dir, "p_test.go"), head+c.source)
			cmd := exec.CommandContext(t.Context(), "go", "test", "-json", "./...")
			cmd.Dir = dir
			out, _ := cmd.Output() // exits 1 when a test fails, as some must here
			if got := count(t, string(out)); got != c.want {
				t.Errorf("got %q, want %q, of\n%s", got, c.want, out)
			}
		})
	}
}

func TestCountsOfAKilledRun(t *testing.T) {
	const events = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
`
	if got := count(t, events); got != "1 1 0" {
		t.Errorf("got %q, want TestB to count as failed", got)
	}
}

func TestNamesWhatFailed(t *testing.T) {
	const events = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:7: fine\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: reason\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"the log of a process\n"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`
	file := filepath.Join(t.TempDir(), "events.json")
	write(t, file, events)
	out, err := exec.CommandContext(t.Context(), "../count-tests.py", "--failed", file).Output()
	if want := "failed: p TestB\n        b_test.go:9: reason\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}

// TestFollowsARun prints a line for each package, and the output of the tests that fail alone.
func TestFollowsARun(t *testing.T) {
	const events = `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.5}
not an event
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:9: reason\n"}
{"Action":"fail","Package":"p","Test":"TestB","Elapsed":2}
{"Action":"fail","Package":"p","Elapsed":2.5}
`
	file := filepath.Join(t.TempDir(), "events.json")
	cmd := exec.CommandContext(t.Context(), "../count-tests.py", "--follow", file)
	cmd.Stdin = strings.NewReader(events)
	out, err := cmd.Output()
	if want := "q.go:1: undefined\n    b_test.go:9: reason\nFAIL p (2.5 s)\n"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if copied, err := os.ReadFile(file); err != nil || string(copied) != events {
		t.Errorf("copied %q, %v", copied, err)
	}
	out, err = exec.CommandContext(t.Context(), "../count-tests.py", "--slowest", "1", file).Output()
	if want := "    2.0  p  TestB\n"; err != nil || string(out) != want {
		t.Errorf("slowest: got %q, %v, want %q", out, err, want)
	}
}

// count returns what count-tests.py prints for the events.
func count(t *testing.T, events string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "events.json")
	write(t, file, events)
	out, err := exec.CommandContext(t.Context(), "../count-tests.py", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
