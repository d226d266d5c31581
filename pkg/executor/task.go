package executor

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Task is one step in work. It is safe for concurrent use.
type Task struct {
	// Run is the step's run.
	Run runlog.Run
	// Entry is the record that contains the step. It is shared and must not be changed.
	Entry runlog.Entry
	// Journal contains the records that were appended after the step before this
	// delivery, oldest first. It is empty on a first delivery.
	Journal []runlog.Entry
	// Redelivered reports whether the step was delivered before.
	Redelivered bool

	cfg      Config
	executor string
	loop     *loop         // nil for a task without one
	delivery *stepDelivery // nil for a task without a loop

	// appending contains a token while a record is being appended, so that records
	// follow each other. mu is not held during an append, which may take long.
	appending chan struct{}

	step *harnessv1.Step // the unpacked step; nil if the record's is complete

	mu          sync.Mutex
	writer      *harnessv1.Writer // of the record that is being appended; nil if there is none
	tail        runlog.Entry      // newest record: the journal's last, or the step
	messages    uint64            // messages appended by the journal
	bytes       uint64            // bytes of these messages
	media       media.Room        // of their images and documents
	attachments uint64            // stored bytes of these
	onHeartbeat func(ctx context.Context, view runlog.View)
	failures    uint32
	inbox       uint64 // sequence of the newest known item of the inbox
	waiting     bool   // without a slot
	outside     int    // other waits
	words       uint64 // that were published
	saidWaits   bool   // the last word was that the task waits

	input chan struct{} // contains a token when there is a newer item

	leave func() // frees the room of the task; only its handler calls it

	number  uint64 // of the delivery
	burden  burden // of the step, by the deaths of its workers
	company uint32 // size of its batch; 0 without one
}

func newTask(l *loop, d *stepDelivery, journal []runlog.Entry) *Task {
	e := d.Entry()
	t := &Task{
		Run: e.Run, Entry: e, Journal: journal, Redelivered: d.Redelivered(),
		cfg: l.cfg, executor: l.x.Name(), loop: l, delivery: d, tail: e, appending: make(chan struct{}, 1),
		inbox: e.Record.GetStep().GetSnapshot().GetInboxCursor(), input: make(chan struct{}, 1), number: d.Number(),
	}
	for _, j := range journal {
		t.tail = j
		t.count(j.Record)
		if f := j.Record.GetJournal().GetExecutorFailed(); f != nil {
			t.failures = f.GetCount()
		}
	}
	return t
}

func (t *Task) count(rec *harnessv1.Record) {
	t.messages += uint64(len(rec.GetAppended()))
	for _, m := range rec.GetAppended() {
		t.bytes += runstate.MessageBytes(m)
		t.media = t.media.Plus(media.MessageRoom(m))
		t.attachments += runstate.AttachmentBytes(m)
	}
}

// Step returns the step, which is shared and must not be changed. It contains work
// items and coverage wherever they are stored. Contract and definition may be
// references.
func (t *Task) Step() *harnessv1.Step {
	if t.step != nil {
		return t.step
	}
	return t.Entry.Record.GetStep()
}

// parts are shared by all tasks of this process.
var parts runstate.Parts

// unpack loads the parts of the snapshot that are stored elsewhere and change during a
// run.
func (t *Task) unpack(ctx context.Context) error {
	if !runstate.HasPackedLedgers(t.Entry.Record.GetStep().GetSnapshot()) {
		return nil
	}
	step := t.Entry.Record.GetStep()
	step = &harnessv1.Step{
		From: step.GetFrom(), To: step.GetTo(), Snapshot: runstate.Clone(step.GetSnapshot()),
		PhaseChanges: step.GetPhaseChanges(), Observed: step.GetObserved(), Message: step.GetMessage(),
	}
	err := parts.Unpack(step.GetSnapshot(), func(ref *harnessv1.BlobRef) ([]byte, error) {
		return t.cfg.Log.Blob(ctx, t.Run, ref.GetDigest())
	})
	if err != nil {
		return fmt.Errorf("a stored part of the snapshot: %w", err)
	}
	t.step = step
	return nil
}

// Input returns the step as the input of a pure decision.
func (t *Task) Input() *harnessv1.StepInput {
	return &harnessv1.StepInput{
		Namespace: t.Run.Namespace,
		RunId:     t.Run.ID,
		Version:   t.Entry.Header.Version,
		Sequence:  t.Entry.Sequence,
		Now:       timestamppb.New(t.cfg.Now()),
		Step:      t.Step(),
	}
}

// Snapshot returns a clone of the step's snapshot whose message count includes the
// messages of the journal.
func (t *Task) Snapshot() *harnessv1.Snapshot {
	t.mu.Lock()
	messages, weight, room := t.messages, t.bytes, t.media
	t.mu.Unlock()
	return runstate.Counted(t.Step().GetSnapshot(), messages, weight, room)
}

// Tail returns the newest record of the run that this task knows.
func (t *Task) Tail() runlog.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail
}

// OnHeartbeat sets the function to call at each heartbeat, with the view that it is
// based on.
func (t *Task) OnHeartbeat(f func(ctx context.Context, view runlog.View)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onHeartbeat = f
}
