package node

import (
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// HandOverTime is how long model calls and file tools may continue once a node hands over.
const HandOverTime = 2 * time.Minute

// Pause keeps tool calls from starting if no command runs, and returns nil. Otherwise it
// returns the commands that run and changes nothing.
func (n *Node) Pause() []*harnessv1.LocalCommand {
	if n.commands == nil {
		return nil
	}
	return n.commands.Pause()
}

// Continue ends a Pause. It has no effect after HandOver.
func (n *Node) Continue() {
	if n.commands != nil && !n.handing.Load() {
		n.commands.Continue()
	}
}

// HandOver has Stop end the work of a node that is paused as for a successor: model calls and
// file tools in progress have HandOverTime, and a step that needs another call is put back.
func (n *Node) HandOver() { n.handing.Store(true) }

// drain is the cause with which the executors stop.
func (n *Node) drain() error {
	if n.handing.Load() {
		return executor.DrainFor(HandOverTime)
	}
	return executor.DrainFor(n.cfg.Drain)
}
