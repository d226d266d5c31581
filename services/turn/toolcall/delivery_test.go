package toolcall_test

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// TestDeliveryStep checks every kind of result of a try, for calls that have not begun,
// that can be repeated, and that can do neither.
func TestDeliveryStep(t *testing.T) {
	const patience = time.Minute
	lost := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	ended := &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE}
	after := func(d time.Duration, notStarted bool) toolcall.Try {
		return toolcall.Try{Began: noon.Add(d), Ended: noon.Add(d), NotStarted: notStarted}
	}
	for name, c := range map[string]struct {
		fresh, idempotent bool
		tries             []toolcall.Try
		sought            []string
		want              toolcall.Step
	}{
		"ended":                         {tries: []toolcall.Try{{Response: ended}}, want: toolcall.StepEnd},
		"refused":                       {tries: []toolcall.Try{{Refused: "no"}}, want: toolcall.StepEnd},
		"unknown":                       {tries: []toolcall.Try{{Response: lost}}, want: toolcall.StepEnd},
		"unknown, fresh":                {fresh: true, tries: []toolcall.Try{{Response: lost}}, want: toolcall.StepSeek},
		"unknown, fresh, another host":  {fresh: true, tries: []toolcall.Try{{Response: lost}}, sought: []string{"other"}, want: toolcall.StepMove},
		"unknown, fresh, no other host": {fresh: true, tries: []toolcall.Try{{Response: lost}}, sought: []string{""}, want: toolcall.StepEnd},
		"unreachable":                   {tries: []toolcall.Try{after(0, false)}, want: toolcall.StepWait},
		"unreachable for 3 s":           {tries: []toolcall.Try{after(0, false), after(3*time.Second, false)}, want: toolcall.StepWait},
		"begun, unreachable too long":   {tries: []toolcall.Try{after(0, false), after(2*patience, false)}, want: toolcall.StepSeek},
		"begun, another host":           {tries: []toolcall.Try{after(0, false), after(2*patience, false)}, sought: []string{"other"}, want: toolcall.StepEnd},
		"begun, no other host":          {tries: []toolcall.Try{after(0, false), after(2*patience, false)}, sought: []string{""}, want: toolcall.StepWait},
		"not begun for 3 s":             {fresh: true, tries: []toolcall.Try{after(0, true), after(3*time.Second, true)}, want: toolcall.StepSeek},
		"fresh, may have begun":         {fresh: true, tries: []toolcall.Try{after(0, false), after(3*time.Second, false)}, want: toolcall.StepWait},
		"idempotent for 3 s":            {idempotent: true, tries: []toolcall.Try{after(0, false), after(3*time.Second, false)}, want: toolcall.StepSeek},
		"idempotent, another host":      {idempotent: true, tries: []toolcall.Try{after(0, false), after(3*time.Second, false)}, sought: []string{"other"}, want: toolcall.StepMove},
		"a late event":                  {tries: []toolcall.Try{{Response: ended}, {Refused: "no"}}, sought: []string{"other"}, want: toolcall.StepEnd},
		"an early event":                {sought: []string{"other"}, want: toolcall.StepSend},
	} {
		d := toolcall.Delivery{Fresh: c.fresh, Idempotent: c.idempotent, Patience: patience}
		for _, try := range c.tries {
			d.Tried(try)
		}
		for _, ledger := range c.sought {
			d.Sought(ledger)
		}
		if d.Step != c.want {
			t.Errorf("%s: step %d, want %d", name, d.Step, c.want)
		}
		if (d.Step == toolcall.StepEnd) != (d.Response != nil) || (d.Step == toolcall.StepMove) != (d.Ledger != "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}
