package gateway

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxHeldOutputs bounds the pieces of output that wait for the record of their call.
const maxHeldOutputs = 16

// callOutputs inserts the output of running commands into the records of a turn: after the
// record that starts the call and before the one with its result.
type callOutputs struct {
	// whole reports that the watcher receives the records from the first, so that it has
	// received that of every call. Otherwise a call that it does not know may be running.
	whole bool
	// running are the calls of the turn that have started, true, and ended, false.
	running map[string]bool
	// held are the newest pieces that arrived before their record.
	held []*harnessv1.Delta
}

// record processes a record and returns the pieces that waited for it.
func (o *callOutputs) record(r *harnessv1.Record) (release []*harnessv1.Delta) {
	started, finished := r.GetJournal().GetToolsStarted(), r.GetJournal().GetToolFinished()
	switch {
	case r.GetStep() != nil:
		o.running, o.held = nil, nil
	case finished != nil:
		o.mark(finished.GetCallId(), false)
	case started != nil:
		for _, id := range started.GetCallIds() {
			o.mark(id, true)
		}
		held := o.held
		o.held = nil
		for _, d := range held {
			if d = o.add(d); d != nil {
				release = append(release, d)
			}
		}
	}
	return release
}

func (o *callOutputs) mark(call string, running bool) {
	if o.running == nil {
		o.running = map[string]bool{}
	}
	o.running[call] = running
}

// add returns the piece if it is to be delivered now, nil otherwise.
func (o *callOutputs) add(d *harnessv1.Delta) *harnessv1.Delta {
	running, known := o.running[d.GetToolOutput().GetCallId()]
	switch {
	case running || !known && !o.whole:
		return d
	case known:
		return nil // its result has all of it
	}
	if len(o.held) == maxHeldOutputs {
		o.held = o.held[1:]
	}
	o.held = append(o.held, d)
	return nil
}
