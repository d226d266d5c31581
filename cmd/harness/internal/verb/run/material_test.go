package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestTextOnStdinGoesWithTheGoal checks each kind of stdin: a file, a pipe, and none.
func TestTextOnStdinGoesWithTheGoal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) { r.Done() }
	goal := func() string {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		return f.Starts[len(f.Starts)-1].GetSpec().GetGoal().GetInline()
	}
	got := harnesstest.Call(t, nil, "line 1\nFAIL\n", "run", "--server", f.Address, "what", "fails?")
	if want := "what fails?\n\nThe text on standard input:\n\nline 1\nFAIL"; got.Code != 0 || goal() != want || !strings.Contains(got.Err, "standard input (12 bytes) goes with the goal") {
		t.Errorf("%q, %+v", goal(), got)
	}
	for _, empty := range []string{"", "\n \n"} {
		if got := harnesstest.Call(t, nil, empty, "run", "--server", f.Address, "go"); got.Code != 0 || goal() != "go" {
			t.Errorf("%q: %q, %+v", empty, goal(), got)
		}
	}
	if got := harnesstest.Call(t, nil, "all of it", "run", "--server", f.Address, "-"); got.Code != 0 || goal() != "all of it" || strings.Contains(got.Err, "standard input") {
		t.Errorf("%q, %+v", goal(), got)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("of a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*os.File, string){
		"a file": func() (*os.File, string) {
			in, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			return in, "of a file"
		},
		"a pipe": func() (*os.File, string) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = out.WriteString("of ")
				_, _ = out.WriteString("a pipe")
				_ = out.Close()
			}()
			return in, "of a pipe"
		},
		"/dev/null": func() (*os.File, string) {
			in, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			return in, ""
		},
		"a pipe that stays silent": func() (*os.File, string) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = out.Close() })
			return in, ""
		},
	} {
		in, want := open()
		cmd := harnesstest.Program(t, "run", "--server", f.Address, name)
		cmd.Stdin = in
		said, err := cmd.CombinedOutput()
		_ = in.Close()
		if err != nil || !strings.HasPrefix(goal(), name) || !strings.HasSuffix(goal(), want) || (want == "") != (goal() == name) {
			t.Errorf("%s: goal %q, %v: %s", name, goal(), err, said)
		}
		if silent := strings.Contains(name, "silent"); silent != strings.Contains(string(said), "nothing came on standard input") {
			t.Errorf("%s: %s", name, said)
		}
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if starts := len(f.Starts); starts != 8 {
		t.Errorf("%d runs", starts)
	}
}
