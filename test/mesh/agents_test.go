package mesh

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// delegated has a sub-agent do its work, twice, one call after the other.
var delegated = scenario{
	name: "delegated",
	script: `turns:
  - {calls: [{name: helper, arguments: {prompt: Append a line.}}]}
  - {calls: [{name: helper, arguments: {prompt: And another one.}}]}
  - {calls: [{name: work_complete, arguments: {summary: two lines}}]}
`,
	lines: 2,
	edit: helper(`turns:
  - {calls: [{name: run_command, arguments: {command: 'echo line$(date +%s%N) >> out'}}]}
  - {text: "The line is there.", calls: [{name: work_complete, arguments: {summary: appended}}]}
`),
}

// taken is delegated, and deleted with its sub-agents once it has ended.
var taken = scenario{name: "taken", script: delegated.script, lines: delegated.lines, edit: delegated.edit, deleted: true}

// halted is interrupted while its sub-agent runs a command, and resumed.
var halted = scenario{
	name: "halted",
	script: `turns:
  - {calls: [{name: helper, arguments: {prompt: Take your time.}}]}
  - {calls: [{name: work_complete, arguments: {summary: stopped}}]}
`,
	lines: 1,
	edit: helper(`turns:
  - {calls: [{name: run_command, arguments: {command: 'echo begin >> out; sleep 60; echo end >> out'}}]}
  - {text: "It was stopped.", calls: [{name: work_complete, arguments: {summary: stopped}}]}
`),
	drive: func(d *driver, e *harnessv1.Event) {
		switch {
		case e.GetAgentStarted() != nil:
			waittest.Eventually(d.t, "the command of the sub-agent begins", func() bool { return len(d.lines()) > 0 })
			_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.InterruptRunResponse, error) {
				return d.client.InterruptRun(ctx, &harnessv1.InterruptRunRequest{RunId: d.run.ID, RequestId: "stop"})
			})
			d.must(err)
		case e.GetRunInterrupted() != nil:
			d.must(d.childrenRest())
			_, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.ResumeRunResponse, error) {
				return d.client.ResumeRun(ctx, &harnessv1.ResumeRunRequest{RunId: d.run.ID, RequestId: "go"})
			})
			d.must(err)
		}
	},
}

// helper returns an edit that gives a run a sub-agent with a script.
func helper(script string) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		s.Agent.Agents = []*harnessv1.SubAgent{{
			Name: "helper", Description: "Helps.", Instructions: "Help.", Model: "script:" + scriptFile("helper"+fmt.Sprint(len(script)), script),
		}}
	}
}

// childrenRest returns an error if a child works while its parent is interrupted.
func (d *driver) childrenRest() error {
	r, err := waittest.Retry(d.ctx, func(ctx context.Context) (*harnessv1.GetRunResponse, error) {
		return d.client.GetRun(ctx, &harnessv1.GetRunRequest{RunId: d.run.ID})
	})
	if err != nil {
		return err
	}
	for _, c := range r.GetRun().GetChildren() {
		if view, err := d.m.Log().View(d.ctx, runlog.Run{Namespace: d.run.Namespace, ID: c.GetRunId()}, 0); err == nil && !view.Quiescent() {
			return fmt.Errorf("the run is interrupted and its child %s works", c.GetRunId())
		}
	}
	return nil
}

// TestSystemDelegatedWork checks the two scenarios without faults: a sub-agent's answer is the
// result of its call, its work is not in the parent's log, and an interrupt of the parent
// kills the command of the sub-agent.
func TestSystemDelegatedWork(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	for _, s := range []scenario{delegated, halted} {
		d, entries := s.through(t.Context(), t, m, s.name)
		sound(t, d, entries)
		results := 0
		for _, e := range entries {
			for _, message := range e.Record.GetAppended() {
				if message.GetToolName() == "helper" {
					results++
				}
				for _, call := range message.GetToolCalls() {
					if call.GetName() == "run_command" {
						t.Errorf("%s: the parent's log has a call of its sub-agent", s.name)
					}
				}
			}
		}
		if children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren(); results != len(children) || results == 0 {
			t.Errorf("%s: %d results of %d children", s.name, results, len(children))
		}
	}
}

// TestSystemDeletionTakesTheTree: of a deleted run nothing is left, and nothing of what it started.
func TestSystemDeletionTakesTheTree(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	d, entries := delegated.through(t.Context(), t, m, "taken")
	children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()
	if len(children) != 2 {
		t.Fatalf("%d children", len(children))
	}
	_, err := d.client.DeleteRun(t.Context(), &harnessv1.DeleteRunRequest{RunId: d.run.ID})
	d.must(err)
	for _, c := range children {
		if _, err := d.client.GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: c.GetRunId()}); err == nil || fault.ReasonOf(err) != "RUN_EXPIRED" {
			t.Errorf("a child of a deleted run is there: %v", err)
		}
	}
}

// TestSystemReadOnlyAgentsHaveTheirOwnTools: two sub-agents of a run at the same time, of which one
// may change nothing, never get the tools of the other.
func TestSystemReadOnlyAgentsHaveTheirOwnTools(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	reader := `turns:
  - {calls: [{name: run_command, arguments: {command: 'echo reader >> out'}}]}
  - {text: "Looked.", calls: [{name: work_complete, arguments: {summary: looked}}]}
`
	both := scenario{
		name: "both",
		script: `turns:
  - {calls: [{name: reader, arguments: {prompt: Look.}}, {name: helper, arguments: {prompt: Write.}}]}
  - {calls: [{name: work_complete, arguments: {summary: both}}]}
`,
		edit: func(s *harnessv1.RunSpec) {
			delegated.edit(s)
			s.Agent.Agents = append(s.Agent.Agents, &harnessv1.SubAgent{
				Name: "reader", Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true), Model: "script:" + scriptFile("reader", reader),
			})
		},
	}
	for i := range 4 {
		d, _ := both.through(t.Context(), t, m, fmt.Sprint("both-", i))
		if lines := d.lines(); len(lines) != 1 || lines[0] == "reader" {
			t.Errorf("the commands of the sub-agents wrote %q", lines)
		}
	}
}
