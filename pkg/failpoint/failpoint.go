// Package failpoint names the moments at which a process of the mesh is killed
// or stopped in tests, in the manner of etcd's gofail.
//
// A program that is built with the tag failpoint reads HARNESS_FAILPOINT, a
// comma-separated list of ROLE.NAME=ACTION[@N]: at the Nth time that the point
// is reached (default: the first) the process does ACTION to itself, kill
// (SIGKILL) or stop (SIGSTOP), after it has said so on stderr:
//
//	failpoint turn.claimed kill
//
// Without the tag Hit is empty and costs nothing.
package failpoint

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Variable is the environment variable that arms points.
const Variable = "HARNESS_FAILPOINT"

// loop are the points of every executor's loop, in the order in which a step
// passes them.
var loop = []string{
	"received",  // a step was delivered, nothing done
	"executed",  // the outcome is there, not committed
	"committed", // the outcome is stored, the step not acknowledged
	"acked",     // the step is acknowledged
}

// own are the points of one role alone, in the same order.
var own = map[string][]string{
	workflow.Repair: {
		"wake_seen",   // a resting run and an item for it were seen, nothing appended
		"woken",       // the trigger is stored, the item not acknowledged
		"timer_fired", // a timer was delivered, no item appended
		"timer_kept",  // the item is stored, the timer not acknowledged
		"erased",      // all of a deleted run is gone but its last record, no timer set for that
	},
	workflow.Turn: {
		"claimed",       // TurnStarted is stored, the model not asked
		"asked",         // the subscribers of before_step have spoken, nothing stored
		"admitted",      // TurnAdmitted is stored
		"streaming",     // the first text of the model is there
		"answered",      // the model's answer is there, not stored
		"responded",     // ModelResponded is stored
		"weighed",       // the subscribers of the calls have spoken, nothing stored
		"judged",        // CallsJudged is stored
		"tools_started", // ToolsStarted is stored, no call sent
		"tool_answered", // the tool host has answered a call, nothing stored
		"tool_finished", // ToolFinished is stored
		"killed",        // the tool host has killed the calls of an interrupted turn
	},
	workflow.StopDecision: {
		"looked", // an output or a subscriber was looked at, nothing stored
	},
	workflow.ToolHost: {
		"received",  // a call came in, nothing done
		"marked",    // its mark is in the ledger, nothing run
		"performed", // it has had its effect, the ledger does not know
		"stored",    // its result is in the ledger, nobody was answered
		"cancelled", // a cancelled call is dead and buried, nobody was answered
	},
	workflow.Gateway: {
		"start_received", // a run is to be started, nothing stored
		"started",        // its first record is stored, nobody was answered
		"input_received", // an input came in, nothing stored
		"input_stored",   // it is stored, nobody was answered
		"watching",       // a watcher was sent a record
		"expired",        // the log of a deleted run is closed, nobody was answered
	},
}

// Points are the names of a role's points, without the role.
func Points(role string) []string {
	var points []string
	if slices.Contains(workflow.Default(), role) {
		points = append(points, loop...)
	}
	return append(points, own[role]...)
}

// Known says that a role has a point.
func Known(role, point string) bool { return slices.Contains(Points(role), point) }
