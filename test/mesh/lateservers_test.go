package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// waiter is a model that works until a server has joined, and then finds and calls its tool.
type waiter struct {
	t *testing.T
	// begin lets the server start, and listed exists once it has listed its tools.
	begin, listed string

	mu       sync.Mutex
	requests []*modeltest.Request
	found    bool
}

func (w *waiter) reply(r *modeltest.Request) modeltest.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = append(w.requests, r)
	n := len(w.requests)
	call := func(name, arguments string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{{ID: fmt.Sprint("call-", n), Name: name, Arguments: arguments}}}
	}
	last := r.Messages[len(r.Messages)-1].Content
	switch {
	case n == 1:
		if err := os.WriteFile(w.begin, nil, 0o600); err != nil {
			w.t.Error(err)
		}
		for until := time.Now().Add(waittest.Patience); time.Now().Before(until); <-time.After(5 * time.Millisecond) {
			if _, err := os.Stat(w.listed); err == nil {
				break
			}
		}
		return call("find_tools", `{"query":"append a line 1"}`)
	case strings.Contains(last, "appended late"):
		return call("work_complete", `{"summary":"done"}`)
	case w.found:
		return call("call_tool", `{"name":"mcp__late__append","arguments":{"line":"late"}}`)
	case strings.Contains(last, "mcp__late__append"):
		w.found = true
		return call("call_tool", `{"name":"mcp__late__append","arguments":{"line":"late"}}`)
	}
	return call("find_tools", fmt.Sprintf(`{"query":"append a line %d"}`, n))
}

// TestSystemAServerJoinsLate: a server that is not ready when its run starts delays the start by the time that a run waits, and
// its tools are found and called once it is ready. Events report both, and every request
// begins with the one before.
func TestSystemAServerJoinsLate(t *testing.T) {
	t.Parallel()
	workspace := newWorkspace(t)
	w := &waiter{t: t, begin: filepath.Join(workspace, "begin"), listed: filepath.Join(workspace, "listed")}
	model := modeltest.NewServerFunc(t, w.reply)
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"OPENAI_BASE_URL=" + model.BaseURL()}})
	run := &harnessv1.RunSpec{
		Goal: content.Inline("Append a line."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5"},
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}},
	}
	withServers(workspace, servertest.Server("late", servertest.Begin+"="+w.begin, servertest.Listed+"="+w.listed))(run)
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "late", Spec: run}); err != nil {
		t.Fatal(err)
	}
	result, err := waittest.Watch(t.Context(), m.Client(), "", "late", 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, nil)
	if err != nil || !result.GetAccepted() {
		t.Fatalf("ended with %v, %v", result, err)
	}
	if data, err := os.ReadFile(filepath.Join(workspace, "out")); err != nil || string(data) != "late\n" {
		t.Errorf("lines %q, %v", data, err)
	}
	for i, r := range w.requests[1:] {
		if err := extends(w.requests[i], r); err != nil {
			t.Errorf("request %d: %v", i+2, err)
		}
	}
	if news := w.requests[1].Messages; !strings.Contains(news[len(news)-1].Content, "The server late is starting; its tools come later") {
		t.Errorf("while it starts, the model reads %q", news[len(news)-1].Content)
	}
	states := map[string]bool{}
	for _, e := range events(m.Ended(runlog.Run{Namespace: "default", ID: "late"}, 0)) {
		if state := e.GetServerState(); state.GetServer() == "late" {
			states[state.GetState()] = true
		}
	}
	if !states["starting"] || !states["ready"] {
		t.Errorf("events report the states %v", states)
	}
}

const stepped = `turns:
  - {calls: [{name: mcp__long__steps, arguments: {}}]}
  - {calls: [{name: mcp__short__steps, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemProgressOfServersIsShown: a client that watches receives what a server reports while its call
// runs. A server that does so for longer than its timeout ends unknown.
func TestSystemProgressOfServersIsShown(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	workspace := newWorkspace(t)
	gate := filepath.Join(workspace, "gate")
	s := spec(scriptFile("stepped", stepped), workspace)
	short := servertest.Server("short", servertest.Steps+"=1")
	short.Timeout = durationpb.New(500 * time.Millisecond)
	withServers(workspace, servertest.Server("long", servertest.Steps+"=1", servertest.Gate+"="+gate), short)(s)
	run := runlog.Run{Namespace: "default", ID: "stepped"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
		t.Fatal(err)
	}
	stream, err := m.Client().WatchRun(t.Context(), &harnessv1.WatchRunRequest{RunId: run.ID, Until: harnessv1.WatchUntil_WATCH_UNTIL_END})
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	calls := map[string]string{}
	for {
		r, err := stream.Recv()
		if err != nil {
			break
		}
		if c := r.GetUpdate().GetEvent().GetToolCall(); c != nil {
			calls[c.GetCallId()] = c.GetTool()
		}
		if o := r.GetUpdate().GetDelta().GetToolOutput(); o != nil {
			shown[o.GetCallId()] += o.GetText()
			if err := os.WriteFile(gate, nil, 0o600); err != nil { // the call of long cannot end before
				t.Fatal(err)
			}
		}
	}
	entries := m.Ended(run, 0)
	for id, tool := range calls {
		if strings.HasSuffix(tool, "__steps") && !strings.Contains(shown[id], "step 1 taken") {
			t.Errorf("of %s a person sees %q", tool, shown[id])
		}
	}
	if got := texts(entries, "mcp__long__steps"); len(got) != 1 || !strings.Contains(got[0], "] took ") {
		t.Errorf("the model reads %q", got)
	}
	if got := texts(entries, "mcp__short__steps"); len(got) != 1 || !strings.Contains(got[0], "effect is unknown") {
		t.Errorf("the model reads %q", got)
	}
}
