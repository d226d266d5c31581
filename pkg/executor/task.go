package executor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
)

// Task is one step in work. Its methods may be called by several goroutines.
type Task struct {
	// Run is the run.
	Run runlog.Run
	// Entry is the record that holds the step; shared, not to be changed.
	Entry runlog.Entry
	// Journal is what was appended behind the step before this delivery, oldest
	// first. Empty on a first delivery.
	Journal []runlog.Entry
	// Redelivered says that the step was delivered before.
	Redelivered bool

	cfg      Config
	executor string

	// appending holds a token while a record is being appended, so that records
	// follow each other. mu is never held across that: an append may take long.
	appending chan struct{}

	step *harnessv1.Step // with everything in place; nil while the record's is

	mu       sync.Mutex
	offered  *harnessv1.Writer // of the record that is being appended; nil while none is
	tail     runlog.Entry      // newest record: the journal's last, or the step
	count    uint64            // messages appended by the journal
	weight   uint64            // and their bytes
	mine     bool              // the tail was written by this task
	onHeart  func(ctx context.Context, view runlog.View)
	failures uint32
}

func newTask(cfg Config, executor string, d runlog.Delivery, journal []runlog.Entry) *Task {
	e := d.Entry()
	t := &Task{
		Run: e.Run, Entry: e, Journal: journal, Redelivered: d.Redelivered(),
		cfg: cfg, executor: executor, tail: e, appending: make(chan struct{}, 1),
	}
	for _, j := range journal {
		t.tail = j
		t.note(j.Record)
		if f := j.Record.GetJournal().GetExecutorFailed(); f != nil {
			t.failures = f.GetCount()
		}
	}
	return t
}

// NewTask makes a task that is not under a loop, for the gRPC forms of the
// executors: nothing of it can be appended.
func NewTask(in *harnessv1.StepInput) *Task {
	e := runlog.Entry{
		Run:      runlog.Run{Namespace: in.GetNamespace(), ID: in.GetRunId()},
		Sequence: in.GetSequence(),
		Header:   runlog.Header{Version: in.GetVersion(), Schema: runlog.Schema},
		Record: &harnessv1.Record{
			Namespace: in.GetNamespace(), RunId: in.GetRunId(), Version: in.GetVersion(),
			Body: &harnessv1.Record_Step{Step: in.GetStep()},
		},
	}
	return &Task{Run: e.Run, Entry: e, cfg: Config{}.withDefaults(), tail: e}
}

func (t *Task) note(rec *harnessv1.Record) {
	t.count += uint64(len(rec.GetAppended()))
	for _, m := range rec.GetAppended() {
		t.weight += runstate.MessageBytes(m)
	}
}

// Step is the step; shared, not to be changed. Work items and coverage are in
// place wherever they are stored; contract and definition may be references.
func (t *Task) Step() *harnessv1.Step {
	if t.step != nil {
		return t.step
	}
	return t.Entry.Record.GetStep()
}

// parts are shared by all tasks of this process.
var parts runstate.Parts

// unpack puts the parts of the snapshot in place that are stored elsewhere and
// change in a run.
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

// Input is the step as a pure decision gets it.
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

