//go:build linux

package show_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestListFitsATerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	harnesstest.AddWideRuns(f)
	for columns, want := range map[string]string{
		"80":  "r-bbbb2345  PARKED provider unavailable  0/50   5 min ago  Find out why the n...",
		"140": "r-bbbb2345  PARKED provider unavailable  0/50   5 min ago  anthropic:claude-sonnet-5-5  Find out why the nightly build fails on arm64 and...",
	} {
		cmd := harnesstest.Capable(harnesstest.Program(t, "list", "--server", f.Address))
		cmd.Env = append(cmd.Env, "COLUMNS="+columns)
		screen, _ := harnesstest.OnTerminal(t, cmd)
		if code := harnesstest.ExitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen.Expect(t, "r-cccc2345", 1)
		got := strings.ReplaceAll(screen.String(), "\r\n", "\n")
		if !strings.Contains(got, "\n"+want+"\n") || !strings.Contains(got, " just now ") || !strings.Contains(got, " 26 h ago ") {
			t.Errorf("%s columns:\n%s\nwant %s", columns, got, want)
		}
	}
}

// clock matches a time of the overview, which depends on when the test runs.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d`)

// What list, show and last print on terminals of two widths is in testdata, as pictures.
func TestRunsOnATerminal(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	harnesstest.AddWideRuns(f)
	for _, columns := range []int{80, 140} {
		for name, args := range map[string][]string{"list": nil, "show": {"r-bb"}, "last": nil} {
			cmd := harnesstest.Capable(harnesstest.Program(t, append([]string{name, "--server", f.Address}, args...)...))
			cmd.Env = append(cmd.Env, fmt.Sprintf("COLUMNS=%d", columns))
			screen, _ := harnesstest.OnTerminal(t, cmd)
			if code := harnesstest.ExitCode(t, cmd); code != 0 {
				t.Errorf("%s: exit code %d", name, code)
			}
			if name == "show" {
				screen.Expect(t, "harness resume r-bbbb2345 --server "+f.Address+"\r\n", 1)
			}
			screen.Expect(t, "\r\n", map[string]int{"list": 5, "show": 15, "last": 2}[name]) // with the line of the environment
			got := strings.NewReplacer("\r\n", "\n", f.Address, "SERVER").Replace(screen.String())
			_, got, _ = strings.Cut(got, "unknown variable, ignored\n")
			got = clock.ReplaceAllString(got, "2026-11-02 10:20:30")
			for line := range strings.Lines(got) {
				if len([]rune(line)) > columns+1 && !strings.Contains(line, "harness resume") {
					t.Errorf("%s: a line is wider than %d columns: %q", name, columns, line)
				}
			}
			harnesstest.Golden(t, fmt.Sprintf("%s-%d.txt", name, columns), got)
		}
	}
}
