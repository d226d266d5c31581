package turn

import (
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Next returns the next action of a turn. It is total and changes
// nothing: the same state and progress lead to the same action.
func Next(s *State, p *Progress) Action {
	switch p.Stage(s) {
	case Failing:
		return p.fail()
	case Claiming:
		return p.claimTurn(s)
	case Admitting:
		return p.admit(s)
	case Asking:
		return p.ask(s)
	case Judging:
		return p.decideCalls(s)
	case Starting:
		return p.start(s)
	case Running:
		return p.run(s)
	case Stopping:
		return p.kill(s)
	case Closing:
		return p.close(s)
	}
	return p.close(s)
}

// fail returns why the turn is given up.
func (p *Progress) fail() Action {
	if p.execution.failure != nil {
		return Fail{Err: p.execution.failure}
	}
	return Fail{Err: p.execution.stop.cause}
}

// New returns the progress of the turn of a state whose step is followed by
// journal.
func New(s *State, now time.Time, journal ...*harnessv1.Record) *Progress {
	p := newProgress(s.Snapshot)
	for _, rec := range journal {
		p.Fold(rec)
	}
	p.execution.now = now
	p.recoverUnsent()
	p.startJudgement(s)
	return p
}

// recoverUnsent finds the calls that a former worker has started and not sent: those of the
// groups after the first one that has not ended, because the groups run in order.
func (p *Progress) recoverUnsent() {
	groups := p.Unfinished()
	for _, group := range groups[min(1, len(groups)):] {
		for _, c := range group {
			p.execution.fresh[c.ID] = p.Started[c.ID]
		}
	}
}
