package sim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// numbered finds the numbers of the messages in a request for a summary.
var numbered = regexp.MustCompile(`(?m)^#(\d+) `)

// summaryPlan returns the plan of the response to a request for a summary. Its name is the
// run's.
func summaryPlan(r *model.Request) plan {
	p := plan{kind: "summary"}
	text := content.Text(r.Messages[len(r.Messages)-1].GetContent())
	if _, goal, ok := strings.Cut(text, "goal:\n"); ok {
		_, _ = fmt.Sscanf(goal, "%s", &p.name)
	}
	if ids := numbered.FindAllStringSubmatch(text, -1); len(ids) > 0 {
		p.at, _ = strconv.Atoi(ids[0][1])
		p.last, _ = strconv.Atoi(ids[len(ids)-1][1])
	}
	return p
}

// spanFact is the fact in a summary that names its span; the prefix of the whole text, which
// names the call of the model too.
func spanFact(first, last uint64) string {
	return fmt.Sprintf("Messages %d to %d in call ", first, last)
}

// summarize returns the response to a request for a summary. Now and then it is not one.
func (p plan) summarize(w *World) *model.Response {
	w.nextCall++
	r := &model.Response{
		FinishReason: "stop", Model: "sim", Usage: &harnessv1.Usage{InputTokens: uint64(100 + p.last), OutputTokens: w.nextCall},
	}
	switch w.random.IntN(12) {
	case 0:
		r.Text = "I would rather not."
	case 1:
		r.Text, r.FinishReason = `{"facts": [{"text": "Mess`, "length"
	default:
		r.Text = fmt.Sprintf(`{"facts": [{"text": "%s%d.", "messages": [%d]}]}`,
			spanFact(uint64(p.at), uint64(p.last)), w.nextCall, p.at)
	}
	return r
}
