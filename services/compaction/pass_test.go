package compaction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// agent is a run whose window fills up: a log of messages with weights, and the state
// between its steps.
type agent struct {
	t         *testing.T
	c         conversation.Conversation
	s         *harnessv1.Snapshot
	now       time.Time
	inference bool
	arrived   bool
	summaries map[string]*harnessv1.SummaryState // by key of the job
	requested []*harnessv1.SummaryJob
	refuse    string // why no job is created
	events    []*harnessv1.Event
}

// newAgent returns a run with a window, whose first messages are the system prompt and the
// goal.
func newAgent(t *testing.T, window uint32, change func(*harnessv1.ContextConfig)) *agent {
	c := &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(window)}
	if change != nil {
		change(c)
	}
	a := &agent{t: t, now: time.Unix(1_000_000, 0), inference: true, summaries: map[string]*harnessv1.SummaryState{}, s: &harnessv1.Snapshot{
		Phase: harnessv1.Phase_PHASE_EXECUTING, Workflow: workflow.Default(), FirstSequence: 7, Model: "script:x",
		TokenBudget: &harnessv1.TokenBudget{ToolTokens: 200}, Config: runstate.Resolve(&harnessv1.LoopConfig{Context: c}, 0),
	}}
	a.add(100, &harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are an agent.")})
	a.add(50, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Find the port.")})
	return a
}

// add adds a message with a weight.
func (a *agent) add(tokens uint32, m *harnessv1.Message) uint64 {
	m.Id = uint64(len(a.c.Messages)) + 1
	m.TurnNumber = a.s.GetTurnCount()
	a.c.Fold(&harnessv1.Record{Version: a.c.Version + 1, Appended: []*harnessv1.Message{m}})
	a.c.Fold(&harnessv1.Record{Version: a.c.Version + 1, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{Observed: []*harnessv1.Observation{{
		Key: compaction.KeyWeights, Value: &harnessv1.Observation_Weights{Weights: &harnessv1.Weights{FirstMessage: m.GetId(), Tokens: []uint32{tokens}}},
	}}}}})
	a.s.MessageCount, a.s.TokenBudget.UnreportedBytes = m.GetId(), a.s.TokenBudget.GetUnreportedBytes()+4*uint64(tokens)
	return m.GetId()
}

// turn is a turn with one call, whose result has a durability and a weight.
func (a *agent) turn(tokens uint32, durability harnessv1.Durability) (result uint64) {
	a.s.TurnCount++
	id := fmt.Sprintf("c%d", a.s.GetTurnCount())
	a.add(40, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Looking."), ToolCalls: []*harnessv1.ToolCall{
		{Id: id, Name: "read_file", Arguments: content.Inline(fmt.Sprintf(`{"path":"file%d.go"}`, a.s.GetTurnCount()))},
	}})
	return a.add(tokens, &harnessv1.Message{
		Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "read_file", Durability: durability, Content: content.Inline(strings.Repeat("line\n", int(tokens))),
	})
}

// step decides with the step from repair, makes the observations that the decision needs, and
// applies its outcome. It returns the output of the last decision.
func (a *agent) step() *harnessv1.StepOutput {
	a.t.Helper()
	in := &harnessv1.StepInput{Now: timestamppb.New(a.now), Version: a.c.Version, Step: &harnessv1.Step{Snapshot: a.s, Message: &harnessv1.Step_RepairComplete{
		RepairComplete: &harnessv1.RepairComplete{},
	}}}
	var x *view.Index
	for range 20 {
		out, err := compaction.Decide(in, x)
		if err != nil {
			a.t.Fatal(err)
		}
		if n := out.GetNeeds(); n != nil {
			for _, key := range n.GetKeys() {
				in.Observed = append(in.Observed, a.observe(key, &x))
			}
			continue
		}
		if o := out.GetOutcome(); o != nil {
			a.s = o.GetStep().GetSnapshot()
			a.events = append(a.events, o.GetEvents()...)
		}
		return out
	}
	a.t.Fatal("no end of needs")
	return nil
}

