package gateway

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

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
	// version is the newest that is known; it is not below run's.
	version uint64
	// awaits says that the run is parked for answers.
	awaits bool
}

// Place is a run's place in the order of all runs: by creation, then by name.
// The zero Place is before the first of a listing.
type Place struct {
	Created int64
	Run     runlog.Run
}

// Change is what a step changed in the index.
type Change struct {
	Run runlog.Run
	// Before is how the run stood, nil for a new one, and Was its place.
	Before *harnessv1.Run
	Was    Place
	// After is how it stands, Is its place.
	After *harnessv1.Run
	Is    Place
}

// Apply folds a step. Steps that are older than what the index has, and records
// that cannot be read, change nothing: changed is then false.
func (x *Index) Apply(e runlog.Entry) (c Change, changed bool) {
	step := e.Record.GetStep()
	if step == nil {
		return Change{}, false
	}
	r := x.rows[e.Run]
	if r != nil && e.Sequence <= r.sequence {
		return Change{}, false
	}
	run := RunOf(e, e.Header.Version)
	place := Place{Created: run.GetCreateTime().AsTime().UnixNano(), Run: e.Run}
	if r != nil && r.place == place && runlog.IsRest(step.GetTo()) && e.Header.Version < r.version {
		return Change{}, false // it is known to have left this rest
	}
	c = Change{Run: e.Run, After: run, Is: place}
	if r != nil {
		c.Before, c.Was = r.run, r.place
	}
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
		r.place, r.version = place, 0
		x.insert(r)
	}
	r.run, r.sequence, r.seen = run, e.Sequence, max(r.seen, e.Sequence)
	r.version = max(r.version, e.Header.Version)
	r.awaits = step.GetTo() == runlog.Park && len(Awaited(step.GetSnapshot())) > 0
	return c, true
}

// Lists says whether a record is one of those that the index is made of when the
// runs are followed: a step to the first executor of a cycle or to a place of rest.
func Lists(e runlog.Entry) bool {
	to := e.Record.GetStep().GetTo()
	return to == beginning || runlog.IsRest(to)
}

// beginning is the executor that every cycle begins with.
const beginning = "repair"

// Lacks says whether the index has no step of a run that is as new as e.
func (x *Index) Lacks(e runlog.Entry) bool {
	r := x.rows[e.Run]
	return r == nil || e.Sequence > r.sequence
}

// News says whether a record shows a run at a newer version than the index does,
// without changing how it stands: the run works, and the record is another one
// of its work.
func (x *Index) News(e runlog.Entry) bool {
	r := x.rows[e.Run]
	return r != nil && e.Record != nil && !runlog.IsRest(e.Record.GetStep().GetTo()) &&
		r.run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING &&
		e.Sequence > r.sequence && e.Header.Version > r.version
}

// Advance notes the version of a record that is News.
func (x *Index) Advance(e runlog.Entry) {
	if x.News(e) {
		x.rows[e.Run].version = e.Header.Version
	}
}

// stands is how the run of a row stands, at its newest known version.
func (r *row) stands() *harnessv1.Run {
	if r.run.GetVersion() == r.version {
		return r.run
	}
	run := proto.CloneOf(r.run)
	run.Version = r.version
	return run
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
		runs = append(runs, r.stands())
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
