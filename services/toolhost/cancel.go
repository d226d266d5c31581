package toolhost

// Fate is what happened to a call with a tombstone.
type Fate byte

// The fates. Their numbers are stored in ledgers and never change meaning.
const (
	// Unstarted: the call never ran under this ledger. Tombstones of earlier versions
	// have no fate and mean this too.
	Unstarted Fate = 0
	// Killed: the call ran and was killed.
	Killed Fate = 1
	// Unknown: no process of the call is running, and its effect is not known.
	Unknown Fate = 2
)

// Cancellation is the decision about a request to cancel a call.
type Cancellation byte

// The cancellations.
const (
	// Kill kills all processes of the call and stores a tombstone with Killed.
	Kill Cancellation = iota + 1
	// Forbid stores a tombstone with Unstarted: the call did not begin.
	Forbid
	// ForbidUnknown stores a tombstone with Unknown, after all processes of earlier
	// hosts are dead: one of them may have begun the call.
	ForbidUnknown
	// KeepResult changes nothing: the call ended before.
	KeepResult
	// KeepTombstone changes nothing: the call has a tombstone.
	KeepTombstone
)

// Cancel decides about a request to cancel a call. f is the fate in the tombstone of a
// Cancelled call. It is total: the decision for an unknown state is ForbidUnknown.
func Cancel(s State, f Fate, c Call) Cancellation {
	switch s {
	case Cancelled:
		if f == Unstarted && c.ForeignLedger {
			return ForbidUnknown // unstarted here, unknown under the other ledger
		}
		return KeepTombstone
	case Done, Forgotten:
		return KeepResult
	case Running:
		return Kill
	case Absent:
		if !c.ForeignLedger {
			return Forbid
		}
	case Orphaned:
	}
	return ForbidUnknown
}
