package gateway

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Index is the list of all runs as their newest steps show them. It can be made
// from the logs at any time; folding a step twice changes nothing. It is not
// safe for concurrent use. The runs that it returns must not be changed.
//
// It holds about a kilobyte for each run.
type Index struct {
	rows map[runlog.Run]*row
	// order has the rows by place, oldest first.
	order []*row
}

type row struct {
	place Place
	run   *harnessv1.Run
	// sequence is that of the newest step, seen of the newest message of any kind.
	sequence, seen uint64
	// awaits says that the run is parked for answers.
	awaits bool
}

// Place is a run's place in the order of all runs: by creation, then by name.
// The zero Place is before the first of a listing.
type Place struct {
	Created int64
	Run     runlog.Run
}

// Apply folds a step. Steps that are older than what the index has, and records
// that cannot be read, change nothing.
func (x *Index) Apply(e runlog.Entry) {
	if e.Record.GetStep() == nil {
		return
	}
	r := x.rows[e.Run]
	if r != nil && e.Sequence <= r.sequence {
		return
	}
	run := RunOf(e, e.Header.Version)
	place := Place{Created: run.GetCreateTime().AsTime().UnixNano(), Run: e.Run}
	switch {
	case r == nil:
		r = &row{place: place}
		if x.rows == nil {
			x.rows = map[runlog.Run]*row{}
		}
		x.rows[e.Run] = r
		x.insert(r)
	case r.place != place: // another incarnation of the name
		i, _ := x.find(r.place)
		x.order = slices.Delete(x.order, i, i+1)
		r.place = place
		x.insert(r)
	}
	r.run, r.sequence, r.seen = run, e.Sequence, max(r.seen, e.Sequence)
	r.awaits = e.Record.GetStep().GetTo() == runlog.Park && len(Awaited(e.Record.GetStep().GetSnapshot())) > 0
}

// Saw notes that a message of a run is stored.
func (x *Index) Saw(run runlog.Run, sequence uint64) {
	if r := x.rows[run]; r != nil {
		r.seen = max(r.seen, sequence)
	}
}

// Seen is the sequence of the newest message that is known of a run, 0 for none.
func (x *Index) Seen(run runlog.Run) uint64 {
	if r := x.rows[run]; r != nil {
		return r.seen
	}
	return 0
}

// List returns at most size runs behind from, newest first, and where the next
// page begins; more is false after the last. An empty namespace means all, no
// statuses mean all.
func (x *Index) List(namespace string, statuses []harnessv1.RunStatus, from Place, size int) (runs []*harnessv1.Run, next Place, more bool) {
	end := len(x.order)
	if from != (Place{}) {
		end, _ = x.find(from)
	}
	for i := end - 1; i >= 0; i-- {
		r := x.order[i]
		if namespace != "" && r.place.Run.Namespace != namespace ||
			len(statuses) > 0 && !slices.Contains(statuses, r.run.GetStatus()) {
			continue
		}
		if len(runs) == size {
			return runs, next, true
		}
		runs = append(runs, r.run)
		next = r.place
	}
	return runs, Place{}, false
}

// Resting names a step at which a run rests.
type Resting struct {
	Run      runlog.Run
	Sequence uint64
}

// Awaiting returns the runs that are parked for answers, oldest first. An empty
// namespace means all.
func (x *Index) Awaiting(namespace string) []Resting {
	var runs []Resting
	for _, r := range x.order {
		if r.awaits && (namespace == "" || r.place.Run.Namespace == namespace) {
			runs = append(runs, Resting{Run: r.place.Run, Sequence: r.sequence})
		}
	}
	return runs
}

func (x *Index) insert(r *row) {
	i, _ := x.find(r.place)
	x.order = slices.Insert(x.order, i, r)
}

func (x *Index) find(p Place) (int, bool) {
	return slices.BinarySearchFunc(x.order, p, func(r *row, p Place) int { return r.place.compare(p) })
}

func (p Place) compare(q Place) int {
	return cmp.Or(
		cmp.Compare(p.Created, q.Created),
		strings.Compare(p.Run.Namespace, q.Run.Namespace),
		strings.Compare(p.Run.ID, q.Run.ID),
	)
}

// Token is a place as a page token.
func (p Place) Token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(p.Created, 10) + "/" + p.Run.String()))
}

// ParsePlace reads a page token; the empty one is the zero Place.
func ParsePlace(token string) (Place, error) {
	if token == "" {
		return Place{}, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.Split(string(raw), "/")
	if err != nil || len(parts) != 3 {
		return Place{}, badToken()
	}
	created, err := strconv.ParseInt(parts[0], 10, 64)
	p := Place{Created: created, Run: runlog.Run{Namespace: parts[1], ID: parts[2]}}
	if err != nil || !p.Run.Valid() {
		return Place{}, badToken()
	}
	return p, nil
}

func badToken() error {
	return fault.Invalid("page_token", "is not a token that a page ended with")
}
