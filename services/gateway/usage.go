package gateway

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// Usage is the usage of a caller's runs, with those of their sub-agents.
type Usage struct {
	// AtWork is how many are running.
	AtWork int
	// Bytes is the size of the conversations of all that are stored, with their images and documents, as of
	// their newest steps.
	Bytes uint64
}

// usages are the usages of the holders of tokens, by the names of their lines. Runs of local persons
// take nothing here.
type usages struct {
	runs  map[uint32]share // by the number of the row
	names map[string]*callerUsage
}

type callerUsage struct {
	Usage
	name string
	runs int
}

// share is the part of one run.
type share struct {
	by     *callerUsage
	atWork bool
	bytes  uint64
}

// set counts the share of a run, and its former one no longer.
func (u *usages) set(number uint32, s *harnessv1.Snapshot, status harnessv1.RunStatus) {
	u.remove(number)
	name := s.GetStartedBy()
	if access.IsPerson(name) {
		return
	}
	if u.names == nil {
		u.runs, u.names = map[uint32]share{}, map[string]*callerUsage{}
	}
	by := u.names[name]
	if by == nil {
		by = &callerUsage{name: strings.Clone(name)}
		u.names[by.name] = by
	}
	now := share{by: by, atWork: status == harnessv1.RunStatus_RUN_STATUS_RUNNING, bytes: s.GetConversationBytes() + s.GetAttachmentBytes()}
	u.runs[number] = now
	by.runs++
	by.Bytes += now.bytes
	if now.atWork {
		by.AtWork++
	}
}

// remove counts a run no longer.
func (u *usages) remove(number uint32) {
	before, known := u.runs[number]
	if !known {
		return
	}
	delete(u.runs, number)
	by := before.by
	by.runs--
	by.Bytes -= before.bytes
	if before.atWork {
		by.AtWork--
	}
	if by.runs == 0 {
		delete(u.names, by.name)
	}
}

// Usage returns the usage of the runs that the holder of a name has started.
func (x *Index) Usage(name string) Usage {
	if by := x.usages.names[name]; by != nil {
		return by.Usage
	}
	return Usage{}
}

// Starter returns the name of the token that has started a run; empty: a local person has, or the run is
// unknown.
func (x *Index) Starter(run runlog.Run) string {
	_, name := x.starter(run)
	return name
}

func (x *Index) starter(run runlog.Run) (Row, string) {
	r := x.rows.row(run)
	if r == nil {
		return Row{}, ""
	}
	if s, counted := x.usages.runs[r.number]; counted {
		return x.rows.export(r), s.by.name
	}
	return x.rows.export(r), ""
}
