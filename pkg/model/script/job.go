package script

import (
	"context"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// job returns the entry of a job.
func (s *Script) job(ctx context.Context, j *model.Job) (turn, error) {
	entries := s.jobs[j.Purpose]
	if len(entries) == 0 {
		return turn{}, &model.Error{RetryAfter: -1, Message: fmt.Sprintf(
			"the script has no answer for jobs of the purpose %q: add jobs: {%s: [{text: …}]} to it", j.Purpose, j.Purpose)}
	}
	number := uint32(1)
	if j.Number != nil {
		var err error
		if number, err = j.Number(ctx); err != nil {
			return turn{}, model.AsError(err)
		}
	}
	return entries[min(max(int64(number), 1), int64(len(entries)))-1], nil
}

// jobs reads the entries of each purpose.
func (p *parser) jobs(n *yaml.Node) (map[string][]turn, error) {
	all := map[string][]turn{}
	purposes := fields{}
	if n = deref(n); n.Kind != yaml.MappingNode {
		return nil, p.fail(n, "jobs must be a mapping of purposes to lists")
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		purpose := n.Content[i].Value
		if purpose == "" {
			return nil, p.fail(n.Content[i], "a purpose of jobs must not be empty")
		}
		purposes[purpose] = func(n *yaml.Node) error {
			err := p.sequence(n, "jobs."+purpose, func(n *yaml.Node) error {
				t, err := p.jobEntry(n)
				all[purpose] = append(all[purpose], t)
				return err
			})
			if err == nil && len(all[purpose]) == 0 {
				err = p.fail(n, "jobs.%s needs an entry", purpose)
			}
			return err
		}
	}
	return all, p.mapping(n, "jobs", purposes)
}

// jobEntry reads the answer to a job, or its error.
func (p *parser) jobEntry(n *yaml.Node) (turn, error) {
	var t turn
	given := 0
	err := p.entry(n, "an entry of jobs", &t, fields{
		"text": func(n *yaml.Node) error { given++; return p.text(n, "text", &t.text) },
		"answer": func(n *yaml.Node) error {
			given++
			if n = deref(n); n.Kind != yaml.MappingNode {
				return p.fail(n, "answer must be a mapping; text has any other answer")
			}
			j := jsonWriter{parser: p, what: "answer"}
			err := j.value(n, 0)
			t.text = j.out.String()
			return p.wrote(n, len(t.text), err)
		},
	}, nil)
	if err == nil && given > 1 {
		err = p.fail(n, "an entry of jobs has answer or text, not both")
	}
	return t, err
}
