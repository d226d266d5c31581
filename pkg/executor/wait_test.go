package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// never is longer than a test.
const never = time.Hour

// TestWaitingStepsHoldNoSlot checks that a worker with two slots executes another step
// while twenty wait, and that all of these continue.
func TestWaitingStepsHoldNoSlot(t *testing.T) {
	b, g := newBed(t), newGate()
	m, reader := measured(t)
	g.admit("other")
	stop := b.runs(Config{Log: b.log, Concurrency: 2, Poll: never, Metrics: m}, g.pure())
	const waits = 20
	for i := range waits {
		b.startRun(fmt.Sprint("w", i))
	}
	g.await(b, 2*waits, true)
	b.startRun("other")
	b.passed("other")
	g.await(b, 1, false)
	// A step counts once it has given up its slot, shortly after its decision.
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := int64(0); got != waits; got = readings(t, reader, "harness.step.waiting")["compaction"] {
		if patient.Err() != nil {
			t.Fatalf("%d steps wait, want %d", got, waits)
		}
		runtime.Gosched()
	}
	for i := range waits {
		id := fmt.Sprint("w", i)
		g.admit(id)
		g.report(id)
		b.passed(id)
	}
	g.await(b, waits, false)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := readings(t, reader, "harness.step.waiting")["compaction"]; got != 0 || g.watches != 0 || g.more() != 0 {
		t.Errorf("after the end %d steps wait, %d watches remain, %d decisions", got, g.watches, g.more())
	}
}

// TestWaitEnds checks what ends a wait, and that only that is counted.
func TestWaitEnds(t *testing.T) {
	const id = "r"
	run := runlog.Run{Namespace: "default", ID: id}
	input := func(b *bed) {
		if _, _, err := b.writer.AppendInbox(b.t.Context(), run, &harnessv1.InboxItem{Id: "i"}, 0); err != nil {
			b.t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		takeover time.Duration // a third of three fifths of it is the interval of heartbeats
		until    time.Duration // from now
		poll     time.Duration
		do       func(b *bed, g *gate)
		want     telemetry.WaitEnd
	}{
		{"report", never, 0, never, func(_ *bed, g *gate) { g.report(id) }, telemetry.WaitChanged},
		{"poked input", never, 0, never, func(b *bed, _ *gate) {
			if err := b.log.Flush(b.t.Context()); err != nil { // the server has the subscription to pokes
				b.t.Error(err)
			}
			input(b)
			if err := b.writer.Poke(run); err != nil {
				b.t.Error(err)
			}
		}, telemetry.WaitInput},
		{"input whose poke is lost", runlog.MinTakeover, 0, never, func(b *bed, _ *gate) { input(b) }, telemetry.WaitInput},
		{"time", never, 300 * time.Millisecond, never, func(*bed, *gate) {}, telemetry.WaitUntil},
		{"poll", never, never, 300 * time.Millisecond, func(*bed, *gate) {}, telemetry.WaitPoll},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, g := newBedWith(t, c.takeover), newGate()
			if c.until > 0 {
				g.until = time.Now().Add(c.until)
			}
			m, reader := measured(t)
			stop := b.runs(Config{Log: b.log, Poll: c.poll, Metrics: m}, g.pure())
			b.startRun(id)
			g.await(b, 2, true)
			g.admit(id)
			c.do(b, g)
			b.passed(id)
			if err := stop(); err != nil {
				t.Error(err)
			}
			got, want := readings(t, reader, "harness.step.wait.duration"), map[string]int64{string(c.want): 1}
			if !maps.Equal(got, want) {
				t.Errorf("the waits ended by %v, want %v", got, want)
			}
		})
	}
}

// TestPokeWithoutInputIsIgnored checks that a poke without a new item does not repeat
// the decision, and that an item repeats it once.
func TestPokeWithoutInputIsIgnored(t *testing.T) {
	b, g := newBed(t), newGate()
	m, reader := measured(t)
	b.runs(Config{Log: b.log, Poll: never, Metrics: m}, g.pure())
	run := b.startRun("r").Run
	g.await(b, 2, true)
	if err := b.log.Flush(t.Context()); err != nil { // the server has the subscription to pokes
		t.Fatal(err)
	}
	poke := func() {
		if err := b.writer.Poke(run); err != nil {
			t.Error(err)
		}
	}
	poke()
	if _, _, err := b.writer.AppendInbox(t.Context(), run, &harnessv1.InboxItem{Id: "i"}, 0); err != nil {
		t.Fatal(err)
	}
	poke()
	g.await(b, 1, true)
	poke()
	g.admit("r")
	g.report("r")
	b.passed("r")
	g.await(b, 1, false)
	if got, want := readings(t, reader, "harness.step.wait.duration"), (map[string]int64{"input": 1, "changed": 1}); !maps.Equal(got, want) {
		t.Errorf("the waits ended by %v, want %v", got, want)
	}
}

