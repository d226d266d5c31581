package mesh

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const (
	manyServers = 25
	toolsEach   = 20
	// mostTokens is what many servers may add to a request.
	mostTokens = 3000
	// smallWindow is one of which the definitions need more than a tenth: they are short.
	smallWindow = 240_000
	// slowStart is the delay of one of the servers.
	slowStart = time.Second
)

// searcher is a model that finds and calls all tools of a server in each turn.
type searcher struct {
	servers int

	mu       sync.Mutex
	requests []*modeltest.Request
	first    time.Time
}

func (s *searcher) reply(r *modeltest.Request) modeltest.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) == 0 {
		s.first = time.Now()
	}
	s.requests = append(s.requests, r)
	turn := len(s.requests) - 1
	if turn == s.servers {
		return modeltest.Reply{Calls: []modeltest.Call{{ID: "end", Name: "work_complete", Arguments: `{"summary":"done"}`}}}
	}
	calls := []modeltest.Call{{ID: fmt.Sprintf("find-%d", turn), Name: "find_tools", Arguments: fmt.Sprintf(`{"query":"tools of %s"}`, serverName(turn))}}
	for i := range toolsEach {
		calls = append(calls, modeltest.Call{
			ID: fmt.Sprintf("call-%d-%d", turn, i), Name: "call_tool",
			Arguments: fmt.Sprintf(`{"name":%q,"arguments":{"line":"turned by %d"}}`, toolName(turn, i), turn),
		})
	}
	return modeltest.Reply{Calls: calls}
}

func serverName(server int) string { return fmt.Sprintf("machine%02d", server) }
func toolName(server, tool int) string {
	return fmt.Sprintf("mcp__%s__widget_%03d", serverName(server), tool)
}

// weight returns the tokens of the tools and of the system messages of a request.
func weight(r *modeltest.Request) (n int) {
	for _, tool := range r.Tools {
		n += tokens.Count("gpt-5", tool.Name+tool.Description+string(tool.Parameters))
	}
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			n += tokens.Count("gpt-5", m.Content)
		}
	}
	return n
}

// TestSystemTwentyFiveServers: the 500 tools of 25 processes add at most 3,000 tokens to the first request,
// all of them are found under names with prefixes and called, and no request changes what the
// request before it had.
func TestSystemTwentyFiveServers(t *testing.T) {
	t.Parallel()
	many, none := &searcher{servers: manyServers}, &searcher{}
	took := map[*searcher]time.Duration{}
	for _, s := range []*searcher{none, many} {
		model := modeltest.NewServerFunc(t, s.reply)
		m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"OPENAI_BASE_URL=" + model.BaseURL()}})
		run := &harnessv1.RunSpec{
			Goal: content.Inline("Turn every widget."), Workspace: newWorkspace(t), Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5"},
			Config: &harnessv1.LoopConfig{
				Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}, Budgets: &harnessv1.Budgets{ToolCalls: proto.Uint32(manyServers * (toolsEach + 2))},
				Context: &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(smallWindow), SoftThreshold: proto.Float64(0.96), BlockingThreshold: proto.Float64(0.97)},
			},
		}
		for i := range s.servers {
			server := servertest.Server(serverName(i), servertest.Plain+"=1", fmt.Sprintf("%s=%d", servertest.Tools, toolsEach))
			if i == 0 {
				server.Env[servertest.Delay] = slowStart.String()
			}
			run.Agent.Mcp = append(run.Agent.Mcp, server)
		}
		began := time.Now()
		if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "many", Spec: run}); err != nil {
			t.Fatal(err)
		}
		result, err := waittest.Watch(t.Context(), m.Client(), "", "many", 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, nil)
		if err != nil || !result.GetAccepted() {
			t.Fatalf("ended with %v, %v", result, err)
		}
		took[s] = s.first.Sub(began)
	}
	added := weight(many.requests[0]) - weight(none.requests[0])
	t.Logf("%d tools of %d servers add %d tokens to the first request, which arrived after %v; without servers after %v; the slowest server needs %v",
		manyServers*toolsEach, manyServers, added, took[many], took[none], slowStart)
	if added <= 0 || added > mostTokens {
		t.Errorf("they add %d tokens, want 1 to %d", added, mostTokens)
	}
	for i, r := range many.requests[1:] {
		if err := extends(many.requests[i], r); err != nil {
			t.Errorf("request %d: %v", i+2, err)
		}
	}
	checkSearches(t, many.requests[len(many.requests)-1])
}

// extends returns an error unless a request begins with all of the one before it.
func extends(before, r *modeltest.Request) error {
	if a, b := fmt.Sprint(before.Tools), fmt.Sprint(r.Tools); a != b {
		return fmt.Errorf("its tools changed:\n%s\n%s", a, b)
	}
	for i, m := range before.Messages {
		text := func(m modeltest.RequestMessage) string {
			return fmt.Sprint(m.Role, m.ToolCallID, m.ToolCalls, m.Content)
		}
		if i >= len(r.Messages) || text(m) != text(r.Messages[i]) {
			return fmt.Errorf("message %d of %d changed", i, len(r.Messages))
		}
	}
	return nil
}

// checkSearches checks the results of all searches and calls, which the last request has.
func checkSearches(t *testing.T, last *modeltest.Request) {
	t.Helper()
	results := map[string]string{}
	for _, m := range last.Messages {
		if m.Role == "tool" {
			results[m.ToolCallID] = m.Content
		}
	}
	names := regexp.MustCompile(`mcp__\w+`)
	found := map[string]bool{}
	for server := range manyServers {
		for _, name := range names.FindAllString(results[fmt.Sprintf("find-%d", server)], -1) {
			found[name] = true
		}
		for tool := range toolsEach {
			want := fmt.Sprintf("[data from the server %s] widget %d turned by %d", serverName(server), tool, server)
			if got := results[fmt.Sprintf("call-%d-%d", server, tool)]; got != want {
				t.Errorf("%s returned %q, want %q", toolName(server, tool), got, want)
			}
			if !found[toolName(server, tool)] {
				t.Errorf("%s is not found by %q: %s", toolName(server, tool), "tools of "+serverName(server), results[fmt.Sprintf("find-%d", server)])
				return
			}
		}
	}
	if len(found) != manyServers*toolsEach {
		t.Errorf("%d tools are found, want %d", len(found), manyServers*toolsEach)
	}
	shown := func(tool modeltest.RequestTool) bool { return strings.HasPrefix(tool.Name, "mcp__") }
	if slices.ContainsFunc(last.Tools, shown) {
		t.Errorf("a request has the definition of a hidden tool")
	}
}