// Snapshot is a clone of the step's snapshot, with the messages counted that
// the journal has appended since.
func (t *Task) Snapshot() *harnessv1.Snapshot {
	s := runstate.Clone(t.Step().GetSnapshot())
	if s == nil {
		s = &harnessv1.Snapshot{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.MessageCount += t.count
	if t.weight > 0 {
		if s.TokenBudget == nil {
			s.TokenBudget = &harnessv1.TokenBudget{}
		}
		s.TokenBudget.UnreportedBytes += t.weight
	}
	return s
}

// Tail is the newest record of the run as far as this task knows.
func (t *Task) Tail() runlog.Entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tail
}

// OnHeartbeat calls f at each heartbeat, with the view that it is based on.
func (t *Task) OnHeartbeat(f func(ctx context.Context, view runlog.View)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.onHeart = f
}

// Note appends an entry to the run's journal, behind everything that this task
// knows of. Message ids are set here. Errors: runlog.ErrFenced, ErrUnavailable.
func (t *Task) Note(ctx context.Context, entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) error {
	done, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	t.mu.Lock()
	next := t.Step().GetSnapshot().GetMessageCount() + t.count
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

// commit appends the outcome. The step's changes of phase are checked first.
func (t *Task) commit(ctx context.Context, outcome *harnessv1.Outcome) error {
	step := outcome.GetStep()
	if step.GetTo() == "" || step.GetSnapshot() == nil || step.GetMessage() == nil {
		return fmt.Errorf("%s returned a step without addressee, snapshot or message", t.executor)
	}
	if err := runstate.CheckPhases(t.Step().GetSnapshot(), step); err != nil {
		return err
	}
	done, err := t.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
	tail := t.Tail()
	begins := step.GetTo() == runlog.Park && step.GetSnapshot().GetParkVersion() == 0
	if begins {
		step.Snapshot.ParkVersion = tail.Header.Version + 1
	}
	rec := &harnessv1.Record{Appended: outcome.GetAppended(), Events: outcome.GetEvents(), Body: &harnessv1.Record_Step{Step: step}}
	if at := step.GetParked().GetWakeAt(); at != nil && begins {
		// Before the commit: a timer of a park that never was is ignored, a
		// park without its timer would rest for ever.
		_, err := t.insist(ctx, func() (uint64, error) {
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

// A record that could not be stored is offered again for so long, at such pauses.
const (
	patience    = 30 * time.Second
	appendPause = 250 * time.Millisecond
)

var errSnapshotTooLarge = errors.New("the snapshot is over its bound")

// begin waits until no other record is being appended. done lets the next one in.
func (t *Task) begin(ctx context.Context) (done func(), err error) {
	if t.cfg.Log == nil {
		return nil, errors.New("this task stands outside the log: nothing of it can be appended")
	}
	select {
	case t.appending <- struct{}{}:
		return func() { <-t.appending }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: an append before this one has no answer: %w", runlog.ErrUnavailable, context.Cause(ctx))
	}
}

// append completes rec and stores it behind the tail. The caller has begun.
func (t *Task) append(ctx context.Context, rec *harnessv1.Record) error {
	tail := t.Tail()
	rec.Namespace, rec.RunId = t.Run.Namespace, t.Run.ID
	rec.Version, rec.PrevSequence = tail.Header.Version+1, tail.Sequence
	rec.AppendedBefore = runlog.AppendedBefore(tail)
	rec.Schema = runlog.Schema
	rec.CommitTime = timestamppb.New(t.cfg.Now())
	ended := t.trace(rec)
	rec.Writer = &harnessv1.Writer{Executor: t.executor, Instance: t.cfg.Instance, Nonce: rand.Uint64()} //nolint:gosec // tells records apart, keeps no secret
	t.offer(rec.GetWriter())
	sequence, err := t.insist(ctx, func() (uint64, error) { return t.store(ctx, rec) })
	if err != nil {
		return err // the writer stays: nobody knows whether its record is stored
	}
	spans.End(t.cfg.Tracer, t.Run, rec.GetStep(), ended)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offered = nil
	t.tail = runlog.Entry{Run: t.Run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
	t.mine = true
	t.note(rec)
	return nil
}

func (t *Task) offer(w *harnessv1.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offered = w
}

// insist offers a write again while the bus is away. What stands in it may have
// cost a model's answer, and nobody else can go on meanwhile either. The write
// is one that may be made again.
func (t *Task) insist(ctx context.Context, write func() (uint64, error)) (uint64, error) {
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

// store spills what is too large and appends rec.
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
	if err := runlog.Spill(ctx, rec, put); err != nil {
		return 0, err
	}
	if s := rec.GetStep().GetSnapshot(); s != nil && proto.Size(s) > spillSnapshot {
		if err := runlog.SpillTo(ctx, s, spillSnapshot, put); err != nil {
			return 0, err
		}
	}
	if s := rec.GetStep().GetSnapshot(); s != nil && proto.Size(s) > MaxSnapshot {
		if err := runlog.Shrink(ctx, s, put); err != nil {
			return 0, err
		}
	}
	if step := rec.GetStep(); step != nil && !ending(step) && proto.Size(step.GetSnapshot()) > MaxSnapshot {
		return 0, fmt.Errorf("%d bytes, the limit is %d: %w", proto.Size(step.GetSnapshot()), MaxSnapshot, errSnapshotTooLarge)
	}
	return t.cfg.Log.Append(ctx, rec)
}

// ending says that a step ends the run or asks the stop decision to: the bound
// of the snapshot must not keep a run from ending.
func ending(step *harnessv1.Step) bool {
	return step.GetTo() == runlog.End || step.GetTurnComplete().GetError() != nil
}

// holds says whether a view shows that this task still has the step: nothing
// newer than what it wrote itself. A record of its own may be seen before the
// answer to its append.
func (t *Task) holds(view runlog.View) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if view.Newest.Sequence <= t.tail.Sequence {
		return true
	}
	w := view.Newest.Record.GetWriter()
	return t.offered != nil && w.GetNonce() == t.offered.GetNonce() && w.GetInstance() == t.offered.GetInstance()
}
