package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func stepOf(run runlog.Run, sequence uint64, created time.Time, to string, status harnessv1.RunStatus) runlog.Entry {
	rec := &harnessv1.Record{Version: 1, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: to, Snapshot: &harnessv1.Snapshot{
		Status: status, CreateTime: timestamppb.New(created),
		PendingToolCalls: []*harnessv1.PendingCall{{CallId: "c", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}},
	}}}}
	return runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
}

// TestIndexPages: all pages together list all runs, newest first, in whatever order and
// how often steps were applied.
func TestIndexPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		newest := map[runlog.Run]runlog.Entry{}
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			n := rapid.IntRange(0, 9).Draw(t, "run")
			run := runlog.Run{Namespace: fmt.Sprintf("n%d", n%2), ID: fmt.Sprintf("r%d", n)}
			created := noon.Add(time.Duration(n/3) * time.Second)
			to := rapid.SampledFrom([]string{"repair", "park", "end"}).Draw(t, "to")
			e := stepOf(run, uint64(i+1), created, to, harnessv1.RunStatus_RUN_STATUS_DONE)
			old, known := newest[run]
			newest[run] = e
			x.Apply(e)
			if rapid.Bool().Draw(t, "again") {
				x.Apply(e)
			}
			if known {
				x.Apply(old)
			}
		}
		size := rapid.IntRange(1, 4).Draw(t, "size")
		namespace := rapid.SampledFrom([]string{"", "n0"}).Draw(t, "namespace")
		var want []Place
		awaiting := 0
		for run, e := range newest {
			if namespace == "" || run.Namespace == namespace {
				want = append(want, Place{Created: e.Record.GetStep().GetSnapshot().GetCreateTime().AsTime().UnixNano(), Run: run})
				if e.Record.GetStep().GetTo() == runlog.Park {
					awaiting++
				}
			}
		}
		slices.SortFunc(want, func(a, b Place) int { return b.compare(a) })
		var got []Place
		from, more := Place{}, true
		for more {
			var page []Row
			page, from, more = x.List(Within(namespace, nil), nil, true, from, size)
			if len(page) > size || more && len(page) != size {
				t.Fatalf("a page of %d, want %d", len(page), size)
			}
			for _, r := range page {
				got = append(got, r.Place)
				if r.Sequence != newest[r.Run].Sequence || x.Seen(r.Run) != r.Sequence {
					t.Fatalf("%s: the index has an old step", r.Run)
				}
			}
			if more {
				again, err := parsePlace(from.Token())
				if err != nil || again != from {
					t.Fatalf("%v became %v, %v", from, again, err)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		var waiting []Place
		for from, more = (Place{}), true; more; {
			var page []Row
			page, more = x.Awaiting(Within(namespace, nil), from, size)
			if len(page) > size || more && len(page) != size {
				t.Fatalf("a page of %d that await something, want %d", len(page), size)
			}
			for _, r := range page {
				waiting = append(waiting, r.Place)
				from = r.Place
			}
		}
		if len(waiting) != awaiting || !slices.IsSortedFunc(waiting, Place.compare) {
			t.Fatalf("%v await something, want %d, oldest first", waiting, awaiting)
		}
	})
}

func TestIndexIncarnationsAndStatuses(t *testing.T) {
	var x Index
	a, b := runlog.Run{Namespace: "n", ID: "a"}, runlog.Run{Namespace: "n", ID: "b"}
	x.Saw(a, 5) // unknown: nothing to note
	x.Apply(runlog.Entry{Run: a, Sequence: 1})
	x.Apply(stepOf(a, 1, noon, "end", harnessv1.RunStatus_RUN_STATUS_FAILED))
	x.Apply(stepOf(b, 2, noon.Add(time.Second), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING))
	x.Apply(stepOf(a, 3, noon.Add(time.Minute), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING))
	runs, _, _ := x.List(nil, nil, true, Place{}, 10)
	if len(runs) != 2 || runs[0].Run.ID != "a" {
		t.Fatalf("got %v", runs)
	}
	x.Apply(stepOf(b, 4, noon.Add(time.Second), "end", harnessv1.RunStatus_RUN_STATUS_FAILED))
	runs, _, more := x.List(Namespaces{"n"}, []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_FAILED}, true, Place{}, 1)
	if len(runs) != 1 || runs[0].Run.ID != "b" || more {
		t.Fatalf("got %v, %v", runs, more)
	}
	x.Saw(b, 9)
	x.Saw(b, 7)
	if x.Seen(b) != 9 || x.Seen(runlog.Run{}) != 0 {
		t.Fatalf("seen %d", x.Seen(b))
	}
}

