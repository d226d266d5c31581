package turn

// Stage is where a turn is.
type Stage int

// Stages, in the order in which a turn passes them. Failing is terminal, and so is
// Closing once Next returns Return.
const (
	// Failing: the turn is given up without an outcome.
	Failing Stage = iota
	// Claiming: TurnStarted is not stored by this worker.
	Claiming
	// Admitting: the subscribers of before_step decide about the turn.
	Admitting
	// Asking: a model is to respond.
	Asking
	// Judging: the subscribers of the calls decide about them.
	Judging
	// Starting: calls are about to be started or taken over.
	Starting
	// Running: calls are on tool hosts.
	Running
	// Stopping: the calls of an interrupted turn are killed.
	Stopping
	// Closing: the outcome is made.
	Closing
)

// Stage returns where the turn is.
func (p *Progress) Stage(s *State) Stage {
	e := &p.execution
	switch {
	case e.failure != nil && e.drained():
		return Failing
	case !e.claimed:
		return Claiming
	case !e.drained():
		return Running
	case e.cancels != nil:
		return p.stopping()
	}
	stage := p.open(s)
	switch {
	case e.stop == nil || stage == Closing && !e.broken || stage == Asking && p.mustStore(s):
		return stage
	case !e.stop.interrupted:
		return Failing
	}
	return p.stopping()
}

// stopping returns Stopping while a call of the stopped turn may run.
func (p *Progress) stopping() Stage {
	for _, c := range p.Calls {
		if _, ended := p.Finished[c.ID]; p.Started[c.ID] && !ended {
			return Stopping
		}
	}
	return Closing
}

// open returns the first stage that has something left to do.
func (p *Progress) open(s *State) Stage {
	switch {
	case p.unadmitted(s):
		return Admitting
	case p.NeedsModel() && p.hasCandidate(s):
		return Asking
	case p.unjudged():
		return Judging
	case p.Abort != "" || !p.unfinished():
		return Closing
	case !p.execution.inboxChecked || len(p.Unstarted()) > 0:
		return Starting
	}
	return Running
}

// interrupted reports whether this worker has stopped the turn before it was
// done.
func (p *Progress) interrupted(s *State) bool {
	e := &p.execution
	return e.stop != nil && e.stop.interrupted && (e.cancels != nil || e.broken || p.open(s) != Closing)
}
