package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// AppendJournal appends an entry to the run's journal, after everything that this task
// knows. It sets the ids of appended. Errors: runlog.ErrFenced, ErrUnavailable.
func (t *Task) AppendJournal(ctx context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	unlock, err := t.lockAppend(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	t.mu.Lock()
	next := t.Step().GetSnapshot().GetMessageCount() + t.messages
	t.mu.Unlock()
	for _, m := range appended {
		next++
		m.Id = next
	}
	return t.append(ctx, &harnessv1.Record{
		Appended: appended,
		Events:   events,
		Body:     &harnessv1.Record_Journal{Journal: entry},
	})
}

// commit appends the outcome. It first checks the step's changes of phase.
func (t *Task) commit(ctx context.Context, outcome *harnessv1.Outcome) error {
	step := outcome.GetStep()
	if step.GetTo() == "" || step.GetSnapshot() == nil || step.GetMessage() == nil {
		return fmt.Errorf("%s returned a step without addressee, snapshot or message", t.executor)
	}
	if err := runstate.CheckPhases(t.Step().GetSnapshot(), step); err != nil {
		return err
	}
	unlock, err := t.lockAppend(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	step.Snapshot.ConversationBytes, step.Snapshot.AttachmentBytes = t.storedBytes(outcome.GetAppended())
	tail := t.Tail()
	starts := step.GetTo() == runlog.Park && step.GetSnapshot().GetParkVersion() == 0
	if starts {
		step.Snapshot.ParkVersion = tail.Header.Version + 1
	}
	rec := &harnessv1.Record{Appended: outcome.GetAppended(), Events: outcome.GetEvents(), Body: &harnessv1.Record_Step{Step: step}}
	if at := step.GetParked().GetWakeAt(); at != nil && starts {
		// The timer is set before the commit. A timer without a park is ignored, but a
		// park without its timer would last forever.
		_, err := t.retry(ctx, func() (uint64, error) {
			return 0, t.cfg.Log.SetTimer(ctx, t.Run, step.GetSnapshot().GetParkVersion(), at.AsTime())
		})
		if err != nil {
			return err
		}
	}
	if err := t.append(ctx, rec); err != nil {
		return err
	}
	return nil
}

// storedBytes returns the bytes of the conversation after a step that appends messages, and those
// of its images and documents.
func (t *Task) storedBytes(appended []*harnessv1.Message) (conversation, attachments uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	conversation = conversationBytes(t.Step().GetSnapshot()) + t.bytes
	attachments = t.Step().GetSnapshot().GetAttachmentBytes() + t.attachments
	for _, m := range appended {
		conversation += runstate.MessageBytes(m)
		attachments += runstate.AttachmentBytes(m)
	}
	return conversation, attachments
}

// Limits of retries of a record that could not be stored.
const (
	patience    = 30 * time.Second
	appendPause = 250 * time.Millisecond
)

var errSnapshotTooLarge = errors.New("snapshot too large")

// lockAppend waits until no other record is being appended. unlock admits the next one.
func (t *Task) lockAppend(ctx context.Context) (unlock func(), err error) {
	if t.cfg.Log == nil {
		return nil, errors.New("this task has no log to append to")
	}
	select {
	case t.appending <- struct{}{}:
		return func() { <-t.appending }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the append before this one has not ended: %w", runlog.ErrUnavailable, context.Cause(ctx))
	}
}

// append completes rec and stores it after the tail. The caller has called lockAppend.
func (t *Task) append(ctx context.Context, rec *harnessv1.Record) error {
	tail := t.Tail()
	rec.Namespace, rec.RunId = t.Run.Namespace, t.Run.ID
	runlog.Link(rec, tail)
	rec.Schema = runlog.Schema
	rec.CommitTime = timestamppb.New(t.cfg.Now())
	ended := t.trace(rec)
	rec.Writer = &harnessv1.Writer{Executor: t.executor, Instance: t.cfg.Instance, Nonce: rand.Uint64()}
	t.setWriter(rec.GetWriter())
	sequence, err := t.retry(ctx, func() (uint64, error) { return t.store(ctx, rec) })
	if err != nil {
		return err // the writer stays: the record may be stored
	}
	spans.End(t.cfg.Tracer, t.Run, rec.GetStep(), ended)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writer = nil
	t.tail = runlog.Entry{Run: t.Run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	t.count(rec)
	return nil
}

func (t *Task) setWriter(w *harnessv1.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writer = w
}

// retry repeats a write while the bus is unavailable. The record may contain a paid
// answer of a model, and no other worker can continue meanwhile. Repeating the write
// must be safe.
func (t *Task) retry(ctx context.Context, write func() (uint64, error)) (uint64, error) {
	for end := time.Now().Add(patience); ; {
		sequence, err := write()
		if !errors.Is(err, runlog.ErrUnavailable) || time.Now().After(end) {
			return sequence, err
		}
		pause := time.NewTimer(appendPause)
		select {
		case <-ctx.Done():
			pause.Stop()
			return 0, err
		case <-pause.C:
		}
	}
}

// store moves large contents to blobs and appends rec.
func (t *Task) store(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	put := func(ctx context.Context, data []byte) (*harnessv1.BlobRef, error) {
		return t.cfg.Log.PutBlob(ctx, t.Run, data)
	}
	if s := rec.GetStep().GetSnapshot(); s != nil {
		store := func(data []byte) (*harnessv1.BlobRef, error) { return put(ctx, data) }
		if err := runstate.Pack(s, store); err != nil {
			return 0, err
		}
	}
	// A record that fits needs none of the measurements below: its snapshot is smaller.
	if proto.Size(rec) <= min(runlog.MaxInline, spillSnapshot, maxSnapshot) {
		return t.cfg.Log.Append(ctx, rec)
	}
	if err := runlog.Spill(ctx, rec, put); err != nil {
		return 0, err
	}
	if s := rec.GetStep().GetSnapshot(); s != nil && proto.Size(s) > spillSnapshot {
		if err := runlog.SpillTo(ctx, s, spillSnapshot, put); err != nil {
			return 0, err
		}
	}
	if s := rec.GetStep().GetSnapshot(); s != nil && proto.Size(s) > maxSnapshot {
		if err := runlog.Shrink(ctx, s, put); err != nil {
			return 0, err
		}
	}
	if step := rec.GetStep(); step != nil && !endsRun(step) && proto.Size(step.GetSnapshot()) > maxSnapshot {
		return 0, fmt.Errorf("%d bytes exceed the limit of %d: %w", proto.Size(step.GetSnapshot()), maxSnapshot, errSnapshotTooLarge)
	}
	return t.cfg.Log.Append(ctx, rec)
}

// endsRun reports whether a step ends the run or requests that from the stop decision.
// The bound of the snapshot must not prevent a run from ending.
func endsRun(step *harnessv1.Step) bool {
	return step.GetTo() == runlog.End || step.GetTurnComplete().GetError() != nil
}
