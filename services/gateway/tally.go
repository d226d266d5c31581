package gateway

import (
	"cmp"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Count is the number of runs with a status and a reason.
type Count struct {
	Status harnessv1.RunStatus
	// Reason is the reason kind of parked and ended runs, empty for others. Custom
	// executors can define kinds: beyond 125 they count as other.
	Reason string
	Runs   int
}

// tally counts runs by status and reason. It is updated with each change, so that
// reading it costs the same with a million runs.
type tally struct {
	// reasons by number; the first is none, the second is for all without a number.
	reasons []string
	counts  map[group]int
}

// group is the runs that are counted together.
type group struct{ status, reason uint8 }

const otherReason = 1

func (t *tally) number(reason string) uint8 {
	if t.reasons == nil {
		t.reasons = []string{"", "other"}
	}
	i := slices.Index(t.reasons, reason)
	switch {
	case i >= 0:
	case len(t.reasons) == awaiting:
		i = otherReason
	default:
		i, t.reasons = len(t.reasons), append(t.reasons, strings.Clone(reason))
	}
	return uint8(i)
}

// count adds by to the count of r's status and reason.
func (t *tally) count(r *row, by int) {
	if t.counts == nil {
		t.counts = map[group]int{}
	}
	t.counts[group{r.status &^ child, r.reason()}] += by
}

// Counts returns the counts of runs by status and reason, with 0 for those that existed
// before.
func (x *Index) Counts() []Count {
	var all []Count
	for s, n := range x.tally.counts {
		reason := ""
		if s.reason > 0 {
			reason = x.tally.reasons[s.reason]
		}
		all = append(all, Count{Status: harnessv1.RunStatus(s.status), Reason: reason, Runs: n})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Status, b.Status), strings.Compare(a.Reason, b.Reason))
	})
	return all
}