// TestChangeBeforeReportsIsFound checks that a change between the decision and the
// start of the reports is not missed.
func TestChangeBeforeReportsIsFound(t *testing.T) {
	b, g := newBed(t), newGate()
	x := g.pure()
	x.Changes = func(ctx context.Context, task *Task, keys []string) (<-chan struct{}, func()) {
		g.admit(task.Run.ID)
		return g.watch(ctx, task, keys)
	}
	b.runs(Config{Log: b.log, Poll: never}, x)
	b.startRun("r")
	b.passed("r")
}

// TestWaitForOtherKeysIsWatched checks that a decision may wait for other keys than
// before, and that decisions that always do so wait nevertheless.
func TestWaitForOtherKeysIsWatched(t *testing.T) {
	b := newBed(t)
	d := &testDelivery{entry: b.step("compaction")}
	var watched []string
	n := 0
	x := &Pure{
		ExecutorName: "compaction",
		Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			if n++; n == 25 {
				return outcomeOf(in), nil
			}
			return waitFor(&harnessv1.Wait{Keys: []string{fmt.Sprint(n)}}), nil
		},
		Changes: func(_ context.Context, _ *Task, keys []string) (<-chan struct{}, func()) {
			watched = append(watched, keys...)
			changed := make(chan struct{}, 1)
			changed <- struct{}{}
			return changed, func() { watched = append(watched, "end") }
		},
	}
	loopOf(Config{Log: b.log, Poll: never}, x).handle(t.Context(), d.received())
	// Decisions 1 to 8 are repeated, 9 waits, 10 to 17 are repeated, and so on.
	if got := d.calls(); got != "[wait wait ack]" {
		t.Errorf("the delivery: %s", got)
	}
	var want []string
	for i := range 24 {
		want = append(want, fmt.Sprint(i+1), "end")
	}
	if !slices.Equal(watched, want) {
		t.Errorf("watched %s, want %s", watched, want)
	}
}

// TestKeysThatEndTogether checks that a change is found that comes right after a decision
// with other keys than the decision before has read them: fewer, because one has ended, or others.
func TestKeysThatEndTogether(t *testing.T) {
	for name, keys := range map[string][2][]string{"fewer": {{"a", "b"}, {"b"}}, "others": {{"a", "b"}, {"b", "c"}}} {
		t.Run(name, func(t *testing.T) { keysEndTogether(t, keys) })
	}
}

func keysEndTogether(t *testing.T, keys [2][]string) {
	b := newBed(t)
	d := &testDelivery{entry: b.step("compaction")}
	var first chan struct{}
	n := 0
	x := &Pure{
		ExecutorName: "compaction",
		Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			switch n++; n {
			case 1:
				return waitFor(&harnessv1.Wait{Keys: keys[0]}), nil
			case 2: // the key that is left ends after this has read it
				first <- struct{}{}
				return waitFor(&harnessv1.Wait{Keys: keys[1]}), nil
			}
			return outcomeOf(in), nil
		},
		Changes: func(context.Context, *Task, []string) (<-chan struct{}, func()) {
			changed := make(chan struct{}, 1)
			if first == nil {
				first = changed
			}
			return changed, func() {}
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	loopOf(Config{Log: b.log, Poll: never}, x).handle(ctx, d.received())
	cancel()
	if got := d.calls(); n != 3 || !strings.HasSuffix(got, "ack]") {
		t.Errorf("%d decisions, the delivery: %s", n, got)
	}
}

// TestDecisionAfterWaitStartsAgain checks that a decision after a wait has the present
// time and no observations, that Bind is called for it, and that the rounds of a
// decision are bounded by themselves.
func TestDecisionAfterWaitStartsAgain(t *testing.T) {
	b := newBed(t)
	d := &testDelivery{entry: b.step("compaction")}
	binds, decisions := 0, 0
	var last time.Time
	x := &Pure{ExecutorName: "compaction"}
	x.Bind = func(context.Context, *Task) (Decide, ObserveNeeds, error) {
		binds++
		decide := func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			if len(in.GetObserved()) == 0 {
				decisions++
				if now := in.GetNow().AsTime(); !now.After(last) {
					t.Errorf("decided at %s after %s", now, last)
				} else {
					last = now
				}
			}
			switch {
			case len(in.GetObserved()) < maxRounds*3/4:
				return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{"k"}}}}, nil
			case decisions < 4:
				return waitFor(&harnessv1.Wait{Until: in.GetNow()}), nil
			}
			return outcomeOf(in), nil
		}
		observe := func(context.Context, *harnessv1.Needs) ([]*harnessv1.Observation, error) {
			return []*harnessv1.Observation{{Key: "k"}}, nil
		}
		return decide, observe, nil
	}
	loopOf(Config{Log: b.log, Poll: never}, x).handle(t.Context(), d.received())
	if d.calls() != "[wait wait ack]" || binds != 4 || decisions != 4 {
		t.Errorf("the delivery: %s, after %d decisions and %d calls of Bind", d.calls(), decisions, binds)
	}
}

