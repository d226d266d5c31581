// Package turn decides which models respond in a turn, whether each of their calls
// runs, which work is left after a crash, and how the turn counts. It has no
// effects; package turnserver carries them out.
//
// # The machine
//
// A turn is one machine. Next returns the next Action of a turn, as a function
// of its State and its Progress. The caller performs the action and passes the
// Event that it leads to on to Progress.Observe:
//
//	p := turn.New(state, now, journal)
//	for {
//		action := turn.Next(state, p)
//		switch a := action.(type) {
//		case turn.Return:
//			return a.Outcome, nil
//		case turn.Fail:
//			return nil, a.Err
//		}
//		event := perform(action)
//		if stopped { // an interrupt, or the step is lost
//			p.Stop(cause, interrupted)
//		}
//		if err := p.Observe(state, now, action, event); err != nil {
//			return nil, err
//		}
//	}
//
// Time and random numbers arrive in events. An event that does not follow from its
// action is rejected and changes nothing.
//
// # Stages
//
// A turn passes the stages Claiming, Admitting, Asking, Judging, Starting,
// Running and Closing, each of which may have nothing to do. A turn that is
// interrupted passes Stopping instead of the states before Closing. Failing is
// terminal: the step is delivered again.
//
// # Invariants
//
// What a turn has done is folded from the journal alone, so another worker
// continues exactly there. Once a response is stored no request is sent to a model. A
// call with a result is not sent again. Only calls that a stored ToolsStarted
// names are sent to a tool host. After an append has failed the turn has no
// further effect.
package turn

import "github.com/harnessmesh/harnessmesh/pkg/workflow"

// Name of the executor.
const Name = workflow.Turn
