package toolcall

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Times within which a tool host that does not answer is given up.
const (
	// HostPause is the wait before a tool host that cannot be reached is tried again.
	HostPause = 250 * time.Millisecond
	// movePatience is how long a host may be unreachable before a call that has not
	// begun there is moved to another.
	movePatience = 2 * time.Second
	// joined is how long a try lasts that has reached its host.
	joined = 5 * time.Second
)

// Delivery decides how one call is delivered to a tool host. The host keeps a
// ledger by call id, so a call that is sent again is joined or answered from
// there. Its caller does what Step says and passes the result to Tried or Sought.
//
// A call that has begun stays with its host, which may be unreachable for
// Patience while another host answers; then its end is unknown. A call that has
// not begun, or that can be repeated, is moved to another host after 2 seconds.
type Delivery struct {
	// Fresh is true if no worker has sent the call under its ledger before.
	Fresh bool
	// Idempotent is true if the call can be repeated.
	Idempotent bool
	// Patience is how long the host may be unreachable.
	Patience time.Duration

	// Step is the next step.
	Step Step
	// Response is how the call ended, at StepEnd.
	Response *harnessv1.ExecuteToolResponse
	// Ledger is that of the host that takes the call, at StepMove.
	Ledger string

	away   time.Time // since when the host is unreachable; zero if it is not
	answer *harnessv1.ExecuteToolResponse
}

// Step is the next step of delivering a call.
type Step int

const (
	// StepSend: send the call.
	StepSend Step = iota
	// StepWait: wait for HostPause, then send the call again.
	StepWait
	// StepSeek: look for a host that answers and has another ledger.
	StepSeek
	// StepMove: the call is for another host. Terminal.
	StepMove
	// StepEnd: the call has ended. Terminal.
	StepEnd
)

// Try is the result of sending a call once.
type Try struct {
	Began, Ended time.Time
	// Response of the host; nil if the try failed.
	Response *harnessv1.ExecuteToolResponse
	// Refused is why the host did not accept the call as a request; empty if it did
	// not refuse it.
	Refused string
	// NotStarted is true if the host reports that nothing of the call began.
	NotStarted bool
}

// Tried adds the result of a try. It is ignored at a terminal step.
func (d *Delivery) Tried(t Try) {
	switch {
	case d.Step != StepSend && d.Step != StepWait:
	case t.Response.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN && d.Fresh:
		// The call cannot have begun, so the host has lost its ledger since this worker
		// asked for its id.
		d.Step, d.answer = StepSeek, t.Response
	case t.Response != nil:
		d.end(t.Response)
	case t.Refused != "":
		d.end(&harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_REFUSED, IsError: true, Result: "The tool host refused the call: " + t.Refused,
		})
	default:
		d.unreachable(t)
	}
}

// unreachable decides how long to wait for a host that did not answer.
func (d *Delivery) unreachable(t Try) {
	if !t.NotStarted {
		d.Fresh = false // the call may have begun: it is joined by its id
	}
	if d.away.IsZero() || t.Ended.Sub(t.Began) > joined {
		d.away = t.Ended
	}
	away := t.Ended.Sub(d.away)
	d.Step = StepWait
	if away > d.Patience || d.movable() && away > movePatience {
		d.Step = StepSeek
	}
}

// movable reports whether the call can run on another host.
func (d *Delivery) movable() bool { return d.Fresh || d.Idempotent }

// Sought adds the ledger of another host that answers, empty if there is none. It
// is ignored unless a host was sought.
func (d *Delivery) Sought(ledger string) {
	switch {
	case d.Step != StepSeek:
	case ledger != "" && (d.answer != nil || d.movable()):
		d.Step, d.Ledger = StepMove, ledger
	case d.answer != nil:
		d.end(d.answer)
	case ledger != "":
		d.end(&harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN})
	default:
		d.Step = StepWait
	}
}

func (d *Delivery) end(r *harnessv1.ExecuteToolResponse) { d.Step, d.Response = StepEnd, r }
