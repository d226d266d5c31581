package gateway

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func TestCheckListPending(t *testing.T) {
	place := Place{Created: 7, Run: runlog.Run{Namespace: "n", ID: "r"}}
	for name, c := range map[string]struct {
		request   *harnessv1.ListPendingRequest
		namespace string
		size      int
		from      Place
	}{
		"nothing said":   {&harnessv1.ListPendingRequest{}, "default", defaultPage, Place{}},
		"all namespaces": {&harnessv1.ListPendingRequest{Namespace: "*", PageSize: 1}, "", 1, Place{}},
		"largest page":   {&harnessv1.ListPendingRequest{Namespace: "n", PageSize: maxPage}, "n", maxPage, Place{}},
		"a later page":   {&harnessv1.ListPendingRequest{PageToken: place.Token()}, "default", defaultPage, place},
	} {
		namespace, size, from, err := CheckListPending(c.request)
		if err != nil || namespace != c.namespace || size != c.size || from != c.from {
			t.Errorf("%s: got %q, %d, %v, %v", name, namespace, size, from, err)
		}
	}
	for field, r := range map[string]*harnessv1.ListPendingRequest{
		"namespace":  {Namespace: "a b"},
		"page_size":  {PageSize: maxPage + 1},
		"page_token": {PageToken: "x"},
	} {
		var known *fault.Error
		if _, _, _, err := CheckListPending(r); !errors.As(err, &known) || known.Code != codes.InvalidArgument || !slices.Contains(known.Metadata, field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// aRun returns the i-th run: an id of 26 bytes, parked for an approval.
func aRun(i int) runlog.Entry {
	run := runlog.Run{Namespace: "default", ID: fmt.Sprintf("r-%024d", i)}
	return stepOf(run, uint64(i+1), noon.Add(time.Duration(i)*time.Millisecond), runlog.Park, harnessv1.RunStatus_RUN_STATUS_PARKED)
}

// live returns the live heap in bytes.
func live() float64 {
	runtime.GC()
	runtime.GC() // the objects that the first one has finalised
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkIndex reports the live heap of a run in the index, in bytes, and as a floor
// that of the same facts, a sequence and an id for each run, in a slice of structs in
// the order of creation, without a lookup by name.
func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{1000, 10_000, 50_000} {
		b.Run(fmt.Sprintf("runs=%d", n), func(b *testing.B) {
			var index, floor float64
			for b.Loop() {
				before := live()
				x := &Index{}
				for i := range n {
					x.Apply(aRun(i))
				}
				index = live() - before
				runtime.KeepAlive(x)

				type fact struct {
					created, sequence, version uint64
					id                         string
				}
				before = live()
				facts := make([]fact, 0, n)
				for i := range n {
					e := aRun(i)
					facts = append(facts, fact{created: uint64(i), sequence: e.Sequence, version: e.Header.Version, id: e.Run.ID})
				}
				floor = live() - before
				runtime.KeepAlive(facts)
			}
			b.ReportMetric(index/float64(n), "bytes/run")
			b.ReportMetric(floor/float64(n), "floor-bytes/run")
			b.ReportMetric(index/floor, "ratio")
		})
	}
}

func FuzzParsePlace(f *testing.F) {
	f.Add("")
	f.Add(Place{Created: -1, Run: runlog.Run{Namespace: "n", ID: "r"}}.Token())
	f.Add("MS9uL3IvcQ")
	f.Fuzz(func(t *testing.T, token string) {
		p, err := parsePlace(token)
		if err != nil || token == "" {
			return
		}
		if again, err := parsePlace(p.Token()); err != nil || again != p {
			t.Fatalf("%q: %v became %v, %v", token, p, again, err)
		}
	})
}

// TestListIsLimitedToTheCaller: the requested runs among those that the caller may see.
func TestListIsLimitedToTheCaller(t *testing.T) {
	for _, c := range []struct {
		asked   string
		allowed []string
		sees    string
	}{
		{"", nil, "a b c"}, {"", []string{"a", "c"}, "a c"}, {"", []string{}, ""}, {"b", nil, "b"}, {"b", []string{"b", "c"}, "b"},
	} {
		var sees []string
		for _, namespace := range []string{"a", "b", "c"} {
			if Within(c.asked, c.allowed).has(namespace) {
				sees = append(sees, namespace)
			}
		}
		if got := strings.Join(sees, " "); got != c.sees {
			t.Errorf("%q of %v shows %q", c.asked, c.allowed, got)
		}
	}
}
