package gateway

import (
	"fmt"
	"slices"
	"testing"
	"time"

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

// All pages together are all runs, newest first, whatever was folded how often
// and in which order.
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
			var page []*harnessv1.Run
			page, from, more = x.List(namespace, nil, from, size)
			if len(page) > size || more && len(page) != size {
				t.Fatalf("a page of %d, want %d", len(page), size)
			}
			for _, r := range page {
				run := runlog.Run{Namespace: r.GetNamespace(), ID: r.GetRunId()}
				got = append(got, Place{Created: r.GetCreateTime().AsTime().UnixNano(), Run: run})
				if x.Seen(run) != newest[run].Sequence {
					t.Fatalf("%s: an old step stands", run)
				}
			}
			if more {
				again, err := ParsePlace(from.Token())
				if err != nil || again != from {
					t.Fatalf("%v became %v, %v", from, again, err)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if n := len(x.Awaiting(namespace)); n != awaiting {
			t.Fatalf("%d runs await something, want %d", n, awaiting)
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
	runs, _, _ := x.List("", nil, Place{}, 10)
	if len(runs) != 2 || runs[0].GetRunId() != "a" {
		t.Fatalf("got %v", runs)
	}
	x.Apply(stepOf(b, 4, noon.Add(time.Second), "end", harnessv1.RunStatus_RUN_STATUS_FAILED))
	runs, _, more := x.List("n", []harnessv1.RunStatus{harnessv1.RunStatus_RUN_STATUS_FAILED}, Place{}, 1)
	if len(runs) != 1 || runs[0].GetRunId() != "b" || more {
		t.Fatalf("got %v, %v", runs, more)
	}
	x.Saw(b, 9)
	x.Saw(b, 7)
	if x.Seen(b) != 9 || x.Seen(runlog.Run{}) != 0 {
		t.Fatalf("seen %d", x.Seen(b))
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("")
	f.Add(Place{Created: -1, Run: runlog.Run{Namespace: "n", ID: "r"}}.Token())
	f.Add("MS9uL3IvcQ")
	f.Fuzz(func(t *testing.T, token string) {
		p, err := ParsePlace(token)
		if err != nil || token == "" {
			return
		}
		if again, err := ParsePlace(p.Token()); err != nil || again != p {
			t.Fatalf("%q: %v became %v, %v", token, p, again, err)
		}
	})
}
