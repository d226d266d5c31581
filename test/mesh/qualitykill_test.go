package mesh

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/profile"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/rejudge"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// strict is a judge that finds work with the word "short" bad and other work good. It counts the calls
// for each request.
type strict struct {
	*httptest.Server

	mu    sync.Mutex
	calls map[[sha256.Size]byte]int
}

func newStrict(t *testing.T) *strict {
	t.Helper()
	j := &strict{calls: map[[sha256.Size]byte]int{}}
	j.Server = httptest.NewServer(http.HandlerFunc(j.answer))
	t.Cleanup(j.Close)
	return j
}

func (j *strict) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	j.mu.Lock()
	j.calls[sha256.Sum256(body)]++
	j.mu.Unlock()
	text := `{"level":"MEDIUM","reason":"one question","subtask_count":1}`
	switch request := string(body); {
	case !strings.Contains(request, "OUTPUT "):
	case strings.Contains(request, "Too short."):
		text = `{"passed":false,"score":0.2,"issues":["thin"],"feedback":"Say why."}`
	default:
		text = `{"passed":true,"score":0.9,"issues":[],"feedback":"Good."}`
	}
	content, _ := json.Marshal(text) // a string always encodes
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":9}}\n\ndata: [DONE]\n\n", content)
}

// take returns the calls for each request since the last take.
func (j *strict) take() []int {
	j.mu.Lock()
	defer j.mu.Unlock()
	var calls []int
	for _, n := range j.calls {
		calls = append(calls, n)
	}
	j.calls = map[[sha256.Size]byte]int{}
	return calls
}

// twice is work whose first attempt is too short and whose second one is good. It has three jobs: one of
// repair and two of the stop decision.
var twice = scenario{name: "twice", lines: 1, script: `turns:
  - {text: "Too short.", calls: [{name: work_complete, arguments: {summary: done}}]}
  - {calls: [{name: run_command, arguments: {command: 'echo one >> out'}}]}
  - {text: "The folder has two files, and both of them are text that a person wrote by hand.", calls: [{name: work_complete, arguments: {summary: all}}]}
`, edit: func(s *harnessv1.RunSpec) {
	withQuality("chat")(s)
	s.Config.Quality.Model = "deepseek:strict"
}}

// TestSystemJudgingSurvivesKills kills a worker at each point on the way of a job that judges, and where a segment
// is counted. The run's log is that of a run without kills, the judge is called once for each job, unless its
// worker died between the answer and the storing of the result, and the segment counts once.
func TestSystemJudgingSurvivesKills(t *testing.T) {
	t.Parallel()
	j := newStrict(t)
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"DEEPSEEK_API_KEY=k", "DEEPSEEK_BASE_URL=" + j.URL}})
	d, entries := twice.through(t.Context(), t, m, "twice-alone")
	want := twiceLog(d, entries)
	checkTwice(t, d, entries, j, 0)
	for _, c := range []struct {
		role, point string
		n           int
		soak        bool // only with more rounds than by default
	}{
		{workflow.Repair, "request_stored", 1, true},
		{workflow.Repair, "job_created", 1, false},
		{workflow.Repair, "executed", 1, true},
		{workflow.Repair, "committed", 1, true},
		{workflow.StopDecision, "request_stored", 1, false},
		{workflow.StopDecision, "request_stored", 2, true},
		{workflow.StopDecision, "job_created", 1, true},
		{workflow.StopDecision, "job_created", 2, false},
		{workflow.StopDecision, "counted", 1, false},
		{workflow.StopDecision, "executed", 1, true},
		{workflow.StopDecision, "executed", 3, true},
		{workflow.StopDecision, "committed", 1, true},
		{workflow.StopDecision, "committed", 3, true},
		{workflow.Inference, "received", 1, true},
		{workflow.Inference, "resolved", 2, true},
		{workflow.Inference, "answered", 2, false},
		{workflow.Inference, "stored", 3, true},
		{workflow.Inference, "acked", 1, true},
	} {
		if c.soak && *rounds <= 2 {
			continue
		}
		killJudging(t, m, j, want, c.role, c.point, c.n)
		if t.Failed() {
			return
		}
	}
}