// expiring returns the step that closes a deleted run.
func expiring(e runlog.Entry, sequence uint64) runlog.Entry {
	rec := proto.CloneOf(e.Record)
	rec.Version++
	rec.GetStep().To, rec.GetStep().Snapshot.ExpireTime = runlog.End, timestamppb.New(noon)
	return runlog.Entry{Run: e.Run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
}

func (x *Index) ids() (ids []string) {
	rows, _, _ := x.List(nil, nil, true, Place{}, 99)
	for _, r := range rows {
		ids = append(ids, r.Run.ID)
	}
	return ids
}

// TestIndexForgetsDeletedRuns: older steps do not bring a deleted run back in whatever
// order they arrive, and a later run of its name is a new one.
func TestIndexForgetsDeletedRuns(t *testing.T) {
	var x Index
	run := runlog.Run{Namespace: "n", ID: "a"}
	started := stepOf(run, 1, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
	ended := stepOf(run, 3, noon, "end", harnessv1.RunStatus_RUN_STATUS_CANCELLED)
	deletion := expiring(ended, 5)
	x.Apply(started)
	x.Apply(ended)
	x.Saw(run, 4)
	c, changed := x.Apply(deletion)
	if !changed || c.Before.Sequence != 3 || !c.After.Deleted || c.After.Version != 2 || c.After.Status != harnessv1.RunStatus_RUN_STATUS_CANCELLED {
		t.Fatalf("the deletion is %v: %+v", changed, c)
	}
	for _, old := range []runlog.Entry{deletion, started, ended} {
		if c, changed := x.Apply(old); changed || x.Lacks(old) {
			t.Fatalf("sequence %d came late and changed %+v", old.Sequence, c)
		}
	}
	if x.Seen(run) != 0 || len(x.ids()) != 0 {
		t.Fatalf("seen %d of a deleted run; listed %v", x.Seen(run), x.ids())
	}
	again := stepOf(run, 6, noon.Add(time.Hour), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
	if !x.Lacks(again) {
		t.Fatal("the new run is taken for the old one")
	}
	c, changed = x.Apply(again)
	if !changed || c.Before != (Row{}) || c.After.Version != 1 || x.Seen(run) != 6 {
		t.Fatalf("the new run is %v: %+v", changed, c)
	}
	if _, changed = x.Apply(ended); changed {
		t.Fatal("the old run came back over the new one")
	}

	var fresh Index // one that sees the deletion only
	if _, changed := fresh.Apply(deletion); changed || fresh.Lacks(started) || len(fresh.ids()) != 0 {
		t.Fatal("a run that was deleted before is listed")
	}
}

// An index remembers a bounded number of deletions.
func TestIndexRemembersTheLastDeletions(t *testing.T) {
	var x Index
	for i := range remembered + 10 {
		run := runlog.Run{Namespace: "n", ID: fmt.Sprint("r", i)}
		e := stepOf(run, uint64(2*i+1), noon, "end", harnessv1.RunStatus_RUN_STATUS_DONE)
		x.Apply(e)
		x.Apply(expiring(e, uint64(2*i+2)))
		x.Apply(expiring(e, uint64(2*i+2)))
	}
	if len(x.deleted) != remembered || len(x.deletions) != remembered || len(x.rows.order)+len(x.rows.hashed) != 0 {
		t.Fatalf("%d and %d deletions, %d rows", len(x.deleted), len(x.deletions), len(x.rows.order))
	}
	if _, kept := x.deleted[runlog.Run{Namespace: "n", ID: "r9"}]; kept {
		t.Fatal("an old deletion is remembered")
	}
	if _, kept := x.deleted[runlog.Run{Namespace: "n", ID: "r10"}]; !kept {
		t.Fatal("a new deletion is forgotten")
	}
}

// TestIndexDropsMissingRuns: runs whose step is gone, and runs that are missing when the
// log is read again, leave the list; those that have continued stay.
func TestIndexDropsMissingRuns(t *testing.T) {
	var x Index
	at := func(id string, sequence uint64) runlog.Entry {
		return stepOf(runlog.Run{Namespace: "n", ID: id}, sequence, noon.Add(time.Duration(id[0])*time.Second), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
	}
	for i, id := range []string{"a", "b", "c", "d"} {
		x.Apply(at(id, uint64(i+1)))
	}
	if _, changed := x.Gone(runlog.Run{Namespace: "n", ID: "b"}, 1); changed {
		t.Fatal("a run that has moved on is gone")
	}
	if c, changed := x.Gone(runlog.Run{Namespace: "n", ID: "b"}, 2); !changed || !c.After.Deleted || c.Before.Run.ID != "b" {
		t.Fatalf("gone is %v: %+v", changed, c)
	}
	if _, changed := x.Gone(runlog.Run{Namespace: "n", ID: "b"}, 2); changed {
		t.Fatal("gone twice")
	}
	x.Relist()
	x.Apply(at("a", 1)) // unchanged
	x.Apply(at("d", 9)) // newer
	x.Apply(at("e", 10))
	changes := x.Listed()
	if len(changes) != 1 || changes[0].Before.Run.ID != "c" || !changes[0].After.Deleted {
		t.Fatalf("listed again: %+v", changes)
	}
	if got := x.ids(); !slices.Equal(got, []string{"e", "d", "a"}) {
		t.Fatalf("left are %v", got)
	}
	x.Relist()
	x.Apply(at("a", 1))
	if n := len(x.Listed()); n != 2 {
		t.Fatalf("%d runs are gone at the second time, want 2", n)
	}
}

// TestIndexOfChangingRuns: whatever the names of the runs and the order of changes, the
// index has the existing runs, each as in its newest step.
func TestIndexOfChangingRuns(t *testing.T) {
	names := []runlog.Run{
		{Namespace: "n", ID: "8yn0iYCKYHlIj4-BwPqk"}, {Namespace: "n", ID: "GReLUrM4wMqfg9yzV3KQ"}, // have the same hash
		{Namespace: "m", ID: "8yn0iYCKYHlIj4-BwPqk"}, {Namespace: "n", ID: "a"},
		{Namespace: "n", ID: strings.Repeat("x", 28)}, {Namespace: "n", ID: strings.Repeat("x", 29)}, {Namespace: "m", ID: strings.Repeat("x", 64)},
	}
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		there := map[runlog.Run]Row{}
		seen := map[runlog.Run]uint64{}
		sequence := uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			run := rapid.SampledFrom(names).Draw(t, "run")
			row, known := there[run]
			sequence++
			e := stepOf(run, sequence, time.Unix(0, row.Created), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
			if !known {
				e = stepOf(run, sequence, noon.Add(time.Duration(sequence)), "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
			}
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0, 1:
				x.Apply(e)
				there[run] = Row{Place: Place{Created: e.Record.GetStep().GetSnapshot().GetCreateTime().AsTime().UnixNano(), Run: run}, Status: e.Record.GetStep().GetSnapshot().GetStatus(), Sequence: sequence, Version: 1}
				seen[run] = sequence
			case 2:
				x.Apply(expiring(e, sequence))
				delete(there, run)
			case 3:
				x.Gone(run, row.Sequence)
				delete(there, run)
			case 4:
				if x.Saw(run, sequence); known {
					seen[run] = sequence
				}
			}
			listed, _, _ := x.List(nil, nil, true, Place{}, 99)
			if len(listed) != len(there) || !slices.IsSortedFunc(listed, func(a, b Row) int { return b.compare(a.Place) }) {
				t.Fatalf("listed are %v, there are %v", listed, there)
			}
			for _, run := range names {
				want, known := there[run]
				if got, found := x.lookUp(run); found != known || got != want {
					t.Fatalf("%v is %v, want %v", run, got, want)
				}
				if known && x.Seen(run) != seen[run] || !known && x.Seen(run) != 0 {
					t.Fatalf("%v: seen %d, want %d", run, x.Seen(run), seen[run])
				}
			}
		}
		long := 0
		for run := range there {
			if len(run.ID) > 28 {
				long++
			}
		}
		if len(x.rows.long) != long {
			t.Fatalf("%d long ids are kept, of %d", len(x.rows.long), long)
		}
		if n := len(x.rows.free) + len(there); n != len(x.rows.slabs)*slab || len(x.rows.hashed)+len(x.rows.collided) != len(there) {
			t.Fatalf("%d rows are in use or free of %d", n, len(x.rows.slabs)*slab)
		}
	})
}

// Two runs whose names have the same hash are two runs.
func TestIndexWithHashCollisions(t *testing.T) {
	a, b := runlog.Run{Namespace: "n", ID: "8yn0iYCKYHlIj4-BwPqk"}, runlog.Run{Namespace: "n", ID: "GReLUrM4wMqfg9yzV3KQ"}
	if hash(a) != hash(b) {
		t.Fatal("the names do not collide")
	}
	for _, first := range []runlog.Run{a, b} {
		var x Index
		ea := stepOf(a, 1, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
		eb := stepOf(b, 2, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
		x.Apply(ea)
		x.Apply(eb)
		if x.Seen(a) != 1 || x.Seen(b) != 2 || len(x.ids()) != 2 {
			t.Fatalf("seen %d and %d; listed %v", x.Seen(a), x.Seen(b), x.ids())
		}
		second, left := b, uint64(2)
		if first == b {
			second, left = a, 1
		}
		x.Apply(expiring(stepOf(first, 0, noon, "end", harnessv1.RunStatus_RUN_STATUS_DONE), 3))
		if x.Seen(first) != 0 || x.Seen(second) != left || len(x.ids()) != 1 {
			t.Fatalf("without %v: seen %d and %d; listed %v", first, x.Seen(first), x.Seen(second), x.ids())
		}
		x.Apply(stepOf(first, 4, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING))
		if x.Seen(first) != 4 || x.Seen(second) != left || len(x.ids()) != 2 {
			t.Fatalf("with %v again: seen %d and %d; listed %v", first, x.Seen(first), x.Seen(second), x.ids())
		}
	}
}

// TestIndexSeesMessagesAfterTheStep: a message after the newest step is known until a
// step is newer.
func TestIndexSeesMessagesAfterTheStep(t *testing.T) {
	var x Index
	run := runlog.Run{Namespace: "n", ID: "a"}
	x.Apply(stepOf(run, 1, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING))
	for _, c := range []struct {
		saw, step, seen uint64
		ahead           int
	}{{saw: 5, seen: 5, ahead: 1}, {saw: 3, seen: 5, ahead: 1}, {step: 4, seen: 5, ahead: 1}, {step: 6, seen: 6}, {saw: 6, seen: 6}, {saw: 7, seen: 7, ahead: 1}} {
		if c.saw != 0 {
			x.Saw(run, c.saw)
		} else {
			x.Apply(stepOf(run, c.step, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING))
		}
		if x.Seen(run) != c.seen || len(x.ahead) != c.ahead {
			t.Fatalf("%+v: seen %d, %d ahead", c, x.Seen(run), len(x.ahead))
		}
	}
	x.Gone(run, 6)
	if len(x.ahead) != 0 {
		t.Fatal("the index still knows a run that is gone")
	}
}

// TestIndexAfterLoss checks that a list that is read again after the bus has lost its newest
// records shows what is stored: older steps, and no lost run.
func TestIndexAfterLoss(t *testing.T) {
	var x Index
	back, gone, deleted := runlog.Run{Namespace: "n", ID: "back"}, runlog.Run{Namespace: "n", ID: "gone"}, runlog.Run{Namespace: "n", ID: "deleted"}
	older := stepOf(back, 5, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING)
	stays := stepOf(deleted, 6, noon, "end", harnessv1.RunStatus_RUN_STATUS_DONE)
	closed := stepOf(deleted, 21, noon, "end", harnessv1.RunStatus_RUN_STATUS_DONE)
	closed.Record.GetStep().Snapshot.ExpireTime = timestamppb.New(noon)
	for _, e := range []runlog.Entry{older, stays, stepOf(back, 20, noon, "end", harnessv1.RunStatus_RUN_STATUS_DONE), stepOf(gone, 22, noon, "repair", harnessv1.RunStatus_RUN_STATUS_RUNNING), closed} {
		x.Apply(e)
	}
	x.Saw(back, 23)
	x.Lost()
	if seen := x.Seen(back); seen != 0 {
		t.Errorf("a view must contain %d", seen)
	}
	x.Relist()
	x.Apply(older)
	x.Apply(stays)
	x.Listed()
	rows, _, _ := x.List(Within("n", nil), nil, true, Place{}, 10)
	if len(rows) != 2 {
		t.Fatalf("%d runs are listed", len(rows))
	}
	if row, ok := x.lookUp(back); !ok || row.Sequence != 5 || row.Status != harnessv1.RunStatus_RUN_STATUS_RUNNING {
		t.Errorf("the list has %+v, %v", row, ok)
	}
	if _, ok := x.lookUp(gone); ok {
		t.Error("the list has a run that is lost")
	}
}

// TestUsageOfTheHoldersOfTokens: runs at work and stored bytes by caller, whatever happens to the runs.
func TestUsageOfTheHoldersOfTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var x Index
		newest := map[runlog.Run]runlog.Entry{}
		names := []string{"a", "b", "local", "anonymous", ""}
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			run := runlog.Run{Namespace: "n", ID: fmt.Sprintf("r%d", rapid.IntRange(0, 9).Draw(t, "run"))}
			status := rapid.SampledFrom([]harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.RunStatus_RUN_STATUS_DONE}).Draw(t, "status")
			e := stepOf(run, uint64(i+1), noon.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "created"))), rapid.SampledFrom([]string{"repair", "end"}).Draw(t, "to"), status)
			s := e.Record.GetStep().GetSnapshot()
			s.StartedBy, s.ConversationBytes = rapid.SampledFrom(names).Draw(t, "caller"), uint64(rapid.IntRange(0, 9).Draw(t, "bytes"))
			s.AttachmentBytes = uint64(rapid.IntRange(0, 9).Draw(t, "attachments"))
			if rapid.IntRange(0, 9).Draw(t, "gone") == 0 {
				x.Gone(run, newest[run].Sequence)
				delete(newest, run)
				continue
			}
			x.Apply(e)
			newest[run] = e
		}
		want := map[string]Usage{}
		for _, e := range newest {
			s := e.Record.GetStep().GetSnapshot()
			u := want[s.GetStartedBy()]
			u.Bytes += s.GetConversationBytes() + s.GetAttachmentBytes()
			if RunOf(e, 1).GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
				u.AtWork++
			}
			want[s.GetStartedBy()] = u
		}
		for _, name := range names {
			expected := want[name]
			if name != "a" && name != "b" {
				expected = Usage{} // a person at the machine takes nothing
			}
			if got := x.Usage(name); got != expected {
				t.Fatalf("%q: got %+v, want %+v", name, got, expected)
			}
		}
		if len(x.usages.names) > 2 {
			t.Fatalf("%d callers", len(x.usages.names))
		}
	})
}
