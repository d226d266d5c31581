package mesh

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/modeltest"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

// summarizer is a model that counts its calls by the last word of the request.
type summarizer struct {
	mu    sync.Mutex
	calls map[string]int
}

func (s *summarizer) reply(r *modeltest.Request) modeltest.Reply {
	words := strings.Fields(r.Messages[len(r.Messages)-1].Content)
	key := words[len(words)-1]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[key]++
	return modeltest.Reply{Text: fmt.Sprintf("Answer %d to %s.", s.calls[key], key), Usage: &modeltest.Usage{Input: 9, Output: 3}}
}

func (s *summarizer) count(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[key]
}

// TestJobsSurviveKills kills an inference worker at each of its points, repeatedly. Each
// job has one result, and its model is called once, unless the worker died between the
// answer and the storing of the result.
func TestJobsSurviveKills(t *testing.T) {
	t.Parallel()
	model := &summarizer{calls: map[string]int{}}
	s := modeltest.NewServerFunc(t, model.reply)
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"OPENAI_BASE_URL=" + s.BaseURL()}})
	d, entries := scenario{name: "jobs", script: "turns:\n  - {calls: [{name: work_complete, arguments: {summary: short}}]}\n"}.through(t.Context(), t, m, "jobs")
	d.ctx = t.Context()
	want := map[string]int{"received": 1, "answered": 2, "stored": 1}
	for _, point := range failpoint.Points(workflow.Inference) {
		for round := range *rounds {
			key := fmt.Sprintf("%s-%d", point, round)
			name := workflow.Inference + "." + point
			m.Process(workflow.Inference).Kill()
			m.Start(workflow.Inference, meshtest.Arm(name+"=kill"))
			stop := m.Respawn(workflow.Inference, func(int) []meshtest.Option {
				if _, ok := m.Process(workflow.Inference).Line("failpoint " + name); !ok {
					t.Errorf("the worker died elsewhere:\n%s", m.Process(workflow.Inference).Stderr())
				}
				return nil
			})
			d.createJob(key, entries[0].Sequence)
			var result []byte
			meshtest.Eventually(t, "a result of "+key, func() bool {
				var err error
				result, err = m.Log().BlobAs(d.ctx, d.run, key)
				return err == nil && result != nil
			})
			meshtest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
			got := &harnessv1.JobResult{}
			if err := proto.Unmarshal(result, got); err != nil || got.GetText() != fmt.Sprintf("Answer %d to %s.", want[point], key) || got.GetUsage().GetOutputTokens() != 3 {
				t.Errorf("%s: got %v, %v", key, got, err)
			}
			if calls := model.count(key); calls != want[point] {
				t.Errorf("%s: %d calls, want %d", key, calls, want[point])
			}
			stop()
		}
	}
}

// createJob creates a job of the driver's run, as compaction does.
func (d *driver) createJob(key string, first uint64) {
	d.t.Helper()
	data, err := proto.Marshal(&harnessv1.ModelRequest{Messages: []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Sum up " + key)},
	}})
	d.must(err)
	ref, err := d.m.Log().PutBlob(d.ctx, d.run, data)
	d.must(err)
	created, err := d.m.Log().CreateJob(d.ctx, &harnessv1.Job{
		Namespace: d.run.Namespace, RunId: d.run.ID, FirstSequence: first, Key: key, Purpose: "summarize", Model: "openai:m", Request: ref,
	})
	if err != nil || !created {
		d.t.Errorf("create job %s: %t, %v", key, created, err)
	}
}

// jobs returns how many jobs of the bus are not acknowledged.
func (d *driver) jobs() uint64 {
	d.t.Helper()
	_, consumers, err := d.m.Log().Status(d.ctx)
	d.must(err)
	for _, c := range consumers {
		if c.Name == workflow.Inference {
			return c.Pending + c.AckPending
		}
	}
	d.t.Error("the bus has no consumer for jobs")
	return 0
}
