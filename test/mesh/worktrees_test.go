package mesh

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// mergeCalls returns calls that merge the work of the first call of a run.
func mergeCalls(run runlog.Run) string {
	return callsWith(run, "{name: "+tree.MergeTool+", arguments: {run: %s}}")
}

// callsWith returns calls that name the child of the first call of a run, whatever the sequence of its first record is
// among the first ones of a log. All but one name no run.
func callsWith(run runlog.Run, call string) string {
	var calls []string
	for sequence := range uint64(16) {
		calls = append(calls, fmt.Sprintf(call, tree.ID(run, sequence+1, "call_1_0")))
	}
	return "[" + strings.Join(calls, ", ") + "]"
}

// separate has two sub-agents work in worktrees, one of which changes nothing.
var separate = scenario{
	name: "separate",
	script: `turns:
  - {calls: [{name: helper, arguments: {prompt: Write.}}]}
  - {calls: [{name: looker, arguments: {prompt: Look.}}]}
  - {calls: [{name: work_complete, arguments: {summary: both}}]}
`,
	edit: func(s *harnessv1.RunSpec) {
		work := "turns:\n  - {calls: [{name: run_command, arguments: {command: '%s'}}]}\n  - {text: Done., calls: [{name: work_complete, arguments: {summary: done}}]}\n"
		inWorktree(fmt.Sprintf(work, "cat uncommitted >> out"), true)(s)
		looker := helper(fmt.Sprintf(work, "cat uncommitted"))
		both := s.GetAgent().GetAgents()
		looker(s)
		s.Agent.Agents[0].Name, s.Agent.Agents[0].Workspace = "looker", tree.Worktree
		s.Agent.Agents = append(both, s.GetAgent().GetAgents()...)
	},
}

// inWorktree returns an edit that gives a run a sub-agent with a worktree, and its workspace a
// repository with an uncommitted file.
func inWorktree(script string, repository bool) func(*harnessv1.RunSpec) {
	return func(s *harnessv1.RunSpec) {
		helper(script)(s)
		s.Agent.Agents[0].Workspace = tree.Worktree
		if repository {
			for _, arguments := range [][]string{{"init", "-q"}, {"-c", "user.name=u", "-c", "user.email=u", "commit", "-q", "--allow-empty", "-m", "first"}} {
				cmd := exec.Command("git", arguments...)
				cmd.Dir = s.GetWorkspace()
				if out, err := cmd.CombinedOutput(); err != nil {
					panic(fmt.Sprintf("git: %v: %s", err, out)) // a folder of the test itself
				}
			}
		}
		if err := os.WriteFile(filepath.Join(s.GetWorkspace(), "uncommitted"), []byte("here\n"), 0o600); err != nil {
			panic(err) // as above
		}
	}
}

// results returns the results of a tool in a log.
func results(entries []runlog.Entry, tool string) []string {
	var found []string
	for _, e := range entries {
		for _, m := range e.Record.GetAppended() {
			if m.GetToolName() == tool {
				found = append(found, m.GetContent().GetInline())
			}
		}
	}
	return found
}

