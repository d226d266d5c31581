//go:build linux

package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// addWideRuns adds runs whose lines are wider than a terminal.
func addWideRuns(f *fake) {
	for id, ago := range map[string]time.Duration{"r-aaaa2345": 20 * time.Second, "r-bbbb2345": 5*time.Minute + time.Second, "r-cccc2345": 26*time.Hour + time.Minute} {
		spec := aSpec()
		spec.Agent.Model, spec.Goal = "anthropic:claude-sonnet-5-5", content.Inline("Find out why the nightly build fails on arm64 and fix it, with a test.")
		r := f.add(id, "default", spec)
		r.rest(&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, Reason: &harnessv1.StopReason{Kind: "provider_unavailable"}})
		r.run.UpdateTime = timestamppb.New(time.Now().Add(-ago))
	}
}

func TestListFitsATerminal(t *testing.T) {
	f := serveFake(t)
	addWideRuns(f)
	for columns, want := range map[string]string{
		"80":  "r-bbbb2345  PARKED provider_unavailable  0/50   5 min ago  Find out why the n...",
		"140": "r-bbbb2345  PARKED provider_unavailable  0/50   5 min ago  anthropic:claude-sonnet-5-5  Find out why the nightly build fails on arm64 and...",
	} {
		cmd := capable(program(t, "list", "--server", f.address))
		cmd.Env = append(cmd.Env, "COLUMNS="+columns)
		screen, _ := onTerminal(t, cmd)
		if code := exitCode(t, cmd); code != 0 {
			t.Errorf("exit code %d", code)
		}
		screen.expect(t, "r-cccc2345", 1)
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
	f := serveFake(t)
	addWideRuns(f)
	for _, columns := range []int{80, 140} {
		for name, args := range map[string][]string{"list": nil, "show": {"r-bb"}, "last": nil} {
			cmd := capable(program(t, append([]string{name, "--server", f.address}, args...)...))
			cmd.Env = append(cmd.Env, fmt.Sprintf("COLUMNS=%d", columns))
			screen, _ := onTerminal(t, cmd)
			if code := exitCode(t, cmd); code != 0 {
				t.Errorf("%s: exit code %d", name, code)
			}
			if name == "show" {
				screen.expect(t, "harness resume r-bbbb2345 --server "+f.address+"\r\n", 1)
			}
			screen.expect(t, "\r\n", map[string]int{"list": 5, "show": 15, "last": 2}[name]) // with the line of the environment
			got := strings.NewReplacer("\r\n", "\n", f.address, "SERVER").Replace(screen.String())
			_, got, _ = strings.Cut(got, "unknown variable, ignored\n")
			got = clock.ReplaceAllString(got, "2026-11-02 10:20:30")
			for line := range strings.Lines(got) {
				if len([]rune(line)) > columns+1 && !strings.Contains(line, "harness resume") {
					t.Errorf("%s: a line is wider than %d columns: %q", name, columns, line)
				}
			}
			golden(t, fmt.Sprintf("%s-%d.txt", name, columns), got)
		}
	}
}
