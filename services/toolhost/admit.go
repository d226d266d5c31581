package toolhost

import "fmt"

// State is the state of a call, from its entry in the ledger and from the calls that run in
// this process.
//
//	Absent ──execute──▶ Running ──ends──▶ Done ──trimmed──▶ Forgotten
//	   │                   │ └──process dies──▶ Orphaned
//	   └──────cancel───────┴────────cancel────────┴──▶ Cancelled
//
// Done, Forgotten and Cancelled are final: a call in these states never starts, unless it
// is idempotent and Forgotten.
type State byte

// The states. Their numbers are stored in ledgers and never change meaning.
const (
	// Absent: not in the ledger, or idempotent and no longer cached.
	Absent State = 0
	// Running: started by this process and not ended.
	Running State = 1
	// Done: ended, with a known result.
	Done State = 2
	// Cancelled: killed, or forbidden before it began.
	Cancelled State = 3
	// Forgotten: ended, and the result was removed because of its age.
	Forgotten State = 4
	// Orphaned: started by a process that died before the call ended. Never stored: it
	// is a stored Running call of another process.
	Orphaned State = 5
)

// String returns the name of the state.
func (s State) String() string {
	switch s {
	case Absent:
		return "absent"
	case Running:
		return "running"
	case Done:
		return "done"
	case Cancelled:
		return "cancelled"
	case Forgotten:
		return "forgotten"
	case Orphaned:
		return "orphaned"
	}
	return fmt.Sprintf("State(%d)", byte(s))
}

// Call has the facts, other than the state, that decide about a call.
type Call struct {
	// Idempotent reports that running the call twice has the effect of running it once.
	Idempotent bool
	// ForeignLedger reports that the request names another ledger: the call may have
	// been started under that one.
	ForeignLedger bool
	// Other reports that the entry is that of a call with the same id and another tool or other
	// arguments.
	Other bool
	// LogLost reports that the ledger has later entries of the run that its log has lost.
	LogLost bool
}

// Admission is the decision about a request to execute a call.
type Admission byte

// The admissions.
const (
	// Start runs the call. If it is not idempotent, its mark is durable first.
	Start Admission = iota + 1
	// Join waits for the running call.
	Join
	// Replay returns the stored result.
	Replay
	// ReturnUnknown returns the outcome UNKNOWN and runs nothing.
	ReturnUnknown
	// ReturnCancelled returns the outcome CANCELLED and runs nothing.
	ReturnCancelled
	// Refuse returns the outcome REFUSED and runs nothing: the model has to read the
	// entries of the ledger first, or the id is taken.
	Refuse
)

// Admit decides about a request to execute a call. It is total: the decision for an
// unknown state is ReturnUnknown. A call never gets the result of another one, and none starts
// while the ledger has calls that the log of its run has lost.
func Admit(s State, c Call) Admission {
	if c.Other && s != Absent {
		return Refuse
	}
	a := admit(s, c)
	if a == Start && c.LogLost {
		return Refuse
	}
	return a
}

func admit(s State, c Call) Admission {
	switch s {
	case Cancelled:
		return ReturnCancelled
	case Done:
		return Replay
	case Running:
		return Join
	case Orphaned, Forgotten:
		if c.Idempotent {
			return Start
		}
		return ReturnUnknown
	case Absent:
		if c.ForeignLedger && !c.Idempotent {
			return ReturnUnknown
		}
		return Start
	}
	return ReturnUnknown
}