// TestStopPutsWaitingStepsBack checks that a worker that stops does not wait for its
// waits, also while it drains, and that another worker continues.
func TestStopPutsWaitingStepsBack(t *testing.T) {
	b, g := newBed(t), newGate()
	m, reader := measured(t)
	stop := b.runs(Config{Log: b.log, Poll: never, Drain: never, Metrics: m}, g.pure())
	for i := range 3 {
		b.startRun(fmt.Sprint("r", i))
	}
	g.await(b, 2*3, true)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got, want := readings(t, reader, "harness.step.duration"), (map[string]int64{string(telemetry.PutBack): 3}); !maps.Equal(got, want) {
		t.Errorf("the steps ended as %v, want %v", got, want)
	}
	other := newGate()
	for i := range 3 {
		other.admit(fmt.Sprint("r", i))
	}
	b.runs(Config{Log: b.open(), Poll: never}, other.pure())
	for i := range 3 {
		b.passed(fmt.Sprint("r", i))
	}
}

// TestStopRequestsRedelivery checks that a step whose wait is interrupted by the stop of
// its worker is put back without a delay.
func TestStopRequestsRedelivery(t *testing.T) {
	b, g := newBed(t), newGate()
	d := &testDelivery{entry: b.step("compaction")}
	stopping, stop := context.WithCancel(t.Context())
	l := loopOf(Config{Log: b.log, Poll: never}, g.pure())
	ended := make(chan telemetry.Outcome)
	go func() {
		ended <- l.handle(t.Context(), &stepDelivery{Delivery: d, onStop: func(f func()) func() bool { return context.AfterFunc(stopping, f) }})
	}()
	g.await(b, 2, true)
	stop()
	if got := <-ended; got != telemetry.PutBack || d.calls() != "[wait nak 0s]" {
		t.Errorf("the step ended as %s, the delivery: %s", got, d.calls())
	}
}

// viewedLog reports each view that has been read.
type viewedLog struct {
	Log
	views chan struct{}
}

func newViewedLog(log Log) *viewedLog { return &viewedLog{Log: log, views: make(chan struct{}, 1000)} }

func (l *viewedLog) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	defer func() { l.views <- struct{}{} }()
	return l.Log.View(ctx, run, contains)
}

// TestLostStepEndsItsWait checks that a wait ends, without a reply, when another worker
// takes the step after the first heartbeat.
func TestLostStepEndsItsWait(t *testing.T) {
	t.Parallel()
	b, g := newBedWith(t, runlog.MinTakeover), newGate()
	m, reader := measured(t)
	d := &testDelivery{entry: b.step("compaction")}
	log := newViewedLog(b.log)
	l := loopOf(Config{Log: log, Poll: never, Metrics: m}, g.pure())
	ended := make(chan telemetry.Outcome)
	go func() { ended <- l.handle(t.Context(), d.received()) }()
	g.await(b, 2, true)
	<-log.views
	b.step("turn")
	if got := <-ended; got != telemetry.FencedOff {
		t.Errorf("the step ended as %s", got)
	}
	if records := b.tail(2); d.calls() != "[wait]" || len(records) > 0 {
		t.Errorf("said %s, stored %v", d.calls(), records)
	}
	if got, want := readings(t, reader, "harness.step.wait.duration"), (map[string]int64{"stopped": 1}); !maps.Equal(got, want) {
		t.Errorf("the waits ended by %v, want %v", got, want)
	}
	l.stopPokes()
}

