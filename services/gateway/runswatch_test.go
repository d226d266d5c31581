package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

const (
	running   = harnessv1.RunStatus_RUN_STATUS_RUNNING
	parked    = harnessv1.RunStatus_RUN_STATUS_PARKED
	done      = harnessv1.RunStatus_RUN_STATUS_DONE
	cancelled = harnessv1.RunStatus_RUN_STATUS_CANCELLED
)

// board is an index with the steps of runs, and its watchers.
type board struct {
	x        Index
	sequence uint64
	versions map[string]uint64
	lives    map[string]int // that have ended
	watchers []*RunsWatch
}

// deletion stands for the status of a deleted run.
const deletion = harnessv1.RunStatus_RUN_STATUS_UNSPECIFIED

// put gives a run a status, or deletes it; a later run of its name is a new one. The
// name is NAMESPACE/ID. Runs are created in the order of their ids, and runs that reuse
// a name after all others.
func (b *board) put(name string, status harnessv1.RunStatus) runlog.Entry {
	namespace, id, _ := strings.Cut(name, "/")
	to := map[harnessv1.RunStatus]string{running: "repair", parked: runlog.Park}[status]
	if to == "" {
		to = runlog.End
	}
	if b.versions == nil {
		b.versions = map[string]uint64{}
	}
	b.versions[name]++
	b.sequence++
	created := noon.Add(time.Duration(id[len(id)-1]) * time.Second)
	if n := b.lives[name]; n > 0 {
		created = created.Add(time.Duration(n) * time.Hour)
	}
	e := stepOf(runlog.Run{Namespace: namespace, ID: id}, b.sequence, created, to, status)
	e.Record.Version = b.versions[name]
	if status == deletion {
		e.Record.GetStep().Snapshot.Status = cancelled
		e.Record.GetStep().Snapshot.ExpireTime = timestamppb.New(noon)
		if b.lives == nil {
			b.lives = map[string]int{}
		}
		b.versions[name], b.lives[name] = 0, b.lives[name]+1
	}
	e.Header = runlog.HeaderOf(e.Record)
	b.apply(e)
	return e
}

func (b *board) apply(e runlog.Entry) {
	c, changed := b.x.Apply(e)
	if !changed {
		return
	}
	for _, w := range b.watchers {
		w.Change(c)
	}
}

func (b *board) watch(r *harnessv1.WatchRunsRequest) *RunsWatch {
	w, err := NewRunsWatch(r, nil)
	if err != nil {
		panic(err)
	}
	b.watchers = append(b.watchers, w)
	return w
}

// drain returns everything that a watcher receives now, in a short form.
func (b *board) drain(w *RunsWatch, limit int) string {
	var words []string
	for {
		t := w.Next(&b.x, limit)
		if len(t.Rows) > limit {
			panic("more than was asked for")
		}
		for _, r := range t.Rows {
			how := r.Status.String()[len("RUN_STATUS_"):]
			if r.Deleted {
				how = "deleted"
			}
			words = append(words, fmt.Sprintf("%s=%s@%d", r.Run.ID, how, r.Version))
		}
		if t.CaughtUp {
			words = append(words, "caught up")
		}
		if !t.More {
			return strings.Join(words, ", ")
		}
	}
}

