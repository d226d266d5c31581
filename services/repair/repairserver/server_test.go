package repairserver_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

// bed is a log on its own server, with a repair worker.
type bed struct {
	*testing.T
	ctx context.Context
	log runlog.Log
}

func newBed(t *testing.T, cfg repairserver.Config) *bed {
	t.Helper()
	return newBedOn(t, cfg, func(log repairserver.Log) repairserver.Log { return log })
}

// newBedOn is newBed with a log that is in front of that of the bus.
func newBedOn(t *testing.T, cfg repairserver.Config, front func(repairserver.Log) repairserver.Log) *bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	dir, err := os.MkdirTemp("", "repairserver")
	b := &bed{T: t, ctx: ctx}
	b.must(err)
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: dir})
	b.must(err)
	log, err := server.Open(ctx, jetstream.Config{}, jetstream.Layout{})
	b.must(err)
	b.log, cfg.Log = log, front(log)
	cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	ended := make(chan error, 1)
	work, stop := context.WithCancel(ctx)
	go func() {
		ended <- repairserver.New(cfg).Run(work, executor.Config{Log: log, Instance: executor.NewInstance()})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		log.Close()
		server.Stop()
		_ = os.RemoveAll(dir)
		cancel()
	})
	return b
}

func (b *bed) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) eventually(what string, is func() bool) {
	b.Helper()
	for !is() {
		select {
		case <-b.ctx.Done():
			b.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

var nonces atomic.Uint64

// append stores a step after the newest record.
func (b *bed) append(run runlog.Run, step *harnessv1.Step) runlog.Entry {
	b.Helper()
	rec := &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: 1, Schema: runlog.Schema, CommitTime: timestamppb.Now(),
		Writer: &harnessv1.Writer{Executor: "test", Instance: "test", Nonce: nonces.Add(1)},
		Body:   &harnessv1.Record_Step{Step: step},
	}
	v, err := b.log.View(b.ctx, run, 0)
	if !errors.Is(err, runlog.ErrNotFound) {
		b.must(err)
		rec.Version, rec.PrevSequence = v.Newest.Header.Version+1, v.Newest.Sequence
	}
	sequence, err := b.log.Append(b.ctx, rec)
	b.must(err)
	return runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec}
}

func (b *bed) newest(run runlog.Run) runlog.Entry {
	b.Helper()
	v, err := b.log.View(b.ctx, run, 0)
	b.must(err)
	return v.Newest
}

// state is that of a run in its third turn.
func state() *harnessv1.Snapshot {
	return &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 2, MaxTurns: 50, MessageCount: 5,
		Workflow: workflow.Default(), Config: runstate.Resolve(nil, 0),
	}
}

func to(executor string) *harnessv1.Step {
	return &harnessv1.Step{From: "test", To: executor, Snapshot: state(), Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{}}}
}

// begun is a run that repair has handed on to an executor.
func (b *bed) begun(id, executor string) (runlog.Run, runlog.Entry) {
	b.Helper()
	run, s := runlog.Run{Namespace: "test", ID: id}, state()
	s.Workflow = []string{"repair", executor, "stopdecision"}
	b.append(run, &harnessv1.Step{From: "test", To: "repair", Snapshot: s, Message: &harnessv1.Step_RepairTrigger{
		RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE},
	}})
	var handed runlog.Entry
	b.eventually("repair hands "+id+" on", func() bool {
		handed = b.newest(run)
		return handed.Header.Version > 1
	})
	return run, handed
}

// TestSweep: a step that was acknowledged and lost is handed over again, one without
// a consumer is reported once, and one that a worker has is left alone.
func TestSweep(t *testing.T) {
	b := newBed(t, repairserver.Config{Sweep: 5 * time.Millisecond})
	held, once := make(chan struct{}), sync.Once{}
	deliveries := make(chan runlog.Delivery, 16)
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- b.log.Consume(ctx, "turn", 8, func(ctx context.Context, d runlog.Delivery) {
			switch {
			case d.Entry().Run.ID == "held":
				once.Do(func() { close(held) })
				<-ctx.Done()
			default:
				deliveries <- d
			}
		})
	}()
	defer func() {
		cancel()
		if err := <-ended; ctx.Err() == nil {
			t.Error(err)
		}
	}()

	missing := func(id string) runlog.Run {
		run, _ := b.begun(id, "nobody")
		b.eventually("the step without a consumer is reported", func() bool { return b.newest(run).Header.Version == 3 })
		return run
	}
	unserved := missing("unserved")
	if rec := b.newest(unserved).Record; rec.GetJournal().GetExecutorAbsent().GetExecutor() != "nobody" || rec.GetEvents()[0].GetExecutorMissing().GetExecutor() != "nobody" {
		t.Errorf("it is reported by %v", rec)
	}
	lost := func(id string) {
		run, e := b.begun(id, "turn")
		first := <-deliveries
		b.must(first.Ack()) // and nothing follows
		again := <-deliveries
		if again.Entry().Run != run || again.Entry().Sequence <= e.Sequence || !proto.Equal(handedOn(again.Entry()), handedOn(e)) {
			t.Errorf("%s is handed over again as %v", id, again.Entry().Record)
		}
		if events := again.Entry().Record.GetEvents(); len(events) != 1 || events[0].GetExecutorError().GetExecutor() != "turn" {
			t.Errorf("%s is reported by %v", id, events)
		}
		b.append(run, to(runlog.End)) // before the acknowledgement, as every executor does
		b.must(again.Ack())
	}
	for i := range 3 {
		lost(fmt.Sprint("lost", i))
	}
	working, at := b.begun("held", "turn")
	<-held
	for i := range 3 { // each takes two sweeps at least
		missing(fmt.Sprint("unserved", i))
	}
	if got := b.newest(working); got.Sequence != at.Sequence {
		t.Errorf("a step that a worker has was followed by %v", got.Record)
	}
	if got := b.newest(unserved).Header.Version; got != 3 {
		t.Errorf("a run without a consumer is at version %d, want 3", got)
	}
}

