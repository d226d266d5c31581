package toolcall

import (
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
)

// Carrier is what carries out a call: Call, Harness, PendingCall or Refusal.
type Carrier interface{ carrier() }

// Harness is a call that the harness answers itself.
type Harness struct {
	// Tool of the harness; nil if it has none with the name.
	Tool      *harnesstool.Tool
	Arguments string
}

// PendingCall is a call that waits for an answer: of a client, a sub-agent, a person, or of what it
// waits for. Its deadline is unset, because it depends on the time at which the turn ends.
type PendingCall struct{ *harnessv1.PendingCall }

// Refusal is a call that is not carried out. The model reads why.
type Refusal struct {
	// Denied is true if the call is not allowed; false if it is invalid.
	Denied bool
}

func (Call) carrier()        {}
func (Harness) carrier()     {}
func (PendingCall) carrier() {}
func (Refusal) carrier()     {}

// MaxQuestion bounds the text of a question in the state, in addition to the call's
// arguments, in bytes.
const MaxQuestion = 160

// Request returns what carries out a call of a turn, with the arguments that it is carried out with.
// It is total: a call without a disposition is invalid. The result shares its parts with c and arguments.
func Request(c *harnessv1.PreparedCall, arguments *harnessv1.Content, turn uint32) Carrier {
	if kind := Kind(c); kind != "" {
		why := c.GetMessage()
		if kind == runstate.KindQuestion {
			why = content.Cut(why, MaxQuestion) // the arguments have all of it
		}
		return PendingCall{&harnessv1.PendingCall{
			CallId: c.GetCallId(), Tool: c.GetTool(), Arguments: arguments, Kind: kind, Origin: c.GetOrigin(),
			Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Why: why, TurnNumber: turn,
			Reads: c.GetReads(), Writes: c.GetWrites(), Explores: c.GetExplores(), Marks: mark.Pending(c.GetMarks()),
			SandboxLevel: c.GetSandboxLevel(), SandboxHosts: c.GetSandboxHosts(), OnlyOnce: c.GetOnlyOnce(),
			Guarded: c.GetGuarded(), Wait: c.GetWait(), Delegation: c.GetDelegation(),
		}}
	}
	switch c.GetDisposition() {
	case harnessv1.CallDisposition_CALL_DISPOSITION_RUN:
		return Call{
			ID: c.GetCallId(), Tool: c.GetTool(), Arguments: arguments,
			ParallelSafe: c.GetParallelSafe(), Idempotent: c.GetIdempotent(), Marks: c.GetMarks(), Level: c.GetSandboxLevel(), Hosts: c.GetSandboxHosts(),
			Guarded: c.GetGuarded(),
		}
	case harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		return Harness{Tool: harnesstool.Find(c.GetTool()), Arguments: arguments.GetInline()}
	case harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:
		return Refusal{Denied: true}
	default:
		return Refusal{}
	}
}

// Kind returns the kind of answer that a call waits for; empty if it does not wait.
func Kind(c *harnessv1.PreparedCall) string {
	if c.GetReview() {
		return runstate.KindReview
	}
	return runstate.PendingKind(c.GetDisposition())
}

// Accepted reports whether a call is carried out, immediately or after an answer.
func Accepted(c *harnessv1.PreparedCall) bool {
	d := c.GetDisposition()
	return d != harnessv1.CallDisposition_CALL_DISPOSITION_INVALID && d != harnessv1.CallDisposition_CALL_DISPOSITION_DENIED
}
