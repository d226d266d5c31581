package mesh

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// scenario is work that passes every point of the mesh.
type scenario struct {
	name   string
	script string
	// patience bounds a run that takes longer than waittest.Patience.
	patience time.Duration
	// drive gives the run what it waits for; it is called for each event.
	drive func(d *driver, e *harnessv1.Event)
	// again is sent to the run once it has ended; empty for nothing.
	again string
	// lines is how many lines its commands append without faults.
	lines int
	// deleted makes the driver delete the run once it has ended.
	deleted bool
	// cancelled means that the driver cancels the run.
	cancelled bool
	// edit changes the spec of the run.
	edit func(*harnessv1.RunSpec)
}

// work reads, fails to reach its model once (so that a timer has to wake it), runs
// commands that must not run twice, ends, and receives a second task.
var work = scenario{
	name: "work",
	script: `turns:
  - {text: "Let me look at what is there before I change anything.", calls: [{name: read_file, arguments: {path: a.txt}}]}
  - {error: {status: 503, retry_after: 0}}
  - {text: "Now the first of two.", calls: [{name: run_command, arguments: {command: 'echo one >> out'}}]}
  - {text: "And the second, with the file.", calls: [{name: run_command, arguments: {command: 'echo two >> out'}}, {name: write_file, arguments: {path: b.txt, content: b}}]}
  - {calls: [{name: work_complete, arguments: {summary: first}}]}
  - {text: "One more.", calls: [{name: run_command, arguments: {command: 'echo three >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: second}}]}
`,
	again: "Once more, please.",
	lines: 3,
}

// interrupted has a command killed and is resumed.
var interrupted = scenario{
	name: "interrupted",
	script: `turns:
  - {text: "This takes a while.", calls: [{name: run_command, arguments: {command: 'echo begin >> out; sleep 60; echo end >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: stopped}}]}
`,
	drive: func(d *driver, e *harnessv1.Event) {
		switch {
		case e.GetToolCall() != nil && e.GetToolCall().GetTool() == "run_command":
			// The command must run before it is killed.
			waittest.Eventually(d.t, "the command begins", func() bool { return len(d.lines()) > 0 })
			_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.InterruptRunResponse, error) {
				return d.client.InterruptRun(ctx, &harnessv1.InterruptRunRequest{RunId: d.run.ID, RequestId: "stop"})
			})
			d.must(err)
		case e.GetRunInterrupted() != nil:
			_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.ResumeRunResponse, error) {
				return d.client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: "go"})
			})
			d.must(err)
		}
	},
	lines: 1,
}

// deleted ends immediately and is deleted.
var deleted = scenario{
	name:    "deleted",
	script:  "turns:\n  - {calls: [{name: work_complete, arguments: {summary: short}}]}\n",
	deleted: true,
}

// judged must prove its work: a command of its contract runs, its work items are
// checked, and subscribers are called before its turns and around its calls.
var judged = scenario{
	name: "judged",
	script: `turns:
  - {text: "First the list.", calls: [{name: work_item_add, arguments: {title: Do it, role: DELIVERABLE}}, {name: run_command, arguments: {command: 'echo one >> out'}}]}
  - {calls: [{name: work_complete, arguments: {summary: too soon}}]}
  - {text: "Now all of it.", calls: [{name: run_command, arguments: {command: 'echo two >> out'}}, {name: work_item_set_artifact, arguments: {id: w1, content: "# What was done", role: DELIVERABLE}}]}
  - {calls: [{name: work_complete, arguments: {summary: an item is open}}]}
  - {calls: [{name: work_item_update, arguments: {id: w1, status: DONE}}]}
  - {calls: [{name: work_complete, arguments: {summary: all}}]}
`,
	lines: 2,
	edit: func(s *harnessv1.RunSpec) {
		s.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: proto.Bool(true)}
		s.Contract = &harnessv1.TaskContract{Goal: "Two lines", RequiredOutputs: []*harnessv1.RequiredOutput{{
			Id: "two", Description: "The second line is there", Predicate: &harnessv1.Predicate{
				Type: harnessv1.PredicateType_PREDICATE_TYPE_COMMAND_SUCCEEDS, Command: "grep -q two out",
			},
		}}}
		for _, topic := range []harnessv1.HookTopic{
			harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL,
		} {
			s.Agent.Hooks = append(s.Agent.Hooks, &harnessv1.Hook{Topic: topic, Command: "true"})
		}
	},
}

// driver takes one run through a scenario, whatever dies meanwhile.
type driver struct {
	t         testing.TB
	ctx       context.Context
	m         *meshtest.Mesh
	client    harnessv1.GatewayServiceClient
	run       runlog.Run
	workspace string
	scenario  scenario
	// resumed counts the steps that were put aside because three workers had died. A resume
	// starts another turn, for which the script has another answer.
	resumed int
}

// expected returns the number of lines without faults.
func (d *driver) expected() int { return d.scenario.lines }

func (d *driver) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Errorf("%s: %v", d.run, err)
	}
}

