package runlog

import (
	"context"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Log stores and delivers the records of all runs. It is what an implementation
// provides. Code that uses a log declares the interfaces below that it needs.
// Implementations are safe for concurrent use.
type Log interface {
	Appender
	Reader
	Viewer
	Leader
	InboxAppender
	InboxReader
	BlobWriter
	BlobReader
	KeyedBlobWriter
	KeyedBlobReader
	JobCreator
	JobConsumer
	JobEnds
	Feed
	StepConsumer
	WakeConsumer
	Redelivery
	TimerSetter
	TimerConsumer
	RunFollower
	DeltaPublisher
	DeltaFeed
	Poker
	PokeFeed
	HookCaller
	HookServer
	Consumers
	Eraser
	Values
}

// Appender appends records.
type Appender interface {
	// Append stores rec after the record with sequence rec.PrevSequence and returns
	// its sequence. It does not modify rec. It shares rec with readers in this
	// process, so the caller must not modify it afterwards. Appending a record with
	// the writer, instance and nonce of a stored one returns the stored sequence.
	//
	// Errors: ErrFenced, ErrTooLarge, ErrUnavailable.
	Append(ctx context.Context, rec *harnessv1.Record) (sequence uint64, err error)
}

// Reader reads single records.
type Reader interface {
	// Read returns the record with the given sequence. It retries until ctx ends
	// while the replica that answers does not have it yet.
	//
	// Errors: ErrNotFound if the sequence is known to hold no record of run,
	// ErrUnavailable.
	Read(ctx context.Context, run Run, sequence uint64) (Entry, error)
}

// Viewer reads the newest state of a run.
type Viewer interface {
	// View returns the newest records of a run and of its inbox, from a replica that
	// has the message with sequence contains, one that the log has returned. With
	// contains 0 any replica's answer counts: enough for display, not for decisions.
	//
	// Errors: ErrNotFound (with contains above 0 only if the run is known to have
	// nothing but an inbox), ErrLost (no replica has contains), ErrUnavailable.
	View(ctx context.Context, run Run, contains uint64) (View, error)

	// Newer reports whether run has a record or an inbox item above sequence, as a
	// replica knows it that has the message with sequence, one that the log has
	// returned. It reads no contents if there is none, so it costs much less than a View.
	//
	// Errors: ErrNotFound (with sequence 0), ErrLost (no replica has sequence), ErrUnavailable.
	Newer(ctx context.Context, run Run, sequence uint64) (bool, error)
}

// Leader reads from the leader of the stream, which does not lag.
type Leader interface {
	// Newest returns the sequence of the newest stored message of run, a record or
	// an inbox item; 0 if there is none. A View that contains it is up to date. Use
	// it before refusing or dropping something. A write needs no such read: its
	// fence decides.
	//
	// Errors: ErrUnavailable.
	Newest(ctx context.Context, run Run) (sequence uint64, err error)
}

// InboxAppender stores inputs of a run, for repair to take.
type InboxAppender interface {
	// AppendInbox stores an item after the newest one. An item with the id of one
	// that has a sequence above after is not stored again: the result is then the
	// stored sequence and existed is true, also if this call itself stored the item
	// and got no answer.
	//
	// Errors: ErrTooLarge, ErrUnavailable.
	AppendInbox(ctx context.Context, run Run, item *harnessv1.InboxItem, after uint64) (sequence uint64, existed bool, err error)
}

// InboxReader reads the inputs of a run.
type InboxReader interface {
	// LastInbox returns the sequence of the newest inbox item as any replica knows
	// it, 0 if there is none. It is cheap and may lag.
	LastInbox(ctx context.Context, run Run) (uint64, error)

	// Inbox returns the items in (after, upTo], oldest first, with Sequence set. It
	// returns at most MaxDrainItems and MaxDrainBytes, but at least one item. upTo
	// is the sequence of an item of run, or not above after.
	//
	// Errors: ErrNotFound if upTo is not an item of run, ErrUnavailable.
	Inbox(ctx context.Context, run Run, after, upTo uint64) ([]*harnessv1.InboxItem, error)
}

// BlobWriter stores contents that are too large for a record.
type BlobWriter interface {
	// PutBlob stores data and returns its reference, which is usable immediately.
	// Storing the same bytes twice is not an error.
	PutBlob(ctx context.Context, run Run, data []byte) (*harnessv1.BlobRef, error)
}

// BlobReader reads contents that are too large for a record.
type BlobReader interface {
	// Blob returns the bytes with a digest. Errors: ErrNotFound, ErrUnavailable.
	Blob(ctx context.Context, run Run, digest string) ([]byte, error)
}

// KeyedBlobWriter stores contents under the key of what they were made for.
type KeyedBlobWriter interface {
	// PutBlobAs stores data under a valid key, unless the run has a blob under that key:
	// the first write wins, and stored is false for the others. Blobs named by digest and
	// by key do not collide. If ErrUnavailable is returned, data may be stored: storing it
	// again is safe, and stored may then be false.
	//
	// first is the stream sequence of the run's first record. The run is gone once that
	// record is: erased, or another run of the name. A blob of such a run does not stay,
	// also if the run is erased during the call. This holds for a process that dies during
	// the call only until the next erasure of the name.
	//
	// Errors: ErrNotFound if the run is gone, ErrTooLarge above MaxKeyedBlob,
	// ErrUnavailable.
	PutBlobAs(ctx context.Context, run Run, first uint64, key string, data []byte) (stored bool, err error)
}

// KeyedBlobReader reads contents by the key of what they were made for.
type KeyedBlobReader interface {
	// BlobAs returns the bytes that were stored under key, nil if there are none. It
	// reads from the leader, so an answer of nil is up to date.
	//
	// Errors: ErrUnavailable.
	BlobAs(ctx context.Context, run Run, key string) ([]byte, error)
}

// JobCreator creates jobs: calls of models that are no turns.
type JobCreator interface {
	// CreateJob stores a job unless its run has one with the same key, finished ones
	// included; created is false then. A job of a run that is gone does not stay: what
	// KeyedBlobWriter says of blobs holds for jobs too.
	//
	// Errors: ErrNotFound if the run is gone, ErrTooLarge above MaxRecord, ErrUnavailable.
	CreateJob(ctx context.Context, job *harnessv1.Job) (created bool, err error)
}

// JobConsumer delivers jobs.
type JobConsumer interface {
	// ConsumeJobs delivers jobs until ctx ends, as Consume delivers steps. A job is
	// delivered again until it is acknowledged or its run is erased.
	ConsumeJobs(ctx context.Context, concurrency int, handle func(context.Context, JobDelivery)) error
}

// JobEnds reports results of jobs.
type JobEnds interface {
	// OnJobEnd calls handle when PutBlobAs has returned without an error in any process:
	// a blob is stored under the key. A report may be lost, repeated or forged, so nothing
	// may depend on it.
	OnJobEnd(handle func(run Run, key string)) (stop func(), err error)
}

// Feed sends records as they are stored, without a guarantee. Watcher adds one.
type Feed interface {
	// Subscribe calls handle, from one goroutine, with records of a run that are
	// stored from about now on. Records may be missing. A nil entry means that the
	// feed was interrupted.
	Subscribe(ctx context.Context, run Run, handle func(*Entry)) (stop func(), err error)
}

// StepConsumer delivers steps to an executor.
type StepConsumer interface {
	// Consume delivers the steps addressed to an executor until ctx ends. It returns
	// the cause of ctx once handle has returned for all of them. It calls handle in a
	// new goroutine for each delivery, at most concurrency at the same time apart from
	// those in Delivery.Wait, in no particular order. If deliveries end permanently,
	// because the consumer was deleted or the connection was closed, Consume returns
	// ErrUnavailable. So do ConsumeWakes, ConsumeTimers and Runs.
	Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, Delivery)) error
}

