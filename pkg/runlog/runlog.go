// Package runlog is the log that a run consists of: an append-only, gap-free
// sequence of records in which one append is the commit, the hand-off to the
// next executor and the event that observers see.
//
// # Invariants
//
//   - Every append carries the sequence of the record before it as a fence. A
//     writer that is not looking at the newest record cannot write. There are
//     no locks and no leases.
//   - Versions of a run's records are 1, 2, 3 and so on. Record.prev_sequence
//     links each record to the one before it, so a log is read backwards, by
//     exact sequence, from a record in hand.
//   - A stored record never changes.
//
// # Reading
//
// A replica that answers a read may lag. A read that decides something is made
// with View, which is shown to contain the message that is being handled.
// Read by exact sequence needs no such proof: it either returns the one record
// that has that sequence or tries again.
//
// # Failing
//
// Append answers ErrFenced when another writer was first, and only then: every
// undecided append is settled by reading the record at the same version before
// Append returns. ErrUnavailable means that the bus could not be reached in
// time and nothing is known; the same record may be appended again.
package runlog

import (
	"context"
	"math"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Schema is the version of the record format that this program writes, and the
// newest that it reads.
//
//   - 1: the first.
//   - 2: answers and declared tools in the inbox, calls with deadlines, deleted runs.
//     A program of before would pass over such inputs.
const Schema = 3

// Everything is what Erase goes through when nobody else can have made a run of the
// name.
const Everything = math.MaxUint64

// Reserved places that a step can be addressed to: a run rests there.
const (
	Park = "park"
	End  = "end"
)

// Limits of what is stored.
const (
	// MaxRecord bounds an encoded record, in bytes.
	MaxRecord = 256 << 10
	// MaxInline bounds a single content inside a record, in bytes; larger ones
	// go to blobs.
	MaxInline = 8 << 10
	// MaxDrainItems and MaxDrainBytes bound what repair takes out of an inbox
	// at once.
	MaxDrainItems = 100
	MaxDrainBytes = 128 << 10
)

// Run names a run.
type Run struct {
	Namespace string
	ID        string
}

// Entry is a record with its place in the stream.
type Entry struct {
	Run      Run
	Sequence uint64
	// Header is what the message's headers say; it is there even when Record
	// could not be decoded.
	Header Header
	// Record is nil when the bytes could not be decoded; Err then says why.
	Record *harnessv1.Record
	Err    error
}

// Header is the part of a record that can be read without decoding it.
type Header struct {
	Version     uint64
	Schema      uint32
	InboxCursor uint64
	// Traceparent names the span that wrote the record, as in W3C Trace Context; empty
	// when the run is not traced. It stands in the headers alone.
	Traceparent string
}

// View is a consistent look at one run that is known to contain a given message.
type View struct {
	// Newest is the newest record of the log.
	Newest Entry
	// Step is the newest record that holds a Step; it may be Newest.
	Step Entry
	// InboxSequence is the sequence of the newest inbox item; 0 when empty.
	InboxSequence uint64
}

// Quiescent says whether the run rests: its newest record is a step to park or end.
func (v View) Quiescent() bool {
	return v.Newest.Sequence == v.Step.Sequence && IsRest(v.Step.Record.GetStep().GetTo())
}

// IsRest says whether a step's addressee is a place of rest.
func IsRest(to string) bool { return to == Park || to == End }

// Log stores and delivers the records of all runs. Implementations are safe
// for concurrent use.
type Log interface {
	// Append stores rec as the record that follows the one with sequence
	// rec.PrevSequence and returns its sequence. It sets nothing in rec, and
	// keeps it for readers in this process: nobody may change it from then on.
	// A record that is already stored with the same writer, instance and nonce
	// counts as stored now.
	//
	// Errors: ErrFenced, ErrTooLarge, ErrUnavailable.
	Append(ctx context.Context, rec *harnessv1.Record) (sequence uint64, err error)

	// Read returns the record with the given sequence. A replica that does not
	// have it yet is asked again until ctx ends.
	//
	// Errors: ErrNotFound when the sequence is known to hold no record of run,
	// ErrUnavailable.
	Read(ctx context.Context, run Run, sequence uint64) (Entry, error)

	// View returns the newest records of a run and of its inbox, from a read
	// that contains the message with sequence contains. contains 0 accepts any
	// answer: good for people, not for decisions.
	//
	// Errors: ErrNotFound (with contains above 0 only when all that the run is
	// known to have is an inbox), ErrUnavailable.
	View(ctx context.Context, run Run, contains uint64) (View, error)

	// Newest returns the sequence of the newest message that is stored of run, a
	// record or an inbox item, as the leader knows it; 0 when there is none. A View
	// that contains it is not behind. It is for what is refused or left undone: what
	// is stored is judged by the fence anyway.
	//
	// Errors: ErrUnavailable.
	Newest(ctx context.Context, run Run) (sequence uint64, err error)

	// AppendInbox stores an item behind the newest one. An item whose id is
	// already among the items beyond the cursor after is not stored again;
	// existed is then true.
	//
	// Errors: ErrTooLarge, ErrUnavailable.
	AppendInbox(ctx context.Context, run Run, item *harnessv1.InboxItem, after uint64) (sequence uint64, existed bool, err error)

	// LastInbox returns the sequence of the newest inbox item as some replica
	// knows it, 0 when there is none: cheap, possibly behind.
	LastInbox(ctx context.Context, run Run) (uint64, error)

	// Inbox returns the items in (after, upTo], oldest first, Sequence filled
	// in, cut at MaxDrainItems and MaxDrainBytes but never to nothing. upTo is
	// the sequence of an item of run, or not above after.
	//
	// Errors: ErrNotFound when upTo is none of run's, ErrUnavailable.
	Inbox(ctx context.Context, run Run, after, upTo uint64) ([]*harnessv1.InboxItem, error)

	// PutBlob stores data and returns its reference. Storing the same bytes
	// twice is not an error. The reference is usable once PutBlob has returned.
	PutBlob(ctx context.Context, run Run, data []byte) (*harnessv1.BlobRef, error)

	// Blob returns the bytes behind a digest. Errors: ErrNotFound, ErrUnavailable.
	Blob(ctx context.Context, run Run, digest string) ([]byte, error)

	// Subscribe calls handle with records of a run as they are stored, from
	// about now on, from one goroutine. Records may be missing: see Watch.
	// A nil entry pointer says that the feed was interrupted.
	Subscribe(ctx context.Context, run Run, handle func(*Entry)) (stop func(), err error)

	// Consume delivers the steps addressed to an executor until ctx ends, then
	// returns its cause once handle has returned for all of them. handle is
	// called from its own goroutine for each delivery, at most concurrency at a
	// time, so in no certain order. When deliveries stop for good, because the
	// consumer was deleted or the connection closed, Consume ends with
	// ErrUnavailable, and so do the other Consume methods and Runs.
	Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, Delivery)) error

	// ConsumeWakes delivers what can wake a run, steps to park and end and inbox
	// items, in the same manner as Consume.
	ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, Delivery)) error

	// SetTimer makes a TimerFired with the given park version come up in
	// ConsumeTimers at about at. Setting it again moves it; one that has fired is set
	// anew.
	SetTimer(ctx context.Context, run Run, parkVersion uint64, at time.Time) error

	// ConsumeTimers delivers timers that fired until ctx ends. A timer is
	// delivered again until handle returns nil.
	ConsumeTimers(ctx context.Context, handle func(ctx context.Context, run Run, parkVersion uint64) error) error

	// Runs calls handle with the newest steps of all runs (those to the first
	// executor repair, to park and to end), first for what is stored, then as
	// they are committed, in stream order per partition, until ctx ends.
	// caughtUp is called once after everything that was stored at the start.
	Runs(ctx context.Context, caughtUp func(), handle func(Entry)) error

	// PublishDelta and SubscribeDeltas carry the model's text while it is being
	// written: at most once, nothing is stored.
	PublishDelta(run Run, delta *harnessv1.Delta) error
	SubscribeDeltas(run Run, handle func(*harnessv1.Delta)) (stop func(), err error)

	// Poke says "look at your inbox now" to whoever works on run; OnPoke hears
	// it for all runs. A poke proves nothing: it may be lost or forged.
	Poke(run Run) error
	OnPoke(handle func(Run)) (stop func(), err error)

	// CallHook asks one of the clients that answer hooks of run, and waits for its
	// answer until ctx ends. It may be asked again with the same idempotency key. An
	// answer with an error is one too. Of a client whose process has died nobody knows.
	//
	// Errors: ErrNobody when no client answers hooks of the run, ErrTooLarge,
	// ErrUnavailable when there is no answer.
	CallHook(ctx context.Context, run Run, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)

	// ServeHooks has handle answer hooks of run, until stop: once it has returned,
	// calls come. handle is called from goroutines of its own, for MaxHookCalls at once
	// at most. Its context ends when the caller waits no longer, and with stop, for
	// the cause ErrClientLeft; an error of its becomes that of the answer. stop returns
	// when handle has, and so must not be called by it.
	//
	// Errors: ErrUnavailable.
	ServeHooks(run Run, handle func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (stop func(), err error)

	// AckWait is the time after which an unacknowledged delivery is repeated.
	AckWait() time.Duration

	// Executors returns the names of the executors that have a durable consumer.
	Executors(ctx context.Context) ([]string, error)

	// AckFloor returns the sequence up to which every step that was addressed to
	// executor, in the part of the log that run is in, has been acknowledged, as
	// some replica knows it. It never goes back.
	//
	// Errors: ErrNotFound when the executor has no durable consumer, ErrUnavailable.
	AckFloor(ctx context.Context, run Run, executor string) (sequence uint64, err error)

	// Erase deletes all that is stored of run but the record with sequence keep: timers,
	// blobs, inbox items and records, the records oldest first and last of all. keep 0
	// spares nothing. No record or item with a sequence above through is touched; where
	// there is one, or where nothing of the run is left, timers and blobs stay too: they
	// are those of another run of the name. So what the caller has not seen is safe.
	//
	// It is for runs whose log is closed; it goes about it slowly enough for other
	// writers not to notice. What is gone already is no error, and an erasure that
	// was broken off may be made again.
	//
	// Errors: ErrUnavailable.
	Erase(ctx context.Context, run Run, keep, through uint64) error
}

