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
	"github.com/harnessmesh/harnessmesh/test/kit/servicetest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const served = `turns:
  - {calls: [{name: notes__append, arguments: {line: one}}]}
  - {calls: [{name: notes__hang, arguments: {seconds: 600}}]}
  - {calls: [{name: notes__append, arguments: {line: two}}]}
  - {calls: [{name: notes__hang, arguments: {seconds: 600}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemToolServiceOutlivesDeaths: the tool host has the service for all runs. The tool host and the turn
// worker die in a call, and the service in another. No line is written twice, and the end of both
// calls is reported as unknown, once.
func TestSystemToolServiceOutlivesDeaths(t *testing.T) {
	t.Parallel()
	workspace := newWorkspace(t)
	file := filepath.Join(workspace, "out")
	service := servicetest.Start(t, servicetest.Lines+"="+file)
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	flag := meshtest.Args("--tool-service", "notes="+service.Address+",trust=hints")
	m.Process("toolhost").Kill()
	m.Start("toolhost", flag)
	m.AwaitReady("toolhost")
	s := spec(scriptFile("served", served), workspace)
	s.Agent.Tools = []*harnessv1.ToolRule{{Name: "notes__*", Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW}}
	s.Config.Tools.Yolo = proto.Bool(false)
	run := runlog.Run{Namespace: "default", ID: "served"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
		t.Fatal(err)
	}
	out := func() string {
		data, _ := os.ReadFile(file)
		return string(data)
	}
	waittest.Eventually(t, "the first call hangs", func() bool { return strings.HasSuffix(out(), "hanging\n") })
	m.Process("toolhost").Kill()
	m.Start("toolhost", flag)
	m.Process("turn").Kill()
	m.Start("turn")
	waittest.Eventually(t, "the second call hangs", func() bool { return strings.HasSuffix(out(), "two\nhanging\n") })
	service.Restart()
	entries := m.Ended(run, 0)
	if got := out(); got != "one\nhanging\ntwo\nhanging\n" {
		t.Errorf("lines %q", got)
	}
	unknown := 0
	for _, e := range events(entries) {
		if e.GetRepair().GetReason() == "effect unknown" && e.GetRepair().GetTool() == "notes__hang" {
			unknown++
		}
	}
	if unknown != 2 {
		t.Errorf("%d reports of the unknown ends of 2 calls", unknown)
	}
	again, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
		return m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s})
	})
	if err != nil || !again.GetExisted() {
		t.Errorf("the same request: %v, %v", again, err)
	}
}

const rememberedTurns = `turns:
  - {calls: [{name: notes__slow, arguments: {line: one}}]}
  - {calls: [{name: notes__slow, arguments: {line: two}}]}
  - {calls: [{name: work_complete, arguments: {summary: done}}]}
`

// TestSystemToolServiceThatRemembers: the tool host dies in two calls of a service that remembers keys. The
// next host gets the results of both, and each line is written once.
func TestSystemToolServiceThatRemembers(t *testing.T) {
	t.Parallel()
	workspace := newWorkspace(t)
	file := filepath.Join(workspace, "out")
	service := servicetest.Start(t, servicetest.Lines+"="+file, servicetest.Memory+"="+t.TempDir())
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	s := spec(scriptFile("remembered", rememberedTurns), workspace)
	s.Agent.Mcp = []*harnessv1.McpServer{{Name: "notes", Grpc: service.Address}}
	run := runlog.Run{Namespace: "default", ID: "remembered"}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: run.ID, RequestId: run.ID, Spec: s}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"one", "two"} {
		waittest.Eventually(t, line, func() bool {
			data, _ := os.ReadFile(file)
			return strings.HasSuffix(string(data), line+"\n")
		})
		m.Process("toolhost").Kill()
		m.Start("toolhost")
	}
	entries := m.Ended(run, 0)
	if data, err := os.ReadFile(file); err != nil || string(data) != "one\ntwo\n" {
		t.Errorf("lines %q, %v", data, err)
	}
	results := 0
	for _, e := range events(entries) {
		if e.GetToolResult().GetTool() == "notes__slow" {
			results++
		}
	}
	if results != 2 {
		t.Errorf("%d results of 2 calls", results)
	}
}
