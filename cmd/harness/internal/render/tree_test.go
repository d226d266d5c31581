package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// forest shows a run with sub-agents on a terminal.
type forest struct {
	*stage
	tree *Tree
}

func newForest(width int, style Style) *forest {
	s := newStage(width, 50, style)
	return &forest{stage: s, tree: NewTree(s.Live, style, func(string) func(*harnessv1.Content) string { return preview })}
}

// in shows an event of a run below, one of the run itself for an empty name.
func (f *forest) in(agent string, depth, turn uint32, e *harnessv1.Event) {
	f.now, f.version = f.now.Add(time.Second), f.version+1
	e.Version, e.Id, e.Time, e.TurnNumber, e.MaxTurns = f.version, fmt.Sprintf("%d-0", f.version), timestamppb.New(f.now), turn, 20
	if agent != "" {
		e.RunId, e.Agent, e.Depth = "a-"+agent, strings.TrimRight(agent, "0123456789"), depth
	}
	f.tree.Event(e)
	f.Tick()
}

func agentStarted(run string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{CallId: "call-" + run, RunId: "a-" + run, Agent: strings.TrimRight(run, "0123456789")}}}
}

func agentEnded(run string, status harnessv1.RunStatus) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{
		CallId: "call-" + run, RunId: "a-" + run, Agent: strings.TrimRight(run, "0123456789"), Status: status, Accepted: true, Turns: 2,
		Reason: &harnessv1.StopReason{Kind: "max_turns"}, Usage: &harnessv1.Usage{InputTokens: 4000, OutputTokens: 120, CostMicroUsd: 12300},
	}}}
}

// play shows a tree of depth 2 with three runs side by side, two of them of one sub-agent.
func (f *forest) play(scene func(string)) {
	done := harnessv1.RunStatus_RUN_STATUS_DONE
	f.in("", 0, 1, begun(1))
	f.in("", 0, 1, responded("I send three.", 3, 100, 10, 0))
	f.in("", 0, 1, calling("call-explore1", "explore", `{"prompt":"Find every caller of Total, in all packages, and say which of them pass an empty list."}`, "agent"))
	f.in("", 0, 1, calling("call-explore2", "explore", `{"prompt":"Read the tests."}`, "agent"))
	f.in("", 0, 1, calling("call-migrate", "migrate", `{"prompt":"Move it."}`, "agent"))
	for _, run := range []string{"explore1", "explore2", "migrate"} {
		f.in("", 0, 1, agentStarted(run))
	}
	f.in("", 0, 1, stepEnded("awaiting_tool"))
	for _, run := range []string{"explore1", "explore2", "migrate"} {
		f.in(run, 1, 1, begun(1))
	}
	f.tree.Delta(&harnessv1.Delta{RunId: "a-explore1", TurnNumber: 1, Attempt: 1, Try: 1, Text: "not yet complete"})
	f.Tick()
	scene("three work")
	f.in("explore1", 1, 1, responded("I search for the callers first, because the list of them decides what the rest of the work is, and there may be more of them than this package has.\n\n- one\n- two", 1, 100, 10, 0))
	f.in("migrate", 1, 1, responded("", 1, 100, 10, 0))
	f.in("explore1", 1, 1, calling("c1", "search", `{"pattern":"Total("}`, ""))
	f.in("migrate", 1, 1, calling("c1", "bottom", `{"prompt":"Edit."}`, "agent"))
	f.in("migrate", 1, 1, agentStarted("bottom"))
	f.in("migrate", 1, 1, stepEnded("awaiting_tool"))
	f.in("bottom", 2, 1, begun(1))
	f.in("explore2", 1, 1, calling("c1", "read_file", `{"path":"till_test.go"}`, ""))
	scene("calls run")
	f.in("explore2", 1, 1, resulted("c1", "read_file", "package till", 3*time.Millisecond))
	f.in("explore1", 1, 1, erred("c1", "search", "no match", 5*time.Millisecond))
	f.in("explore2", 1, 1, calling("q", "ask_user", `{"question":"Which of the two?"}`, "question"))
	f.in("explore2", 1, 1, stepEnded("awaiting_tool"))
	f.in("bottom", 2, 1, calling("c9", "run_command", `{"command":"make deploy"}`, "approval"))
	f.in("bottom", 2, 1, &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{CallId: "c9", Tool: "run_command", Arguments: inline(`{"command":"make deploy"}`), Why: "it runs commands"}}})
	f.in("bottom", 2, 1, stepEnded("awaiting_tool"))
	scene("two wait")
	f.in("explore1", 1, 1, calling("open", "search", `{"pattern":"Sum("}`, ""))
	f.in("", 0, 1, agentEnded("explore1", harnessv1.RunStatus_RUN_STATUS_STALLED))
	f.in("", 0, 1, agentEnded("explore1", harnessv1.RunStatus_RUN_STATUS_STALLED)) // ended again by its next report
	f.in("", 0, 1, erred("call-explore1", "explore", "[explore: STALLED]", 9*time.Second))
	f.in("migrate", 1, 1, agentEnded("bottom", done))
	f.in("", 0, 1, agentEnded("explore2", done))
	f.in("", 0, 1, resulted("call-explore2", "explore", "[explore: DONE]", 9*time.Second))
	f.tree.Close()
	f.tree.Result(&harnessv1.HarnessResult{Status: done, Accepted: true, TurnCount: 1})
}

