// Package failpoint names the points at which tests kill or stop a process of the mesh,
// in the manner of etcd's gofail.
//
// A program that is built with the tag failpoint reads HARNESS_FAILPOINT, a
// comma-separated list of ROLE.NAME=ACTION[@N]. When it reaches the point for the Nth
// time (default: the first) it prints a line to stderr and does ACTION to itself, kill
// (SIGKILL) or stop (SIGSTOP):
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

// loop are the points of every executor's loop, in the order in which a step reaches
// them.
var loop = []string{
	"received",  // a step was delivered, nothing done
	"executed",  // the outcome is not committed
	"committed", // the outcome is stored, the step not acknowledged
	"acked",     // the step is acknowledged
}

// rolePoints are the points of one role only, in the same order.
var rolePoints = map[string][]string{
	workflow.Repair: {
		"request_stored", // the request of a judge is stored, its job not created
		"job_created",    // the job is created, nothing committed
		"wake_seen",      // a parked or ended run and an item for it were read, nothing appended
		"woken",          // the trigger is stored, the item not acknowledged
		"report",         // a child is parked or has ended, its report is not stored
		"reported",       // the report is stored, the child's step is not acknowledged
		"child",          // a call waits for a child that is not started
		"child_started",  // the child is started, the parent's step is not acknowledged
		"order",          // a child has an order that was not sent
		"worktree",       // the worktree of a child is made, nothing stored
		"worktree_ended", // it is ended, the child's step is not acknowledged
		"ordered",        // the order is sent, the parent's step is not acknowledged
		"timer_fired",    // a timer was delivered, no item appended
		"timer_kept",     // the item is stored, the timer not acknowledged
		"below_expired",  // the runs below a deleted run are deleted, nothing of the run is erased
		"erased",         // everything of a deleted run is erased except its last record, no timer set for it
	},
	workflow.Turn: {
		"claimed",       // TurnStarted is stored, no request sent to the model
		"asked",         // the subscribers of before_step have answered, nothing stored
		"admitted",      // TurnAdmitted is stored
		"streaming",     // the first text of the model has arrived
		"answered",      // the model's answer has arrived, not stored
		"responded",     // ModelResponded is stored
		"weighed",       // the subscribers of the calls have answered, nothing stored
		"judged",        // CallsJudged is stored
		"tools_started", // ToolsStarted is stored, no call sent
		"tool_answered", // the tool host has answered a call, nothing stored
		"tool_finished", // ToolFinished is stored
		"killed",        // the tool host has killed the calls of an interrupted turn
	},
	workflow.Compaction: {
		"request_stored", // the request of a summary is stored, its job not created
		"job_created",    // the job is created, nothing committed
		"job_ended",      // the result of a job was read and merged, nothing committed
	},
	workflow.Inference: {
		"received", // a job was delivered, nothing done
		"resolved", // its request was read, no model called
		"answered", // the model has answered or its tries have failed, nothing stored
		"stored",   // the result is stored, the job not acknowledged
		"acked",    // the job is acknowledged
	},
	workflow.StopDecision: {
		"looked",         // an output was checked or a subscriber called, nothing stored
		"request_stored", // the request of a judge is stored, its job not created
		"job_created",    // the job is created, nothing committed
		"counted",        // the segment is counted in its profile, nothing committed
	},
	workflow.ToolHost: {
		"received",          // a call has arrived, nothing done
		"marked",            // its mark is in the ledger, nothing run
		"performed",         // it has had its effect, the ledger has no result
		"stored",            // its result is in the ledger, no answer sent
		"cancelled",         // a cancelled call has been killed and recorded, no answer sent
		"worktree_recorded", // a worktree is bound to its run, and has no files
		"worktree_copied",   // its files are copied, and not at its path
		"worktree_made",     // they are at its path, no answer sent
		"worktree_ended",    // its run has ended, its files are there
		"worktree_aside",    // its files are about to be removed
		"merge_stored",      // what a merge changes is on disk, nothing is changed
		"merge_changing",    // a file of the workspace is changed
		"merge_changed",     // all are, and the merge is not recorded
		"merged",            // it is recorded, its worktree is there
	},
	workflow.Gateway: {
		"start_received", // a start request has arrived, nothing stored
		"started",        // its first record is stored, no answer sent
		"input_received", // an input has arrived, nothing stored
		"input_stored",   // it is stored, no answer sent
		"watching",       // a watcher was sent a record
		"expired_child",  // that of a run below it is closed, not its own
		"expired",        // the log of a deleted run is closed, no answer sent
	},
}

// Points returns the names of a role's points, without the role.
func Points(role string) []string {
	var points []string
	if slices.Contains(workflow.Default(), role) {
		points = append(points, loop...)
	}
	return append(points, rolePoints[role]...)
}

func Known(role, point string) bool { return slices.Contains(Points(role), point) }