func TestRunsWatch(t *testing.T) {
	type change struct {
		name   string
		status harnessv1.RunStatus
	}
	for name, c := range map[string]struct {
		request *harnessv1.WatchRunsRequest
		start   []change
		want    string
		rounds  [][]change
		news    []string
	}{
		"nothing": {request: &harnessv1.WatchRunsRequest{Namespace: "n"}, want: "caught up"},
		"the list, then changes": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n"},
			start:   []change{{"n/a", running}, {"n/b", running}, {"n/b", done}, {"m/c", running}},
			want:    "b=DONE@2, a=RUNNING@1, caught up",
			rounds:  [][]change{{{"n/a", parked}}, {{"m/c", done}, {"n/d", running}}, {}},
			news:    []string{"a=PARKED@2", "d=RUNNING@1", ""},
		},
		"all namespaces": {
			request: &harnessv1.WatchRunsRequest{Namespace: "*"},
			start:   []change{{"n/a", running}, {"m/c", running}},
			want:    "c=RUNNING@1, a=RUNNING@1, caught up",
			rounds:  [][]change{{{"m/c", done}}},
			news:    []string{"c=DONE@2"},
		},
		"newest of many changes, in the order of the first": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n"},
			want:    "caught up",
			rounds:  [][]change{{{"n/a", running}, {"n/b", running}, {"n/a", parked}, {"n/a", running}, {"n/b", done}, {"n/a", done}}},
			news:    []string{"a=DONE@4, b=DONE@2"},
		},
		"leaves the filter": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n", Statuses: []harnessv1.RunStatus{running}},
			start:   []change{{"n/a", running}, {"n/b", done}},
			want:    "a=RUNNING@1, caught up",
			rounds:  [][]change{{{"n/a", parked}}, {{"n/a", done}}, {{"n/a", running}}, {{"n/a", parked}, {"n/a", running}}},
			news:    []string{"a=PARKED@2", "", "a=RUNNING@4", "a=RUNNING@6"},
		},
		"was in the filter between two tellings": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n", Statuses: []harnessv1.RunStatus{parked}},
			start:   []change{{"n/a", running}},
			want:    "caught up",
			rounds:  [][]change{{{"n/a", parked}, {"n/a", running}}, {{"n/a", parked}}, {{"n/a", running}, {"n/a", done}}},
			news:    []string{"", "a=PARKED@4", "a=DONE@6"},
		},
		"changes only": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n", ChangesOnly: true, Statuses: []harnessv1.RunStatus{running, parked}},
			start:   []change{{"n/a", running}, {"n/b", running}, {"n/c", done}},
			want:    "caught up",
			rounds:  [][]change{{{"n/a", done}, {"n/d", cancelled}}, {{"n/b", parked}, {"n/a", running}, {"n/c", cancelled}}},
			news:    []string{"a=DONE@2", "b=PARKED@2, a=RUNNING@3"},
		},
		"deletions": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n"},
			start:   []change{{"n/a", done}, {"n/b", done}, {"n/c", done}, {"n/c", deletion}},
			want:    "b=DONE@1, a=DONE@1, caught up",
			rounds: [][]change{
				{{"n/a", deletion}, {"m/d", running}, {"m/d", deletion}},
				{{"n/e", running}, {"n/e", deletion}}, // no watcher has seen the run
				{{"n/b", running}, {"n/b", done}, {"n/b", deletion}},
				{{"n/a", running}},
				{{"n/a", done}, {"n/a", deletion}, {"n/a", running}},
			},
			news: []string{"a=deleted@2", "", "b=deleted@4", "a=RUNNING@1", "a=RUNNING@1"},
		},
		"deletions, of what was asked for": {
			request: &harnessv1.WatchRunsRequest{Namespace: "n", Statuses: []harnessv1.RunStatus{parked}},
			start:   []change{{"n/a", parked}, {"n/b", parked}, {"n/c", done}},
			want:    "b=PARKED@1, a=PARKED@1, caught up",
			rounds: [][]change{
				{{"n/a", done}, {"n/a", deletion}, {"n/c", deletion}},
				{{"n/b", done}},
				{{"n/b", deletion}},
				{{"n/b", parked}, {"n/b", done}, {"n/b", deletion}, {"n/b", running}},
			},
			news: []string{"a=deleted@3", "b=DONE@2", "", ""},
		},
	} {
		for _, limit := range []int{1, 2, 100} {
			var b board
			for _, s := range c.start {
				b.put(s.name, s.status)
			}
			w := b.watch(c.request)
			if got := b.drain(w, limit); got != c.want {
				t.Errorf("%s, by %d: at the start %q, want %q", name, limit, got, c.want)
			}
			for i, round := range c.rounds {
				for _, s := range round {
					b.put(s.name, s.status)
				}
				if got := b.drain(w, limit); got != c.news[i] {
					t.Errorf("%s, by %d: round %d: %q, want %q", name, limit, i, got, c.news[i])
				}
			}
		}
	}
}

