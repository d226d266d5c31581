package runstate

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// KindWait: the call waits for a time, or for what its arguments name. It is also the stop
// reason of a run that waits for nothing else.
const KindWait = "wait"

const (
	// firstCheck and lastCheck are the delays of the checks of a wait, which double.
	firstCheck, lastCheck = 5 * time.Second, 5 * time.Minute
	// minRealWait is how long a wait takes after which a call that is repeated is no loop.
	minRealWait = 5 * time.Second
)

// StartWait has a pending call of the tool wait wait from now on. It changes call. A wait for
// something is checked immediately: what it waits for may have happened, and a file is
// compared with what it is at the beginning.
func StartWait(call *harnessv1.PendingCall, now time.Time) {
	w := call.GetWait()
	call.Kind = KindWait
	w.BeginTime = timestamppb.New(now)
	call.Deadline = timestamppb.New(now.Add(time.Duration(w.GetSeconds()) * time.Second))
	if Checked(w) {
		w.CheckTime = timestamppb.New(now)
	}
}

// Checked reports whether a wait ends by something that is checked, not only by its time.
func Checked(w *harnessv1.WaitState) bool {
	return w.GetCommand() != "" || w.GetPath() != "" || w.GetBackground() != "" || w.GetUrl() != ""
}

// CheckLater counts a check after which a wait continues, and sets the time of the next one. It
// changes w.
func CheckLater(w *harnessv1.WaitState, now time.Time) {
	delay := lastCheck
	if n := w.GetChecks(); n < 6 {
		delay = firstCheck << n
	}
	w.Checks++
	w.CheckTime = timestamppb.New(now.Add(delay))
}

// waits reports whether a run is parked for waits alone: it continues without an input.
func waits(s *harnessv1.Snapshot) bool {
	calls := AwaitedCalls(s)
	for _, c := range calls {
		if c.GetKind() != KindWait {
			return false
		}
	}
	return len(calls) > 0 && s.GetPausedPhase() == harnessv1.Phase_PHASE_UNSPECIFIED
}

// IsWaiting reports whether a run is parked for waits and sub-agents at work alone, by its
// status and reason: it continues without an input.
func IsWaiting(status harnessv1.RunStatus, reason *harnessv1.StopReason) bool {
	return status == harnessv1.RunStatus_RUN_STATUS_PARKED &&
		(reason.GetKind() == KindWait || reason.GetKind() == KindAgent && reason.GetDetails().GetRunId() == "")
}

// ParkClock stops the clock of a run that is parked at now, unless it waits, or sub-agents work for it: that counts as
// time spent. It changes s.
func ParkClock(s *harnessv1.Snapshot, now time.Time) {
	if waits(s) || delegates(s) {
		StartClock(s, now)
		return
	}
	StopClock(s, now)
}

// delegates reports whether a run is parked while sub-agents work for it.
func delegates(s SharedFields) bool {
	return s.GetStopReason().GetKind() == KindAgent && s.GetStopReason().GetDetails().GetRunId() == ""
}

// WaitsForAgents reports whether a reason is that of a run which is parked because sub-agents work for it, or wait themselves.
func WaitsForAgents(reason *harnessv1.StopReason) bool {
	return reason.GetKind() == KindAgent || reason.GetDetails().GetRunId() != ""
}

// WaitText describes what a call waits for, in one line.
func WaitText(w *harnessv1.WaitState) string {
	var text string
	switch {
	case w.GetCommand() != "":
		text = "until this command succeeds: " + w.GetCommand()
	case w.GetPath() != "":
		text = "until the file changes: " + w.GetPath()
	case w.GetBackground() != "":
		text = "until the background command ends: " + w.GetBackground()
	case w.GetUrl() != "":
		text = "until the address answers: " + w.GetUrl()
	default:
		return fmt.Sprintf("for %d seconds", w.GetSeconds())
	}
	return content.Clip(fmt.Sprintf("at most %d seconds %s", w.GetSeconds(), text), maxWaitText)
}

// maxWaitText bounds the text of a wait in the state, without its target, in bytes.
const maxWaitText = 160

// RecordWait records that a call waited from its beginning until now: calls before it and
// after it are no loop, and no stall. It reports whether it did; a wait that was too short
// counts as any other call. It changes s.
func RecordWait(s SharedFields, w *harnessv1.WaitState, now time.Time) bool {
	if w.GetBeginTime() == nil || now.Sub(w.GetBeginTime().AsTime()) < minRealWait {
		return false
	}
	if d := s.GetDoomLoop(); d != nil {
		d.Strict, d.Loose, d.Tools = nil, nil, ""
	}
	if s.GetProgressTracker() != nil {
		progress.ResetWindow(s.GetProgressTracker())
	}
	return true
}
