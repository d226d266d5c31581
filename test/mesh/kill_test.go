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

// scenarioOf returns the scenario whose runs come to a point, and whether they do so in each step, turn or
// call, and not once or twice in a run. ok is false for a point at which another test kills.
func scenarioOf(point string) (s scenario, often, ok bool) {
	switch point {
	case "request_stored", "job_created", "job_ended", "counted":
		return s, false, false // these runs have no jobs and no profiles: see TestSystemJudgingSurvivesKills
	case "merge_stored", "merge_changing", "merge_changed", "merged":
		return s, false, false // these runs merge nothing: see TestSystemMergesSurviveKills
	case "killed", "cancelled":
		return interrupted, false, true
	case "report", "reported", "child", "child_started":
		return delegated, false, true
	case "worktree", "worktree_recorded", "worktree_copied", "worktree_made", "worktree_ended", "worktree_aside":
		return separate, false, true
	case "order", "ordered":
		return halted, false, true
	case "expired", "erased":
		return deleted, false, true
	case "expired_child", "below_expired":
		return taken, false, true
	case "asked", "admitted", "weighed", "judged", "looked":
		return judged, true, true
	case "timer_fired", "timer_kept", "wake_seen", "woken", "start_received", "started", "input_received", "input_stored":
		return work, false, true
	default:
		return work, true, true
	}
}

// TestSystemKillPoints kills each role at each of its points, repeatedly, while runs are in
// progress. Each run's log must be that of an undisturbed run. A run meets the deaths at several points.
func TestSystemKillPoints(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, work, interrupted, deleted, taken, judged, delegated, halted, separate)
	for _, role := range meshtest.Roles {
		if role == workflow.Inference {
			continue // these runs have no jobs: see TestSystemJobsSurviveKills and TestSystemSummariesSurviveKills
		}
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			m := meshtest.Start(t, bin, meshtest.Config{})
			random := rand.New(rand.NewPCG(*seed, uint64(len(role))))
			type group struct {
				scenario
				unknown bool
			}
			var groups []group
			points := map[string][]string{}
			for _, point := range failpoint.Points(role) {
				s, _, ok := scenarioOf(point)
				if !ok {
					continue
				}
				unknown := role == workflow.ToolHost && slices.Contains(uncertain, point)
				name := fmt.Sprint(s.name, unknown)
				if points[name] == nil {
					groups = append(groups, group{s, unknown})
				}
				points[name] = append(points[name], point)
			}
			for _, g := range groups {
				died := points[fmt.Sprint(g.name, g.unknown)]
				runs := killAt(t, m, random, role, g.scenario, func(d *driver, entries []runlog.Entry) {
					sound(t, d, entries)
					if !g.unknown {
						same(t, want[g.name], d.canonical(entries))
					}
				}, died...)
				t.Logf("%s: killed %d times at each of %v in %d runs", role, *rounds, died, runs)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// deaths are those of a role, each at another point: the process that replaces a dead one dies at the next one.
type deaths struct {
	t      testing.TB
	m      *meshtest.Mesh
	role   string
	points []string // the first one follows the last
	kills  int
	at     func(n int) int // at which time that its process comes to its point the nth dies, from 0
	died   atomic.Int64
}

// start replaces the role's process by one that dies at the first point. stop ends the replacement of dead processes.
func (d *deaths) start() (stop func()) {
	d.m.Process(d.role).Kill()
	d.m.Start(d.role, d.arm(0))
	return d.m.Respawn(d.role, func(int) []meshtest.Option {
		n := int(d.died.Load())
		if _, ok := d.m.Process(d.role).Line("failpoint " + d.point(n)); !ok || n == d.kills {
			d.t.Errorf("%s died elsewhere than at %s:\n%s", d.role, d.point(n), d.m.Process(d.role).Stderr())
		}
		if d.died.Add(1) < int64(d.kills) {
			return []meshtest.Option{d.arm(n + 1)}
		}
		return nil
	})
}

func (d *deaths) point(n int) string { return d.role + "." + d.points[n%len(d.points)] }

func (d *deaths) arm(n int) meshtest.Option {
	return meshtest.Arm(fmt.Sprintf("%s=kill@%d", d.point(n), d.at(n)))
}

// left returns how many deaths are to come.
func (d *deaths) left() int { return d.kills - int(d.died.Load()) }

// killAt sends runs through a scenario until the role has died at each point as often as
// required, and returns how many runs that took.
func killAt(t *testing.T, m *meshtest.Mesh, random *rand.Rand, role string, s scenario, check func(*driver, []runlog.Entry), points ...string) (runs int) {
	t.Helper()
	deaths := &deaths{t: t, m: m, role: role, points: points, kills: *rounds * len(points), at: func(n int) int {
		// The first time after a death may be in the step of the dead process, which fails if it kills three.
		switch _, often, _ := scenarioOf(points[n%len(points)]); {
		case often && n > 0:
			return 2 + random.IntN(2)
		case often || *rounds > 1:
			return 1 + random.IntN(3)
		}
		return 1
	}}
	defer deaths.start()()
	most := 60 * len(points)
	for ; deaths.left() > 0 && !t.Failed(); runs++ {
		if runs > most {
			t.Errorf("%s: %d of %d deaths at %v are left after %d runs", role, deaths.left(), deaths.kills, points, runs)
			return runs
		}
		d, entries := s.through(context.WithoutCancel(t.Context()), t, m, fmt.Sprintf("%s-%s-%d", role, points[0], runs))
		check(d, entries)
	}
	return runs
}
