package repair

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// delegate starts the sub-agents that may work now, and answers for graphs that are over.
func (d *decision) delegate() error {
	tree.StartSwarms(d.s, d.now)
	scheduled := tree.Schedule(d.s, d.run(), d.made.Agents, d.refused, d.now)
	d.Emit(scheduled.Events...)
	for _, c := range scheduled.Broke {
		if call := find(runstate.AwaitedCalls(d.s), tree.StartedBy(c)); call != nil {
			runstate.RecordAnswer(d.s, call.GetCallId(), "")
			d.repairCall(call, tree.BrokeText, "not started")
			continue
		}
		d.addResults(fmt.Sprintf("Run %s of %s, which was to work in the background, has no result. %s", c.GetRunId(), c.GetAgent(), tree.BrokeText))
	}
	if len(scheduled.Broke) > 0 {
		d.resumeIfAnswered("agent")
	}
	for _, g := range tree.Over(d.s) {
		if g.GetSwarm() != nil {
			if err := d.endSwarm(g); err != nil {
				return err
			}
			continue
		}
		text, failed, err := tree.GraphText(g, d.text)
		if err != nil {
			return err
		}
		if g.GetCallId() == "" {
			d.addResults("Sub-agents have worked on these tasks before you begin. Their results:\n\n" + text)
			continue
		}
		if call := find(runstate.AwaitedCalls(d.s), g.GetCallId()); call != nil {
			if err := d.answerAgent(call, text, text, failed); err != nil {
				return err
			}
		}
	}
	return nil
}

// endSwarm gives the first turn what a swarm has found.
func (d *decision) endSwarm(g *harnessv1.Graph) error {
	text, err := tree.SwarmText(g, d.text)
	if err != nil {
		return err
	}
	if text != "" {
		d.addResults(text)
	}
	d.Emit(tree.SwarmCompleted(d.s, g, d.now))
	return nil
}

// open starts the graph that the first turn waits for, and reports whether the run waits.
func (d *decision) open() (waits bool, err error) {
	if !tree.Opening(d.s) {
		return false, nil
	}
	if err := d.delegate(); err != nil || !tree.Opening(d.s) {
		return false, err
	}
	return true, d.pauseForAgents()
}
