package follow

import (
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestAlertsAfterABreakArePrinted: an alert of a try is new after text of it was printed, and one
// of an older try is not.
func TestAlertsAfterABreakArePrinted(t *testing.T) {
	var s textPosition
	s.rejoin()
	s.add(&harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, Text: "abc"})
	s.rejoin()
	alert := &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: 2, Offset: 3, Alert: &harnessv1.QualityAlert{Issue: "No"}}
	if !s.add(alert) {
		t.Error("an alert of the same try is left out")
	}
	alert.Try = 1
	if s.add(alert) {
		t.Error("an alert of an older try is printed")
	}
}
