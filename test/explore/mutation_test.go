package explore

import (
	"strings"
	"testing"
)

// TestAResolvedConflictCouldBeAcknowledged: only an unresolved refusal is never
// a reason to acknowledge.
func TestAResolvedConflictCouldBeAcknowledged(t *testing.T) {
	if testing.Short() {
		t.Skip("explores a space of 109,000 states")
	}
	t.Parallel()
	keeps(t, Scenario{
		Name: "two messages", Mutation: AckResolved, Before: interrupted, From: atPark, Replicated: true, Batch: 1,
		Senders: []Sender{{Item: userMessage("m1")}, {Item: userMessage("m2")}}, Wakers: 2, Faults: Faults{Lost: 1},
	})
}

// TestEachMutationBreaksARule: the explorer can fail. Each way to break the protocol
// breaks a rule, in a scenario in which every rule is kept without it.
func TestEachMutationBreaksARule(t *testing.T) {
	t.Parallel()
	one := []Sender{{Item: userMessage("m1")}}
	two := []Sender{{Item: userMessage("m1")}, {Item: userMessage("m2")}}
	answers := []Sender{{Item: approve("yes", "a")}, {Item: deny("no", "a")}}
	for _, c := range []struct {
		mutation Mutation
		by       string // the rule that it breaks
		sc       Scenario
	}{
		{AckOnConflict, "lost", Scenario{Before: interrupted, Senders: one, Replicated: true, Faults: Faults{Lost: 1}}},
		{WakeUnvalidated, "lost", Scenario{Before: interrupted, Senders: one, Faults: Faults{Stale: 1}}},
		{DrainUnvalidated, "a wake takes in nothing", Scenario{Before: interrupted, Senders: one, Faults: Faults{Stale: 1}}},
		{CursorBeforeRefused, "a wake takes in nothing", Scenario{Turns: asks, Senders: answers}},
		{DrainedForgotten, "twice in a run", Scenario{Before: interrupted, Senders: one, Faults: Faults{Crashes: 1}, TwiceStored: true}},
		{AnswersForgotten, "is wrong", Scenario{Turns: asks, Senders: answers}},
		{WakeUnfenced, "not gap-free", Scenario{Before: interrupted, Senders: two, Wakers: 2}},
		{CommitUnfenced, "not gap-free", Scenario{Before: interrupted, Senders: one, Repairers: 2, Faults: Faults{Lapses: 1}}},
		{AckFirst, "lost", Scenario{Before: interrupted, Senders: one, Faults: Faults{Crashes: 1}}},
		{AckPutBack, "stuck", Scenario{Before: interrupted, Senders: one, Faults: Faults{Lost: 1}}},
		{SendUnfenced, "neither an effect nor a refusal", Scenario{Before: interrupted, Senders: two}},
		{SendWithoutRead, "stored twice", Scenario{Before: interrupted, Senders: one, Faults: Faults{Lost: 1}}},
		{SecondUnchecked, "second answer", Scenario{Turns: asks, Senders: answers}},
		{FoundUnchecked, "second answer", Scenario{Turns: asks, Senders: answers, Tries: 1, Faults: Faults{Lost: 1}}},
		{AnswererForgotten, "second answer", Scenario{Turns: asks, Senders: answers, Faults: Faults{Crashes: 1}}},
		{RefusalsUnchecked, "is wrong", Scenario{Before: interrupted, Senders: []Sender{{Item: userMessage("m1")}, {Item: interrupt("i1")}}, Faults: Faults{Stale: 1}}},
		{TimersRemembered, "parked until a timer fires", Scenario{Turns: asksClient, Tools: hours(1, 2), Timers: true, Before: []Sender{{Item: approve("yes", "c")}}, From: atWake, Faults: Faults{Crashes: 1}}},
		{TimersFoundEarlier, "parked until a timer fires", early},
		{ParksNotDelivered, "lost", Scenario{Before: interrupted, Senders: []Sender{{Item: userMessage("m1")}, {Item: interrupt("i1")}}}},
	} {
		t.Run(name(string(c.mutation)), func(t *testing.T) {
			t.Parallel()
			c.sc.Name = string(c.mutation)
			keeps(t, c.sc)
			c.sc.Mutation = c.mutation
			r := walk(t, newModel(t, c.sc))
			if r.Broken == nil || !strings.Contains(r.Broken.Error(), c.by) {
				t.Fatalf("broken: %v, want %q", r.Broken, c.by)
			}
			t.Logf("caught after %d steps: %v\n%s", len(r.Trace), r.Broken, tail(r.Trace, 6))
		})
	}
}
