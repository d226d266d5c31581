package sim

import (
	"fmt"
	"regexp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// goalLine finds the goal in a request of a job.
var goalLine = regexp.MustCompile(`(?m)^(r\d+) \d+`)

// qualityPlan returns the plan of the answer to a job that classifies, plans or judges. Its name is the run's.
func qualityPlan(r *model.Request) plan {
	p := plan{kind: "judge", text: content.Text(r.Messages[len(r.Messages)-1].GetContent()), purpose: r.Job.Purpose}
	if found := goalLine.FindStringSubmatch(p.text); found != nil {
		p.name = found[1]
	}
	return p
}

// rate returns the answer of a judge, with the mark of its request. Now and then it is not one.
func (p plan) rate(w *World) *model.Response {
	w.nextCall++
	r := &model.Response{FinishReason: "stop", Model: "sim", Usage: &harnessv1.Usage{InputTokens: 100, OutputTokens: w.nextCall}}
	mark := markOf(p.text)
	level := [...]string{"SIMPLE", "MEDIUM", "COMPLEX"}[w.random.IntN(3)]
	score := float64(w.random.IntN(101)) / 100
	switch {
	case w.random.IntN(12) == 0:
		r.Text = "I would rather not say anything " + mark
	case p.purpose == "complexity":
		r.Text = fmt.Sprintf(`{"level":%q,"reason":"call %d %s"}`, level, w.nextCall, mark)
	case p.purpose == "intent":
		r.Text = fmt.Sprintf(`{"kind":"chat","confidence":0.9,"reason":%q}`, mark)
	case p.purpose == "plan":
		r.Text = fmt.Sprintf(`{"plans":[{"description":"Do it %s"},{"description":"Do it well"}]}`, mark)
	default:
		r.Text = fmt.Sprintf(`{"passed":%t,"score":%v,"issues":["thin"],"feedback":"call %d %s"}`, score >= 0.7, score, w.nextCall, mark)
	}
	return r
}

// savesArtifacts reports whether the work of a run is judged, by its tools.
func savesArtifacts(tools []*harnessv1.ToolSpec) bool { return has(tools, workitem.SaveArtifact) }
