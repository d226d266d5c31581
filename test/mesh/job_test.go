package mesh

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
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

// TestSystemJobsSurviveKills kills an inference worker at each of its points, repeatedly. Each
// job has one result, and its model is called once, unless the worker died between the
// answer and the storing of the result.
func TestSystemJobsSurviveKills(t *testing.T) {
	t.Parallel()
	model := &summarizer{calls: map[string]int{}}
	s := modeltest.NewServerFunc(t, model.reply)
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"OPENAI_BASE_URL=" + s.BaseURL()}})
	d, entries := scenario{name: "jobs", script: "turns:\n  - {calls: [{name: work_complete, arguments: {summary: short}}]}\n"}.through(t.Context(), t, m, "jobs")
	d.ctx = t.Context()
	want := map[string]int{"received": 1, "resolved": 1, "answered": 2, "stored": 1, "acked": 1}
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
			waittest.Eventually(t, "a result of "+key, func() bool {
				var err error
				result, err = m.Log().BlobAs(d.ctx, d.run, key)
				return err == nil && result != nil
			})
			waittest.Eventually(t, "no job is left", func() bool { return d.jobs() == 0 })
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

// TestSystemMeshWithoutInference: a mesh that was upgraded has neither the worker nor its
// consumer. Doctor names both, a gateway is ready and warns, and both find the worker once
// it is there.
func TestSystemMeshWithoutInference(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{workflow.Inference, workflow.Gateway}})
	deleteConsumer(t, m, workflow.Inference)
	m.Start(workflow.Gateway, meshtest.Args("--metrics", "127.0.0.1:0"))
	m.AwaitReady(workflow.Gateway)
	metrics, _ := m.Process(workflow.Gateway).Line("metrics addr=")
	doctor := func() string {
		out, _ := exec.Command(bin.Harness, "doctor", "--nats", m.Bus.URL()).CombinedOutput() // it exits with 1 if there is a problem
		return string(out)
	}
	for _, want := range []string{
		"no process has the role inference: conversations are not summarised,", "the bus has no consumer for the role inference, so such a process cannot start: run `harness provision`",
	} {
		if out := doctor(); strings.Count(out, "problem:") != 2 || !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if status, text := readyz(t, metrics); status != http.StatusOK || !strings.Contains(text, "warning: inference: no process with this role is ready: ") {
		t.Errorf("the gateway: %d %s", status, text)
	}
	out, err := exec.Command(bin.Harness, serve(t, workflow.Inference, m.Bus.URL())...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "run `harness provision`") {
		t.Errorf("a worker without a consumer: %v\n%s", err, out)
	}
	m.Harness("provision", "--nats", m.Bus.URL())
	m.Start(workflow.Inference)
	m.AwaitReady(workflow.Inference)
	waittest.Eventually(t, "the gateway finds the worker", func() bool {
		status, text := readyz(t, metrics)
		return status == http.StatusOK && text == "ok\n"
	})
	if out := doctor(); strings.Contains(out, "problem:") {
		t.Errorf("problems remain:\n%s", out)
	}
}

func readyz(t *testing.T, metrics string) (status int, text string) {
	t.Helper()
	r, err := http.Get("http://" + metrics + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// deleteConsumer deletes a consumer, which an earlier release did not make.
func deleteConsumer(t *testing.T, m *meshtest.Mesh, name string) {
	t.Helper()
	nc, err := nats.Connect(m.Bus.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteConsumer(t.Context(), "RUNS_0", name); err != nil {
		t.Fatal(err)
	}
}
