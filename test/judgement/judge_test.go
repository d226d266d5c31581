package judgement

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// purpose returns what a request without tools asks for; empty for the agent's.
func purpose(req *modeltest.Request) string {
	if len(req.Tools) > 0 {
		return ""
	}
	for name, word := range map[string]string{
		"complexity": `"subtask_count"`, "intent": `"confidence"`, "plan": `"suggested_workflow"`, "verify": `"feedback"`,
	} {
		if strings.Contains(req.Messages[0].Content, word) {
			return name
		}
	}
	return "unknown"
}

// of returns the requests for a purpose, in order.
func of(s *live.Transcript, name string) []*modeltest.Request {
	var all []*modeltest.Request
	for _, r := range s.Requests {
		if purpose(r) == name {
			all = append(all, r)
		}
	}
	return all
}

var partLine = regexp.MustCompile(`(?s)<<<([A-Z]+) ([0-9a-f]{16})\n(.*?)\n([A-Z]+) ([0-9a-f]{16})>>>\n`)

// parts returns the data of a request of a judge, by name. It fails the test unless they are all
// of its prompt.
func parts(t *testing.T, req *modeltest.Request) map[string]string {
	t.Helper()
	if len(req.Messages) != 2 || req.Messages[0].Role != "system" || req.Messages[1].Role != "user" {
		t.Fatalf("%d messages: %v", len(req.Messages), req.Messages)
	}
	prompt, all, length := req.Messages[1].Content, map[string]string{}, 0
	for _, p := range partLine.FindAllStringSubmatch(prompt, -1) {
		if p[1] != p[4] || p[2] != p[5] {
			t.Errorf("part %s %s is closed by %s %s", p[1], p[2], p[4], p[5])
		}
		all[p[1]] = p[3]
		length += len(p[0])
	}
	if length != len(prompt) {
		t.Errorf("%d of %d bytes of the prompt are no parts: %q", len(prompt)-length, len(prompt), prompt)
	}
	return all
}

// barrier releases n callers when the last has arrived, and none before.
type barrier struct {
	mu   sync.Mutex
	left int
	full chan struct{}
}

func newBarrier(n int) *barrier { return &barrier{left: n, full: make(chan struct{})} }

func (b *barrier) wait(ctx context.Context) {
	b.mu.Lock()
	if b.left--; b.left == 0 {
		close(b.full)
	}
	b.mu.Unlock()
	select {
	case <-b.full:
	case <-ctx.Done():
	}
}

// answer is a reply in JSON.
func answer(value any) modeltest.Reply {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return modeltest.Reply{Text: string(raw)}
}

func verdict(score float64, issues ...string) modeltest.Reply {
	if issues == nil {
		issues = []string{}
	}
	return answer(live.Args{"passed": score >= 0.7, "score": score, "issues": issues, "feedback": "Read it again."})
}

func complexity(level string, expected live.Args) modeltest.Reply {
	return answer(live.Args{"level": level, "reason": "as the test has it", "subtask_count": 2, "expected": expected})
}

var attemptLine = regexp.MustCompile(`(?m)^Attempt (\d+) of \d+\.`)

// number returns the number of the attempt that a request of the agent belongs to.
func number(req *modeltest.Request) int {
	n := 1
	for _, m := range req.Messages {
		if found := attemptLine.FindStringSubmatch(m.Content); found != nil && m.Role == "user" {
			n, _ = strconv.Atoi(found[1])
		}
	}
	return n
}

// finish is a reply with text and artifacts that ends the work.
func finish(text string, saved ...modeltest.Call) modeltest.Reply {
	return modeltest.Reply{Text: text, Calls: append(saved, live.Call("work_complete", live.Args{"summary": "done"}))}
}

func insight(quote string) modeltest.Call {
	return live.Call("save_artifact", live.Args{
		"kind": "insight", "title": "A fact", "content": "The words of the artifact.", "citations": []live.Args{{"source": "s1", "quote": quote}},
	})
}

// withJudge turns judging on; the run's model is its judge too.
func withJudge(kind string, sources ...string) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		s.Config.Quality = &harnessv1.QualityConfig{Enabled: proto.Bool(true), Model: s.GetAgent().GetModel()}
		s.Task = &harnessv1.Task{Kind: kind}
		for _, id := range sources {
			s.Task.Sources = append(s.Task.Sources, &harnessv1.Source{Id: id, Path: id + ".txt"})
		}
	}
}
