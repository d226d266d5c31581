package repair

import (
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// routeTree decides where a run goes that has a parent or children: it stops only once
// everything below it has, and works only while its parent wants it to.
func (d *decision) routeTree() (decided bool, err error) {
	s := d.s
	if !runstate.Ended(s) {
		tree.EndOverdue(s, d.now)
	}
	if err := d.answerWaits(); err != nil {
		return false, err
	}
	if runstate.Ended(s) || s.GetParent() == nil && len(s.GetChildren()) == 0 {
		return false, nil
	}
	stopping := s.GetStopping()
	waits := d.waitsForAgents()
	switch {
	case d.cancel != nil:
	case stopping.GetCancel() != nil:
		d.cancel, d.canceller = stopping.GetCancel(), stopping.GetCaller()
	case d.resumed != "" && d.interrupt == nil && !d.halted:
	case stopping.GetFinish() != nil && d.interrupt == nil:
		return true, d.finish(stopping)
	case stopping.GetExceeded() != "" && d.interrupt == nil:
		s.Stopping = nil
		return true, d.exceedTime(runstate.ExceededTime(s, d.now), stopping)
	case stopping.GetInterrupt() != nil && d.interrupt == nil:
		d.interrupt, d.interrupter = stopping.GetInterrupt(), stopping.GetCaller()
	}
	if d.halted && d.interrupt == nil {
		d.interrupt = &harnessv1.Interrupt{Reason: "The run that started it was interrupted."}
	}
	s.Stopping = nil
	switch {
	case d.cancel != nil:
		if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_END) {
			return true, d.parkStopping(&harnessv1.Stopping{Cancel: d.cancel, Caller: d.canceller})
		}
		return false, nil
	case d.interrupt != nil:
		if !tree.Stop(s, harnessv1.ChildWant_CHILD_WANT_HALT) {
			return true, d.parkStopping(&harnessv1.Stopping{Interrupt: d.interrupt, Caller: d.interrupter})
		}
		d.halted = d.halted || s.GetParent().GetHalted()
		return false, nil
	case s.GetParent().GetHalted() && s.GetPausedPhase() != unpaused:
		return true, d.park() // until its parent wants it to work
	}
	if warn := runstate.ExceededTime(s, d.now); warn != nil && tree.Live(s) && d.failure == nil && !d.idle() {
		return true, d.exceedTime(warn, nil)
	}
	d.extendAll()
	if d.resumed == "resume" || d.resumed == causeMessage {
		tree.Continue(s, d.resumed == "resume")
	}
	if err := d.delegate(); err != nil || !waits {
		return false, err
	}
	untold := len(tree.Untold(s)) > 0
	if tree.Opening(s) || !untold && len(tree.InBackground(s)) > 0 && (s.GetTurn().GetAgentDone() || d.asksMore()) {
		return true, d.pauseForAgents()
	}
	if s.GetPausedPhase() != unpaused {
		d.resumed = "agent"
	}
	return false, nil
}

// waitsForAgents reports whether the run is parked until its graph before the first turn is over, or until a sub-agent in the background
// ends.
func (d *decision) waitsForAgents() bool {
	s := d.s
	return s.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED && runstate.WaitsForAgents(s.GetStopReason()) && !s.GetStopReason().GetDetails().GetStopping() &&
		(d.resumed == "" || d.ordered) && d.failure == nil && len(runstate.AwaitedCalls(s)) == 0
}

// asksMore reports whether the run takes no turn because of what its sub-agents in the background have leased, or because a call in
// the background waits for what its parent may give, which it asks for by its park. With a result that the agent has not read it takes
// one nevertheless.
func (d *decision) asksMore() bool {
	return tree.LeasedOut(d.s) || d.s.GetShort() != "" && len(tree.Untold(d.s)) == 0
}

// idle reports whether the run is parked, and stays so, for another reason than that something below works.
func (d *decision) idle() bool {
	return d.s.GetPausedPhase() != unpaused && d.resumed == "" && !runstate.WaitsForAgents(d.s.GetStopReason())
}

// exceedTime parks the run because its budget of wall-clock time is used up, once nothing below it works any more. What works below
// continues when the run does. stopping is that of a stop that is under way.
func (d *decision) exceedTime(warn *harnessv1.BudgetWarn, stopping *harnessv1.Stopping) error {
	if stopping == nil {
		stopping = &harnessv1.Stopping{
			Interrupt: &harnessv1.Interrupt{Reason: "The budget of wall-clock time of the run that started it is used up."}, Exceeded: warn.GetBudget(),
		}
	}
	if !tree.Stop(d.s, harnessv1.ChildWant_CHILD_WANT_HALT) {
		return d.parkStopping(stopping)
	}
	if warn == nil { // the clock here is slow
		limit := d.s.GetConfig().GetBudgets().GetWallClock().AsDuration().Seconds()
		warn = &harnessv1.BudgetWarn{Budget: stopping.GetExceeded(), Limit: limit, Used: limit}
	}
	return d.parkExceeded(warn)
}

// finish ends the run as the stop decision has decided, once everything below it has ended.
func (d *decision) finish(stopping *harnessv1.Stopping) error {
	if !tree.Stop(d.s, harnessv1.ChildWant_CHILD_WANT_END) {
		return d.parkStopping(stopping)
	}
	d.s.Stopping = nil
	if d.s.GetPausedPhase() != unpaused {
		if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_RESUME); err != nil {
			return err
		}
		d.Emit(event.SessionResume("agent"))
	}
	t := d.s.GetTurn()
	d.toStopDecision(&harnessv1.TurnComplete{
		AgentDone: t.GetAgentDone(), CalledWorkComplete: t.GetCalledWorkComplete(), Retaken: true, Finish: stopping.GetFinish(),
	})
	return nil
}

// parkStopping parks the run until everything below it has stopped.
func (d *decision) parkStopping(stopping *harnessv1.Stopping) error {
	d.s.Stopping = proto.CloneOf(stopping)
	return d.pauseForAgents()
}

// pauseForAgents parks the run outside its phase until something below it has ended, or keeps it so.
func (d *decision) pauseForAgents() error {
	s, reason := d.s, tree.WaitReason(d.s, d.Turn)
	if s.GetPausedPhase() == unpaused {
		if err := d.Enter(harnessv1.PhaseInput_PHASE_INPUT_PAUSE); err != nil {
			return err
		}
		d.Emit(event.SessionPause(reason))
		if _, err := d.call(harnessv1.HookTopic_HOOK_TOPIC_ON_PAUSE, "agent", "", map[string]any{"kind": reason.GetKind(), "message": reason.GetMessage()}); err != nil {
			return err
		}
		s.ParkVersion = 0
	}
	s.StopReason = reason
	runstate.ParkClock(s, d.now)
	if first := runstate.FirstDeadline(s); !proto.Equal(first, s.GetWakeAt()) {
		s.WakeAt, s.ParkVersion = first, 0
	}
	return d.park()
}
