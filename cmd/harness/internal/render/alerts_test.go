package render

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// found is an alert while the model writes, and alerted the one that is stored.
func found(try uint32, issue string) *harnessv1.Delta {
	return &harnessv1.Delta{TurnNumber: 1, Attempt: 1, Try: try, Alert: &harnessv1.QualityAlert{Issue: issue}}
}

func alerted(issue string) *harnessv1.Event {
	return &harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_QualityAlert{QualityAlert: &harnessv1.QualityAlert{Issue: issue}}}
}

// TestAlertsAreShownOnce: while the model writes, at the end of a line, or else with their event.
func TestAlertsAreShownOnce(t *testing.T) {
	for name, c := range map[string]struct {
		shown []any
		want  string
	}{
		"at the end of the line": {[]any{piece(1, 1, 1, 0, "On"), found(1, "Alert"), piece(1, 1, 1, 2, "e\ntwo"), alerted("Alert")}, "One\nAlert\ntwo"},
		"between lines":          {[]any{piece(1, 1, 1, 0, "One\n"), found(1, "Alert"), piece(1, 1, 1, 4, "two"), alerted("Alert")}, "One\nAlert\ntwo"},
		"two":                    {[]any{piece(1, 1, 1, 0, "One\n"), found(1, "A"), found(1, "B"), alerted("A"), alerted("B")}, "One\nA\nB\n"},
		"the line does not end":  {[]any{piece(1, 1, 1, 0, "One"), found(1, "Alert"), piece(1, 1, 1, 3, " two"), alerted("Alert")}, "One two\nAlert\n"},
		"only stored":            {[]any{piece(1, 1, 1, 0, "One"), alerted("Alert")}, "One\nAlert\n"},
		"of a try that failed":   {[]any{piece(1, 1, 1, 0, "One"), found(1, "Alert"), piece(1, 1, 2, 0, "Two\n")}, "One\n(starting the answer again)\nTwo\n"},
		"of two tries":           {[]any{found(1, "Alert"), found(2, "Alert"), alerted("Alert")}, "Alert\n"},
		"of two turns": {[]any{found(1, "Alert"), &harnessv1.Event{TurnNumber: 2, Event: alerted("Alert").Event}},
			"Alert\nAlert\n"},
	} {
		var out strings.Builder
		text := NewText(&out, Style{}, nil)
		text.turn = 1
		for _, s := range c.shown {
			switch s := s.(type) {
			case *harnessv1.Delta:
				text.Delta(s)
			case *harnessv1.Event:
				text.Event(s)
			}
		}
		if out.String() != c.want {
			t.Errorf("%s: got %q, want %q", name, out.String(), c.want)
		}
	}
}

func TestAlertsAreAboveTheTextThatIsWritten(t *testing.T) {
	s := newStage(60, 20, Style{UTF8: true})
	s.Delta(piece(1, 1, 1, 0, "One two"))
	s.Delta(found(1, "Alert"))
	s.Delta(piece(1, 1, 1, 7, " three."))
	s.Event(alerted("Alert"))
	e := responded("One two three.", 0, 1, 1, 0)
	e.TurnNumber = 1
	s.Event(e)
	s.Close()
	if fault := s.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
	all := strings.Join(s.terminal.All(), "\n")
	if at := strings.Index(all, "Alert"); at < 0 || at > strings.Index(all, "One two three.") || strings.Count(all, "Alert") != 1 {
		t.Errorf("got\n%s", all)
	}
}

func TestLinesOfAlerts(t *testing.T) {
	var out, diag strings.Builder
	NewLines(&out, &diag).Delta(&harnessv1.Delta{TurnNumber: 3, Attempt: 1, Try: 2, RunId: "a-1", Offset: 600, Alert: &harnessv1.QualityAlert{
		Severity: "critical", Checkpoint: 500, Issue: "No", Suggestion: "Work"}})
	want := `{"type":"alert.delta","turn_number":3,"attempt":1,"try":2,"run_id":"a-1","severity":"critical","checkpoint":500,"issue":"No","suggestion":"Work"}` + "\n"
	if out.String() != want || diag.Len() > 0 {
		t.Errorf("got\n%s%s", out.String(), diag.String())
	}
}