// WakeConsumer delivers what can wake a run.
type WakeConsumer interface {
	// ConsumeWakes delivers steps to park and end, and inbox items. It works as
	// Consume does.
	ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, Delivery)) error
}

// Redelivery reports when deliveries are repeated.
type Redelivery interface {
	// AckWait returns the time after which an unacknowledged delivery is repeated.
	AckWait() time.Duration
}

type TimerSetter interface {
	// SetTimer makes ConsumeTimers deliver parkVersion at about at. Setting a timer
	// again moves it. Setting one that has fired makes it fire again.
	SetTimer(ctx context.Context, run Run, parkVersion uint64, at time.Time) error
}

// TimerConsumer delivers timers that fired.
type TimerConsumer interface {
	// ConsumeTimers delivers timers that fired until ctx ends. It delivers a timer
	// again until handle returns nil.
	ConsumeTimers(ctx context.Context, handle func(ctx context.Context, run Run, parkVersion uint64) error) error
}

// RunFollower follows the state of all runs.
type RunFollower interface {
	// Runs calls handle with the newest steps of all runs (those to the first
	// executor repair, to park and to end) until ctx ends: first the stored ones, then
	// each as it is committed, in stream order per partition. It calls caughtUp once,
	// after everything that was stored at the start.
	Runs(ctx context.Context, caughtUp func(), handle func(Entry)) error
	// Lost returns a channel that is closed when this process next finds that the bus has
	// lost its newest records.
	Lost() <-chan struct{}
	// Turned returns a channel that is closed when this process next finds that a clock of the bus
	// has gone back.
	Turned() <-chan struct{}
}

