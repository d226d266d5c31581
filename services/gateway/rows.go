package gateway

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// row is one run, in 48 bytes.
type row struct {
	id      string
	created int64
	// sequence is that of the newest step.
	sequence uint64
	// version is the newest that is known; it is not below that of the step.
	version   uint64
	namespace uint32
	status    uint8
	// awaits says that the run is parked for answers.
	awaits bool
	// confirmed says that a step of the run came since the last Relist.
	confirmed bool
}

func (x *Index) row(run runlog.Run) *row {
	if r := x.rows[hash(run)]; r != nil && x.name(r) == run {
		return r
	}
	return x.collided[run]
}

func hash(run runlog.Run) uint64 { return runlog.HashID(run.ID + "/" + run.Namespace) }

// add makes a row. Its names are copies: those of an entry would keep the subject
// alive of which they are parts.
func (x *Index) add(p Place) *row {
	if x.rows == nil {
		x.rows = map[uint64]*row{}
	}
	r := &row{id: strings.Clone(p.Run.ID), created: p.Created, namespace: x.number(p.Run.Namespace), confirmed: true}
	if h := hash(p.Run); x.rows[h] == nil {
		x.rows[h] = r
	} else {
		if x.collided == nil {
			x.collided = map[runlog.Run]*row{}
		}
		x.collided[x.name(r)] = r
	}
	i, _ := x.find(p)
	x.order = slices.Insert(x.order, i, r)
	return r
}

func (x *Index) remove(r *row) {
	if h := hash(x.name(r)); x.rows[h] == r {
		delete(x.rows, h)
	} else {
		delete(x.collided, x.name(r))
	}
	delete(x.ahead, r)
	i, _ := x.find(x.place(r))
	x.order = slices.Delete(x.order, i, i+1)
}

// number is the number of a namespace.
func (x *Index) number(namespace string) uint32 {
	n, known := x.numbers[namespace]
	if !known {
		if x.numbers == nil {
			x.numbers = map[string]uint32{}
		}
		namespace = strings.Clone(namespace)
		n = uint32(len(x.namespaces)) //nolint:gosec // fewer than runs
		x.namespaces, x.numbers[namespace] = append(x.namespaces, namespace), n
	}
	return n
}

// before is the number of rows before a place; of all for the zero Place.
func (x *Index) before(p Place) int {
	if p == (Place{}) {
		return len(x.order)
	}
	i, _ := x.find(p)
	return i
}

func (x *Index) find(p Place) (int, bool) {
	return slices.BinarySearchFunc(x.order, p, func(r *row, p Place) int { return x.place(r).compare(p) })
}

func (x *Index) name(r *row) runlog.Run {
	return runlog.Run{Namespace: x.namespaces[r.namespace], ID: r.id}
}

func (x *Index) place(r *row) Place { return Place{Created: r.created, Run: x.name(r)} }

func (x *Index) stands(r *row) Row {
	return Row{Place: x.place(r), Status: harnessv1.RunStatus(r.status), Sequence: r.sequence, Version: r.version}
}
