package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// witness keeps the words of workers; everything else is unknown.
type witness struct {
	mu    sync.Mutex
	said  []string
	alive bool
	last  *harnessv1.StepWord
	asked int
	heard func(said int) // called for each word; nil: not
}

func (w *witness) Testify(string, runlog.Testimony) (func(), error) { return func() {}, nil }

func (w *witness) PublishWord(executor string, run runlog.Run, word *harnessv1.StepWord, sent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	does := "works"
	if word.GetWaits() {
		does = "waits"
	}
	if sent {
		does += ", sent"
	}
	w.said = append(w.said, fmt.Sprintf("%s %s %d/%d %d %s", executor, run.ID, word.GetSequence(), word.GetDelivery(), word.GetNumber(), does))
	if w.heard != nil {
		w.heard(len(w.said))
	}
}

func (w *witness) Lives(context.Context, string, runlog.Run, uint64, uint64) (bool, *harnessv1.StepWord, error) {
	w.asked++
	return w.alive, w.last, nil
}

// TestWords: the first word comes with the first heartbeat. A wait that a word has reported ends
// with a word that the server has; of a step that was delivered before each change is reported.
func TestWords(t *testing.T) {
	step := runlog.Entry{Run: runlog.Run{Namespace: "default", ID: "r"}, Sequence: 7}
	for name, c := range map[string]struct {
		number uint64
		want   []string
	}{
		"first delivery": {1, []string{"turn r 7/1 1 waits", "turn r 7/1 2 waits", "turn r 7/1 3 works, sent", "turn r 7/1 4 works"}},
		"a later one": {2, []string{
			"turn r 7/2 1 waits", "turn r 7/2 2 works, sent", "turn r 7/2 3 waits", "turn r 7/2 4 waits", "turn r 7/2 5 waits",
			"turn r 7/2 6 works, sent", "turn r 7/2 7 waits", "turn r 7/2 8 works, sent", "turn r 7/2 9 works",
		}},
	} {
		w := &witness{}
		task := &Task{Run: step.Run, Entry: step, cfg: Config{Witness: w}, executor: "turn", loop: &loop{}, number: c.number}
		ctx := context.WithValue(t.Context(), stepKey{}, runningStep{task: task})
		Waits(ctx)()
		over := Waits(ctx)
		inner := Waits(ctx)
		task.beat()
		inner()
		inner() // a second time changes nothing
		task.beat()
		over()
		task.setWaiting(true)
		task.setWaiting(false)
		task.beat()
		if !slices.Equal(w.said, c.want) {
			t.Errorf("%s: said\n%q, want\n%q", name, w.said, c.want)
		}
	}
	Waits(t.Context())() // without a step
}

// TestShortStepSaysNothing: a step that ends before its first heartbeat costs no word and no
// question, with waits in it too.
func TestShortStepSaysNothing(t *testing.T) {
	b := newBed(t)
	w := &witness{}
	l := loopOf(Config{Log: b.log, Witness: w}, executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		for range 5 {
			Waits(ctx)()
		}
		return passOn(task), nil
	}})
	if d := b.takeIn(t.Context(), l, b.step("turn"), 1); d.calls() != acked {
		t.Errorf("said %s", d.calls())
	}
	if len(w.said) > 0 || w.asked > 0 || len(b.tail(1)) != 1 {
		t.Errorf("said %q, asked %d times, stored %v", w.said, w.asked, b.tail(1))
	}
}

// TestHeartbeatsHaveWords: each heartbeat of a worker has a word, works or waits.
func TestHeartbeatsHaveWords(t *testing.T) {
	b := newBed(t)
	enough := make(chan struct{})
	w := &witness{heard: func(said int) {
		if said == 2 {
			close(enough)
		}
	}}
	l := loopOf(Config{Log: b.log, Witness: w}, executorFunc{"turn", func(ctx context.Context, task *Task) (*harnessv1.Outcome, error) {
		over := Waits(ctx)
		<-enough
		over()
		return passOn(task), nil
	}})
	if d := b.takeIn(t.Context(), l, b.step("turn"), 1); d.calls() == silent {
		t.Errorf("said %s", d.calls())
	}
	first, last := []string{"turn r 1/1 1 waits", "turn r 1/1 2 waits"}, w.said[len(w.said)-1]
	if !slices.Equal(w.said[:2], first) || !strings.HasSuffix(last, " works, sent") {
		t.Errorf("said %q", w.said)
	}
}

// attester is an executor whose started calls a host knows.
type attester struct {
	executorFunc
	atWork bool
	asked  int
}

func (a *attester) AtWork(context.Context, *Task) bool { a.asked++; return a.atWork }

// TestDeathsOfWorkersThatWait: a worker whose last word was that it waits, or whose call a host
// has at work, leaves no death, however often.
func TestDeathsOfWorkersThatWait(t *testing.T) {
	for name, c := range map[string]struct {
		last   *harnessv1.StepWord
		atWork bool
		taken  []int
		asked  int // the host
	}{
		"it waits":              {&harnessv1.StepWord{Number: 3, Waits: true}, false, nil, 0},
		"its call is at work":   {nil, true, nil, 4},
		"it works, so does its": {&harnessv1.StepWord{Number: 3}, true, nil, 4},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.step("turn")
			x := &attester{executorFunc: dies, atWork: c.atWork}
			for n := range uint64(5) {
				b.takeIn(t.Context(), loopOf(Config{Log: b.log, Witness: &witness{last: c.last}}, x), e, n+1)
			}
			b.wantTaken(c.taken...)
			if x.asked != c.asked {
				t.Errorf("the host got %d questions", x.asked)
			}
		})
	}
	t.Run("it works", func(t *testing.T) {
		b := newBed(t)
		e := b.step("turn")
		x := &attester{executorFunc: dies}
		for n := range uint64(3) {
			b.takeIn(t.Context(), loopOf(Config{Log: b.log, Witness: &witness{last: &harnessv1.StepWord{Number: 3}}}, x), e, n+1)
		}
		b.wantTaken(1, 2)
	})
}

