package gateway

import (
	"cmp"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// row is one run, in 64 bytes. It has no pointers, so that the garbage collector does
// not scan the rows of idle runs.
type row struct {
	created int64
	// sequence is the sequence of the newest step.
	sequence uint64
	// version is the newest known version, at least that of the step.
	version   uint64
	number    uint32
	namespace uint32
	// status is the status, with child.
	status uint8
	// rest is why the run is parked or ended: an index into Index.reasons, with
	// awaiting.
	rest uint8
	// confirmed reports whether a step of the run arrived since the last Relist.
	confirmed bool
	// length is the length of the id; a longer id than fits is in rows.long.
	length uint8
	id     [28]byte
}

// awaiting in row.rest: the run is parked for answers.
const awaiting = 1 << 7

// child in row.status: the call of a sub-agent started the run.
const child = 1 << 7

// set sets the status of a row, and whether it is a child.
func (r *row) set(status harnessv1.RunStatus, isChild bool) {
	r.status = uint8(status) //nolint:gosec // a handful of values
	if isChild {
		r.status |= child
	}
}

func (r *row) runStatus() harnessv1.RunStatus { return harnessv1.RunStatus(r.status &^ child) }
func (r *row) isChild() bool                  { return r.status&child != 0 }

func (r *row) awaits() bool  { return r.rest&awaiting != 0 }
func (r *row) reason() uint8 { return r.rest &^ awaiting }

// slab is how many rows are allocated at a time.
const slab = 128

// rows are the runs of an index.
type rows struct {
	slabs [][]row
	// free has the numbers of unused rows.
	free []uint32
	// hashed maps the hash of a name to its run. collided has the runs whose hash
	// another run had before.
	hashed   map[uint32]uint32
	collided map[runlog.Run]uint32
	long     map[uint32]string
	// namespaces are all namespaces ever seen, by number.
	namespaces []string
	numbers    map[string]uint32
	// order has the runs by place, oldest first.
	order []uint32
}

func hash(run runlog.Run) uint32 {
	h := runlog.HashID(run.ID + "/" + run.Namespace)
	return uint32(h ^ h>>32) //nolint:gosec // cut on purpose
}

func (x *rows) at(number uint32) *row { return &x.slabs[number/slab][number%slab] }

// oldest returns the row at a position of the order.
func (x *rows) oldest(i int) *row { return x.at(x.order[i]) }

// row returns the row of a run, nil if there is none.
func (x *rows) row(run runlog.Run) *row {
	if number, found := x.hashed[hash(run)]; found {
		if r := x.at(number); x.name(r) == run {
			return r
		}
	}
	if number, found := x.collided[run]; found {
		return x.at(number)
	}
	return nil
}

// add returns a new row. It keeps no part of p's names, which are substrings of larger
// strings.
func (x *rows) add(p Place) *row {
	if len(x.free) == 0 {
		if x.slabs == nil {
			x.hashed, x.collided, x.long, x.numbers = map[uint32]uint32{}, map[runlog.Run]uint32{}, map[uint32]string{}, map[string]uint32{}
		}
		first := uint32(len(x.slabs) * slab) //nolint:gosec // fewer than runs
		x.slabs = append(x.slabs, make([]row, slab))
		for n := first + slab; n > first; n-- {
			x.free = append(x.free, n-1)
		}
	}
	last := len(x.free) - 1
	r := x.at(x.free[last])
	*r = row{number: x.free[last], namespace: x.namespace(p.Run.Namespace), created: p.Created, length: uint8(len(p.Run.ID))} //nolint:gosec // a name has at most 64
	x.free = x.free[:last]
	if copy(r.id[:], p.Run.ID) < len(p.Run.ID) {
		x.long[r.number] = strings.Clone(p.Run.ID)
	}
	if h := hash(p.Run); x.taken(h) {
		x.collided[x.name(r)] = r.number
	} else {
		x.hashed[h] = r.number
	}
	i, _ := x.find(p)
	x.order = slices.Insert(x.order, i, r.number)
	return r
}

func (x *rows) taken(hash uint32) bool {
	_, taken := x.hashed[hash]
	return taken
}

func (x *rows) remove(r *row) {
	name := x.name(r)
	if number, found := x.collided[name]; found && number == r.number {
		delete(x.collided, name)
	} else {
		delete(x.hashed, hash(name))
	}
	i, _ := x.find(x.place(r))
	x.order = slices.Delete(x.order, i, i+1)
	delete(x.long, r.number)
	x.free = append(x.free, r.number)
}

// namespace returns the number of a namespace.
func (x *rows) namespace(name string) uint32 {
	number, known := x.numbers[name]
	if !known {
		name = strings.Clone(name)
		number = uint32(len(x.namespaces)) //nolint:gosec // fewer than runs
		x.namespaces, x.numbers[name] = append(x.namespaces, name), number
	}
	return number
}

// in reports whether a row is in one of some namespaces.
func (x *rows) in(r *row, within Namespaces) bool {
	return within.has(x.namespaces[r.namespace])
}

// before returns the number of rows before a place; of all rows for the zero Place.
func (x *rows) before(p Place) int {
	if p == (Place{}) {
		return len(x.order)
	}
	i, _ := x.find(p)
	return i
}

func (x *rows) find(p Place) (int, bool) {
	return slices.BinarySearchFunc(x.order, p, func(number uint32, p Place) int {
		r := x.at(number)
		if c := cmp.Compare(r.created, p.Created); c != 0 {
			return c // without making a name
		}
		return x.place(r).compare(p)
	})
}

func (x *rows) name(r *row) runlog.Run {
	run := runlog.Run{Namespace: x.namespaces[r.namespace]}
	if int(r.length) > len(r.id) {
		run.ID = x.long[r.number]
	} else {
		run.ID = string(r.id[:r.length])
	}
	return run
}

func (x *rows) place(r *row) Place { return Place{Created: r.created, Run: x.name(r)} }

func (x *rows) export(r *row) Row {
	return Row{Place: x.place(r), Status: r.runStatus(), Sequence: r.sequence, Version: r.version}
}
