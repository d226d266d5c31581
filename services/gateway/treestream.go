package gateway

import (
	"fmt"
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TreeStream merges the logs of a run and of the runs below it into one stream: each run
// strictly by version, and the events of a child between agent.started and agent.ended of
// its parent, all up to the version that agent.ended names.
//
// A shell follows the logs of the runs that Open returns and passes each record to Arrive, one
// at a time for each run; Next returns the next delivery. A TreeStream reads no log and no
// clock.
//
// A child may work next to its parent, outlive turns of it, and be continued after its end by
// another call. Between its end and agent.ended it delivers nothing: a message may have
// reopened it.
type TreeStream struct {
	// branches are all runs that were seen open, by id. They keep their positions, because a
	// closed one may be continued.
	branches map[string]*branch
	// open are the open runs: first the root, then children, each after its parent.
	open []*branch
	// complete reports that the children which are open at the start are known. Otherwise
	// they follow from records that were delivered before, which are read again.
	complete bool
	// started reports that all of these records were read.
	started bool
	// tree reports that the root has called sub-agents; alone leaves them out.
	tree, alone bool
}

// branch is one run of a TreeStream.
type branch struct {
	run, call, agent string
	parent           *branch
	// sequence and index are the place of the agent.started that opened it.
	sequence uint64
	index    int
	// at is the position up to which it was delivered.
	at Position
	// entry is a record that arrived and is not delivered completely; next is its next event.
	entry  *runlog.Entry
	events []*harnessv1.Event
	next   int
	// opening counts how often it was opened.
	opening int
	// again: its last record is read again after a resume, because it may be its end.
	again bool
	// step is the last step that was delivered.
	step *harnessv1.Step
	// limit is the version that an agent.ended which arrived names; waited: one arrived.
	limit  uint64
	waited bool
	// misses counts how often the run was not found since.
	misses int
	// caughtUp: its records stored at the start were delivered; gone: it is not stored.
	caughtUp, gone bool
}

// Delivery is what a watcher is to receive next: an event, or notice that a record has been
// delivered completely.
type Delivery struct {
	Run string
	// Event is an event with all names; nil: Record is set.
	Event *harnessv1.Event
	// Record was delivered completely.
	Record *runlog.Entry
	// Old: the watcher had the record before.
	Old bool
}

// NewRunStream returns the stream of a run after an offset, without the runs below it.
func NewRunStream(run string, from Offset) *TreeStream {
	t := NewTreeStream(run, Offset{Root: from.Root, Tree: true})
	t.tree, t.alone = false, true
	return t
}

// NewTreeStream returns the stream of a run after an offset. Unless the offset is of a
// tree, the shell passes the root's records from the first that may have started a child.
func NewTreeStream(run string, from Offset) *TreeStream {
	root := &branch{run: run, at: from.Root}
	return &TreeStream{
		branches: map[string]*branch{run: root}, open: []*branch{root},
		complete: from.Tree, started: from.Tree || from.Root.After() == 0, tree: from.Tree,
	}
}

// Reopen opens the children of an offset. read returns the record of a run at a sequence. An
// offset that is not of this tree is refused.
func (t *TreeStream) Reopen(field string, from Offset, read func(run string, sequence uint64) (runlog.Entry, error)) error {
	for _, c := range from.Open {
		parent := t.open[c.Parent]
		e, err := read(parent.run, c.Sequence)
		if err != nil {
			return err
		}
		events := e.Record.GetEvents()
		if c.Index >= len(events) || events[c.Index].GetAgentStarted() == nil || t.branches[events[c.Index].GetAgentStarted().GetRunId()] != nil {
			return badOffset(field, from.String())
		}
		b := t.start(parent, events[c.Index].GetAgentStarted(), c.Sequence, c.Index)
		b.at, b.again = c.At, c.At.Version > 0 && !c.At.Part
	}
	return nil
}

// Known takes the newest step of a run that is resumed, which does not arrive if it was
// delivered before.
func (t *TreeStream) Known(step runlog.Entry) {
	if b := t.branches[step.Run.ID]; b != nil && b.at.covers(step.Header.Version) {
		b.step = step.Record.GetStep()
	}
}

// Replays reports whether records that were delivered before are to be read again, from the
// first on, to know which children are open.
func (t *TreeStream) Replays() bool { return !t.started }

// SkipReplay states that no record which was delivered before is read again: the root had
// started no child by then.
func (t *TreeStream) SkipReplay() { t.started = true }

// OpenRun is a run whose log is to be followed after a version.
type OpenRun struct {
	Run string
	// Opening changes when a closed run is opened again: its log is to be followed again.
	Opening int
	After   uint64
	// At is the position up to which it was delivered.
	At Position
}

// Open returns the runs whose logs are to be followed, the root first.
func (t *TreeStream) Open() []OpenRun {
	open := t.open
	if !t.started {
		open = open[:1]
	}
	runs := make([]OpenRun, len(open))
	for i, b := range open {
		runs[i] = OpenRun{Run: b.run, Opening: b.opening, After: b.at.After(), At: b.at}
		if !t.started {
			runs[i].After = 0
		}
		if b.again {
			runs[i].After--
		}
	}
	return runs
}

// Arrive takes the next record of an open run. Next must have delivered the former one.
func (t *TreeStream) Arrive(e runlog.Entry) error {
	b := t.branches[e.Run.ID]
	if b == nil || b.entry != nil {
		return fmt.Errorf("version %d of %s arrived out of turn", e.Header.Version, e.Run)
	}
	b.entry, b.events, b.next, b.gone = &e, Deliver(e), 0, false
	return nil
}

// CaughtUp takes that all that was stored of a run at the start has arrived.
func (t *TreeStream) CaughtUp(run string) { t.branches[run].caughtUp = true }

// Gone takes that a child was deleted: no more of it arrives.
func (t *TreeStream) Gone(run string) {
	b := t.branches[run]
	b.gone, b.caughtUp = true, true
}

// Missing takes that a child was not found: it was not started yet, or was deleted. The
// first search that begins after its agent.ended has arrived decides: only one search is
// under way at any time, so that is the second one.
func (t *TreeStream) Missing(run string) {
	b := t.branches[run]
	b.caughtUp = true
	if b.waited {
		b.misses++
		b.gone = b.gone || b.misses > 1
	}
}

// Next returns the next delivery; ok is false if there is none until more arrives.
func (t *TreeStream) Next() (d Delivery, ok bool) {
	for _, b := range t.open {
		if d, ok = t.advance(b); ok {
			return d, true
		}
	}
	return Delivery{}, false
}

func (t *TreeStream) advance(b *branch) (Delivery, bool) {
	if b.entry == nil || t.holds(b) {
		return Delivery{}, false
	}
	version := b.entry.Header.Version
	for b.next < len(b.events) {
		event, index := b.events[b.next], b.next
		if b.at.Has(version, index) {
			if !t.complete {
				t.apply(b, event, index)
			}
			b.next++
			continue
		}
		if !t.mayFollow(event) {
			return Delivery{}, false
		}
		b.next++
		b.at = Position{Version: version, Part: true, Index: index}
		t.apply(b, event, index)
		t.name(b, event)
		return Delivery{Run: b.run, Event: event}, true
	}
	d := Delivery{Run: b.run, Record: b.entry, Old: b.at.covers(version)}
	if !d.Old {
		b.at = Position{Version: version}
	}
	if step := b.entry.Record.GetStep(); step != nil {
		b.step = step
	}
	b.entry, b.events, b.again = nil, nil, false
	t.started = t.started || version >= b.at.After() // only the root arrives before
	return d, true
}

// holds reports whether the record of a child that has ended waits for its parent: for
// agent.ended, or for a call that continues it.
func (t *TreeStream) holds(b *branch) bool {
	return b.parent != nil && b.step.GetTo() == runlog.End && b.entry.Header.Version > max(b.limit, b.parent.reported(b.run))
}

// mayFollow reports whether an event may be delivered now: agent.ended follows everything
// of its child, and of all below that.
func (t *TreeStream) mayFollow(e *harnessv1.Event) bool {
	ended := e.GetAgentEnded()
	c := t.branches[ended.GetRunId()]
	if t.alone || ended == nil || c == nil || !slices.Contains(t.open, c) {
		return true
	}
	c.limit, c.waited = max(c.limit, ended.GetChildVersion()), true
	if ended.GetChildVersion() == 0 && c.step.GetTo() != runlog.End && !c.gone {
		return false
	}
	return c.reaches(ended.GetChildVersion()) && t.completeBelow(c)
}

// reaches reports whether a run was delivered up to a version, as far as it is stored.
func (b *branch) reaches(version uint64) bool { return b.gone || b.at.covers(version) }

// reported returns the version of the last report of a child that a run has taken in.
func (b *branch) reported(child string) uint64 {
	var version uint64
	for _, c := range b.step.GetSnapshot().GetChildren() {
		if c.GetRunId() == child {
			version = max(version, c.GetReport().GetVersion())
		}
	}
	return version
}

// completeBelow reports whether of all open runs below b what their parents know was
// delivered.
func (t *TreeStream) completeBelow(b *branch) bool {
	for _, c := range t.open {
		if c.parent == b && (!c.reaches(b.reported(c.run)) || !t.completeBelow(c)) {
			return false
		}
	}
	return true
}

// Complete reports whether everything was delivered that is known by the last step of
// the root: of each run below what it has reported.
func (t *TreeStream) Complete() bool {
	return t.started && t.open[0].entry == nil && t.completeBelow(t.open[0])
}

// Current reports whether everything was delivered that was stored at the start.
func (t *TreeStream) Current() bool {
	for _, b := range t.open {
		if !b.caughtUp || b.entry != nil && !t.holds(b) {
			return false
		}
	}
	return t.started
}

// apply opens and closes children.
func (t *TreeStream) apply(b *branch, e *harnessv1.Event, index int) {
	if t.alone {
		return
	}
	if started := e.GetAgentStarted(); started != nil {
		t.start(b, started, b.entry.Sequence, index)
	}
	if ended := e.GetAgentEnded(); ended != nil {
		if c := t.branches[ended.GetRunId()]; c != nil && c.call == ended.GetCallId() {
			t.end(c)
		}
	}
}

// start opens a child, or opens it again for another call.
func (t *TreeStream) start(parent *branch, started *harnessv1.AgentStarted, sequence uint64, index int) *branch {
	b := t.branches[started.GetRunId()]
	if b == nil {
		b = &branch{run: started.GetRunId()}
		t.branches[b.run] = b
	}
	t.tree = true
	b.parent, b.call, b.agent, b.sequence, b.index = parent, started.GetCallId(), started.GetAgent(), sequence, index
	b.step, b.waited, b.misses, b.again = nil, false, 0, false
	if !b.at.covers(started.GetAfterVersion()) {
		b.at = Position{Version: started.GetAfterVersion()}
	}
	if !slices.Contains(t.open, b) {
		b.opening++
		b.gone, b.caughtUp = false, false
		t.open = append(t.open, b)
	}
	return b
}

// end closes a child and all that is open below it.
func (t *TreeStream) end(b *branch) {
	t.open = slices.DeleteFunc(slices.Clone(t.open), func(o *branch) bool { return o == b })
	b.entry, b.events = nil, nil
	for _, c := range slices.Clone(t.open) {
		if c.parent == b {
			t.end(c)
		}
	}
}

// name puts the run into an event of a child, and the offset into the events of a tree.
func (t *TreeStream) name(b *branch, e *harnessv1.Event) {
	if b.parent != nil {
		e.Id = b.run + "/" + e.GetId()
		e.RunId, e.ParentRunId, e.CallId, e.Agent = b.run, b.parent.run, b.call, b.agent
		for p := b.parent; p != nil; p = p.parent {
			e.Depth++
		}
	}
	if t.tree {
		e.Offset = t.offset().String()
	}
}

// offset returns the place in the stream.
func (t *TreeStream) offset() Offset {
	o := Offset{Root: t.open[0].at, Tree: true}
	for _, c := range t.open[1:] {
		o.Open = append(o.Open, OpenChild{Parent: slices.Index(t.open, c.parent), Sequence: c.sequence, Index: c.index, At: c.at})
	}
	return o
}