// TestSweepsHurry: soon after a start, a step that was acknowledged and lost is handed over
// again, without a wait of two intervals.
func TestSweepsHurry(t *testing.T) {
	b := newBed(t, repairserver.Config{Sweep: time.Hour, Hurry: 100 * time.Millisecond})
	deliveries := make(chan runlog.Delivery, 2)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- b.log.Consume(ctx, "turn", 1, func(_ context.Context, d runlog.Delivery) { deliveries <- d })
	}()
	run, _ := b.begun("lost", "turn")
	first := <-deliveries
	b.must(first.Ack())
	again := <-deliveries
	if again.Entry().Run != run {
		t.Errorf("%v is handed over again", again.Entry().Run)
	}
	b.append(run, to(runlog.End))
	b.must(again.Ack())
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// turnedLog is the log of a bus whose clock goes back.
type turnedLog struct {
	repairserver.Log
	turned chan struct{}
}

func (l turnedLog) Turned() <-chan struct{} { return l.turned }

// TestAStepOfADeadWorkerAfterTheClockHasGoneBack is delivered again, without a sweep. Its delivery lies ahead
// of the clock of the bus, as one that was made before the clock went back.
func TestAStepOfADeadWorkerAfterTheClockHasGoneBack(t *testing.T) {
	turned := make(chan struct{}, 1)
	b := newBedOn(t, repairserver.Config{Sweep: time.Hour, Hurry: time.Hour}, func(log repairserver.Log) repairserver.Log { return turnedLog{log, turned} })
	deliveries := make(chan runlog.Delivery, 3)
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- b.log.Consume(ctx, "turn", 2, func(_ context.Context, d runlog.Delivery) { deliveries <- d })
	}()
	_, before := b.begun("other", "turn")
	other := <-deliveries
	run, _ := b.begun("dead", "turn")
	first := <-deliveries
	b.must(first.Nak(time.Hour))
	b.must(other.Ack())
	b.eventually("the delay and the acknowledgement that follows it have arrived", func() bool {
		floor, err := b.log.AckFloor(b.ctx, before.Run, "turn")
		return err == nil && floor >= before.Sequence
	})
	turned <- struct{}{}
	again := <-deliveries
	if again.Entry().Run != run {
		t.Errorf("%v is delivered again", again.Entry().Run)
	}
	b.must(again.Ack())
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestAParkWhoseTimerIsLost is resumed by the sweep.
func TestAParkWhoseTimerIsLost(t *testing.T) {
	b := newBed(t, repairserver.Config{Sweep: 5 * time.Millisecond})
	s := state()
	s.Status, s.Phase, s.PausedPhase = harnessv1.RunStatus_RUN_STATUS_PARKED, harnessv1.Phase_PHASE_IDLE, harnessv1.Phase_PHASE_EXECUTING
	s.StopReason, s.ParkVersion, s.WakeAt = &harnessv1.StopReason{Kind: "provider_unavailable"}, 1, timestamppb.New(time.Now().Add(-time.Hour))
	run := runlog.Run{Namespace: "test", ID: "late"}
	b.append(run, &harnessv1.Step{From: "test", To: runlog.Park, Snapshot: s, Message: &harnessv1.Step_Parked{Parked: &harnessv1.Parked{Reason: s.GetStopReason(), WakeAt: s.GetWakeAt()}}})
	b.eventually("it continues", func() bool { return b.newest(run).Record.GetStep().GetTo() == "compaction" })
	last, err := b.log.LastInbox(b.ctx, run)
	b.must(err)
	items, err := b.log.Inbox(b.ctx, run, 0, last)
	b.must(err)
	if len(items) != 1 || items[0].GetTimerFired().GetParkVersion() != 1 || time.Since(items[0].GetTime().AsTime()) > time.Minute {
		t.Errorf("the timer is stored as %v", items)
	}
}

// handedOn is what an executor gets of a step.
func handedOn(e runlog.Entry) *harnessv1.Step {
	step := proto.CloneOf(e.Record.GetStep())
	step.PhaseChanges, step.Observed = nil, nil
	return step
}