func (a *agent) observe(key string, x **view.Index) *harnessv1.Observation {
	o := &harnessv1.Observation{Key: key}
	switch {
	case key == compaction.KeyConversation:
		*x = &view.Index{}
		(*x).Add(&a.c)
		o.Value = &harnessv1.Observation_Conversation{Conversation: &harnessv1.ConversationRead{Messages: uint64(len(a.c.Messages))}}
	case key == compaction.KeyInference:
		o.Value = &harnessv1.Observation_InferenceAvailable{InferenceAvailable: a.inference}
	case key == compaction.KeyArrived:
		o.Value = &harnessv1.Observation_InboxWaiting{InboxWaiting: a.arrived}
	case strings.HasPrefix(key, compaction.KeySummary):
		state := a.summaries[strings.TrimPrefix(key, compaction.KeySummary)]
		if state == nil {
			state = &harnessv1.SummaryState{}
		}
		o.Value = &harnessv1.Observation_Summary{Summary: state}
	case strings.HasPrefix(key, compaction.KeyRequest):
		job, err := compaction.ParseRequest(key)
		if err != nil {
			a.t.Fatal(err)
		}
		if a.refuse == "" {
			a.requested = append(a.requested, job)
		}
		o.Value = &harnessv1.Observation_SummaryRequested{SummaryRequested: &harnessv1.SummaryRequested{Job: job, Error: a.refuse}}
	default:
		a.t.Fatalf("an observation %q", key)
	}
	return o
}

// summarized stores the summary of the newest job.
func (a *agent) summarized(tokens uint32) *harnessv1.SummaryJob {
	job := a.requested[len(a.requested)-1]
	a.summaries[job.GetKey()] = &harnessv1.SummaryState{
		Ended: true, Usage: &harnessv1.Usage{InputTokens: 1000, OutputTokens: 100},
		Summary: &harnessv1.SummaryRef{Key: job.GetKey(), ThroughMessage: job.GetThroughMessage(), Tokens: tokens, Merged: 1, Former: a.s.GetCompactionPlan().GetSummary().GetKey()},
	}
	return job
}

// actions names the messages that the plan does something to.
func (a *agent) actions() string {
	var x view.Index
	x.Add(&a.c)
	rules := view.NewRules(a.s.GetCompactionPlan(), &x)
	var b strings.Builder
	for i := range x.Entries {
		if action, _ := rules.Action(&x.Entries[i]); action != harnessv1.CompactionAction_COMPACTION_ACTION_UNSPECIFIED {
			fmt.Fprintf(&b, "%s %d ", strings.ToLower(strings.TrimPrefix(action.String(), "COMPACTION_ACTION_")), x.Entries[i].ID)
		}
	}
	return strings.TrimSpace(b.String())
}

func (a *agent) completed() []*harnessv1.CompactionCompleted {
	var all []*harnessv1.CompactionCompleted
	for _, e := range a.events {
		if c := e.GetCompactionCompleted(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

const (
	ephemeral     = harnessv1.Durability_DURABILITY_EPHEMERAL
	anchoring     = harnessv1.Durability_DURABILITY_ANCHORING
	replayable    = harnessv1.Durability_DURABILITY_REPLAYABLE
	nonReplayable = harnessv1.Durability_DURABILITY_NON_REPLAYABLE
)

// TestClearFreesDownToTheTarget clears listings first, then the oldest results, and stops
// when half of the window is free. The recent part and what cannot be produced again stay.
func TestClearFreesDownToTheTarget(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.turn(1000, replayable) // m3, m4
	a.turn(1000, ephemeral)  // m5, m6
	a.turn(900, nonReplayable)
	a.turn(1000, anchoring)
	for range 5 {
		a.turn(800, replayable)
	}
	a.step()
	if got, want := a.actions(), "clear 4 clear 6 clear 10 clear 12 clear 14"; got != want {
		t.Errorf("the plan is %q, want %q", got, want)
	}
	b := a.s.GetTokenBudget()
	if b.GetUsedTokens() > 6_000 || b.GetUsedTokens() < 4_000 {
		t.Errorf("%d tokens are left", b.GetUsedTokens())
	}
	done := a.completed()
	if len(done) != 1 || done[0].GetTokensBefore() < 8_000 || done[0].GetTokensAfter() != b.GetUsedTokens() || strings.Join(done[0].GetStrategies(), " ") != "clear" {
		t.Errorf("events: %v", done)
	}
	if a.s.GetActivity().GetCompactions() != 1 || a.s.GetCompactionPlan().GetPasses() != 1 {
		t.Error("the pass is not counted")
	}
	a.events = nil
	if a.step(); len(a.completed()) != 0 {
		t.Error("a second pass without new messages")
	}
}

// TestLadder shows what each rung does to what the ones before it left, with all strategies
// in an order that does not matter.
func TestLadder(t *testing.T) {
	long := func(a *agent, tokens uint32) {
		a.s.TurnCount++
		a.add(tokens, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(strings.Repeat("I think so. ", int(tokens/3)))})
	}
	fill := func(a *agent) {
		for range 4 {
			a.turn(600, nonReplayable)
		}
		long(a, 2500)
		long(a, 2500)
		a.turn(700, replayable)
		a.turn(500, replayable)
	}
	for _, c := range []struct {
		name       string
		strategies []harnessv1.CompactionAction
		want, by   string
	}{
		{"externalize", []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE, harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR}, "externalize 11 externalize 12", "externalize"},
		{"drop", []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_DROP}, "drop 3 drop 5 drop 7 drop 9 drop 11 drop 12", "drop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAgent(t, 10_500, func(cfg *harnessv1.ContextConfig) { cfg.Strategies = c.strategies })
			fill(a)
			a.step()
			done := a.completed()
			if a.actions() != c.want || len(done) != 1 || strings.Join(done[0].GetStrategies(), " ") != c.by {
				t.Errorf("the plan is %q by %v, want %q by %s", a.actions(), done, c.want, c.by)
			}
		})
	}
}

