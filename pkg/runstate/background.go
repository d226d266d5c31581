package runstate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// KeyBackground is the key of the observation that the background commands of the run were
// killed: how each ended. A decision that ends a segment, or parks the run for anything but
// an answer, needs it if there are background commands.
const KeyBackground = "background"

// kindBackground is the kind of guidance about background commands.
const kindBackground = "background"

// AddBackground adds a background command that was started.
func AddBackground(s *harnessv1.Snapshot, c *harnessv1.BackgroundCommand) {
	if !slices.ContainsFunc(s.GetBackgroundCommands(), func(b *harnessv1.BackgroundCommand) bool { return b.GetCallId() == c.GetCallId() }) {
		s.BackgroundCommands = append(s.BackgroundCommands, c)
	}
}

// ForgetBackground removes the background commands of calls.
func ForgetBackground(s *harnessv1.Snapshot, calls []string) {
	s.BackgroundCommands = slices.DeleteFunc(slices.Clone(s.GetBackgroundCommands()), func(b *harnessv1.BackgroundCommand) bool {
		return slices.Contains(calls, b.GetCallId())
	})
}

// StartsBackground reports whether the arguments of a command start it in the background.
func StartsBackground(arguments string) bool {
	var a struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal([]byte(arguments), &a) == nil && a.Background
}

// EndBackground removes the background commands from the state, which were killed as
// observed, and adds a message about how they ended.
func (d *Draft) EndBackground(observed *harnessv1.BackgroundStates) {
	var lines []string
	for _, c := range d.state.GetBackgroundCommands() {
		if c.GetId() == "" { // the model does not know it
			continue
		}
		lines = append(lines, backgroundName(c)+": "+endOf(c, observed.GetCommands()))
	}
	d.state.BackgroundCommands = nil
	if len(lines) > 0 {
		d.Guide(kindBackground, "", "The run stopped, so its background commands were ended. None of them runs any more:\n"+strings.Join(lines, "\n"))
	}
}

// lostEnd is the end of a background command of which no tool host knows.
const lostEnd = "its end is not known"

func endOf(c *harnessv1.BackgroundCommand, states []*harnessv1.BackgroundState) string {
	for _, state := range states {
		if state.GetCallId() == c.GetCallId() && state.GetEnd() != "" {
			return state.GetEnd()
		}
	}
	return lostEnd
}

// ReportBackground adds a message about each background command that has ended by itself, or
// with its tool host, and returns the calls of those that have ended. The model knows of
// those that it has stopped.
func (d *Draft) ReportBackground(states []*harnessv1.BackgroundState) (ended []string) {
	for _, c := range d.state.GetBackgroundCommands() {
		at := slices.IndexFunc(states, func(s *harnessv1.BackgroundState) bool { return s.GetCallId() == c.GetCallId() })
		if at < 0 || states[at].GetRunning() {
			continue
		}
		ended = append(ended, c.GetCallId())
		if c.GetId() == "" || states[at].GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
			continue
		}
		text := fmt.Sprintf("The background command %s has ended: %s.", backgroundName(c), states[at].GetEnd())
		if tail := states[at].GetTail(); tail != "" {
			text += " The end of its output:\n" + tail
		}
		d.Guide(kindBackground, "", text)
	}
	return ended
}

func backgroundName(c *harnessv1.BackgroundCommand) string {
	return fmt.Sprintf("%s (%s)", c.GetId(), c.GetCommand())
}
