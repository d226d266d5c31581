package toolhost

import "fmt"

// State is what is known of a call: its entry in the ledger, seen together with
// what runs in this process.
//
//	Absent ──execute──▶ Running ──ends──▶ Done ──trimmed──▶ Forgotten
//	   │                   │ └──process dies──▶ Orphaned
//	   └──────cancel───────┴────────cancel────────┴──▶ Cancelled
//
// Done, Forgotten and Cancelled are final: nothing starts from them.
type State byte

// The states; their numbers are stored in ledgers and never change meaning.
const (
	// Absent: never seen, or idempotent and no longer remembered.
	Absent State = 0
	// Running: started by this process and not ended.
	Running State = 1
	// Done: ended, and the result is known.
	Done State = 2
	// Cancelled: killed, or forbidden before it began.
	Cancelled State = 3
	// Forgotten: ended so long ago that the result was dropped.
	Forgotten State = 4
	// Orphaned: started by a process that died before it ended. Never stored:
	// it is a stored Running that this process did not start.
	Orphaned State = 5
)

// States are all of them, for tests and tables.
var States = []State{Absent, Running, Done, Cancelled, Forgotten, Orphaned}

// String is the state's name.
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

// Call is what the decisions depend on beside the state.
type Call struct {
	// Running it twice has the effect of running it once.
	Idempotent bool
	// The request names another ledger: the call may have been started under
	// that one.
	ForeignLedger bool
}

// Admission is what happens to a request to execute a call.
type Admission byte

// The admissions.
const (
	// Start: run it now; if it is not idempotent, after the mark is durable.
	Start Admission = iota + 1
	// Join: wait for the one that runs.
	Join
	// Replay: answer with the stored result.
	Replay
	// AnswerUnknown: answer UNKNOWN and run nothing.
	AnswerUnknown
	// AnswerCancelled: answer CANCELLED and run nothing.
	AnswerCancelled
)

// Admit decides a request to execute a call. It is total: a state that it does
// not know is answered with UNKNOWN.
func Admit(s State, c Call) Admission {
	switch s {
	case Cancelled:
		return AnswerCancelled
	case Done:
		return Replay
	case Running:
		return Join
	case Orphaned, Forgotten:
		if c.Idempotent {
			return Start
		}
		return AnswerUnknown
	case Absent:
		if c.ForeignLedger && !c.Idempotent {
			return AnswerUnknown
		}
		return Start
	}
	return AnswerUnknown
}

// Fate is what a tombstone says of the call under it.
type Fate byte

// The fates; their numbers are stored in ledgers and never change meaning.
const (
	// Unstarted: nothing of it ever ran under this ledger. Tombstones of earlier
	// versions, which did not say, read so too.
	Unstarted Fate = 0
	// Killed: it ran and was killed.
	Killed Fate = 1
	// Unknown: nothing of it runs; how far it came is not known.
	Unknown Fate = 2
)

// Revocation is what happens to a request to cancel a call.
type Revocation byte

// The revocations.
const (
	// Kill: stop it with all that it started, then bury it as Killed.
	Kill Revocation = iota + 1
	// Bury: it never began; write the tombstone.
	Bury
	// BuryUnknown: it may have begun in a life that is over. See to it that
	// nothing of that life is left, then bury it as Unknown.
	BuryUnknown
	// Finished: it ended before; leave it as it is.
	Finished
	// Buried: its tombstone says what became of it.
	Buried
)

// Revoke decides a request to cancel a call; f is what its tombstone says, for
// one that is Cancelled. It is total: what it does not know is buried as
// Unknown.
func Revoke(s State, f Fate, c Call) Revocation {
	switch s {
	case Cancelled:
		if f == Unstarted && c.ForeignLedger {
			return BuryUnknown // not started here, and there nobody can say
		}
		return Buried
	case Done, Forgotten:
		return Finished
	case Running:
		return Kill
	case Absent:
		if !c.ForeignLedger {
			return Bury
		}
	}
	return BuryUnknown
}
