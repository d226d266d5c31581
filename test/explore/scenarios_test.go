package explore

import (
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// What the first turn of a run does, and so why it parks.
var (
	asks        = waiting(Call{ID: "a", Asks: true})
	asksTwice   = waiting(Call{ID: "a", Asks: true}, Call{ID: "b", Asks: true})
	needsClient = waiting(Call{ID: "c", Client: true})
	asksClient  = waiting(Call{ID: "c", Asks: true, Client: true})
	works       = map[uint32]Turn{1: {Works: true}}
	fails       = map[uint32]Turn{1: {Outage: 3}} // once: when it is tried again the log is longer
	failsTwice  = map[uint32]Turn{1: {Outage: 8}}
)

func waiting(calls ...Call) map[uint32]Turn { return map[uint32]Turn{1: {Waiting: calls}} }

func turns(n uint32) *harnessv1.Budgets { return &harnessv1.Budgets{Turns: &n} }

// hours is how long calls wait for an approval, and for an answer.
func hours(approval, answer int64) *harnessv1.ToolConfig {
	return &harnessv1.ToolConfig{
		ApprovalTimeout: &durationpb.Duration{Seconds: approval * 3600}, AnswerTimeout: &durationpb.Duration{Seconds: answer * 3600},
	}
}

// Where an exploration begins.

func atPark(r *harnessv1.Record) bool { return r.GetStep().GetTo() == runlog.Park }
func atEnd(r *harnessv1.Record) bool  { return r.GetStep().GetTo() == runlog.End }
func atTurn(r *harnessv1.Record) bool { return r.GetStep().GetTo() == turn.Name }
func atWake(r *harnessv1.Record) bool {
	return r.GetStep().GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE
}
func atStart(r *harnessv1.Record) bool { return r.GetStep().GetTo() == repair.Name }

var interrupted = []Sender{{Item: interrupt("i0")}}

// early lets a timer fire before the park that sets it is stored: its worker dies, or has
// to wait for the bus.
var early = Scenario{
	Turns: asksClient, Tools: hours(1, 2), Timers: true, Before: []Sender{{Item: approve("yes", "c")}}, From: atWake,
	Faults: Faults{Crashes: 1, Lost: 1},
}

// sizedScenario is a scenario with the faults of the larger exploration.
type sizedScenario struct {
	Scenario
	Large Faults
}

// scenarios are explored wholly by TestEveryInterleavingKeepsTheRules.
func scenarios() []sizedScenario {
	return []sizedScenario{
		{Large: Faults{Crashes: 2, Lost: 2, Stale: 2}, Scenario: Scenario{
			Name: "a message and its retry to an interrupted run", Before: interrupted, From: atPark,
			Senders: []Sender{{Item: userMessage("m1"), Again: 1}},
			Wakers:  2, Repairers: 2, Faults: Faults{Crashes: 2, Lost: 1, Stale: 1},
		}},
		{Large: Faults{Crashes: 2, Lost: 1, Stale: 2, Lapses: 2}, Scenario: Scenario{
			Name: "a message to an interrupted run while deliveries are repeated", Before: interrupted, Sweeps: true,
			Senders: []Sender{{Item: userMessage("m1")}},
			Wakers:  2, Repairers: 2, Faults: Faults{Crashes: 1, Stale: 1, Lapses: 2},
		}},
		{Large: Faults{Crashes: 1, Lost: 2, Stale: 2}, Scenario: Scenario{
			Name: "one message by two gateways to an interrupted run", Before: interrupted, Replicated: true,
			Senders: []Sender{{Item: userMessage("m1")}, {Item: userMessage("m1")}},
			Wakers:  2, Repairers: 2, Faults: Faults{Lost: 2, Stale: 1},
		}},
		{Large: Faults{Crashes: 1}, Scenario: Scenario{
			Name: "a message, an interrupt and a resume to an interrupted run", Before: interrupted, Batch: 1,
			Senders: []Sender{{Item: userMessage("m1")}, {Item: interrupt("i1")}, {Item: resume("r1", nil)}},
			Wakers:  2, Repairers: 2,
		}},
		{Large: Faults{Crashes: 1, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "two answers to one call", Turns: asks,
			Senders: []Sender{{Item: approve("yes", "a")}, {Item: deny("no", "a")}},
			Wakers:  2, Repairers: 1, Faults: Faults{Crashes: 1, Lost: 1},
		}},
		{Large: Faults{Lost: 1}, Scenario: Scenario{
			Name: "two answers and an interrupt to a run that waits for two", Turns: asksTwice, Batch: 2,
			Senders: []Sender{{Item: approve("yes", "a")}, {Item: interrupt("i1")}, {Item: deny("no", "b")}},
			Wakers:  2, Repairers: 1,
		}},
		{Large: Faults{Crashes: 1, Stale: 1}, Scenario: Scenario{
			Name: "an approval for the whole run beside a refusal", Turns: asksTwice, From: atTurn,
			Senders: []Sender{{Item: approveAll("all", "a")}, {Item: deny("no", "b")}},
			Wakers:  1, Repairers: 1, Faults: Faults{Crashes: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "an answer and its deadline", Turns: asks, Timers: true,
			Senders: []Sender{{Item: approve("yes", "a"), Again: 1}},
			Wakers:  1, Repairers: 1, Faults: Faults{Lost: 1, Stale: 1},
		}},
		{Large: Faults{Lost: 1}, Scenario: Scenario{
			Name: "an answer and its deadline, later than that of the approval", Turns: asksClient, Tools: hours(1, 2), Timers: true, Sweeps: true,
			Before: []Sender{{Item: approve("yes", "c")}}, From: atWake, Senders: []Sender{{Item: reply("one", "c")}},
			Wakers: 1, Repairers: 2, Faults: Faults{Crashes: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1}, Scenario: Scenario{
			Name: "a deadline sooner than that of the approval", Turns: asksClient, Tools: hours(2, 1), Timers: true, Sweeps: true,
			Before: []Sender{{Item: approve("yes", "c")}}, From: atWake,
			Wakers: 1, Repairers: 1, Faults: Faults{Crashes: 1, Lost: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "two clients answer a call that is announced", Turns: needsClient, From: atTurn,
			Senders: []Sender{{Item: reply("one", "c")}, {Item: reply("two", "c")}},
			Wakers:  1, Repairers: 1, Faults: Faults{Crashes: 1, Stale: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1}, Scenario: Scenario{
			Name: "an approval, the answer of a client and a cancel", Turns: asksClient, Replicated: true,
			Senders: []Sender{{Item: approve("yes", "c")}, {Item: reply("one", "c"), Again: 1}, {Item: cancel("x1")}},
			Wakers:  1, Repairers: 1, Faults: Faults{Lost: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "a message and a cancel to a run that has ended", From: atEnd,
			Senders: []Sender{{Item: userMessage("m1")}, {Item: cancel("x1")}},
			Wakers:  1, Repairers: 2, Faults: Faults{Crashes: 1, Lost: 1},
		}},
		{Large: Faults{Crashes: 2, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "a resume and a message to a cancelled run", Before: []Sender{{Item: cancel("x0")}},
			Senders: []Sender{{Item: resume("r1", nil)}, {Item: userMessage("m1")}},
			Wakers:  1, Repairers: 2, Faults: Faults{Crashes: 1, Lost: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1}, Scenario: Scenario{
			Name: "a resume with a budget to a run that used its own up", Turns: works, Budgets: turns(1),
			Senders: []Sender{{Item: resume("r1", turns(9))}, {Item: resume("r2", nil)}, {Item: cancel("x1")}},
			Wakers:  1, Repairers: 1, Faults: Faults{Crashes: 1},
		}},
		{Large: Faults{Lost: 1}, Scenario: Scenario{
			Name: "a timer, a resume and an interrupt in an outage", Turns: fails, Timers: true,
			Senders: []Sender{{Item: resume("r1", nil)}, {Item: interrupt("i1")}},
			Wakers:  1, Repairers: 1, Faults: Faults{Crashes: 1},
		}},
		{Large: Faults{Crashes: 1, Lost: 1, Stale: 1}, Scenario: Scenario{
			Name: "timers of two outages", Turns: failsTwice, Timers: true,
			Wakers: 1, Repairers: 1, Faults: Faults{Lost: 1},
		}},
		{Large: Faults{Crashes: 1, Stale: 2}, Scenario: Scenario{
			Name: "an interrupt and a message to a run that begins", Turns: works, From: atStart,
			Senders: []Sender{{Item: interrupt("i1")}, {Item: userMessage("m1")}},
			Wakers:  1, Repairers: 2, Faults: Faults{Stale: 1},
		}},
	}
}
