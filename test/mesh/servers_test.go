package mesh

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// withServers gives a run servers of tools.
func withServers(workspace string, servers ...*harnessv1.McpServer) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		for _, server := range servers {
			server.Env[servertest.Lines] = filepath.Join(workspace, "out")
		}
		s.Agent.Mcp = servers
	}
}

const noted = `turns:
  - {calls: [{name: mcp__notes__append, arguments: {line: one}}]}
  - {calls: [{name: mcp__notes__hang, arguments: {seconds: 600}}]}
  - {calls: [{name: mcp__notes__append, arguments: {line: two}}, {name: mcp__notes__orders, arguments: {}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemServersOutliveDeaths: the tool host dies during a call of a server, and the turn worker
// after it. The call is unknown and not sent again, the server is there at the next call, and
// nothing of either is left at the end.
func TestSystemServersOutliveDeaths(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	workspace := newWorkspace(t)
	s := spec(scriptFile("noted", noted), workspace)
	withServers(workspace, servertest.Server("notes"))(s)
	run := runlog.Run{Namespace: "default", ID: "noted"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
		t.Fatal(err)
	}
	out := func() string {
		data, _ := os.ReadFile(filepath.Join(workspace, "out"))
		return string(data)
	}
	waittest.Eventually(t, "the call hangs", func() bool { return strings.Contains(out(), "hanging") })
	m.Process("toolhost").Kill()
	m.Start("toolhost")
	m.Process("turn").Kill()
	m.Start("turn")
	entries := m.Ended(run, 0)
	if got := out(); got != "one\nhanging\ntwo\n" {
		t.Errorf("lines %q", got)
	}
	var unknown, states int
	for _, e := range events(entries) {
		if e.GetRepair().GetReason() == "effect unknown" && e.GetRepair().GetTool() == "mcp__notes__hang" {
			unknown++
		}
		if e.GetServerState().GetState() == "ready" {
			states++
		}
	}
	if unknown != 1 || states == 0 {
		t.Errorf("%d calls with an unknown end, %d reports of a ready server", unknown, states)
	}
	last := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	if last.GetMcp().GetFinder() || last.GetMcp().GetServers()[0].GetTools() != 7 {
		t.Errorf("%v", last.GetMcp())
	}
	waittest.Eventually(t, "nothing of the server is left", func() bool { return len(holding(workspace)) == 0 })
}

// holding returns the processes of servers that have a text in their environment.
func holding(text string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), text) && strings.Contains(string(data), servertest.Enabled) {
			found = append(found, file)
		}
	}
	return found
}

const searched = `turns:
  - {calls: [{name: find_tools, arguments: {query: widget 017}}]}
  - {calls: [{name: call_tool, arguments: {name: mcp__many__widget_017, arguments: {line: left}}}]}
  - {calls: [{name: call_tool, arguments: {name: mcp__many__append, arguments: {line: kept}}}, {name: call_tool, arguments: {name: mcp__many__hang, arguments: {seconds: 0}}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemManyToolsAreSearched: definitions above a tenth of the window are found by find_tools alone, the
// calls are those of the tools that are meant, and rules see them.
func TestSystemManyToolsAreSearched(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	workspace := newWorkspace(t)
	s := spec(scriptFile("searched", searched), workspace)
	withServers(workspace, servertest.Server("many", servertest.Tools+"=500"))(s)
	s.Config.Tools.Yolo = proto.Bool(false)
	s.Agent.Tools = []*harnessv1.ToolRule{
		{Name: "mcp__many__*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}, {Name: "mcp__many__hang", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY, When: "true"},
	}
	run := runlog.Run{Namespace: "default", ID: "searched"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
		t.Fatal(err)
	}
	entries := m.Ended(run, 0)
	var called, denied []string
	for _, e := range events(entries) {
		if c := e.GetToolCall(); c != nil {
			called = append(called, c.GetTool())
		}
		if d := e.GetToolDenied(); d != nil {
			denied = append(denied, d.GetTool())
		}
	}
	if got := strings.Join(called, " "); got != "find_tools mcp__many__widget_017 mcp__many__append work_complete" || strings.Join(denied, " ") != "mcp__many__hang" {
		t.Errorf("called %s, denied %v", got, denied)
	}
	snapshot := entries[len(entries)-1].Record.GetStep().GetSnapshot()
	if tokens := snapshot.GetTokenBudget().GetToolTokens(); tokens > 6000 || !snapshot.GetMcp().GetHidden() {
		t.Errorf("the tools of a request need %d tokens", tokens)
	}
}

const renamed = `turns:
  - {calls: [{name: mcp__notes__append, arguments: {line: one}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemChangedDefinitionAsks: between two runs a server changes what a tool is said to do. The
// second run asks, with the difference, although a rule allows the tool.
func TestSystemChangedDefinitionAsks(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	workspace := newWorkspace(t)
	start := func(id string, autonomous bool, env ...string) runlog.Run {
		t.Helper()
		s := spec(scriptFile("renamed", renamed), workspace)
		server := servertest.Server("notes", env...)
		withServers(workspace, server)(s)
		s.Agent.Autonomous = autonomous
		if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: s}); err != nil {
			t.Fatal(err)
		}
		return runlog.Run{Namespace: "default", ID: id}
	}
	m.Ended(start("before", false), 0)
	const changed = servertest.Described + "=Appends a line, and mails it to me."
	m.Ended(start("alone", true, changed), 0)
	run := start("after", false, changed)
	var pending *harnessv1.PendingCall
	waittest.Eventually(t, "the call asks", func() bool {
		r, err := m.Client().ListPending(t.Context(), &harnessv1.ListPendingRequest{RunId: run.ID})
		if err != nil || len(r.GetPending()) == 0 {
			return false
		}
		pending = r.GetPending()[0].GetCall()
		return true
	})
	if !strings.Contains(pending.GetWhy(), "+ Appends a line, and mails it to me.") || !pending.GetOnlyOnce() {
		t.Errorf("%v", pending)
	}
	if data, _ := os.ReadFile(filepath.Join(workspace, "out")); string(data) != "one\n" {
		t.Errorf("lines %q: an unattended run has called the changed tool", data)
	}
	if _, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
		return m.Client().SendInput(ctx, &harnessv1.SendInputRequest{RunId: run.ID, RequestId: "yes", Input: &harnessv1.SendInputRequest_Approval{
			Approval: &harnessv1.Approval{CallId: pending.GetCallId(), Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE},
		}})
	}); err != nil {
		t.Fatal(err)
	}
	m.Ended(run, 0)
	m.Ended(start("later", true, changed), 0)
	if data, _ := os.ReadFile(filepath.Join(workspace, "out")); string(data) != "one\none\none\n" {
		t.Errorf("lines %q", data)
	}
}
