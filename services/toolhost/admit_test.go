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

func TestRevokeIsTotal(t *testing.T) {
	want := map[State]Revocation{
		Absent: Bury, Running: Kill, Done: Finished, Cancelled: Buried, Forgotten: Finished, Orphaned: Bury,
	}
	for _, s := range States {
		if got := Revoke(s); got != want[s] {
			t.Errorf("Revoke(%v) = %v, want %v", s, got, want[s])
		}
		if strings.HasPrefix(s.String(), "State(") {
			t.Errorf("state %d has no name", s)
		}
	}
	if Revoke(State(77)) != Bury {
		t.Error("an unknown state is not buried")
	}
}
