package judgement

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// kept is what sub-agents read and write on the way, which their caller does not see.
const kept = "words of the way"

// company is a model that plays a caller and its sub-agents, which it tells apart by their goal.
type company struct {
	mu       sync.Mutex
	requests map[string][]*modeltest.Request // by sub-agent; "" is the caller
	met      map[string]chan struct{}        // closed when both explorers work
}

func (c *company) answer(_ int, req *modeltest.Request) modeltest.Reply {
	name := ""
	for _, m := range req.Messages {
		if m.Role == "user" {
			name, _ = strings.CutPrefix(m.Content, "You are ")
			if name == m.Content {
				name = ""
			}
			break
		}
	}
	c.mu.Lock()
	c.requests[name] = append(c.requests[name], req)
	n := len(c.requests[name])
	meets := c.met[name]
	if n == 1 && meets != nil && len(c.requests["explore 1"]) > 0 && len(c.requests["explore 2"]) > 0 {
		close(meets)
	}
	c.mu.Unlock()
	if n == 1 && meets != nil {
		<-meets
	}
	switch {
	case name == "" && n == 1:
		var calls []modeltest.Call
		for _, agent := range []string{"explore 1", "explore 2", "code_review", "research", "task", "document", "general_purpose"} {
			tool, _, _ := strings.Cut(agent, " ")
			calls = append(calls, live.Call(tool, live.Args{"prompt": "You are " + agent}))
		}
		return live.Calls(calls...)
	case name == "":
		return live.Done()
	case n == 1:
		reply := live.Calls(live.Call("read_file", live.Args{"path": "a.txt"}))
		reply.Text = kept
		return reply
	}
	reply := live.Done()
	reply.Text = "answer of " + name
	if name == "explore 1" && n == 2 {
		reply.Text += strings.Repeat(" word", 300)
	}
	return reply
}

// TestBuiltInSubAgents: each is available by its name, has the tools that its work needs, and
// returns its answer alone. Calls of one response work at the same time, and explore has to
// answer in under 300 words.
func TestBuiltInSubAgents(t *testing.T) {
	t.Parallel()
	meet := make(chan struct{})
	c := &company{requests: map[string][]*modeltest.Request{}, met: map[string]chan struct{}{"explore 1": meet, "explore 2": meet}}
	r := live.Prepare(t, c.answer)
	r.Write("a.txt", kept)
	spec := r.Spec(func(s *harnessv1.RunSpec) {
		for _, name := range []string{"explore", "code_review", "research", "task", "document", "general_purpose"} {
			s.Agent.Agents = append(s.Agent.Agents, &harnessv1.SubAgent{Name: name})
		}
	})
	if _, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec}); err != nil {
		t.Fatal(err)
	}
	r.Wait().Want("DONE agent_done accepted")

	c.mu.Lock()
	defer c.mu.Unlock()
	callers := c.requests[""]
	if len(callers) != 2 {
		t.Fatalf("the caller made %d requests, want 2", len(callers))
	}
	whole := fmt.Sprint(callers[1].Messages)
	for name, requests := range c.requests {
		if name == "" {
			continue
		}
		if !strings.Contains(whole, "answer of "+name) {
			t.Errorf("the caller has no answer of %s", name)
		}
		var tools []string
		for _, tool := range requests[0].Tools {
			tools = append(tools, tool.Name)
		}
		reads := slices.Contains([]string{"explore 1", "explore 2", "code_review", "research"}, name)
		if !slices.Contains(tools, "read_file") || slices.Contains(tools, "write_file") == reads || slices.Contains(tools, "run_command") == reads {
			t.Errorf("%s has the tools %v", name, tools)
		}
	}
	if strings.Contains(whole, kept) {
		t.Error("the caller sees what its sub-agents read and wrote on the way")
	}
	if strings.Contains(whole, strings.Repeat(" word", 300)) {
		t.Error("the caller has an answer of more than 300 words")
	}
	if long := c.requests["explore 1"]; len(long) != 3 || !strings.Contains(fmt.Sprint(long[2].Messages), "304 words") {
		t.Errorf("explore got no request for fewer than its 304 words: %d requests", len(long))
	}
}
