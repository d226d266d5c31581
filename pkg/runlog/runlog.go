// Package runlog defines the log of a run: an append-only, gap-free sequence of
// records. One append is the commit, the hand-off to the next executor and the
// event that observers see.
//
// # Invariants
//
//   - Every append is fenced on the sequence of the record before it. A writer
//     that has not seen the newest record cannot write. There are no locks and no
//     leases.
//   - The records of a run have the versions 1, 2, 3 and so on.
//     Record.prev_sequence links each record to the one before it, so a log is read
//     backwards by exact sequence, starting from a known record.
//   - A stored record never changes.
//
// # Reading
//
// The replica that answers a read may lag. Code that decides something uses View,
// which returns a state that contains a given message. Read by exact sequence needs
// no such check: it returns the one record with that sequence or retries.
//
// # Failures
//
// Append returns ErrFenced only when another writer's record has the version. It
// resolves an append without a known result by reading the record at that version
// before it returns. ErrUnavailable means that the bus did not answer in time: the
// record may or may not be stored, and appending it again is safe.
package runlog

import (
	"math"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Schema is the version of the record format that this program writes, and the
// newest that it reads.
//
//   - 1: the first.
//   - 2: answers and declared tools in the inbox, calls with deadlines, deleted
//     runs. A program that reads only schema 1 would ignore such inputs.
//   - 3: contracts, work items, hooks, modes and rules.
//   - 4: parts of messages, media, adjustments of requests. A program that reads only
//     schema 3 would send reasoning back that a provider has refused.
//   - 5: plans of compaction, weights of messages. A program that reads only schema 4
//     would send the whole conversation.
//   - 6: levels at which calls are confined. A program that reads only schema 5 would run
//     them without a sandbox.
//   - 7: calls that a change of the mode of work has blocked, changes of the model in the
//     inbox, digests of the calls that approvals are for, and output schemas. A program that
//     reads only schema 6 would count the first as calls that ran, refuse the second, let an
//     answer count for another call than the one that was shown, and accept a run without
//     its output.
//   - 8: sub-agents whose calls wait.
//   - 9: sub-agents in the background, continued ones, graphs of tasks and worktrees. A program
//     that reads only schema 8 would end such a run while its children work.
//   - 10: work that is judged: kinds, artifacts, attempts, verdicts. A program that reads only
//     schema 9 would accept such work unjudged.
//   - 11: entitlements, tiers and features of runs, profiles, tools of servers, and runs in the
//     trace of their parent. A program that reads only schema 10 would judge work by the wrong
//     limits.
//   - 12: servers of tools, calls by call_tool, and swarms. A program that reads only schema 11 would
//     refuse calls of servers as unknown, and could not give the specialists of a swarm their tasks.
//   - 13: questions of servers of tools. A program that reads only schema 12 would take such a call
//     for one that has ended, and its answer for the result of the call.
//   - 14: tool services. A program that reads only schema 13 would give their tools the names of other
//     servers' tools, and start them as programs.
//   - 15: contracts that count artifacts. A program that reads only an older schema would refuse such a
//     contract, and let no run save artifacts that is not judged.
//   - 16: answers of attempts in the list of work, artifacts of earlier segments, prompts of kinds. A
//     program that reads only schema 12 would deliver a better attempt without its answer.
//   - 17: definitions of tools that a model refuses. A program that reads only schema 16 would send
//     them again, and fail the run. Waits for addresses: it would wait for the time alone.
//     Budgets of definitions that sub-agents have used up: it would wait for such a sub-agent. Policies
//     of definitions: it would permit calls that these deny. Calls that tool hosts hold: it would
//     send them to another host, and their ends would be unknown.
//   - 18: least levels of runs that were started with a token. A program that reads only schema 17
//     would run their commands below it. Folders of workspaces: it would follow links that other runs
//     have put in their paths.
const Schema = 18

// Everything, as the through of Erase, erases records and items of any sequence. It
// is safe only if no other run can have been started under the name.
const Everything = math.MaxUint64

// MaxKeyedBlob is the maximum size of a blob that is named by a key, in bytes.
const MaxKeyedBlob = 512 << 10

// Reserved addressees of a step: the run is parked or has ended.
const (
	Park = "park"
	End  = "end"
)

// Limits of stored data.
const (
	// MaxRecord bounds an encoded record, in bytes.
	MaxRecord = 256 << 10
	// MaxInline bounds a single content inside a record, in bytes. Larger contents
	// are stored as blobs.
	MaxInline = 8 << 10
	// MaxDrainItems and MaxDrainBytes bound what one call of Inbox returns.
	MaxDrainItems = 100
	MaxDrainBytes = 128 << 10
)

// Run identifies a run.
type Run struct {
	Namespace string
	ID        string
}

// Entry is a record with its sequence in the stream.
type Entry struct {
	Run      Run
	Sequence uint64
	// Header is decoded from the message's headers. It is set even if Record could
	// not be decoded.
	Header Header
	// Record is nil if the bytes could not be decoded. Err then holds the reason.
	Record *harnessv1.Record
	Err    error
}

// Header is the part of a record that can be read without decoding the record.
type Header struct {
	Version     uint64
	Schema      uint32
	InboxCursor uint64
	// Traceparent names the span that wrote the record, as in W3C Trace Context. It
	// is empty if the run is not traced, and it is stored in the headers only.
	Traceparent string
}

// View is a consistent state of one run that contains a given message.
type View struct {
	// Newest is the newest record of the log.
	Newest Entry
	// Step is the newest record that holds a Step. It may be Newest.
	Step Entry
	// InboxSequence is the sequence of the newest inbox item; 0 if the inbox is
	// empty.
	InboxSequence uint64
}

// Quiescent reports whether the run is parked or has ended: its newest record is a
// step to park or end.
func (v View) Quiescent() bool {
	return v.Newest.Sequence == v.Step.Sequence && IsRest(v.Step.Record.GetStep().GetTo())
}

// IsRest reports whether a step's addressee is park or end.
func IsRest(to string) bool { return to == Park || to == End }

// Bounds of the takeover time: how long a worker may be dead, hung or disconnected
// before another worker gets its step. It is set when the bus is provisioned.
const (
	DefaultTakeover = 5 * time.Second
	MinTakeover     = time.Second
)

// AckWaitOf returns the time after which an unacknowledged delivery is repeated, for
// a takeover time. The rest of the takeover time allows for a redelivery to a worker
// that hangs: its requests for messages expire after Lapse.
func AckWaitOf(takeover time.Duration) time.Duration { return takeover * 3 / 5 }

// TakeoverOf returns the takeover time that belongs to an AckWait.
func TakeoverOf(ackWait time.Duration) time.Duration { return ackWait * 5 / 3 }

// Lapse returns how long a worker's request for messages is valid. It is also the
// interval of heartbeats: a third of the time in which a worker has to send one. A
// worker that hangs gets messages until its requests expire. A step that it kept by
// heartbeats is redelivered later than that, and so to another worker.
func Lapse(ackWait time.Duration) time.Duration { return ackWait / 3 }
