package show

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Columns of the table of runs.
const (
	columnRun = iota
	columnStatus
	columnTurns
	columnUpdated
	columnModel
	columnGoal
	columns
)

const (
	// columnGap is the space between two columns.
	columnGap = 2
	// goodGoal is the width of a goal below which the table gives up its models.
	goodGoal = 20
	// leastStatus is the width to which a status shrinks for the goal.
	leastStatus = 18
	// leastGoal is the width of a goal below which it is left out.
	leastGoal = 8
)

// runTable is a table of runs for people.
type runTable [][columns]string

// newRunTable returns the table with its head. name returns the name of a run.
func newRunTable(runs []*harnessv1.Run, name func(*harnessv1.Run) string, now time.Time) runTable {
	table := runTable{{"RUN", "STATUS", "TURNS", "UPDATED", "MODEL", "GOAL"}}
	for _, r := range runs {
		status := render.StatusName(r.GetStatus())
		if words := render.ReasonWords(r.GetReason().GetKind()); words != "" {
			status += " " + words
		}
		table = append(table, [columns]string{
			name(r), render.Clean(status), fmt.Sprintf("%d/%d", r.GetTurnCount(), r.GetMaxTurns()),
			render.Ago(r.GetUpdateTime().AsTime(), now), render.Short(r.GetModel(), 40), render.Short(r.GetGoal(), 60),
		})
	}
	return table
}

// fit returns the width of each column, 0 for one that is left out, so that a line has at
// most width runes: models go first, then statuses become shorter, then goals go. The id
// of a run is never cut. A width of 0 is unlimited.
func (t runTable) fit(width int) (fit [columns]int) {
	for _, row := range t {
		for i, cell := range row {
			fit[i] = max(fit[i], utf8.RuneCountInString(cell))
		}
	}
	if width <= 0 {
		return fit
	}
	left := func() int { return width - lineWidth(fit) + fit[columnGoal] } // for the goal
	goal := fit[columnGoal]
	if left() < min(goal, goodGoal) {
		fit[columnModel] = 0
	}
	if short := min(goal, goodGoal) - left(); short > 0 {
		fit[columnStatus] = max(fit[columnStatus]-short, min(fit[columnStatus], leastStatus))
	}
	fit[columnGoal] = min(goal, left())
	if fit[columnGoal] < min(goal, leastGoal) {
		fit[columnGoal] = 0
	}
	return fit
}

func lineWidth(fit [columns]int) int {
	width := 0
	for _, n := range fit {
		if n > 0 {
			width += n + columnGap
		}
	}
	return width - columnGap
}

// text returns the lines of the table.
func (t runTable) text(width int) string {
	fit := t.fit(width)
	var text strings.Builder
	for _, row := range t {
		var line strings.Builder
		for i, cell := range row {
			if fit[i] == 0 {
				continue
			}
			if utf8.RuneCountInString(cell) > fit[i] {
				cell = render.Short(cell, fit[i])
			}
			line.WriteString(cell + strings.Repeat(" ", fit[i]-utf8.RuneCountInString(cell)+columnGap))
		}
		text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return text.String()
}
