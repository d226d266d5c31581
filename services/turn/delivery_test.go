package turn_test

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// TestDeliveryStep checks every kind of result of a try, for calls that have not begun,
// that can be repeated, and that can do neither.
func TestDeliveryStep(t *testing.T) {
	const patience = time.Minute
	lost := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	ended := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE}
	after := func(d time.Duration, notStarted bool) turn.Try {
		return turn.Try{Began: noon.Add(d), Ended: noon.Add(d), NotStarted: notStarted}
	}
	for name, c := range map[string]struct {
		fresh, idempotent bool
		tries             []turn.Try
		sought            []string
		want              turn.Step
	}{
		"ended":                         {tries: []turn.Try{{Response: ended}}, want: turn.StepEnd},
		"refused":                       {tries: []turn.Try{{Refused: "no"}}, want: turn.StepEnd},
		"unknown":                       {tries: []turn.Try{{Response: lost}}, want: turn.StepEnd},
		"unknown, fresh":                {fresh: true, tries: []turn.Try{{Response: lost}}, want: turn.StepSeek},
		"unknown, fresh, another host":  {fresh: true, tries: []turn.Try{{Response: lost}}, sought: []string{"other"}, want: turn.StepMove},
		"unknown, fresh, no other host": {fresh: true, tries: []turn.Try{{Response: lost}}, sought: []string{""}, want: turn.StepEnd},
		"unreachable":                   {tries: []turn.Try{after(0, false)}, want: turn.StepWait},
		"unreachable for 3 s":           {tries: []turn.Try{after(0, false), after(3*time.Second, false)}, want: turn.StepWait},
		"begun, unreachable too long":   {tries: []turn.Try{after(0, false), after(2*patience, false)}, want: turn.StepSeek},
		"begun, another host":           {tries: []turn.Try{after(0, false), after(2*patience, false)}, sought: []string{"other"}, want: turn.StepEnd},
		"begun, no other host":          {tries: []turn.Try{after(0, false), after(2*patience, false)}, sought: []string{""}, want: turn.StepWait},
		"not begun for 3 s":             {fresh: true, tries: []turn.Try{after(0, true), after(3*time.Second, true)}, want: turn.StepSeek},
		"fresh, may have begun":         {fresh: true, tries: []turn.Try{after(0, false), after(3*time.Second, false)}, want: turn.StepWait},
		"idempotent for 3 s":            {idempotent: true, tries: []turn.Try{after(0, false), after(3*time.Second, false)}, want: turn.StepSeek},
		"idempotent, another host":      {idempotent: true, tries: []turn.Try{after(0, false), after(3*time.Second, false)}, sought: []string{"other"}, want: turn.StepMove},
		"a late event":                  {tries: []turn.Try{{Response: ended}, {Refused: "no"}}, sought: []string{"other"}, want: turn.StepEnd},
		"an early event":                {sought: []string{"other"}, want: turn.StepSend},
	} {
		d := turn.Delivery{Fresh: c.fresh, Idempotent: c.idempotent, Patience: patience}
		for _, try := range c.tries {
			d.Tried(try)
		}
		for _, ledger := range c.sought {
			d.Sought(ledger)
		}
		if d.Step != c.want {
			t.Errorf("%s: step %d, want %d", name, d.Step, c.want)
		}
		if (d.Step == turn.StepEnd) != (d.Response != nil) || (d.Step == turn.StepMove) != (d.Ledger != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
