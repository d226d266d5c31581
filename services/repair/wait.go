package repair

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// NeedWait is the key of the check of what a call waits for; the number of the check, a colon
// and the id of the call follow.
const NeedWait = "wait:"

// waitKey returns the key of the next check of a call.
func waitKey(call *harnessv1.PendingCall) string {
	return NeedWait + strconv.FormatUint(uint64(call.GetWait().GetChecks())+1, 10) + ":" + call.GetCallId()
}

// WaitCall returns the call that a key of waitKey names; nil if it waits no longer.
func WaitCall(s runstate.SharedFields, key string) *harnessv1.PendingCall {
	_, id, _ := strings.Cut(strings.TrimPrefix(key, NeedWait), ":")
	return find(runstate.AwaitedCalls(s), id)
}

// checkWaits ends the waits whose time has come or whose event has happened, by the
// observations of what they wait for, and sets the time of the next check of the others.
func (d *decision) checkWaits() error {
	now := d.now
	if at := d.s.GetWakeAt(); at != nil && at.AsTime().After(now) {
		now = at.AsTime() // the timer proves it, even if the clock here is slow
	}
	spent := runstate.ExceededBudget(d.s, now).GetBudget() == "wall_clock"
	for _, call := range runstate.AwaitedCalls(d.s) {
		w := call.GetWait()
		if call.GetKind() != runstate.KindWait || w == nil {
			continue
		}
		over := !call.GetDeadline().AsTime().After(now)
		ended, failed := "", false
		switch checked := runstate.Checked(w); {
		case checked && (over || spent || !w.GetCheckTime().AsTime().After(now)):
			var err error
			if ended, failed, err = d.checkWait(call, now); err != nil {
				return err
			}
			if ended == "" && over {
				ended, failed = "The wait ended at its deadline: what it waits for has not happened", true
				if seen := d.lastSeen(call); seen != "" {
					ended += ". " + seen
				}
			}
		case !checked && over:
			ended = "The time is over"
		}
		if ended == "" && spent {
			ended, failed = "The wait ended: the time budget of the run is used up", true
		}
		if ended == "" {
			continue
		}
		if err := d.endWait(call, ended, failed, now); err != nil {
			return err
		}
	}
	return nil
}

// checkWait returns the reason for which a wait has ended, empty if it has not, by the observation of its
// check.
func (d *decision) checkWait(call *harnessv1.PendingCall, now time.Time) (ended string, failed bool, err error) {
	w := call.GetWait()
	if w.GetCommand() != "" && !d.runsCommands() {
		return mode.BlockedText(runstate.Mode(d.s), "run_command"), true, nil
	}
	seen := d.seen(call)
	if seen == nil {
		return "", false, &agent.NeedsError{Keys: []string{waitKey(call)}}
	}
	switch {
	case seen.GetError() != "":
	case w.GetCommand() != "" && seen.GetExitCode() == 0:
		ended = "The command succeeded" + outputOf(seen)
	case w.GetUrl() != "" && seen.GetStatus() >= 200 && seen.GetStatus() < 300:
		ended = fmt.Sprintf("The address answered with the status %d: %s", seen.GetStatus(), w.GetUrl())
	case w.GetPath() != "" && w.GetChecks() == 0:
		w.Digest = seen.GetDigest()
	case w.GetPath() != "" && seen.GetDigest() != w.GetDigest():
		ended = "The file " + w.GetPath() + " " + changeOf(w.GetDigest(), seen.GetDigest())
	case w.GetBackground() != "" && seen.GetBackground() == nil:
		ended, failed = fmt.Sprintf("No background command %s is running: it has ended, or there was none", w.GetBackground()), w.GetChecks() == 0
	case w.GetBackground() != "" && !seen.GetBackground().GetRunning():
		ended = "The background command " + w.GetBackground() + " has ended: " + seen.GetBackground().GetEnd()
	}
	runstate.CheckLater(w, now)
	return ended, failed, nil
}

// seen returns the observation of the next check of a call; nil if there is none.
func (d *decision) seen(call *harnessv1.PendingCall) *harnessv1.WaitCheck {
	if o := agent.Observation(d.in, waitKey(call)); o != nil {
		return o.GetWaitCheck()
	}
	return nil
}

// lastSeen describes what the last check of a call saw that did not end the wait.
func (d *decision) lastSeen(call *harnessv1.PendingCall) string {
	w := call.GetWait()
	if w.GetChecks() == 0 {
		return ""
	}
	w.Checks--
	seen := d.seen(call)
	w.Checks++
	switch {
	case seen.GetError() != "":
		return "It could not be checked: " + seen.GetError()
	case w.GetCommand() != "":
		return fmt.Sprintf("The command last exited with %d%s", seen.GetExitCode(), outputOf(seen))
	case w.GetUrl() != "":
		return fmt.Sprintf("The address last answered with the status %d", seen.GetStatus())
	}
	return ""
}

// runsCommands reports whether the present mode of work allows commands.
func (d *decision) runsCommands() bool {
	return mode.Allows(runstate.Mode(d.s), d.made.Modes, &harnessv1.ToolSpec{
		Name: "run_command", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST, Annotations: &harnessv1.ToolAnnotations{Writes: true, Executes: true},
	})
}

// endWait answers a call that waited.
func (d *decision) endWait(call *harnessv1.PendingCall, why string, failed bool, now time.Time) error {
	waited := now.Sub(call.GetWait().GetBeginTime().AsTime()).Round(time.Second)
	text := fmt.Sprintf("%s\n[waited %d seconds]", strings.TrimRight(why, "\n. "), int(max(waited, 0).Seconds()))
	return d.answerFromOutside(call, content.Inline(text), &harnessv1.ToolAnswer{CallId: call.GetCallId(), IsError: failed})
}

// endWaits ends all waits because of a message of the user, which the agent is to read.
func (d *decision) endWaits() error {
	for _, call := range runstate.AwaitedCalls(d.s) {
		if call.GetKind() != runstate.KindWait || call.GetWait() == nil {
			continue
		}
		if err := d.endWait(call, "The wait ended: a message of the user arrived", false, d.now); err != nil {
			return err
		}
	}
	return nil
}

func changeOf(before, after string) string {
	switch {
	case before == "":
		return "has appeared"
	case after == "":
		return "has disappeared"
	}
	return "has changed"
}

func outputOf(seen *harnessv1.WaitCheck) string {
	if strings.TrimSpace(seen.GetOutput()) == "" {
		return ""
	}
	return ". Its output:\n" + seen.GetOutput()
}