// TestSummaryInTheBackground requests a summary at soft pressure, continues, and
// shows the summary once the window is at soft pressure again.
func TestSummaryInTheBackground(t *testing.T) {
	a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
		c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
	})
	for range 13 {
		a.turn(550, replayable)
	}
	out := a.step()
	if len(a.requested) != 1 || out.GetOutcome().GetStep().GetTo() != workflow.Turn || len(a.completed()) != 0 {
		t.Fatalf("requested %v, step to %s", a.requested, out.GetOutcome().GetStep().GetTo())
	}
	job := a.requested[0]
	if job.GetFirstMessage() != 3 || job.GetThroughMessage() < 10 || job.GetThroughMessage()%2 != 0 {
		t.Errorf("the span is %d to %d", job.GetFirstMessage(), job.GetThroughMessage())
	}
	a.turn(20, replayable)
	if a.step(); len(a.requested) != 1 || a.actions() != "" {
		t.Error("the summary was requested twice, or a plan was made without it")
	}
	a.summarized(300)
	a.turn(20, replayable)
	a.step()
	if sum := a.s.GetCompactionPlan().GetSummary(); sum.GetKey() != job.GetKey() || len(a.s.GetCompactionPlan().GetJobs()) != 0 {
		t.Fatalf("the plan shows %v", a.s.GetCompactionPlan())
	}
	if got := a.s.GetSpent().GetUsage().GetInputTokens(); got != 1000 {
		t.Errorf("the summary used %d tokens of the budget, want 1000", got)
	}
	if done := a.completed(); len(done) != 1 || strings.Join(done[0].GetStrategies(), " ") != "summarize" || done[0].GetFreedTokens() < 3000 {
		t.Errorf("events: %v", done)
	}
	a.step()
	if got := a.s.GetSpent().GetUsage().GetInputTokens(); got != 1000 {
		t.Errorf("the usage of the summary was counted again: %d", got)
	}
}

