package gym

import (
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// edits is a list of changes of what a run is started with.
func edits[T any](all ...T) []T { return all }

// scenarios are all of them, in the order of the table.
func scenarios() []*scenario {
	return slices.Concat(wrongEnds(), talkers(), loopers(), misusers(), healthyOnes(), limits())
}

// outcome is what came of a scenario, on one side.
type outcome struct {
	turns, tokens int
	// end is what the end looks like: what a bare loop believes, or the verdict.
	end string
	// really reports whether the task is done.
	really bool
	// by names the actions of the harness; a bare loop has none.
	by []string
	// passes of compaction.
	passes int
}

// row is what came of a scenario on both sides; small is the harness in a small window.
type row struct {
	*scenario
	bare, harness, small outcome
}

// smallWindow is a small window, in tokens. There a model thinks aloud before each call, so
// that a run of twelve turns fills it.
const smallWindow = 16_000

var musing = strings.Repeat("I think about it from all sides. ", 100)

// TestGym plays every eighth scenario.
func TestGym(t *testing.T) {
	var some []*scenario
	for i, s := range scenarios() {
		if i%8 == 0 {
			some = append(some, s)
		}
	}
	play(t, some)
}

// TestSystemGym plays all scenarios: each failing model recovers or ends with the right verdict, none
// ends accepted with its work undone, and no healthy model is stopped. It compares docs/gym.md, or
// writes its tables.
func TestSystemGym(t *testing.T) {
	all := scenarios()
	rows := play(t, all)
	if compacted := compactions(rows); compacted < leastCompacted && !slices.Contains(rows, nil) {
		t.Errorf("%d runs were compacted, expected at least %d", compacted, leastCompacted)
	}
	if *tableFile != "" {
		writeTables(t, *tableFile, rows)
		return
	}
	compareTables(t, all, rows)
}

// play plays scenarios and checks what came of each. The row of one that fails early is nil.
func play(t *testing.T, scenarios []*scenario) []*row {
	t.Helper()
	program.Rely(t)
	rows := make([]*row, len(scenarios))
	t.Run("models", func(t *testing.T) {
		for i, s := range scenarios {
			t.Run(s.name+"-"+s.kind, func(t *testing.T) {
				t.Parallel()
				rows[i] = &row{s, playBare(t, s), playHarness(t, s, 0), playHarness(t, s, smallWindow)}
				rows[i].check(t)
			})
		}
	})
	return rows
}

func playBare(t *testing.T, s *scenario) outcome {
	t.Helper()
	w := newWorld(t, s.files)
	name := s.name + "-" + s.kind + "-bare"
	servedModel := models.add(name, s.model, w.dir)
	end := (&bareLoop{world: w, answer: s.answer}).run(t, name, s.goal)
	turns, tokens := servedModel.sent()
	return outcome{turns: turns, tokens: tokens, end: end, really: s.really(w)}
}

// playHarness plays a scenario in the harness. window is 0 for that of the model.
func playHarness(t *testing.T, s *scenario, window uint32) outcome {
	t.Helper()
	w := newWorld(t, s.files)
	id := s.name + "-" + s.kind
	spec := s.spec
	if window > 0 {
		id += "-small"
		spec = append(slices.Clone(spec), func(spec *harnessv1.RunSpec) {
			spec.Config.Context = &harnessv1.ContextConfig{MaxInputTokens: &window}
		})
	}
	servedModel := models.add(id, s.model, w.dir)
	if window > 0 {
		servedModel.musing = musing
	}
	run := meshed(t, s, id, w.dir, spec)
	run.made(w)
	requests, tokens := servedModel.sent()
	turns := int(run.result.GetTurnCount())
	if requests != turns {
		t.Errorf("%d requests in %d turns", requests, turns)
	}
	u := run.result.GetUsage()
	if got := int(u.GetInputTokens() + u.GetOutputTokens()); got != tokens && window == 0 {
		t.Errorf("the result counts %d tokens, the model %d", got, tokens)
	}
	result := outcome{turns: turns, tokens: tokens, end: run.verdict(), really: s.really(w), by: interventions(run.events)}
	for _, e := range run.events {
		if len(e.GetCompactionCompleted().GetStrategies()) > 0 {
			result.passes++
		}
	}
	return result
}

// leastCompacted is how many runs in the small window are compacted at least.
const leastCompacted = 8

func compactions(rows []*row) (n int) {
	for _, r := range rows {
		if r != nil && r.small.passes > 0 {
			n++
		}
	}
	return n
}

// check holds a scenario to what must come of it.
func (r *row) check(t *testing.T) {
	t.Helper()
	got := r.harness
	if got.end != r.verdict {
		t.Errorf("%s (%s) ends %s after %d turns by %q, want %s", r.what, r.kind, got.end, got.turns, got.by, r.verdict)
	}
	if r.by != "" && !has(got.by, r.by) {
		t.Errorf("%s (%s) ends %s by %q, and not by %s", r.what, r.kind, got.end, got.by, r.by)
	}
	if small := r.small; small.end != got.end || small.really != got.really {
		t.Errorf("%s (%s) ends %s (done: %t) in a small window, after %d turns, %d passes and %q; want %s (%t)",
			r.what, r.kind, small.end, small.really, small.turns, small.passes, small.by, got.end, got.really)
	}
	switch r.kind {
	case limit:
		if got.really {
			t.Errorf("%s: the task is done, so this is no limit any more", r.what)
		}
		return
	case healthy:
		for _, what := range got.by {
			if strings.HasPrefix(what, rejection) || what == stalled || what == loopEnd {
				t.Errorf("%s is healthy, and was held up: %s", r.what, what)
			}
		}
	}
	if got.really != (got.end == accepted) {
		t.Errorf("%s (%s) ends %s; the task is done: %t", r.what, r.kind, got.end, got.really)
	}
	if want := r.kind == healthy || r.bareTells && r.kind == listens; r.bare.really != want {
		t.Errorf("%s (%s): done in a bare loop: %t, want %t", r.what, r.kind, r.bare.really, want)
	}
}