// killJudging takes a run through its two attempts while a worker dies at its nth time at a point.
func killJudging(t *testing.T, m *meshtest.Mesh, j *strict, want, role, point string, n int) {
	t.Helper()
	name := role + "." + point
	m.Process(role).Kill()
	m.Start(role, meshtest.Arm(fmt.Sprintf("%s=kill@%d", name, n)))
	m.AwaitReady(role)
	var died atomic.Int64
	stop := m.Respawn(role, func(int) []meshtest.Option {
		if _, ok := m.Process(role).Line("failpoint " + name); !ok {
			t.Errorf("%s died elsewhere:\n%s", role, m.Process(role).Stderr())
		}
		died.Add(1)
		return nil
	})
	defer stop()
	d, entries := twice.through(t.Context(), t, m, fmt.Sprintf("twice-%s-%s-%d", role, strings.ReplaceAll(point, "_", "-"), n))
	sound(t, d, entries)
	got := twiceLog(d, entries)
	if name == workflow.Inference+".answered" { // the call whose answer was lost counts too
		want, got = withoutInput(want), withoutInput(got)
	}
	same(t, want, got)
	repeats := 0
	if name == workflow.Inference+".answered" {
		repeats = 1
	}
	checkTwice(t, d, entries, j, repeats)
	waittest.Eventually(t, fmt.Sprintf("one death at %s@%d", name, n), func() bool { return died.Load() == 1 })
}

// twiceLog returns the canonical log of a run, without the keys of its jobs and of its profile, and without the
// profile for its verifiers: a worker that takes over finds the segment counted.
func twiceLog(d *driver, entries []runlog.Entry) string {
	entries = slices.Clone(entries)
	replace := []string{d.workspace, "WORKSPACE", profile.Key(d.workspace), "PROFILE"}
	for i := range entries {
		entries[i].Record = proto.CloneOf(entries[i].Record)
		for _, o := range entries[i].Record.GetStep().GetObserved() {
			switch {
			case o.GetJob() != nil:
				replace = append(replace, o.GetKey(), "JOB")
			case o.GetKey() == stopdecision.KeyCalibration:
				o.Value = nil
			}
		}
	}
	return meshtest.Canonical(entries, replace...)
}

// checkTwice checks the verdict of a run with two attempts, the calls of its judge, of which some are
// repeated, its profile, and that its decisions are the same when they are made again.
func checkTwice(t *testing.T, d *driver, entries []runlog.Entry, j *strict, repeats int) {
	t.Helper()
	v := entries[len(entries)-1].Record.GetStep().GetResult().GetQuality()
	if v.GetAttempts() != 2 || v.GetDelivered() != 2 || v.GetVerifierScore() != 0.9 || v.GetDegraded() ||
		v.GetUsage().GetInputTokens() < 3*90 || (v.GetUsage().GetInputTokens() > 3*90) != (repeats > 0) {
		t.Errorf("%s: the verdict is %v", d.run, v)
	}
	calls, all := j.take(), 0
	for _, n := range calls {
		all += n
	}
	if len(calls) != 3 || all != 3+repeats {
		t.Errorf("%s: the judge was called %v times, want each of 3 requests once and %d again", d.run, calls, repeats)
	}
	log := d.m.Log()
	data, _, err := log.Value(t.Context(), runlog.ValueKey{Namespace: "default", Kind: "profile", Name: profile.Key(d.workspace)})
	p := &harnessv1.StoredProfile{}
	if err != nil || proto.Unmarshal(data, p) != nil || p.GetState().GetTotalRuns() != 1 {
		t.Errorf("%s: the profile is %v, %v", d.run, p, err)
	}
	again := &rejudge.Log{Blob: func(digest string) ([]byte, error) { return log.Blob(t.Context(), d.run, digest) }}
	for _, e := range entries {
		if wrong := again.Add(e); wrong != "" {
			t.Errorf("%s, judged again: %s", d.run, wrong)
		}
	}
	if again.Decisions() < 8 {
		t.Errorf("%s: %d decisions were made again", d.run, again.Decisions())
	}
}
