package mesh

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/oteltest"
)

// judge is a model service that answers by the name of the model, in the chat protocol.
type judge struct {
	*httptest.Server
	closing chan struct{}

	mu       sync.Mutex
	requests map[string]int // by model
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	j := &judge{closing: make(chan struct{}), requests: map[string]int{}}
	j.Server = httptest.NewServer(http.HandlerFunc(j.answer))
	t.Cleanup(func() {
		close(j.closing)
		j.Close()
	})
	return j
}

func (j *judge) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var request struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &request)
	j.mu.Lock()
	j.requests[request.Model]++
	j.mu.Unlock()
	say := func(text string) {
		content, _ := json.Marshal(text) // a string always encodes
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", content)
	}
	fail := func(status int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, `{"error":{"message":"not today","type":"error"}}`)
	}
	switch request.Model {
	case "key":
		fail(http.StatusUnauthorized)
	case "busy":
		fail(http.StatusTooManyRequests)
	case "later":
		w.Header().Set("Retry-After", "3600")
		fail(http.StatusTooManyRequests)
	case "broken":
		fail(http.StatusInternalServerError)
	case "hang":
		select {
		case <-r.Context().Done():
		case <-j.closing:
		}
	case "garbage":
		_, _ = io.WriteString(w, "<html>\x00 no model here")
	case "prose":
		say("It is good work, I would say.")
	case "schema":
		say(`{"passed":"perhaps","score":7,"level":"HUGE"}`)
	case "large":
		say(`{"passed":true,"score":1,"issues":[],"feedback":"` + strings.Repeat("x", 10<<20) + `"}`)
	}
}

func (j *judge) count(model string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.requests[model]
}

// TestSystemJudgeIsDownInEveryWay: however a judge fails, the run ends as without one. No attempt is
// made that the contract of the kind does not ask for, and events and result name the fallback.
func TestSystemJudgeIsDownInEveryWay(t *testing.T) {
	t.Parallel()
	j := newJudge(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{
		"DEEPSEEK_API_KEY=k", "DEEPSEEK_BASE_URL=" + j.URL, "QWEN_BASE_URL=" + gone.URL, "DASHSCOPE_API_KEY=k",
	}})
	const tries = 2
	for name, c := range map[string]struct {
		model   string
		calls   int // of each job
		because string
	}{
		"refused connection": {"qwen:any", 0, ""},
		"refused key":        {"deepseek:key", 1, "401"},
		"busy":               {"deepseek:busy", tries, "429"},
		"busy for an hour":   {"deepseek:later", 1, "429"},
		"broken":             {"deepseek:broken", tries, "500"},
		"hangs":              {"deepseek:hang", 1, "no response within 2s"},
		"garbage":            {"deepseek:garbage", tries, ""},
		"no JSON":            {"deepseek:prose", 1, ""},
		"another form":       {"deepseek:schema", 1, ""},
		"ten megabytes":      {"deepseek:large", 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := "judge-" + strings.ReplaceAll(name, " ", "-")
			s := scenario{name: "judge-is-down", lines: 1, script: `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - {text: "The folder has two files, and both of them are text that a person wrote by hand.", calls: [{name: work_complete, arguments: {summary: done}}]}
`, edit: func(s *harnessv1.RunSpec) {
				withQuality("chat")(s)
				s.Config.Quality.Model, s.Config.Quality.Timeout = c.model, durationpb.New(2*time.Second)
			}}
			_, entries := s.through(t.Context(), t, m, id)
			var complexity, verified string
			for _, e := range events(entries) {
				switch {
				case e.GetQualityComplexity() != nil:
					complexity = e.GetQualityComplexity().GetReason()
				case e.GetQualityVerified() != nil:
					verified = e.GetQualityVerified().GetFeedback()
					if v := e.GetQualityVerified(); v.GetPassed() || v.GetScore() != 0 {
						t.Errorf("verified %v", v)
					}
				case e.GetQualityRetry() != nil:
					t.Errorf("another attempt: %v", e)
				}
			}
			if !strings.HasPrefix(complexity, "[is_fallback] ") || !strings.HasPrefix(verified, "[is_fallback] ") || !strings.Contains(verified, c.because) {
				t.Errorf("complexity %q, verified %q", complexity, verified)
			}
			v := entries[len(entries)-1].Record.GetStep().GetResult().GetQuality()
			if v.GetAttempts() != 1 || v.VerifierScore != nil || !v.GetContractPassed() || v.GetDegraded() || v.GetFallbackFeedback() != verified {
				t.Errorf("the verdict is %v", v)
			}
			_, model, _ := strings.Cut(c.model, ":")
			if got, want := j.count(model), 2*c.calls; got != want { // of the complexity and of the verifier
				t.Errorf("%d calls, want %d", got, want)
			}
		})
	}
}

// TestSystemJudgingIsTraced: a call of a judge is a span below what asked for it, and the verdict one
// below the stop decision.
func TestSystemJudgingIsTraced(t *testing.T) {
	t.Parallel()
	collector := oteltest.Start(t)
	m := meshtest.Start(t, bin, meshtest.Config{Env: collector.Env()})
	repeated := strings.Repeat("on and on ", 80)
	s := scenario{name: "traced", lines: 1, edit: withQuality("chat"), script: `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - {text: "` + repeated + `", calls: [{name: work_complete, arguments: {summary: done}}], usage: {input_tokens: 90, output_tokens: 9}}
jobs:
  complexity: [{answer: {level: MEDIUM, reason: one question, subtask_count: 1}}]
  verify: [{answer: {passed: true, score: 0.9, issues: [], feedback: Good.}, usage: {input_tokens: 70, output_tokens: 7}}]
`}
	s.through(t.Context(), t, m, "traced")
	for _, role := range meshtest.Roles {
		m.Process(role).Terminate() // sends the rest
	}
	spans := collector.Spans()
	byID, above := map[string]oteltest.Span{}, map[string]string{}
	for _, span := range spans {
		byID[span.ID] = span
	}
	var verdict oteltest.Span
	for _, span := range spans {
		switch {
		case strings.HasPrefix(span.Name, "job "):
			above[span.Name] = byID[span.Parent].Name
		case span.Name == "judge":
			verdict, above["judge"] = span, byID[span.Parent].Name
		case strings.HasPrefix(span.Name, "chat ") && strings.HasPrefix(byID[span.Parent].Name, "job "):
			above["chat of "+byID[span.Parent].Name] = span.Service
		}
	}
	want := map[string]string{
		"job complexity": "repair", "job verify": "stopdecision", "judge": "stopdecision",
		"chat of job complexity": "harness-inference", "chat of job verify": "harness-inference",
	}
	if fmt.Sprint(above) != fmt.Sprint(want) {
		t.Errorf("got %v\nwant %v\n%s", above, want, oteltest.Tree(spans))
	}
	for key, want := range map[string]any{
		"harness.run.id": "traced", "harness.quality.kind": "chat", "harness.quality.level": "medium", "harness.quality.attempts": 1, "harness.quality.combined": 0.95,
		"harness.quality.verifier_score": 0.9, "harness.quality.answer.words": 240, "harness.quality.answer.repetitive": true, "harness.quality.issue_bits": 0,
	} {
		if got := verdict.Attributes[key]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if verdict.End.Before(verdict.Start) || verdict.Service != "harness-stopdecision" {
		t.Errorf("the verdict is %+v", verdict)
	}
}
