package gateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// TestSubmissionCells checks each pair of state and result, the final state first.
// Pairs that are not in the table are rejected.
func TestSubmissionCells(t *testing.T) {
	answer := func(id string, sequence uint64) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Id: id, Sequence: sequence, Input: &harnessv1.InboxItem_Approval{
			Approval: &harnessv1.Approval{CallId: "c", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		}}
	}
	interrupt := &harnessv1.InboxItem{Id: "i", Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}}
	parkedWith := func(calls ...*harnessv1.PendingCall) input.State {
		return input.State{Quiescent: true, Step: &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{
			InboxCursor: 10, PendingToolCalls: calls, DrainedItems: []uint64{runlog.HashID("seen")},
		}}}
	}
	pending := &harnessv1.PendingCall{CallId: "c", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	results := map[string]gateway.SubmissionResult{
		"waiting":   gateway.RunRead{RunState: parkedWith(pending)},
		"idle":      gateway.RunRead{RunState: parkedWith()},
		"confirmed": gateway.RunConfirmed{},
		"stored":    gateway.InputStored{Sequence: 14},
		"existed":   gateway.InputStored{Sequence: 14, Existed: true},
		"earlier":   gateway.InputsRead{Items: []*harnessv1.InboxItem{answer("other", 12), answer("a", 14)}},
		"later":     gateway.InputsRead{Items: []*harnessv1.InboxItem{answer("a", 14), answer("other", 15)}},
		"failed":    gateway.SubmissionFailed{Err: errors.New("broken")},
	}
	brief := func(a gateway.SubmissionAction) string {
		switch a := a.(type) {
		case gateway.AppendInput:
			return fmt.Sprint("append after ", a.After)
		case gateway.ReadInputs:
			return fmt.Sprintf("read (%d, %d]", a.After, a.UpTo)
		case gateway.Reply:
			if a.Err != nil {
				return "reply: " + strings.TrimPrefix(a.Err.Error(), `call "c" `)
			}
			return fmt.Sprint("reply ", a.Admission)
		}
		return strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", a), "gateway."))
	}
	after := func(item *harnessv1.InboxItem, names ...string) gateway.Submission {
		s, _ := gateway.Submission{Item: item}.Start()
		for _, name := range names {
			s, _ = s.Next(results[name])
		}
		return s
	}
	states := []struct {
		name string
		at   gateway.Submission
	}{
		{"done", after(answer("seen", 0), "waiting")},
		{"reading an interrupt", after(interrupt)},
		{"reading an answer", after(answer("a", 0))},
		{"confirming", after(interrupt, "idle")},
		{"storing an interrupt", after(interrupt, "waiting")},
		{"storing an answer", after(answer("a", 0), "waiting")},
		{"comparing", after(answer("a", 0), "waiting", "stored")},
		{"comparing an answer sent again", after(answer("a", 0), "waiting", "existed")},
	}
	cells := map[string]string{
		"reading an interrupt: waiting":           "append after 10",
		"reading an interrupt: idle":              "confirm",
		"reading an interrupt: failed":            "reply: broken",
		"reading an answer: waiting":              "append after 10",
		"reading an answer: idle":                 "confirm",
		"reading an answer: failed":               "reply: broken",
		"confirming: waiting":                     "append after 10",
		"confirming: idle":                        "confirm",
		"confirming: confirmed":                   fmt.Sprint("reply ", input.Unneeded),
		"confirming: failed":                      "reply: broken",
		"storing an interrupt: stored":            fmt.Sprint("reply ", input.Store),
		"storing an interrupt: existed":           fmt.Sprint("reply ", input.Existed),
		"storing an interrupt: failed":            "reply: broken",
		"storing an answer: stored":               "read (10, 14]",
		"storing an answer: existed":              "read (10, 14]",
		"storing an answer: failed":               "reply: broken",
		"comparing: earlier":                      "reply: already has an answer",
		"comparing: later":                        fmt.Sprint("reply ", input.Store),
		"comparing: failed":                       "reply: broken",
		"comparing an answer sent again: earlier": "reply: already has an answer",
		"comparing an answer sent again: later":   fmt.Sprint("reply ", input.Existed),
		"comparing an answer sent again: failed":  "reply: broken",
	}
	checked := 0
	for _, state := range states {
		for name, result := range results {
			next, a := state.at.Next(result)
			want, listed := cells[state.name+": "+name]
			if listed {
				checked++
			} else {
				want = "reject"
			}
			if got := brief(a); got != want {
				t.Errorf("%s: %s leads to %q, want %q", state.name, name, got, want)
			}
			if _, ends := a.(gateway.Reply); ends != (next.State == gateway.SubmissionDone) && state.name != "done" {
				t.Errorf("%s: %s ends in state %v with %q", state.name, name, next.State, brief(a))
			}
		}
	}
	if checked != len(cells) {
		t.Errorf("%d of %d cells exist", checked, len(cells))
	}
}
