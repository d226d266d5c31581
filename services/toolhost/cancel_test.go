package toolhost

import "testing"

func TestCancelIsTotalAndSafe(t *testing.T) {
	for _, s := range append(states, State(77)) {
		for _, f := range []Fate{Unstarted, Killed, Unknown, Fate(77)} {
			for _, c := range calls {
				got := Cancel(s, f, c)
				if got < Kill || got > KeepTombstone {
					t.Errorf("Cancel(%v, %v, %+v) = %v, which is no cancellation", s, f, c, got)
				}
				if (got == Kill) != (s == Running) {
					t.Errorf("Cancel(%v, %v, %+v) = %v", s, f, c, got)
				}
				// Only a call that cannot start any more needs no tombstone.
				if (got == KeepResult || got == KeepTombstone) && Admit(s, c) == Start && !c.Idempotent {
					t.Errorf("Cancel(%v, %v, %+v) = %v, but the call can still start", s, f, c, got)
				}
				// A call is Unstarted only if no host can have begun it.
				if got == Forbid && (s != Absent || c.ForeignLedger) {
					t.Errorf("Cancel(%v, %v, %+v) = %v, but the call may have begun", s, f, c, got)
				}
			}
		}
	}
}

func TestCancel(t *testing.T) {
	foreign := Call{ForeignLedger: true}
	for _, c := range []struct {
		state State
		fate  Fate
		call  Call
		want  Cancellation
	}{
		{Absent, Unstarted, Call{}, Forbid},
		{Absent, Unstarted, foreign, ForbidUnknown},
		{Running, Unstarted, Call{}, Kill},
		{Running, Unstarted, foreign, Kill},
		{Done, Unstarted, Call{}, KeepResult},
		{Done, Unstarted, foreign, KeepResult},
		{Forgotten, Unstarted, Call{}, KeepResult},
		{Orphaned, Unstarted, Call{}, ForbidUnknown},
		{Orphaned, Unstarted, foreign, ForbidUnknown},
		{Cancelled, Unstarted, Call{}, KeepTombstone},
		{Cancelled, Unstarted, foreign, ForbidUnknown},
		{Cancelled, Killed, Call{}, KeepTombstone},
		{Cancelled, Killed, foreign, KeepTombstone},
		{Cancelled, Unknown, Call{}, KeepTombstone},
		{Cancelled, Unknown, foreign, KeepTombstone},
		{State(77), Unstarted, Call{}, ForbidUnknown},
	} {
		if got := Cancel(c.state, c.fate, c.call); got != c.want {
			t.Errorf("Cancel(%v, %v, %+v) = %v, want %v", c.state, c.fate, c.call, got, c.want)
		}
	}
}
