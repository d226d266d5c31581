package executor

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// dies is an executor in whose work the worker dies: nothing of it is stored, acknowledged
// or put back.
var dies = executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
	runtime.Goexit()
	return nil, nil
}}

// take delivers a step to a new worker for the nth time, and returns its loop and delivery
// once its work has ended.
func (b *bed) take(ctx context.Context, x Executor, e runlog.Entry, n uint64) (*loop, *testDelivery) {
	b.t.Helper()
	l := loopOf(Config{Log: b.log, Witness: b.log}, x)
	return l, b.takeIn(ctx, l, e, n)
}

// takeIn delivers a step to a worker.
func (b *bed) takeIn(ctx context.Context, l *loop, e runlog.Entry, n uint64) *testDelivery {
	b.t.Helper()
	d := &testDelivery{entry: e, again: n > 1, number: n}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.handle(ctx, d.received())
	}()
	<-ended
	return d
}

// taken returns the deaths of the entries StepTaken after version after; -1 for one of a
// step that was put back.
func (b *bed) taken(after uint64) []int {
	b.t.Helper()
	var deaths []int
	for _, rec := range b.tail(after) {
		switch taken := rec.GetJournal().GetStepTaken(); {
		case taken.GetReturned():
			deaths = append(deaths, -1)
		case taken != nil:
			deaths = append(deaths, int(taken.GetDeaths()))
		}
	}
	return deaths
}

func (b *bed) wantTaken(want ...int) {
	b.t.Helper()
	if got := b.taken(1); !slices.Equal(got, want) {
		b.t.Errorf("the journal has the deaths %v, want %v", got, want)
	}
}

// TestThreeDeathsArePoison: the fourth worker does not execute a step in which three died.
func TestThreeDeathsArePoison(t *testing.T) {
	for _, executor := range []string{"turn", "compaction", workflow.Repair} {
		t.Run(executor, func(t *testing.T) {
			b := newBed(t)
			e := b.step(executor)
			for n := range uint64(maxDeaths) {
				if _, d := b.take(t.Context(), executorFunc{executor, dies.f}, e, n+1); d.calls() != silent {
					t.Fatalf("the dead worker said %s", d.calls())
				}
			}
			b.wantTaken(1, 2)
			_, d := b.take(t.Context(), executorFunc{executor, func(context.Context, *Task) (*harnessv1.Outcome, error) {
				t.Error("a fourth worker executed the step")
				return nil, errors.New("executed")
			}}, e, maxDeaths+1)
			records := b.tail(1)
			step := records[len(records)-1].GetStep()
			failed := step.GetTurnComplete().GetError()
			if d.calls() != acked || step.GetTo() != workflow.StopDecision || failed.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON {
				t.Errorf("said %s, stored %v", d.calls(), step)
			}
			if !strings.Contains(failed.GetMessage(), "3 workers died while they worked on this step ("+executor+")") || !strings.Contains(failed.GetMessage(), "harness resume r") {
				t.Errorf("the reason is %q", failed.GetMessage())
			}
		})
	}
}

// TestTwoDeathsAreNot: the third worker completes the step.
func TestTwoDeathsAreNot(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.take(t.Context(), dies, e, 1)
	b.take(t.Context(), dies, e, 2)
	if _, d := b.take(t.Context(), executorFunc{"turn", passesOn}, e, 3); d.calls() != acked {
		t.Errorf("said %s", d.calls())
	}
	b.wantTaken(1, 2)
}

// TestEndsThatAreNoDeaths: a worker that stops in order, that fails, that puts the step
// back for later or that lost it has not died, however often that happens.
func TestEndsThatAreNoDeaths(t *testing.T) {
	fails := func(err error) executorFunc {
		return executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) { return nil, err }}
	}
	for name, c := range map[string]struct {
		x     Executor
		stops bool // the worker stops meanwhile
		lives bool // the worker answers afterwards
		taken []int
	}{
		"it stopped":              {fails(context.Canceled), true, false, []int{-1, -1, -1}},
		"it failed":               {fails(errors.New("cannot")), false, false, nil},
		"something was away":      {fails(Retry("tool host", errors.New("away"))), false, true, nil},
		"another worker has it":   {fails(runlog.ErrFenced), false, true, nil},
		"its heartbeats got lost": {dies, false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("turn")
			for n := range uint64(maxDeaths) {
				ctx, stop := context.WithCancel(t.Context())
				l, _ := b.take(ctx, executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
					if c.stops {
						stop()
					}
					return c.x.Execute(ctx, task)
				}}, e, n+1)
				stop()
				if c.lives {
					stop, err := b.open().Testify("turn", l)
					if err != nil {
						t.Fatal(err)
					}
					defer stop()
				}
			}
			if _, d := b.take(t.Context(), executorFunc{"turn", passesOn}, e, maxDeaths+1); d.calls() != acked {
				t.Errorf("said %s", d.calls())
			}
			b.wantTaken(c.taken...)
			if records := b.tail(1); records[len(records)-1].GetStep().GetTurnComplete().GetError() != nil {
				t.Errorf("stored %v", records)
			}
		})
	}
}

