package toolhost

import (
	"strings"
	"testing"
)

var calls = []Call{{}, {Idempotent: true}, {ForeignLedger: true}, {Idempotent: true, ForeignLedger: true}}

func TestAdmitIsTotalAndSafe(t *testing.T) {
	for _, s := range append(States, State(77)) {
		for _, c := range calls {
			got := Admit(s, c)
			if got < Start || got > AnswerCancelled {
				t.Errorf("%v %+v: no admission", s, c)
			}
			if got != Start {
				continue
			}
			if s == Cancelled || s == Done || s == Running {
				t.Errorf("%v %+v starts", s, c)
			}
			if !c.Idempotent && (s != Absent || c.ForeignLedger) {
				t.Errorf("%v %+v may run a second time", s, c)
			}
		}
	}
}

func TestAdmit(t *testing.T) {
	for _, c := range []struct {
		state State
		call  Call
		want  Admission
	}{
		{Absent, Call{}, Start},
		{Absent, Call{ForeignLedger: true}, AnswerUnknown},
		{Absent, Call{Idempotent: true, ForeignLedger: true}, Start},
		{Running, Call{}, Join},
		{Done, Call{ForeignLedger: true}, Replay},
		{Cancelled, Call{Idempotent: true}, AnswerCancelled},
		{Orphaned, Call{}, AnswerUnknown},
		{Orphaned, Call{Idempotent: true}, Start},
		{Forgotten, Call{}, AnswerUnknown},
	} {
		if got := Admit(c.state, c.call); got != c.want {
			t.Errorf("Admit(%v, %+v) = %v, want %v", c.state, c.call, got, c.want)
		}
	}
}

func TestRevokeIsTotalAndSafe(t *testing.T) {
	for _, s := range append(States, State(77)) {
		for _, f := range []Fate{Unstarted, Killed, Unknown, Fate(77)} {
			for _, c := range calls {
				got := Revoke(s, f, c)
				if got < Kill || got > Buried {
					t.Errorf("%v %v %+v: no revocation", s, f, c)
				}
				if (got == Kill) != (s == Running) {
					t.Errorf("%v %v %+v: %v", s, f, c, got)
				}
				// Only what can no longer start goes without a tombstone.
				if (got == Finished || got == Buried) && Admit(s, c) == Start && !c.Idempotent {
					t.Errorf("%v %v %+v can start after it was cancelled", s, f, c)
				}
				// "It never began" is said only of what nobody can have begun.
				if got == Bury && (s != Absent || c.ForeignLedger) {
					t.Errorf("%v %v %+v: nobody knows that it never began", s, f, c)
				}
			}
		}
	}
}

func TestRevoke(t *testing.T) {
	foreign := Call{ForeignLedger: true}
	for _, c := range []struct {
		state State
		fate  Fate
		call  Call
		want  Revocation
	}{
		{Absent, Unstarted, Call{}, Bury},
		{Absent, Unstarted, foreign, BuryUnknown},
		{Running, Unstarted, Call{}, Kill},
		{Running, Unstarted, foreign, Kill},
		{Done, Unstarted, Call{}, Finished},
		{Done, Unstarted, foreign, Finished},
		{Forgotten, Unstarted, Call{}, Finished},
		{Orphaned, Unstarted, Call{}, BuryUnknown},
		{Orphaned, Unstarted, foreign, BuryUnknown},
		{Cancelled, Unstarted, Call{}, Buried},
		{Cancelled, Unstarted, foreign, BuryUnknown},
		{Cancelled, Killed, Call{}, Buried},
		{Cancelled, Killed, foreign, Buried},
		{Cancelled, Unknown, Call{}, Buried},
		{Cancelled, Unknown, foreign, Buried},
		{State(77), Unstarted, Call{}, BuryUnknown},
	} {
		if got := Revoke(c.state, c.fate, c.call); got != c.want {
			t.Errorf("Revoke(%v, %v, %+v) = %v, want %v", c.state, c.fate, c.call, got, c.want)
		}
	}
}

func TestStatesHaveNames(t *testing.T) {
	for _, s := range States {
		if strings.HasPrefix(s.String(), "State(") {
			t.Errorf("state %d has no name", s)
		}
	}
}
