// Package tree decides about trees of runs: an agent delegates work to a sub-agent by a
// call, and the call is a separate run, the child of the run that made it.
//
// The call waits as a call of a client's tool does, with kind runstate.KindAgent, so that
// no worker is held while the child works; a child in the background has no call that waits.
// Two registers keep each pair of parent and child together:
//
//   - Orders go down. They are state of the parent's snapshot (Child.want, Child.order):
//     when repair is delivered a step of the parent, it sends those that it has not sent and
//     no report has confirmed, the start included (Due). A child takes an order only if its number is
//     greater than that of the last one that it took.
//   - Reports go up. When repair is delivered a step of the child to park or end, it appends one
//     to the parent's inbox before it acknowledges the step (ReportOf). Reports are cumulative:
//     the one with the greatest version counts (Take).
//
// A start may be repeated and may come late: the id of a child is derived from its call
// (ID), its first record is fenced at the beginning of its log, and its first decision reads
// the parent's order of that time (StateOf).
//
// A graph of tasks is data over children: Schedule makes those of a layer once the layer before
// has ended.
//
// All functions are pure. The comment of each that changes a snapshot reports it.
package tree

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"strconv"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Bounds of a tree.
const (
	// MaxChildren bounds the children that a run has in a segment, and maxLedger those of all segments, which its state lists.
	MaxChildren = 64
	maxLedger   = 256
	// MaxAtWork bounds the children of a run that work at the same time; others start when
	// these end.
	MaxAtWork = 8
	// MaxDepth is the number of levels below a root.
	MaxDepth = 3
	// MaxAgents bounds the sub-agents of an agent.
	MaxAgents = 16
	// maxTasks bounds the tasks of a graph.
	maxTasks = 32
)

// Bounds of what a parent keeps of a report, in bytes.
const maxReason = 160

// idBits encodes the hash of a child's id: 24 letters and digits.
var idBits = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// ID returns the id of the run that a call starts: a- and 24 characters, derived from the
// parent, one incarnation of it, and the call.
func ID(parent runlog.Run, firstSequence uint64, callID string) string {
	h := sha256.New()
	h.Write([]byte(parent.Namespace + "\x00" + parent.ID + "\x00"))
	_ = binary.Write(h, binary.BigEndian, firstSequence) // a hash takes all bytes
	h.Write([]byte(callID))
	return "a-" + idBits.EncodeToString(h.Sum(nil)[:15])
}

// Find returns the child that a call started; nil if there is none.
func Find(s runstate.TreeFields, callID string) *harnessv1.Child {
	for _, c := range s.GetChildren() {
		if c.GetCallId() == callID {
			return c
		}
	}
	return nil
}

// FindRun returns the child with a run id; nil if there is none.
func FindRun(s runstate.TreeFields, runID string) *harnessv1.Child {
	for _, c := range s.GetChildren() {
		if c.GetRunId() == runID {
			return c
		}
	}
	return nil
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// size returns the bytes of a text.
func size(c *harnessv1.Content) uint64 {
	if ref := c.GetBlob(); ref != nil {
		return ref.GetSize()
	}
	return uint64(len(c.GetInline()))
}