// TestWorkerRemembersItsOwnDeliveries: a step that comes back to the same worker needs no
// answer of others.
func TestWorkerRemembersItsOwnDeliveries(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	l := loopOf(Config{Log: b.log, Witness: b.log}, executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		return nil, Retry("tool host", errors.New("away"))
	}})
	for n := range uint64(5) {
		b.takeIn(t.Context(), l, e, n+1)
	}
	b.wantTaken()
}

// TestStoppedWorkerThatLostTheStepIsSilent: it must not put the step of another one back.
func TestStoppedWorkerThatLostTheStepIsSilent(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	ctx, stop := context.WithCancel(t.Context())
	_, d := b.take(ctx, executorFunc{"turn", func(context.Context, *Task) (*harnessv1.Outcome, error) {
		b.journal(claimed(2)) // of another worker
		stop()
		return nil, context.Canceled
	}}, e, 1)
	if d.calls() != silent {
		t.Errorf("said %s", d.calls())
	}
}

// suspected returns a step in which two workers died.
func suspected(b *bed) runlog.Entry {
	b.t.Helper()
	e := b.step("turn")
	b.take(b.t.Context(), dies, e, 1)
	b.take(b.t.Context(), dies, e, 2)
	return e
}

// TestCompletedWorkIsNoDeath: only deaths without anything completed between them count.
func TestCompletedWorkIsNoDeath(t *testing.T) {
	b := newBed(t)
	e := suspected(b)
	for n := range uint64(3) {
		b.take(t.Context(), executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
			entry := &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{CallId: "call"}}}
			if err := task.AppendJournal(ctx, entry, nil, nil); err != nil {
				t.Error(err)
			}
			return dies.f(ctx, task)
		}}, e, n+3)
	}
	b.wantTaken(1, 2, 1, 1)
	b.take(t.Context(), dies, e, 6)
	b.take(t.Context(), dies, e, 7)
	if _, d := b.take(t.Context(), dies, e, 8); d.calls() != acked {
		t.Errorf("after three deaths in which nothing was completed it said %s", d.calls())
	}
}