// closing is the record of a deletion.
func closing(expired time.Time) *harnessv1.Step {
	s := state()
	s.Status, s.Phase, s.ExpireTime = harnessv1.RunStatus_RUN_STATUS_CANCELLED, harnessv1.Phase_PHASE_DONE, timestamppb.New(expired)
	return &harnessv1.Step{From: "gateway", To: runlog.End, Snapshot: s, Message: &harnessv1.Step_Result{Result: &harnessv1.HarnessResult{}}}
}

// TestADeletedRunIsErased: immediately all but its closing record, and that when its
// time is over.
func TestADeletedRunIsErased(t *testing.T) {
	b := newBed(t, repairserver.Config{KeepDeleted: time.Hour})
	gone := func(e runlog.Entry) bool {
		_, err := b.log.Read(b.ctx, e.Run, e.Sequence)
		return errors.Is(err, runlog.ErrNotFound)
	}
	run := runlog.Run{Namespace: "test", ID: "young"}
	first := b.append(run, to(runlog.End))
	ref, err := b.log.PutBlob(b.ctx, run, []byte("large"))
	b.must(err)
	last := b.append(run, closing(time.Now()))
	b.eventually("its records are gone but one", func() bool { return gone(first) })
	b.eventually("its blob is gone", func() bool {
		_, err := b.log.Blob(b.ctx, run, ref.GetDigest())
		return errors.Is(err, runlog.ErrNotFound)
	})
	if got := b.newest(run); got.Sequence != last.Sequence {
		t.Errorf("what is left is %v", got.Record)
	}
	if _, _, err := b.log.AppendInbox(b.ctx, run, &harnessv1.InboxItem{Id: "late", Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}, 0); err != nil {
		t.Fatal(err)
	}
	b.eventually("an input that came late is gone", func() bool {
		last, err := b.log.LastInbox(b.ctx, run)
		b.must(err)
		return last == 0
	})

	old := runlog.Run{Namespace: "test", ID: "old"}
	b.append(old, to(runlog.End))
	b.append(old, closing(time.Now().Add(-2*time.Hour)))
	b.eventually("a run whose time is over is gone", func() bool {
		_, err := b.log.View(b.ctx, old, 0)
		return errors.Is(err, runlog.ErrNotFound)
	})
	if e := b.append(old, to(runlog.End)); e.Header.Version != 1 {
		t.Errorf("its name is used again at version %d", e.Header.Version)
	}
	if got := b.newest(run); got.Sequence != last.Sequence {
		t.Error("the last record of a run went before its time")
	}
}

// TestErasuresLeaveRoomForOthers: more runs than are erased at the same time, one
// after another.
func TestErasuresLeaveRoomForOthers(t *testing.T) {
	b := newBed(t, repairserver.Config{KeepDeleted: time.Hour})
	for i := range 6 {
		run := runlog.Run{Namespace: "test", ID: fmt.Sprint("r", i)}
		first := b.append(run, to(runlog.End))
		b.append(run, closing(time.Now()))
		b.eventually(run.ID+" is erased", func() bool {
			_, err := b.log.Read(b.ctx, run, first.Sequence)
			return errors.Is(err, runlog.ErrNotFound)
		})
	}
}

// rivalLog appends a record of another worker before the first wake.
type rivalLog struct {
	repairserver.Log
	rival func()
	once  sync.Once
}

func (l *rivalLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if rec.GetStep().GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE {
		l.once.Do(l.rival)
	}
	return l.Log.Append(ctx, rec)
}

// TestWakeReadsAgainAfterAConflict and puts no message back.
func TestWakeReadsAgainAfterAConflict(t *testing.T) {
	b := &bed{T: t, ctx: t.Context()}
	server, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir()})
	b.must(err)
	defer server.Stop()
	log, err := server.Open(b.ctx, jetstream.Config{}, jetstream.Layout{})
	b.must(err)
	defer log.Close()
	b.log = log
	run := runlog.Run{Namespace: "test", ID: "r"}
	var logged strings.Builder
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	worker := repairserver.New(repairserver.Config{Logger: slog.New(slog.NewTextHandler(&logged, nil)), Log: &rivalLog{Log: log, rival: func() {
		b.append(run, parkedFor("c", time.Now()))
	}}})
	go func() { ended <- worker.Run(ctx, executor.Config{Log: log, Instance: executor.NewInstance()}) }()
	b.append(run, parkedFor("c", time.Now()))
	_, _, err = log.AppendInbox(b.ctx, run, &harnessv1.InboxItem{Id: "i", Time: timestamppb.Now(), Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}}, 0)
	b.must(err)
	b.eventually("the interrupt is taken in", func() bool { return b.newest(run).Record.GetStep().GetSnapshot().GetInboxCursor() > 0 })
	cancel()
	b.must(<-ended)
	if strings.Contains(logged.String(), "put back") {
		t.Errorf("a message was put back:\n%s", logged.String())
	}
}