// TestBlockingPressureWaits stores that the run waits, sees what arrives, and clears directly
// when the time is over.
func TestBlockingPressureWaits(t *testing.T) {
	filled := func() *agent {
		a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
			c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
		})
		for range 16 {
			a.turn(550, replayable)
		}
		if out := a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Compaction || len(a.requested) != 1 {
			t.Fatalf("the step goes to %s", out.GetOutcome().GetStep().GetTo())
		}
		return a
	}
	t.Run("until the summary is there", func(t *testing.T) {
		a := filled()
		a.now = a.now.Add(30 * time.Second)
		out := a.step()
		if w := out.GetWait(); !w.GetUntil().AsTime().Equal(a.now.Add(90*time.Second)) || len(w.GetKeys()) != 1 {
			t.Fatalf("the output is %v", out)
		}
		a.summarized(300)
		if out = a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Turn || a.s.GetCompactionPlan().GetSummary() == nil {
			t.Errorf("the output is %v", out)
		}
		if took := a.completed()[0].GetDuration().AsDuration(); took < 30*time.Second {
			t.Errorf("the pass took %s", took)
		}
	})
	t.Run("but not beyond the time budget", func(t *testing.T) {
		a := filled()
		a.s.Config.Budgets.WallClock, a.s.RunningSince = durationpb.New(time.Minute), timestamppb.New(a.now)
		if out := a.step(); !out.GetWait().GetUntil().AsTime().Equal(a.now.Add(time.Minute)) {
			t.Fatalf("the output is %v", out)
		}
		a.now = a.now.Add(time.Minute)
		if out := a.step(); !out.GetOutcome().GetStep().GetTurnComplete().GetInterrupted() || a.s.GetCompactionPlan().GetJobs()[0].GetAbandoned() {
			t.Errorf("the output is %v", out)
		}
	})
	t.Run("but not when something arrives", func(t *testing.T) {
		a := filled()
		a.arrived = true
		out := a.step()
		if to, turn := out.GetOutcome().GetStep().GetTo(), out.GetOutcome().GetStep().GetTurnComplete(); to != workflow.StopDecision || !turn.GetInterrupted() || turn.GetTurnNumber() != 17 {
			t.Fatalf("the output is %v", out)
		}
		a.arrived, a.now = false, a.now.Add(time.Minute)
		if out = a.step(); !out.GetWait().GetUntil().AsTime().Equal(a.now.Add(time.Minute)) {
			t.Errorf("the wait began again: %v", out)
		}
	})
	t.Run("and not longer than it may", func(t *testing.T) {
		a := filled()
		a.now = a.now.Add(2 * time.Minute)
		out := a.step()
		done := a.completed()
		if out.GetOutcome().GetStep().GetTo() != workflow.Turn || len(done) != 1 || strings.Join(done[0].GetStrategies(), " ") != "direct_clear" || done[0].GetError() == "" {
			t.Fatalf("the output is %v", out)
		}
		a.summarized(300)
		a.turn(10, replayable)
		if a.step(); a.s.GetSpent().GetUsage().GetInputTokens() != 1000 || a.s.GetCompactionPlan().GetSummary() != nil {
			t.Error("a late summary is shown, or its usage is lost")
		}
	})
	t.Run("and not without a worker", func(t *testing.T) {
		a := newAgent(t, 10_000, nil)
		a.inference = false
		for range 16 {
			a.turn(550, nonReplayable)
		}
		if out := a.step(); out.GetOutcome().GetStep().GetTo() != workflow.Turn || len(a.requested) != 0 || len(a.completed()) != 1 {
			t.Errorf("the output is %v", out)
		}
	})
}

// TestFailedSummariesAreRequestedAgain with three turns between the first requests, and at last 24, those
// that are longer than what they replace among them.
func TestFailedSummariesAreRequestedAgain(t *testing.T) {
	for name, state := range map[string]func(*harnessv1.SummaryJob) *harnessv1.SummaryState{
		"garbage": func(*harnessv1.SummaryJob) *harnessv1.SummaryState {
			return &harnessv1.SummaryState{Ended: true, Error: "garbage"}
		},
		"longer": func(job *harnessv1.SummaryJob) *harnessv1.SummaryState {
			return &harnessv1.SummaryState{Ended: true, Summary: &harnessv1.SummaryRef{Key: job.GetKey(), ThroughMessage: job.GetThroughMessage(), Tokens: 90_000}}
		},
	} {
		a := newAgent(t, 100_000, onlySummaries)
		for range 15 {
			a.turn(5_500, replayable)
		}
		asked := map[uint32]uint32{}
		keys := map[string]bool{}
		for range 80 {
			before := len(a.requested)
			a.step()
			if len(a.requested) > before {
				job := a.requested[before]
				asked[a.s.GetTurnCount()], keys[job.GetKey()] = job.GetAttempt(), true
				a.summaries[job.GetKey()] = state(job)
			}
			a.turn(1, replayable)
		}
		if fmt.Sprint(asked) != "map[15:1 19:2 26:3 39:4 64:5 89:6]" || len(keys) != 6 {
			t.Errorf("%s: requested in turns %v under %d keys", name, asked, len(keys))
		}
	}
}

