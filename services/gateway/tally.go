package gateway

import (
	"cmp"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Count is how many runs of an index stand so.
type Count struct {
	Status harnessv1.RunStatus
	// Reason is the kind of reason for which they rest, empty for those that do not.
	// An executor of one's own can make up kinds: beyond 125 they are other.
	Reason string
	Runs   int
}

// tally counts runs by how they stand. It is kept with each change, so that to ask
// for it costs the same with a million runs.
type tally struct {
	// reasons by number; the first is none, the second all that have no number.
	reasons []string
	counts  map[stand]int
}

type stand struct{ status, reason uint8 }

const otherReason = 1

// number is that of a reason.
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
	return uint8(i) //nolint:gosec // below awaiting
}

// count notes that by runs more stand as r does.
func (t *tally) count(r *row, by int) {
	if t.counts == nil {
		t.counts = map[stand]int{}
	}
	t.counts[stand{r.status, r.reason()}] += by
}

// Counts are the counts of the runs by how they stand, those that there were
// once included, with 0.
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