func TestHowATreeLooks(t *testing.T) {
	for name, test := range map[string]struct {
		width int
		style Style
	}{"80": {80, Style{UTF8: true}}, "140": {140, Style{UTF8: true}}, "80-ascii": {80, Style{}}, "80-colour": {80, Style{UTF8: true, Colour: true}}} {
		f := newForest(test.width, test.style)
		var b strings.Builder
		f.play(func(scene string) {
			fmt.Fprintf(&b, "=== %s\n%s\n", scene, strings.Join(f.terminal.Screen(), "\n"))
		})
		fmt.Fprintf(&b, "=== in the end\n%s\n", strings.Join(f.terminal.All(), "\n"))
		if fault := f.terminal.Faults(); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if n := len([]rune(line)); n > test.width-1 {
				t.Errorf("%s: %d columns: %q", name, n, line)
			}
		}
		golden(t, "tree-"+strings.TrimSuffix(name, "-colour")+".txt", b.String())
	}
}

// golden compares a text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

func TestATreeLineByLine(t *testing.T) {
	for _, width := range []int{0, 80, 140} {
		var b strings.Builder
		style := Style{UTF8: true, Width: width}
		f := &forest{stage: newStage(80, 50, style)}
		f.tree = NewTree(NewText(&b, style, nil), style, func(string) func(*harnessv1.Content) string { return preview })
		f.play(func(string) {})
		golden(t, fmt.Sprintf("tree-text-%d.txt", width), b.String())
	}
}

// Nothing that a sub-agent writes, its name included, reaches the terminal as control.
func TestSubAgentsWriteNoControls(t *testing.T) {
	evil := "a\x1b[2Jb\x1b]0;c\x07d\u009b31me\rf\x00\u202eg"
	f := newForest(80, Style{UTF8: true, Colour: true})
	f.in("", 0, 1, &harnessv1.Event{Event: &harnessv1.Event_AgentStarted{AgentStarted: &harnessv1.AgentStarted{CallId: evil, RunId: "a-" + evil, Agent: evil}}})
	f.in(evil, 1, 1, begun(1))
	f.in(evil, 1, 1, responded(evil, 1, 1, 1, 0))
	f.in(evil, 1, 1, calling("c", evil, evil, ""))
	f.in(evil, 1, 1, calling("q", evil, `{"question":"`+"\\u001b[2J"+`"}`, "question"))
	f.in(evil, 1, 1, erred("c", evil, evil, time.Second))
	f.in("", 0, 1, &harnessv1.Event{Event: &harnessv1.Event_AgentEnded{AgentEnded: &harnessv1.AgentEnded{RunId: "a-" + evil, Reason: &harnessv1.StopReason{Kind: evil}}}})
	f.tree.Close()
	if fault := f.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
	if all := strings.Join(f.terminal.All(), "\n"); strings.ContainsRune(all, '\u202e') || strings.Count(all, "b") < 5 {
		t.Errorf("%q", all)
	}
}