// TestHeard: the newest word about a delivery counts.
func TestHeard(t *testing.T) {
	l, run := &loop{}, runlog.Run{Namespace: "default", ID: "r"}
	for _, w := range []*harnessv1.StepWord{
		{Sequence: 7, Delivery: 1, Number: 2, Waits: true}, {Sequence: 7, Delivery: 1, Number: 1}, {Sequence: 7, Delivery: 2, Number: 1},
	} {
		l.Heard(run, w)
	}
	if w := l.LastWord(run, 7, 1); !w.GetWaits() || w.GetNumber() != 2 {
		t.Errorf("the last word is %v", w)
	}
	if l.LastWord(run, 7, 2).GetWaits() || l.LastWord(run, 8, 1) != nil || l.Had(run, 7, 1) {
		t.Error("a word counts for another delivery")
	}
}

// TestStepsOfRepairAndStopDecisionArePoison: a run is parked at the step, if a later step decides
// again from the snapshot; otherwise it fails.
func TestStepsOfRepairAndStopDecisionArePoison(t *testing.T) {
	turn := func(c *harnessv1.TurnComplete) *harnessv1.Step {
		s := stepTo(workflow.StopDecision)
		s.Snapshot.Phase, s.Message = harnessv1.Phase_PHASE_REFLECTING, &harnessv1.Step_TurnComplete{TurnComplete: c}
		return s
	}
	trigger := func(cause harnessv1.TriggerCause) *harnessv1.Step {
		s := stepTo(workflow.Repair)
		s.Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: cause}}
		return s
	}
	after := turn(&harnessv1.TurnComplete{TurnNumber: 3})
	after.Snapshot.PoisonParks = 3
	for name, c := range map[string]struct {
		step *harnessv1.Step
		want string
	}{
		"a turn that ended":      {turn(&harnessv1.TurnComplete{TurnNumber: 3, AgentDone: true}), "park PARKED"},
		"after the last park":    {after, "end FAILED"},
		"a turn with an error":   {turn(&harnessv1.TurnComplete{Error: &harnessv1.TurnError{}}), "end FAILED"},
		"the next turn":          {trigger(harnessv1.TriggerCause_TRIGGER_CAUSE_CONTINUE), "park PARKED"},
		"an input that wakes it": {trigger(harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE), "stopdecision RUNNING"},
		"its first step":         {trigger(harnessv1.TriggerCause_TRIGGER_CAUSE_START), "stopdecision RUNNING"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			e := b.put(&harnessv1.Record{Body: &harnessv1.Record_Step{Step: c.step}})
			for n := range uint64(maxDeaths) {
				b.take(t.Context(), executorFunc{c.step.GetTo(), dies.f}, e, n+1)
			}
			_, d := b.take(t.Context(), executorFunc{c.step.GetTo(), passesOn}, e, maxDeaths+1)
			records := b.tail(1)
			rec := records[len(records)-1]
			s := rec.GetStep().GetSnapshot()
			got := rec.GetStep().GetTo() + " " + s.GetStatus().String()[len("RUN_STATUS_"):]
			if got != c.want || d.calls() != acked {
				t.Errorf("said %s, stored %s", d.calls(), got)
			}
			if parked := rec.GetStep().GetParked(); c.want == "park PARKED" && (parked.GetReason().GetKind() != "poison" || parked.GetWakeAt() == nil ||
				s.GetPausedPhase() != c.step.GetSnapshot().GetPhase() || len(rec.GetEvents()) != 1) {
				t.Errorf("stored %v", rec)
			}
			if failed := rec.GetStep().GetTurnComplete().GetError(); failed.GetDeaths() > 0 {
				t.Errorf("an input is lost: %v", failed)
			}
		})
	}
}

// TestCallsOfAStepThatIsGivenUp: their effects are unknown, unless they have ended.
func TestCallsOfAStepThatIsGivenUp(t *testing.T) {
	b := newBed(t)
	e := b.step("turn")
	b.journal(claimed(1))
	b.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{
		Calls: []*harnessv1.PreparedCall{{CallId: "a", Tool: "read_file"}, {CallId: "b", Tool: "run_command"}, {CallId: "c", Tool: "run_command"}},
	}}})
	b.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ToolsStarted{ToolsStarted: &harnessv1.ToolsStarted{CallIds: []string{"a", "b"}}}})
	b.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{CallId: "a"}}})
	for n := range uint64(maxDeaths) + 1 {
		b.take(t.Context(), dies, e, n+1)
	}
	records := b.tail(1)
	step := records[len(records)-1].GetStep()
	pending := step.GetSnapshot().GetPendingToolCalls()
	if step.GetTurnComplete().GetError().GetDeaths() != 3 || len(pending) != 1 || pending[0].GetCallId() != "b" || pending[0].GetTool() != "run_command" ||
		pending[0].GetTurnNumber() != 4 || pending[0].GetClass() != harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN {
		t.Errorf("stored %v", step)
	}
}