// TestRunsWatchConverges: whatever changes during the initial list, and whenever the
// watcher reads, it ends with the current state of each requested run, no version
// decreases, nothing is sent twice, and a run that no longer matches was sent as such.
func TestRunsWatchConverges(t *testing.T) {
	all := []harnessv1.RunStatus{running, parked, done, deletion}
	rapid.Check(t, func(t *rapid.T) {
		var b board
		var steps []runlog.Entry
		change := func() {
			name := rapid.SampledFrom([]string{"n/a", "n/b", "n/c", "n/d", "n/e", "m/f"}).Draw(t, "run")
			steps = append(steps, b.put(name, rapid.SampledFrom(all).Draw(t, "status")))
			if rapid.Bool().Draw(t, "again") { // the log is read again from an older step
				b.apply(rapid.SampledFrom(steps).Draw(t, "old"))
			}
		}
		for range rapid.IntRange(0, 8).Draw(t, "before") {
			change()
		}
		request := &harnessv1.WatchRunsRequest{Namespace: "n", Statuses: rapid.SampledFrom([][]harnessv1.RunStatus{nil, {running}, {parked, done}}).Draw(t, "asked")}
		w := b.watch(request)
		asked := func(s harnessv1.RunStatus) bool {
			return len(request.GetStatuses()) == 0 || slices.Contains(request.GetStatuses(), s)
		}
		known := map[string]Row{}
		caughtUp := 0
		ask := func() bool {
			told := w.Next(&b.x, rapid.IntRange(1, 3).Draw(t, "limit"))
			for _, r := range told.Rows {
				old := known[r.Run.ID]
				if old.Place == r.Place && !old.Deleted && r.Version <= old.Version {
					t.Fatalf("%v after %v", r, old)
				}
				had := old.Sequence != 0 && !old.Deleted && asked(old.Status)
				if (r.Deleted || !asked(r.Status)) && !had {
					t.Fatalf("sent %v, which does not match the request", r)
				}
				known[r.Run.ID] = r
			}
			if told.CaughtUp {
				caughtUp++
			}
			return told.More
		}
		for range rapid.IntRange(0, 20).Draw(t, "events") {
			if rapid.Bool().Draw(t, "ask") {
				ask()
			} else {
				change()
			}
			if len(w.queue) != len(w.waiting) || len(w.queue) > 6 {
				t.Fatalf("%d wait, %d in the queue", len(w.waiting), len(w.queue))
			}
		}
		for ask() {
		}
		if caughtUp != 1 {
			t.Fatalf("caught up %d times", caughtUp)
		}
		for _, row := range b.x.rows.order {
			r := b.x.rows.export(b.x.rows.at(row))
			k := known[r.Run.ID]
			if r.Run.Namespace != "n" {
				continue
			}
			if asked(r.Status) && (k.Place != r.Place || k.Deleted || k.Version != r.Version) {
				t.Fatalf("the index has %v, the watcher has %v", r, k)
			}
		}
		for id, k := range known {
			r, there := b.x.lookUp(k.Run)
			if !k.Deleted && asked(k.Status) && (!there || !asked(r.Status)) {
				t.Fatalf("%s: the watcher has %v, the index has %v, %v", id, k, r, there)
			}
		}
	})
}

func TestRunsWatchRefusals(t *testing.T) {
	for _, r := range []*harnessv1.WatchRunsRequest{
		{Namespace: "a b"}, {Statuses: []harnessv1.RunStatus{0}}, {Statuses: []harnessv1.RunStatus{99}},
	} {
		var known *fault.Error
		if _, err := NewRunsWatch(r, nil); !errors.As(err, &known) || known.Code != codes.InvalidArgument {
			t.Errorf("%v: %v", r, err)
		}
	}
}

// TestIndexVersions: records that watchers of a run received advance the known version
// and never bring back an older state.
func TestIndexVersions(t *testing.T) {
	var b board
	first := b.put("n/a", running)
	at := func(version uint64, to string) runlog.Entry {
		e := first
		rec := &harnessv1.Record{Version: version, Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}}
		if to != "" {
			rec.Body = &harnessv1.Record_Step{Step: &harnessv1.Step{To: to, Snapshot: first.Record.GetStep().GetSnapshot()}}
		}
		e.Record, e.Header, e.Sequence = rec, runlog.HeaderOf(rec), 10*version
		return e
	}
	expect := func(status harnessv1.RunStatus, version uint64) {
		t.Helper()
		runs, _, _ := b.x.List(Namespaces{"n"}, nil, true, Place{}, 9)
		if runs[0].Status != status || runs[0].Version != version {
			t.Fatalf("got %v, want %v at %d", runs[0], status, version)
		}
	}
	for i, c := range []struct {
		e       runlog.Entry
		advance bool
		status  harnessv1.RunStatus
		version uint64
	}{
		{at(3, ""), true, running, 3},
		{at(2, "turn"), true, running, 3},
		{at(5, "turn"), true, running, 5},
		{at(4, runlog.Park), false, running, 5}, // the run has left that park
		{at(6, runlog.Park), true, running, 5},  // a park is applied, not advanced to
		{at(6, runlog.Park), false, parked, 6},
		{at(7, ""), true, parked, 6}, // woken by a step that the index does not have
		{at(7, "repair"), false, running, 7},
	} {
		if c.advance {
			b.x.Advance(c.e)
		} else {
			b.apply(c.e)
		}
		if expect(c.status, c.version); b.x.Lacks(c.e) && !c.advance && c.version == c.e.Header.Version {
			t.Fatalf("step %d is not in the index", i)
		}
	}
	if !Lists(at(1, "repair")) || !Lists(at(1, runlog.End)) || Lists(at(1, "turn")) || Lists(at(1, "")) {
		t.Error("the index is made of other steps")
	}
	if !b.x.Lacks(stepOf(runlog.Run{Namespace: "n", ID: "other"}, 1, noon, "repair", running)) {
		t.Error("an unknown run is not lacking")
	}
}
