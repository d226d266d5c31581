package mesh

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// undisturbed returns the canonical log of each scenario without faults.
func undisturbed(t *testing.T, scenarios ...scenario) map[string]string {
	t.Helper()
	m := meshtest.Start(t, bin, meshtest.Config{})
	logs := map[string]string{}
	for _, s := range scenarios {
		d, entries := s.through(t.Context(), t, m, "undisturbed-"+s.name)
		sound(t, d, entries)
		logs[s.name] = d.canonical(entries)
		d, again := s.through(t.Context(), t, m, "again-"+s.name)
		same(t, logs[s.name], d.canonical(again))
	}
	if t.Failed() {
		t.FailNow()
	}
	return logs
}

// sound checks what must hold for every log and workspace, whatever has died: no gap,
// no duplicate line, and a line for each call that is reported as done.
func sound(t testing.TB, d *driver, entries []runlog.Entry) {
	t.Helper()
	if err := meshtest.Check(entries); err != nil {
		t.Errorf("%s: %v", d.run, err)
	}
	seen := map[string]int{}
	for _, line := range d.lines() {
		if seen[line]++; seen[line] > 1 {
			t.Errorf("%s: %q is there twice", d.run, line)
		}
	}
	unknown := 0
	for id, outcome := range meshtest.Outcomes(entries) {
		switch outcome {
		case harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
			unknown++
		case harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		default:
			t.Errorf("%s: call %s ended %v", d.run, id, outcome)
		}
	}
	if missing := d.expected() - len(seen); missing > unknown+d.resumed {
		t.Errorf("%s: %d lines are missing, %d calls are unknown, %d steps were put aside", d.run, missing, unknown, d.resumed)
	}
}

// same fails at the first record in which two canonical logs differ.
func same(t testing.TB, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	w, g := strings.Split(want, "---\n"), strings.Split(got, "---\n")
	for i := range max(len(w), len(g)) {
		var a, b string
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			at := 0
			for at < min(len(a), len(b)) && a[at] == b[at] {
				at++
			}
			from := max(0, at-200)
			t.Errorf("the logs differ at record %d of %d and %d:\nwant %s…\ngot  %s…", i, len(w)-1, len(g)-1, a[min(from, len(a)):min(at+400, len(a))], b[min(from, len(b)):min(at+400, len(b))])
			return
		}
	}
}

// uncertain are points of the tool host at which it is not known whether a call had its
// effect. The call is reported as unknown, so the log differs.
var uncertain = []string{"marked", "performed"}

// TestSystemKillPoints kills each role at each of its points, repeatedly, while runs are in
// progress. Each run's log must be that of an undisturbed run.
func TestSystemKillPoints(t *testing.T) {
	want := undisturbed(t, work, interrupted, deleted, taken, judged, delegated, halted, separate)
	for _, role := range meshtest.Roles {
		if role == workflow.Inference {
			continue // these runs have no jobs: see TestSystemJobsSurviveKills and TestSystemSummariesSurviveKills
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			m := meshtest.Start(t, bin, meshtest.Config{})
			random := rand.New(rand.NewPCG(*seed, uint64(len(role))))
			for _, point := range failpoint.Points(role) {
				s := work
				switch point {
				case "request_stored", "job_created", "job_ended", "counted":
					continue // these runs have no jobs and no profiles: see TestSystemJudgingSurvivesKills
				case "merge_stored", "merge_changing", "merge_changed", "merged":
					continue // these runs merge nothing: see TestSystemMergesSurviveKills
				case "killed", "cancelled":
					s = interrupted
				case "report", "reported", "child", "child_started":
					s = delegated
				case "worktree", "worktree_recorded", "worktree_copied", "worktree_made", "worktree_ended", "worktree_aside":
					s = separate
				case "order", "ordered":
					s = halted
				case "expired", "erased":
					s = deleted
				case "expired_child", "below_expired":
					s = taken
				case "asked", "admitted", "weighed", "judged", "looked":
					s = judged
				}
				runs := killAt(t, m, random, role, point, s, func(d *driver, entries []runlog.Entry) {
					sound(t, d, entries)
					if role != "toolhost" || !slices.Contains(uncertain, point) {
						same(t, want[s.name], d.canonical(entries))
					}
				})
				t.Logf("%s.%s: killed %d times in %d runs", role, point, *rounds, runs)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// killAt sends runs through a scenario until the role has died at the point as often as
// required, and returns how many runs that took.
func killAt(t *testing.T, m *meshtest.Mesh, random *rand.Rand, role, point string, s scenario, check func(*driver, []runlog.Entry)) (runs int) {
	t.Helper()
	name := role + "." + point
	arm := func() meshtest.Option {
		return meshtest.Arm(fmt.Sprintf("%s=kill@%d", name, 1+random.IntN(3)))
	}
	m.Process(role).Kill()
	m.Start(role, arm())
	var kills atomic.Int64
	stop := m.Respawn(role, func(int) []meshtest.Option {
		if _, ok := m.Process(role).Line("failpoint " + name); !ok {
			t.Errorf("%s died elsewhere:\n%s", role, m.Process(role).Stderr())
		}
		if kills.Add(1) < int64(*rounds) {
			return []meshtest.Option{arm()}
		}
		return nil
	})
	defer stop()
	const most = 60
	for ; kills.Load() < int64(*rounds) && !t.Failed(); runs++ {
		if runs > most {
			t.Errorf("%s: only %d kills in %d runs", name, kills.Load(), runs)
			return runs
		}
		d, entries := s.through(context.WithoutCancel(t.Context()), t, m, fmt.Sprintf("%s-%s-%d", role, point, runs))
		check(d, entries)
	}
	return runs
}