// TestWaitSurvivesItsWorker checks that the step of a worker that dies during a wait
// goes to another worker, which decides again.
func TestWaitSurvivesItsWorker(t *testing.T) {
	t.Parallel()
	b, g := newBedWith(t, runlog.MinTakeover), newGate()
	dying := b.open()
	stop := b.runs(Config{Log: dying, Poll: never}, g.pure())
	b.startRun("r")
	g.await(b, 2, true)
	dying.Close()
	if err := stop(); err != nil && !errors.Is(err, runlog.ErrUnavailable) {
		t.Error(err)
	}
	other := newGate()
	b.runs(Config{Log: b.log, Poll: never}, other.pure())
	other.await(b, 2, true)
	other.admit("r")
	other.report("r")
	b.passed("r")
}

// TestWaitKeepsItsDelivery checks that a step that waits for twice the takeover time is not delivered again, and that its heartbeats need one view, and one more for
// each input that comes later. An executor that sees the views gets one with each heartbeat.
func TestWaitKeepsItsDelivery(t *testing.T) {
	const takeover = 3 * time.Second
	for name, sees := range map[string]bool{"pure": false, "with a function": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, g := newBedWith(t, takeover), newGate()
			m, reader := measured(t)
			log := newViewedLog(b.log)
			x := g.pure()
			x.Bind = func(_ context.Context, task *Task) (Decide, ObserveNeeds, error) {
				if sees {
					task.OnHeartbeat(func(context.Context, runlog.View) {})
				}
				return g.decide, nil, nil
			}
			b.runs(Config{Log: log, Poll: never, Metrics: m}, x)
			run := b.startRun("r").Run
			g.await(b, 2, true)
			<-log.views
			if _, _, err := b.writer.AppendInbox(t.Context(), run, &harnessv1.InboxItem{Id: "i"}, 0); err != nil {
				t.Fatal(err)
			}
			g.await(b, 1, true)
			g.setUntil(time.Now().Add(2 * takeover))
			g.report("r")
			g.await(b, 1, true)
			g.admit("r")
			b.passed("r")
			if got := readings(t, reader, "harness.step.redeliveries")["compaction"]; got != 0 {
				t.Errorf("delivered again %d times", got)
			}
			if got := len(log.views); sees != (got > 3) {
				t.Errorf("%d views", got)
			}
		})
	}
}

// TestWaitAboveTheBoundKeepsItsSlot checks the bound of the steps that wait without a
// slot.
func TestWaitAboveTheBoundKeepsItsSlot(t *testing.T) {
	b := newBed(t)
	for waiting, want := range map[int]string{maxWaiting: "[ack]", maxWaiting - 1: "[wait ack]"} {
		d := &testDelivery{entry: b.step("compaction")}
		n := 0
		l := loopOf(Config{Log: b.log, Poll: time.Millisecond}, &Pure{ExecutorName: "compaction", Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			if n++; n == 3 {
				return outcomeOf(in), nil
			}
			return waitFor(&harnessv1.Wait{}), nil
		}})
		l.waiting = waiting
		l.handle(t.Context(), d.received())
		if d.calls() != want || l.waiting != waiting {
			t.Errorf("with %d others: %s, then %d wait", waiting, d.calls(), l.waiting)
		}
		b.tail(0) // the newest record
		l.stopPokes()
	}
}

// TestWaitsAreNotPartOfTheStep checks that the duration of a step does not include its
// waits.
func TestWaitsAreNotPartOfTheStep(t *testing.T) {
	b := newBed(t)
	now := noon
	g := newGate()
	d := &testDelivery{entry: b.step("compaction")}
	l := loopOf(Config{Log: b.log, Poll: never, Now: func() time.Time { return now }}, &Pure{
		ExecutorName: "compaction",
		Decide: func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
			if g.watches++; g.watches == 3 {
				return outcomeOf(in), nil
			}
			return waitFor(&harnessv1.Wait{Until: in.GetNow()}), nil
		},
	})
	r := d.received()
	d.onWait = func() { now = now.Add(time.Minute) }
	l.handle(t.Context(), r)
	if r.waited != time.Minute {
		t.Errorf("the step waited for %s", r.waited)
	}
	l.stopPokes()
}

// TestTaskWithoutLoopDoesNotWait checks the error of a wait that no loop executes.
func TestTaskWithoutLoopDoesNotWait(t *testing.T) {
	x := &Pure{ExecutorName: "compaction", Decide: func(*harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		return waitFor(&harnessv1.Wait{}), nil
	}}
	_, err := x.Execute(t.Context(), looseTask(&harnessv1.StepInput{Step: stepTo("compaction")}))
	if err == nil || !strings.Contains(err.Error(), "only a step from the run log can do") {
		t.Errorf("got %v", err)
	}
}
