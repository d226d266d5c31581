package render

import (
	"slices"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// alerts are the monitor's alerts in a text. Each is shown once: while the model writes, or
// with its event.
type alerts struct {
	// turn is the turn of shown.
	turn  uint32
	shown []string
	// waiting are those that arrived in the middle of a line.
	waiting []*harnessv1.Delta
}

// first records an alert and reports whether it was not shown before.
func (a *alerts) first(turn uint32, alert *harnessv1.QualityAlert) bool {
	if turn != a.turn {
		a.turn, a.shown = turn, nil
	}
	if slices.Contains(a.shown, alert.GetIssue()) {
		return false
	}
	a.shown = append(a.shown, alert.GetIssue())
	return true
}

// alert takes an alert while the model writes. It is printed at the end of the line.
func (t *Text) alert(d *harnessv1.Delta) {
	t.alerts.waiting = append(t.alerts.waiting, d)
	if !t.midline {
		t.showAlerts()
	}
}

// showAlerts prints the alerts that wait.
func (t *Text) showAlerts() {
	waiting := t.alerts.waiting
	t.alerts.waiting = nil
	for _, d := range waiting {
		if t.alerts.first(d.GetTurnNumber(), d.GetAlert()) {
			t.line(t.style.alert(d.GetAlert()))
		}
	}
}

// endLine prints text to the end of its first line and then the alerts that wait for it, and
// returns the rest. Without a line's end or an alert it returns the text.
func (t *Text) endLine(text string) string {
	if len(t.alerts.waiting) == 0 {
		return text
	}
	line, rest, ended := strings.Cut(text, "\n")
	if !ended {
		return text
	}
	t.out.print(clean(line) + "\n")
	t.midline = false
	t.showAlerts()
	return rest
}

// alertEvent prints an alert that was not shown while the model wrote.
func (t *Text) alertEvent(e *harnessv1.Event) {
	t.alerts.waiting = nil
	if t.alerts.first(e.GetTurnNumber(), e.GetQualityAlert()) {
		t.line(t.style.alert(e.GetQualityAlert()))
	}
}

// alert shows an alert above the text that the model is writing.
func (l *Live) alert(d *harnessv1.Delta) {
	if l.plain.alerts.first(d.GetTurnNumber(), d.GetAlert()) {
		l.plain.heading(d.GetTurnNumber(), 0)
		l.up(sortLine, l.cfg.Style.alert(d.GetAlert()))
		l.drawIfIdle()
	}
}

// alert returns the line of an alert.
func (s Style) alert(a *harnessv1.QualityAlert) string { return s.bad(Clean(a.GetIssue())) }