// TestSystemASubAgentWorksInAWorktree: it sees the uncommitted files of its caller, whose folder stays as it is until
// the caller merges the work. A call that continues it works in the same worktree. Then nothing is left on the host.
func TestSystemASubAgentWorksInAWorktree(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	run := runlog.Run{Namespace: "default", ID: "isolated"}
	s := scenario{
		name: "isolated",
		script: `turns:
  - {calls: [{name: helper, arguments: {prompt: Write a file.}}]}
  - {calls: [{name: run_command, arguments: {command: 'ls'}}]}
  - {calls: ` + callsWith(run, "{name: helper, arguments: {prompt: Append a line., continue: %s}}") + `}
  - {calls: ` + mergeCalls(run) + `}
  - {calls: [{name: work_complete, arguments: {summary: merged}}]}
`,
		lines: 2,
		edit: inWorktree(`turns:
  - {calls: [{name: run_command, arguments: {command: 'cat uncommitted > out && git add out && git -c user.name=u -c user.email=u commit -qm out && git status --short && pwd'}}]}
  - {text: "Written.", calls: [{name: work_complete, arguments: {summary: written}}]}
  - {calls: [{name: run_command, arguments: {command: 'git status --short && echo again >> out'}}]}
  - {text: "Appended.", calls: [{name: work_complete, arguments: {summary: appended}}]}
`, true),
	}
	d, entries := s.through(t.Context(), t, m, run.ID)
	var done []string
	for _, text := range results(entries, "helper") {
		if strings.Contains(text, "DONE") && strings.Contains(text, tree.MergeTool) {
			done = append(done, text)
		}
	}
	if len(done) != 2 || !strings.HasSuffix(done[0], "Written.") || !strings.HasSuffix(done[1], "Appended.") {
		t.Errorf("results of the sub-agent: %q", done)
	}
	if got := results(entries, "run_command"); len(got) != 1 || strings.Contains(got[0], "out") || !strings.Contains(got[0], "uncommitted") {
		t.Errorf("files of the parent before the merge: %q", got)
	}
	merged := 0
	for _, text := range results(entries, tree.MergeTool) {
		if strings.Contains(text, "1 added") {
			merged++
		}
	}
	if lines := d.lines(); merged != 1 || len(lines) != 2 || lines[0] != "here" || lines[1] != "again" {
		t.Errorf("%d merges, and the file is %q: %q", merged, lines, results(entries, tree.MergeTool))
	}
	children := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()
	view, err := m.Log().View(t.Context(), runlog.Run{Namespace: "default", ID: children[0].GetRunId()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	at := view.Step.Record.GetStep().GetSnapshot().GetWorkspace()
	if _, err := os.Stat(at); at == d.workspace || !os.IsNotExist(err) {
		t.Errorf("the worktree %q is left: %v", at, err)
	}
}

// TestNoWorktreeEndsTheCall: without a repository the call of the sub-agent has an error result, and the run continues.
func TestNoWorktreeEndsTheCall(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	s := scenario{
		name: "no-worktree",
		script: `turns:
  - {calls: [{name: helper, arguments: {prompt: Write a file.}}]}
  - {calls: [{name: work_complete, arguments: {summary: it failed}}]}
`,
		edit: inWorktree("turns:\n  - {calls: [{name: run_command, arguments: {command: 'echo x >> out'}}]}\n", false),
	}
	d, entries := s.through(t.Context(), t, m, "no-worktree")
	if got := results(entries, "helper"); len(got) != 1 || !strings.Contains(got[0], "FAILED") || !strings.Contains(got[0], "in no git repository") {
		t.Errorf("result of the sub-agent: %q", got)
	}
	if lines := d.lines(); len(lines) > 0 {
		t.Errorf("the sub-agent wrote %q", lines)
	}
}

// TestSystemMergesSurviveKills: the tool host dies at each point of a merge. The workspace has all changes of the sub-agent or
// none of them, and the next merge finds what the first one has left.
func TestSystemMergesSurviveKills(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	points := []string{"merge_changing", "merged", "merge_stored", "merge_changed"}
	if *rounds <= 3 { // as in CI
		points = points[:2]
	}
	for _, point := range points {
		s := scenario{
			name:   "merging",
			script: "turns:\n  - {calls: [{name: helper, arguments: {prompt: Write.}}]}\n  - {calls: [{name: work_complete, arguments: {summary: written}}]}\n",
			edit: inWorktree(`turns:
  - {calls: [{name: run_command, arguments: {command: 'echo one >> out; echo two > second; rm uncommitted'}}]}
  - {text: Written., calls: [{name: work_complete, arguments: {summary: written}}]}
`, true),
		}
		d, entries := s.through(t.Context(), t, m, point)
		child := entries[len(entries)-1].Record.GetStep().GetSnapshot().GetChildren()[0]
		merge := fmt.Sprintf("[{name: %s, arguments: {run: %s}}]", tree.MergeTool, child.GetRunId())
		d.changeModel(scriptFile(point, s.script+"  - {calls: "+merge+"}\n  - {calls: "+merge+"}\n  - {calls: [{name: work_complete, arguments: {summary: merged}}]}\n"))
		entries = m.Ended(d.run, len(entries))
		m.Process("toolhost").Kill()
		host := m.Start("toolhost", meshtest.Arm("toolhost."+point+"=kill"))
		m.AwaitReady("toolhost")
		d.sendMessage("Merge it.")
		waittest.Eventually(t, "the tool host dies", func() bool { _, died := host.Line("failpoint toolhost." + point); return died })
		host.Kill()
		whole := filesBelow(t, d.workspace)
		m.Start("toolhost")
		entries = m.Ended(d.run, len(entries))
		got := filesBelow(t, d.workspace)
		if got != "a.txt:a\n out:one\n second:two\n " {
			t.Errorf("%s: after a kill with %q and another merge the workspace has %q: %q", point, whole, got, results(entries, tree.MergeTool))
		}
	}
}

// filesBelow returns the names and contents of the files of a folder, in order, without those of git.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, n := range names {
		if n.Name() == ".git" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s:%s ", n.Name(), data)
	}
	return all.String()
}

// changeModel has the run continue with another script.
func (d *driver) changeModel(script string) {
	d.t.Helper()
	d.send("model", &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_ModelChange{ModelChange: &harnessv1.ModelChange{Model: "script:" + script}}})
}

// sendMessage sends the run a message.
func (d *driver) sendMessage(text string) {
	d.t.Helper()
	d.send(text, &harnessv1.SendInputRequest{Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(text)}}})
}

// send sends the run an input until it is accepted.
func (d *driver) send(id string, request *harnessv1.SendInputRequest) {
	d.t.Helper()
	_, err := waittest.Retry(d.t.Context(), func(ctx context.Context) (*harnessv1.SendInputResponse, error) {
		request.RunId, request.RequestId = d.run.ID, strings.ReplaceAll(id, " ", "-")
		return d.client.SendInput(ctx, request)
	})
	d.must(err)
}