// DeltaPublisher sends the model's text while the model writes it.
type DeltaPublisher interface {
	// PublishDelta sends a piece of text to the subscribers of a run, at most once.
	// Nothing is stored.
	PublishDelta(run Run, delta *harnessv1.Delta) error
}

// DeltaFeed receives the model's text while the model writes it.
type DeltaFeed interface {
	// SubscribeDeltas calls handle with the text of a run. Pieces may be missing.
	SubscribeDeltas(run Run, handle func(*harnessv1.Delta)) (stop func(), err error)
}

// Poker sends hints to read an inbox now.
type Poker interface {
	// Poke sends a hint to all workers. It may be lost.
	Poke(run Run) error
}

// PokeFeed receives hints to read an inbox now.
type PokeFeed interface {
	// OnPoke calls handle with the hints for all runs. A hint may be lost or forged,
	// so handle must read the inbox, and nothing may depend on being poked.
	OnPoke(handle func(Run)) (stop func(), err error)
}

// HookCaller calls hooks that clients answer.
type HookCaller interface {
	// CallHook sends a request to one of the clients that answer hooks of run and
	// waits for its answer until ctx ends. The request may be repeated with the same
	// idempotency key. A client's error is returned in the answer. The death of the
	// client's process is not detected.
	//
	// Errors: ErrNoClient if no client answers hooks of the run, ErrTooLarge,
	// ErrUnavailable if there is no answer.
	CallHook(ctx context.Context, run Run, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)
}

// HookServer answers hooks.
type HookServer interface {
	// ServeHooks makes handle answer hooks of run until stop is called. Calls can
	// arrive as soon as it has returned. It calls handle in new goroutines, at most
	// MaxHookCalls at the same time. Their context ends when the caller stops waiting,
	// or on stop with the cause ErrClientLeft. An error of handle becomes the error of
	// the answer. stop waits for all calls of handle, so handle must not call it.
	//
	// Errors: ErrUnavailable.
	ServeHooks(run Run, handle func(ctx context.Context, req *harnessv1.HookRequest) (*harnessv1.HookAnswer, error)) (stop func(), err error)
}