// TestDeathInABatchIsOfNone: of suspected steps that begin together none has caused the
// death, until it was alone in its batch.
func TestDeathInABatchIsOfNone(t *testing.T) {
	first, second := newBed(t), newBedWith(t, 0)
	var shared suspects
	_, over, err := shared.admit(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	steps, ended := map[*bed]runlog.Entry{}, make(chan *testDelivery)
	for _, b := range []*bed{first, second} {
		steps[b] = suspected(b)
		l := loopOf(Config{Log: b.log, Witness: b.log}, dies)
		l.suspects = &shared
		go func() { ended <- b.takeIn(t.Context(), l, steps[b], 3) }()
	}
	for waiting := 0; waiting < 2; {
		runtime.Gosched()
		shared.mu.Lock()
		waiting = len(shared.waiting)
		shared.mu.Unlock()
	}
	over()
	<-ended
	<-ended
	if _, d := second.take(t.Context(), executorFunc{"turn", passesOn}, steps[second], 4); d.calls() != acked {
		t.Errorf("the innocent one said %s", d.calls())
	}
	second.wantTaken(1, 2, 2)
	first.take(t.Context(), dies, steps[first], 4)
	first.wantTaken(1, 2, 2)
	_, d := first.take(t.Context(), executorFunc{"turn", passesOn}, steps[first], 5)
	records := first.tail(1)
	if failed := records[len(records)-1].GetStep().GetTurnComplete().GetError(); d.calls() != acked || failed.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON {
		t.Errorf("the guilty one said %s, with %v", d.calls(), failed)
	}
}

// TestSuspectsBeginOneByOne: a worker in which one of two suspected steps begins, and that
// dies, counts for that one only.
func TestSuspectsBeginOneByOne(t *testing.T) {
	first, second := newBed(t), newBedWith(t, 0)
	one, other := suspected(first), suspected(second)
	// Both steps are in one worker: its loop has the log of the first, and the second
	// joins it with another log.
	began, finish := make(chan struct{}), make(chan struct{})
	l := loopOf(Config{Log: first.log, Witness: first.log}, executorFunc{"turn", func(_ context.Context, task *Task) (*harnessv1.Outcome, error) {
		close(began)
		<-finish
		return passOn(task), nil
	}})
	ended := make(chan *testDelivery)
	go func() { ended <- first.takeIn(t.Context(), l, one, 3) }()
	<-began
	waits := loopOf(Config{Log: second.log, Witness: second.log}, executorFunc{"turn", passesOn})
	waits.suspects = l.suspects
	stopped, stop := context.WithCancel(t.Context())
	go func() { ended <- second.takeIn(stopped, waits, other, 3) }()
	for !waits.Had(second.run, other.Sequence, 3) {
		runtime.Gosched()
	}
	second.wantTaken(1) // it waits: nothing of its third delivery is stored
	stop()              // as a death does, but that it is put back
	<-ended
	close(finish)
	if d := <-ended; d.calls() != acked {
		t.Errorf("the first said %s", d.calls())
	}
	first.wantTaken(1, 2)
	if _, d := second.take(t.Context(), executorFunc{"turn", passesOn}, other, 4); d.calls() != acked {
		t.Errorf("the second said %s", d.calls())
	}
}

// TestPast checks which deliveries may have ended with a death.
func TestPast(t *testing.T) {
	for name, c := range map[string]struct {
		past     past
		delivery uint64
		want     bool
	}{
		"a first delivery":                       {past{}, 1, false},
		"a second one":                           {past{}, 2, true},
		"its end was recorded":                   {past{ended: 1}, 2, false},
		"the end of an earlier one was recorded": {past{ended: 1}, 3, true},
		"suspected, it had begun":                {past{died: times(2), begun: 3}, 4, true},
		"suspected, it had not begun":            {past{died: times(2), begun: 3}, 5, false},
	} {
		if got := c.past.unexplained(c.delivery); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestLimit checks the size of the batches in which a step may begin.
func TestLimit(t *testing.T) {
	for name, c := range map[string]struct {
		past past
		died bool
		want uint32
	}{
		"not suspected":           {past{died: times(1)}, true, math.MaxUint32},
		"suspected lately":        {past{died: times(2)}, true, math.MaxUint32},
		"a death in a batch":      {past{died: times(2), company: 7}, true, 3},
		"a death alone":           {past{died: times(2), company: 1}, true, 1},
		"its worker did not die":  {past{died: times(2), company: 7}, false, 7},
		"something was completed": {past{company: 7}, true, math.MaxUint32},
	} {
		if got := c.past.limit(c.died); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// times returns n times.
func times(n int) []time.Time { return slices.Repeat([]time.Time{noon}, n) }

// TestMemoryIsBounded: the oldest deliveries are forgotten.
func TestMemoryIsBounded(t *testing.T) {
	var m memory[int]
	at := func(n int) deliveryKey { return deliveryKey{place{sequence: uint64(n)}, 1} }
	for n := range maxHad + 10 {
		m.add(at(n), n)
		m.add(at(n), n+1)
	}
	_, old := m.known[at(9)]
	if len(m.known) != maxHad || old || m.known[at(10)] != 11 || m.known[at(maxHad+9)] != maxHad+10 {
		t.Errorf("%d deliveries are known", len(m.known))
	}
}

// TestResolve checks which deaths count.
func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		past   past
		e      evidence
		deaths int
		limit  uint32
	}{
		"no word":                        {past{died: times(1)}, evidence{}, 2, math.MaxUint32},
		"it lives":                       {past{died: times(1)}, evidence{alive: true}, 1, math.MaxUint32},
		"it waited":                      {past{died: times(2), company: 1}, evidence{waited: true}, 2, 1},
		"a host has its call":            {past{died: times(2), company: 1}, evidence{atWork: true}, 2, 1},
		"alone":                          {past{died: times(2), company: 1}, evidence{}, 3, 1},
		"in a batch":                     {past{died: times(2), company: 8}, evidence{}, 2, 4},
		"in a batch in which it waited":  {past{died: times(2), company: 8}, evidence{waited: true}, 2, 8},
		"the first one":                  {past{}, evidence{}, 1, math.MaxUint32},
		"the first one, while it waited": {past{}, evidence{waited: true}, 0, math.MaxUint32},
	} {
		b := c.past.resolve(c.e, noon)
		if len(b.died) != c.deaths || b.limit != c.limit || b.bereaved != (c.e == evidence{}) {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestOldDeathsAreForgotten: a death counts for an hour, also one that an earlier version has
// recorded.
func TestOldDeathsAreForgotten(t *testing.T) {
	taken := func(at time.Time, deaths uint32, died ...time.Time) runlog.Entry {
		j := &harnessv1.StepTaken{Delivery: 2, Deaths: deaths}
		for _, d := range died {
			j.Died = append(j.Died, timestamppb.New(d))
		}
		return runlog.Entry{Record: &harnessv1.Record{CommitTime: timestamppb.New(at), Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{
			Entry: &harnessv1.Journal_StepTaken{StepTaken: j},
		}}}}
	}
	at := noon.Add
	for name, c := range map[string]struct {
		entry runlog.Entry
		now   time.Time
		want  int
	}{
		"within the hour":                   {taken(at(time.Minute), 2, noon, at(time.Minute)), at(time.Hour), 2},
		"one is older":                      {taken(at(time.Minute), 2, noon, at(time.Minute)), at(time.Hour + time.Second), 1},
		"both are":                          {taken(at(time.Minute), 2, noon, at(time.Minute)), at(2 * time.Hour), 0},
		"of an earlier version":             {taken(noon, 2), at(time.Hour), 2},
		"of an earlier version, older":      {taken(noon, 2), at(time.Hour + time.Second), 0},
		"a clock that has come back":        {taken(at(time.Minute), 2, noon, at(time.Minute)), at(-time.Hour), 2},
		"a number that no worker can store": {taken(noon, math.MaxUint32), noon, maxDeaths},
	} {
		if got := pastOf([]runlog.Entry{c.entry}, c.now).deaths(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