// lines returns the lines that the commands have appended.
func (d *driver) lines() []string {
	content, err := os.ReadFile(filepath.Join(d.workspace, "out"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(content))
}

// file returns the scenario's script, the same for all runs, because its path is stored
// in the log. Runs that read it at the same time never see half of it.
func (s scenario) file(t testing.TB) string {
	t.Helper()
	return scriptFile(s.name, s.script)
}

// scriptFile writes a script and returns its path, which the name determines.
func scriptFile(name, script string) string {
	path := filepath.Join(scripts, name+".yaml")
	temp := fmt.Sprintf("%s.%d", path, workspaces.Add(1))
	err := os.WriteFile(temp, []byte(script), 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		panic(err) // a folder of the test itself
	}
	return path
}

var workspaces atomic.Uint64

// newWorkspace creates a folder whose path always has the same length: the log counts
// bytes.
func newWorkspace(t testing.TB) string {
	t.Helper()
	path := filepath.Join(scripts, fmt.Sprintf("w%06d", workspaces.Add(1)))
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// canonical returns the run's log without what differs between two runs.
func (d *driver) canonical(entries []runlog.Entry) string {
	replace := []string{d.workspace, "WORKSPACE"}
	for _, c := range entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren() {
		replace = append(replace, c.GetRunId(), "CHILD")
	}
	return meshtest.Canonical(entries, replace...)
}

func spec(script, workspace string) *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Goal:      content.Inline("Do what the script says."),
		Agent:     &harnessv1.AgentSpec{Model: "script:" + script},
		Workspace: workspace,
		Config: &harnessv1.LoopConfig{
			Model: &harnessv1.ModelConfig{MaxTries: proto.Uint32(1), OutageRetry: durationpb.New(200 * time.Millisecond)},
			Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			Hooks: &harnessv1.HookConfig{Timeout: durationpb.New(time.Minute)}, // the log of a run does not depend on the load of the machine
		},
	}
}

func (s scenario) spec(script, workspace string) *harnessv1.RunSpec {
	made := spec(script, workspace)
	if s.edit != nil {
		s.edit(made)
	}
	return made
}

// through takes a run of the scenario to its end and returns its log.
func (s scenario) through(ctx context.Context, t testing.TB, m *meshtest.Mesh, id string) (*driver, []runlog.Entry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, max(s.patience, waittest.Patience))
	defer cancel()
	d := &driver{t: t, ctx: ctx, m: m, client: m.Client(), run: runlog.Run{Namespace: "default", ID: id}, workspace: newWorkspace(t), scenario: s}
	if err := os.WriteFile(filepath.Join(d.workspace, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := s.file(t)
	_, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
		return d.client.StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, RequestId: id, Spec: s.spec(script, d.workspace)})
	})
	d.must(err)
	d.toEnd(s, 0)
	entries := m.Ended(d.run, 0)
	if s.again != "" {
		_, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
			return d.client.SendInput(ctx, &harnessv1.SendInputRequest{RunId: id, RequestId: "again", Input: &harnessv1.SendInputRequest_UserMessage{
				UserMessage: &harnessv1.UserMessage{Content: content.Inline(s.again)},
			}})
		})
		d.must(err)
		d.toEnd(s, uint64(len(entries)))
		entries = m.Ended(d.run, len(entries))
	}
	if s.deleted {
		_, err := waittest.Retry(ctx, func(ctx context.Context) (*harnessv1.DeleteRunResponse, error) {
			return d.client.DeleteRun(ctx, &harnessv1.DeleteRunRequest{RunId: id})
		})
		d.must(err)
		gone(ctx, t, m, entries[0])
	}
	return d, entries
}

// gone waits until a record is no longer stored. A process that has read it caches it,
// so each read uses a new log.
func gone(ctx context.Context, t testing.TB, m *meshtest.Mesh, e runlog.Entry) {
	t.Helper()
	waittest.Eventually(t, fmt.Sprintf("version %d of %s is gone", e.Header.Version, e.Run), func() bool {
		fresh, err := jetstream.Open(ctx, jetstream.Config{URL: m.Bus.URL(), Name: "fresh"})
		if err != nil {
			return false // the bus is away
		}
		defer fresh.Close()
		_, err = fresh.Read(ctx, e.Run, e.Sequence)
		return errors.Is(err, runlog.ErrNotFound)
	})
}

func (d *driver) toEnd(s scenario, after uint64) {
	d.t.Helper()
	result := d.toResult(s, after)
	for result.GetReason().GetKind() == "poison" && strings.Contains(result.GetReason().GetMessage(), "workers died") {
		d.resumed++
		ended := len(d.m.Ended(d.run, int(after)))
		_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.ResumeRunResponse, error) {
			return d.client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: fmt.Sprint("resume-", ended)})
		})
		d.must(err)
		after = uint64(ended)
		result = d.toResult(s, after)
	}
	done := result.GetStatus() == harnessv1.RunStatus_RUN_STATUS_DONE && result.GetAccepted()
	if s.cancelled {
		done = result.GetStatus() == harnessv1.RunStatus_RUN_STATUS_CANCELLED
	}
	if !done {
		d.t.Errorf("%s ended %v", d.run, result)
	}
}

// toResult watches the run until it ends.
func (d *driver) toResult(s scenario, after uint64) *harnessv1.HarnessResult {
	d.t.Helper()
	result, err := waittest.Watch(d.ctx, d.client, "default", d.run.ID, after, harnessv1.WatchUntil_WATCH_UNTIL_END, func(e *harnessv1.Event) {
		if s.drive != nil {
			s.drive(d, e)
		}
	})
	d.must(err)
	return result
}
