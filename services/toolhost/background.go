package toolhost

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Limits of background commands.
const (
	// MaxBackground is the maximum number of background commands of a run that are alive.
	MaxBackground = 4
	// BackgroundBytes is the maximum size of the output of one that is kept; the rest is
	// dropped.
	BackgroundBytes = 8 << 20
	// BackgroundTail is the maximum size of the end of its output in its state.
	BackgroundTail = 2 << 10
	// BackgroundCommandBytes is the part of its command line in its description.
	BackgroundCommandBytes = 200
)

// A background command is an entry of the ledger that outlives its call. Its key is that of
// the call with a suffix, and its state is that of a call: Running, Done, Cancelled,
// Orphaned or Forgotten. It never starts from its entry, so Admit does not apply to it;
// Cancel decides how it is killed.

// BackgroundOutcome returns how a background command ended, by the state of its entry and the
// fate in its tombstone. It is total; Unspecified means that it runs. A command that is not
// known to have ended, and that this host does not run, ended in a way that is not known.
func BackgroundOutcome(s State, f Fate) harnessv1.ToolOutcome {
	switch s {
	case Running:
		return harnessv1.ToolOutcome_TOOL_OUTCOME_UNSPECIFIED
	case Done:
		return harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
	case Cancelled:
		if f == Killed {
			return harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED
		}
	case Absent, Forgotten, Orphaned:
	}
	return harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
}

// Texts about the end of a background command.
const (
	// BackgroundKilled is the end of one that was killed on request.
	BackgroundKilled = "killed"
	// BackgroundLost is the end of one whose host died.
	BackgroundLost = "its end is not known: the tool host died, and everything that it had started is dead"
)

// BackgroundEnd returns how a background command ended by itself, or at its time limit.
func BackgroundEnd(code, signal int, limit time.Duration, reasons ...string) string {
	end := fmt.Sprintf("exit code %d", code)
	if signal != 0 {
		end += fmt.Sprintf(", killed by signal %d", signal)
	}
	if limit > 0 {
		end = fmt.Sprintf("killed: it had not ended after %v", limit)
	}
	for _, reason := range reasons {
		if reason != "" {
			end += "; " + reason
		}
	}
	return end
}

// BackgroundStarted tells the model that a background command has started.
func BackgroundStarted(id string) string {
	return fmt.Sprintf("Started in the background as %s. Read its output with command_output, end it with stop_command. "+
		"It is killed when the run ends or is interrupted. You are told if it ends before.", id)
}

// BackgroundFull tells the model that no further background command can start.
func BackgroundFull(alive []string) string {
	return fmt.Sprintf("The command was not started: %d background commands are running already, which is the maximum (%s). Stop one with stop_command first.",
		len(alive), strings.Join(alive, ", "))
}

// BackgroundNotFound tells the model that there is no background command with an id.
func BackgroundNotFound(id string, known []string) string {
	return fmt.Sprintf("id: no background command %q; there are: %s.", Clip(id, 64), cmp.Or(strings.Join(known, ", "), "none"))
}

// BackgroundOutput returns the result of a read of output for the model: the text, whether the
// command runs, and the offset of the next read.
func BackgroundOutput(text string, next, left, dropped int64, end string) string {
	note := "[" + cmp.Or(end, "running")
	if left > 0 {
		note += fmt.Sprintf("; %d bytes more", left)
	}
	note += fmt.Sprintf("; continue at offset %d", next)
	if dropped > 0 && left == 0 {
		note += fmt.Sprintf("; the output after that, %d bytes, was dropped: only the first %d MiB are kept", dropped, BackgroundBytes>>20)
	}
	return AppendLine(Readable(text), note+"]")
}