// Consumers reports on the durable consumers of executors.
type Consumers interface {
	// Executors returns the names of the executors that have a durable consumer, and
	// workflow.Inference if jobs have one.
	Executors(ctx context.Context) ([]string, error)

	// AckFloor returns the sequence up to which every step to executor, in the
	// partition of run, has been acknowledged. Any replica may answer. The value never
	// decreases.
	//
	// Errors: ErrNotFound if the executor has no durable consumer, ErrUnavailable.
	AckFloor(ctx context.Context, run Run, executor string) (sequence uint64, err error)

	// Redeliver has every step to executor, in the partition of run, delivered again from a
	// sequence on, acknowledged or not. Workers that have such a step continue until another
	// one claims it. It is for steps that were acknowledged before the bus lost their
	// successors.
	//
	// Errors: ErrUnavailable.
	Redeliver(ctx context.Context, run Run, executor string, from uint64) error

	// Rewind has the steps and jobs delivered again that consumers may have skipped because
	// the bus lost its newest messages: a consumer that is past the newest remaining message
	// skips those that are stored with the same sequences since. Consumers that are not
	// past it are left alone. Steps and jobs in work may be delivered a second time.
	//
	// Errors: ErrUnavailable.
	Rewind(ctx context.Context) error

	// Expire has every step, job and wake delivered again that follows one without an acknowledgement. It is
	// for a bus whose clock has gone back, and which would keep the deliveries of dead workers until it has
	// reached their time again. Workers that have a step continue, as after Redeliver.
	//
	// Errors: ErrUnavailable.
	Expire(ctx context.Context) error
}

// Eraser deletes runs.
type Eraser interface {
	// Erase deletes everything that is stored of run except the record with sequence
	// keep: timers, blobs, jobs, inbox items, and the records, oldest first. keep 0
	// keeps nothing. It does not touch records and items with a sequence above
	// through. If there is one, or if nothing of the run is left, it keeps timers,
	// blobs and jobs too, because they belong to another run of the same name. So it
	// never deletes a message that the caller has not seen.
	//
	// Jobs and keyed blobs that are stored during the erasure are deleted too, if keep is
	// not the first record of the run.
	//
	// Use it only for runs whose log is closed. It deletes slowly, to leave the bus to
	// other writers. Erasing a run that is gone is not an error, and an interrupted
	// erasure can be repeated.
	//
	// Errors: ErrUnavailable.
	Erase(ctx context.Context, run Run, keep, through uint64) error
}

// Delivery is one delivery of a message to a consumer.
type Delivery interface {
	// Entry returns the record. For an inbox item only Run and Sequence are set.
	Entry() Entry
	// IsInbox reports whether the message is an inbox item.
	IsInbox() bool
	// Redelivered reports whether the message was delivered before. After a crash of
	// the server it may be false for a message that was.
	Redelivered() bool
	// Number returns the number of the delivery, from 1, as Redelivered does.
	Number() uint64
	// Ack acknowledges the message: it is not delivered again.
	Ack() error
	// Nak requests a redelivery after delay.
	Nak(delay time.Duration) error
	// InProgress postpones the redelivery by another AckWait.
	InProgress() error
	// Wait calls wait without a slot of the consumer, so that it delivers another
	// message, and returns once the delivery has a slot again. Deliveries that have
	// waited do not compete with new messages: they continue in the order in which
	// their waits end, Resumed(concurrency) at the same time. Heartbeats remain the
	// handler's task. If ctx ends first, Wait returns its cause, the delivery has no
	// slot, and the handler should return soon.
	Wait(ctx context.Context, wait func()) error
}

// Resumed returns how many deliveries that have waited continue at the same time, in
// addition to concurrency new ones: a quarter, but at least one.
func Resumed(concurrency int) int { return max(concurrency/4, 1) }

// JobDelivery is one delivery of a job to a consumer.
type JobDelivery interface {
	// Job returns the job. It is shared and must not be changed.
	Job() *harnessv1.Job
	// Redelivered reports whether the job was delivered before.
	Redelivered() bool
	// Ack acknowledges the job: it is not delivered again.
	Ack() error
	// Nak requests a redelivery after delay.
	Nak(delay time.Duration) error
	// InProgress postpones the redelivery by another AckWait.
	InProgress() error
}