// Delivery is one delivery of a message to a consumer.
type Delivery interface {
	// Entry is the record; for an inbox item only Run and Sequence are set.
	Entry() Entry
	// IsInbox says that the message is an inbox item.
	IsInbox() bool
	// Redelivered says that the message has been delivered before. It may be
	// false after a crash of the server although it was.
	Redelivered() bool
	// Ack says that the message is done with.
	Ack() error
	// Nak asks for it again after delay.
	Nak(delay time.Duration) error
	// InProgress holds off the redelivery for another AckWait.
	InProgress() error
}

// Bounds of the takeover time: how long a worker may be dead, hung or cut off
// before another one has its step. It is set when the bus is provisioned.
const (
	DefaultTakeover = 5 * time.Second
	MinTakeover     = time.Second
)

// AckWaitOf is the time after which an unacknowledged delivery is repeated, for
// a takeover time. The rest of that time is for a delivery to a worker that hangs:
// its requests for more lapse after Lapse.
func AckWaitOf(takeover time.Duration) time.Duration { return takeover * 3 / 5 }

// TakeoverOf is the takeover time to which an AckWait belongs.
func TakeoverOf(ackWait time.Duration) time.Duration { return ackWait * 5 / 3 }

// Lapse is how long a worker's request for deliveries lasts, and a third of the
// time in which a worker has to show that it lives. Within it a worker that
// hangs is still given deliveries; a step that it held by heartbeats comes back
// later than that, and so to another worker.
func Lapse(ackWait time.Duration) time.Duration { return ackWait / 3 }
