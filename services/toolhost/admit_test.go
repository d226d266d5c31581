package toolhost

import (
	"strings"
	"testing"
)

var calls = []Call{{}, {Idempotent: true}, {ForeignLedger: true}, {Idempotent: true, ForeignLedger: true}, {Other: true}, {LogLost: true}, {Idempotent: true, LogLost: true}, {Other: true, LogLost: true}}

func TestAdmitIsTotalAndSafe(t *testing.T) {
	for _, s := range append(states, State(77)) {
		for _, c := range calls {
			got := Admit(s, c)
			if got < Start || got > Refuse {
				t.Errorf("Admit(%v, %+v) = %v, which is no admission", s, c, got)
			}
			if got != Start {
				continue
			}
			if s == Cancelled || s == Done || s == Running {
				t.Errorf("Admit(%v, %+v) starts the call", s, c)
			}
			if c.LogLost || c.Other && s != Absent {
				t.Errorf("Admit(%v, %+v) starts the call", s, c)
			}
			if !c.Idempotent && (s != Absent || c.ForeignLedger) {
				t.Errorf("Admit(%v, %+v) may run the call a second time", s, c)
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
		{Absent, Call{ForeignLedger: true}, ReturnUnknown},
		{Absent, Call{Idempotent: true, ForeignLedger: true}, Start},
		{Running, Call{}, Join},
		{Done, Call{ForeignLedger: true}, Replay},
		{Cancelled, Call{Idempotent: true}, ReturnCancelled},
		{Orphaned, Call{}, ReturnUnknown},
		{Orphaned, Call{Idempotent: true}, Start},
		{Forgotten, Call{}, ReturnUnknown},
		{Absent, Call{LogLost: true}, Refuse},
		{Absent, Call{Idempotent: true, LogLost: true}, Refuse},
		{Done, Call{LogLost: true}, Replay},
		{Running, Call{LogLost: true}, Join},
		{Cancelled, Call{LogLost: true}, ReturnCancelled},
		{Orphaned, Call{LogLost: true}, ReturnUnknown},
		{Done, Call{Other: true}, Refuse},
		{Running, Call{Other: true}, Refuse},
		{Cancelled, Call{Other: true}, Refuse},
		{Orphaned, Call{Other: true}, Refuse},
	} {
		if got := Admit(c.state, c.call); got != c.want {
			t.Errorf("Admit(%v, %+v) = %v, want %v", c.state, c.call, got, c.want)
		}
	}
}

func TestStatesHaveNames(t *testing.T) {
	for _, s := range states {
		if strings.HasPrefix(s.String(), "State(") {
			t.Errorf("state %d has no name", s)
		}
	}
}
