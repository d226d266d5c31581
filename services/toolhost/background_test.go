package toolhost

import (
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	ran      = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	stopped  = harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
	notKnown = harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
)

// states are all states.
var states = []State{Absent, Running, Done, Cancelled, Forgotten, Orphaned}

// A background command that this host does not run has ended, whatever its entry is; only
// one that ended by itself has an end that is known, and only one that was killed was.
func TestBackgroundOutcomeIsTotal(t *testing.T) {
	for _, s := range append(states, State(77)) {
		for _, f := range []Fate{Unstarted, Killed, Unknown, Fate(77)} {
			want := notKnown
			switch {
			case s == Running:
				want = harnessv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED
			case s == Done:
				want = ran
			case s == Cancelled && f == Killed:
				want = stopped
			}
			if got := BackgroundOutcome(s, f); got != want {
				t.Errorf("BackgroundOutcome(%v, %v) = %v, want %v", s, f, got, want)
			}
		}
	}
}

func TestBackgroundTexts(t *testing.T) {
	for got, want := range map[string]string{
		BackgroundEnd(3, 0, 0):                           "exit code 3",
		BackgroundEnd(137, 9, 0, "", "too much"):         "exit code 137, killed by signal 9; too much",
		BackgroundEnd(124, 0, 2*time.Second):             "killed: it had not ended after 2s",
		BackgroundFull([]string{"bg1", "bg2"}):           "(bg1, bg2)",
		BackgroundNotFound("x", nil):                     `"x"; there are: none`,
		BackgroundNotFound("x", []string{"bg1"}):         "there are: bg1",
		BackgroundOutput("line\n", 5, 0, 0, ""):          "line\n[running; continue at offset 5]",
		BackgroundOutput("a", 1, 4, 7, "exit code 0"):    "a\n[exit code 0; 4 bytes more; continue at offset 1]",
		BackgroundOutput("", 8, 0, 7, "killed"):          "[killed; continue at offset 8; the output after that, 7 bytes, was dropped",
		BackgroundOutput("\xff\n", 2, 0, 0, "exit code"): "continue at offset 2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}
