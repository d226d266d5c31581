package input

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/agent/mode"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// checkMode validates the name of a mode.
func checkMode(field, name string) error {
	if name == "" {
		return fault.Invalid(field, "must not be empty")
	}
	return CheckSize(field, name, MaxID)
}

// modeChange accepts a change to an existing mode of a run that has not ended or is
// about to be reopened.
func (s State) modeChange(m *harnessv1.ModeChange) (Admission, error) {
	if !mode.Exists(m.GetMode(), s.Modes) {
		return 0, UnknownMode("mode_change.mode", m.GetMode(), s.Modes)
	}
	return s.steer()
}

// UnknownMode returns the error for a mode that does not exist.
func UnknownMode(field, name string, custom []*harnessv1.ModeSpec) error {
	return fault.Invalid(field, "unknown mode %q: must be one of %s", name, strings.Join(mode.Names(custom), ", "))
}

// RecheckMode returns why the run refuses a change of its mode. custom are the modes of its agent.
func RecheckMode(s *harnessv1.Snapshot, m *harnessv1.ModeChange, custom []*harnessv1.ModeSpec) (refusal string) {
	switch to := m.GetMode(); {
	case runstate.Ended(s):
		return hasEnded
	case !mode.Exists(to, custom):
		return fmt.Sprintf("there is no mode %q; there are %s", content.Cut(to, 64), strings.Join(mode.Names(custom), ", "))
	case s.GetParent().GetPlans() && to != mode.Plan:
		return "the run that started it is in plan mode"
	}
	return ""
}
