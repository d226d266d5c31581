package render

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// turnErrors are errors that what follows may repeat: that of a model is part of the turn's,
// and that of the turn is part of the result. They are shown if it does not.
type turnErrors struct {
	models []*harnessv1.ModelRetry
	turn   string
}

// showErrors shows the errors after which the run continues with e.
func (t *Text) showErrors(e *harnessv1.Event) {
	switch e.GetEvent().(type) {
	case *harnessv1.Event_StepStart, *harnessv1.Event_ModelRetry, *harnessv1.Event_ModelResponse:
		t.Lines(t.lastErrors("")...)
	}
}

// lastErrors returns the lines of the errors that a text does not have, and forgets them.
func (t *Text) lastErrors(text string) []string {
	var lines []string
	for _, m := range t.errors.models {
		lines = append(lines, t.style.warn("model: "+clean(m.GetModel())+" failed and is given up: "+shorten(m.GetError(), 200)))
	}
	if err := t.errors.turn; err != "" && !strings.Contains(text, err) {
		lines = append(lines, t.style.bad("turn failed: "+shorten(err, 300)))
	}
	t.errors = turnErrors{}
	return lines
}