// TestExceeded frees half of a window that a provider refused as too long, although the
// estimate was lower.
func TestExceeded(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	for range 8 {
		a.turn(500, replayable)
	}
	a.s.TokenBudget.Exceeded = true
	out := a.step()
	if out.GetOutcome().GetStep().GetTo() != workflow.Turn || len(a.completed()) != 1 || a.s.GetTokenBudget().GetExceeded() {
		t.Errorf("the output is %v", out)
	}
	b := newAgent(t, 10_000, nil)
	b.s.TokenBudget.Exceeded = true
	if kind := b.step().GetOutcome().GetStep().GetTurnComplete().GetError().GetKind(); kind != harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED {
		t.Errorf("nothing can be freed, and the error is %v", kind)
	}
}

// TestExceededWindowOfAFallback frees down to the window of a fallback model that the request
// was too long for, once: afterwards that of the run's model counts.
func TestExceededWindowOfAFallback(t *testing.T) {
	a := newAgent(t, 100_000, nil)
	for range 20 {
		a.turn(500, replayable)
	}
	a.s.TokenBudget.Exceeded, a.s.TokenBudget.Refusals = true, 1
	a.s.TokenBudget.WindowTokens, a.s.TokenBudget.FactorModel = 8000, "script:fallback"
	out := a.step()
	if b := a.s.GetTokenBudget(); out.GetOutcome().GetStep().GetTo() != workflow.Turn || len(a.completed()) != 1 || b.GetUsedTokens() >= 8000 || b.GetMaxInputTokens() != 8000 {
		t.Errorf("the window holds %v, the output is %v", b, out)
	}
	a.step()
	if b := a.s.GetTokenBudget(); len(a.completed()) != 1 || b.GetMaxInputTokens() != 100_000 {
		t.Errorf("the window holds %v after another turn", b)
	}
}

// TestFactor: messages and tools need as many tokens as the run's model does. The factor of a
// fallback model does not count.
func TestFactor(t *testing.T) {
	const messages, tools, buffer = 100 + 50 + 40 + 3000, 200, 500
	for _, c := range []struct {
		factor float64
		of     string
		want   uint32
	}{
		{0, "", messages + tools + buffer},
		{1.5, "script:x", (messages+tools)*3/2 + buffer},
		{1.5, "script:fallback", messages + tools + buffer},
	} {
		a := newAgent(t, 10_000, nil)
		a.s.TokenBudget.Factor, a.s.TokenBudget.FactorModel = c.factor, c.of
		a.turn(3000, replayable)
		a.step()
		if got := a.s.GetTokenBudget().GetUsedTokens(); got != c.want {
			t.Errorf("%g of %q: the window holds %d tokens, want %d", c.factor, c.of, got, c.want)
		}
	}
}

// TestOneLargeTurn shows of the results of the last turn what fits.
func TestOneLargeTurn(t *testing.T) {
	a := newAgent(t, 10_000, nil)
	a.s.TurnCount++
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
	for i := range 12 {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: fmt.Sprint(i), Name: "read_file", Arguments: content.Inline(`{}`)})
	}
	a.add(200, m)
	for i := range 12 {
		a.add(1200, &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: fmt.Sprint(i), ToolName: "read_file", Durability: replayable, Content: content.Inline("x")})
	}
	out := a.step()
	if out.GetOutcome().GetStep().GetTo() != workflow.Turn || a.s.GetTokenBudget().GetUsedTokens() >= 9_500 {
		t.Errorf("%d tokens are left, the output is %v", a.s.GetTokenBudget().GetUsedTokens(), out)
	}
}

// TestLongSummaryIsNotShown: a summary that is longer than its span changes nothing, and the
// next one is requested three turns later.
func TestLongSummaryIsNotShown(t *testing.T) {
	a := newAgent(t, 10_000, func(c *harnessv1.ContextConfig) {
		c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
	})
	for range 13 {
		a.turn(550, replayable)
	}
	a.step()
	a.summarized(9_000)
	a.turn(1, replayable)
	for range 3 {
		a.step()
		if plan := a.s.GetCompactionPlan(); plan.GetSummary() != nil || plan.GetReady() != nil || len(plan.GetJobs()) > 0 {
			t.Fatalf("the plan is %v", plan)
		}
		a.turn(1, replayable)
	}
	if a.step(); len(a.requested) != 2 || a.s.GetSpent().GetUsage().GetInputTokens() != 1000 {
		t.Errorf("%d requests, %v used", len(a.requested), a.s.GetSpent().GetUsage())
	}
}
