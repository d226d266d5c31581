package gym

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// maxBareRuns is the number of runs after which a tree without bounds is stopped.
const maxBareRuns = 100

// treeScenario is a parent with children, of which one fails.
type treeScenario struct {
	name, what, goal string
	root, child      model
	contract         func(*harnessv1.RunSpec) // nil for none
	// bounds are what keeps the cost down, in words, and as the run is started.
	bounds string
	bound  func(*harnessv1.RunSpec)
	// levels below the root.
	levels int
	// verdict is the right one, and really whether the task is done in the end.
	verdict      string
	bare, really bool
}

// own returns the number of the answer in its run, from 1.
func own(c *chat) int {
	n := 1
	for _, m := range c.req.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// helper is the name of the sub-agent of a root, and begins the names of those below.
const helper = "helper"

// gives is a call of the sub-agent that the request has.
func gives(c *chat, format string, a ...any) modeltest.Call {
	name := helper
	for _, t := range c.req.Tools {
		if strings.HasPrefix(t.Name, helper) {
			name = t.Name
		}
	}
	return call(name, args{"prompt": fmt.Sprintf(format, a...)})
}

// recovers is a parent that delegates, does the work itself if a result or a message names it as
// missing, and otherwise believes its child.
func recovers(c *chat) modeltest.Reply {
	switch result := c.result(); {
	case c.made(helper) == 0:
		return calls(gives(c, "Write report.md."))
	case c.wrote("report.md"):
		return done("The report is written.")
	case strings.HasPrefix(result, "[helper: DONE;") && !c.told("Not met", "report.md"):
		return done("The report is written.")
	case strings.HasPrefix(result, "[") || c.told("Not met", "report.md"):
		return calls(write("report.md", "# Report\n"))
	}
	return done("The report is written.")
}

func treeScenarios() []*treeScenario {
	spawns := func(c *chat) modeltest.Reply { return calls(gives(c, "Do part %d of the work.", own(c))) }
	writes := func(c *chat) modeltest.Reply {
		if own(c) == 1 {
			return calls(write("report.md", "# Report\n"))
		}
		return textAndCalls("The report is written.", call("work_complete", args{"summary": "The report is written."}))
	}
	crowd := func(c *chat) modeltest.Reply {
		if own(c) > 1 {
			return done("The report is written.")
		}
		var all []modeltest.Call
		for range 6 {
			all = append(all, gives(c, "Write report.md."))
		}
		return calls(all...)
	}
	runs := func(n uint32) func(*harnessv1.RunSpec) {
		return func(s *harnessv1.RunSpec) { s.Config.Budgets = &harnessv1.Budgets{Runs: proto.Uint32(n)} }
	}
	return []*treeScenario{
		{
			name: "spawns", what: "each run gives its work to another one, without end", goal: "Write report.md.", root: spawns, child: spawns, levels: 3,
			bounds: "3 levels, `runs: 8`", bound: runs(8), verdict: "PARKED budget_exceeded:runs",
		},
		{
			name: "crowd", what: "the parent gives the same task to 6 children", goal: "Write report.md.", root: crowd, child: writes, levels: 1,
			bounds: "`runs: 2`", bound: runs(2), verdict: "PARKED budget_exceeded:runs", bare: true, really: true,
		},
		{
			name: "child-loops", what: "the child makes the same call again and again", goal: "Write report.md.", root: recovers, levels: 1,
			child:  func(*chat) modeltest.Reply { return calls(read("notes.md")) },
			bounds: "loop detection", verdict: accepted, bare: true, really: true,
		},
		{
			name: "child-lies", what: "the child claims to have written a file", goal: "Write report.md.", root: recovers, levels: 1,
			child:  func(*chat) modeltest.Reply { return done("The report is written.") },
			bounds: "a contract of the parent", contract: contract(thereIs("report.md")), verdict: accepted, really: true,
		},
		{
			name: "child-is-empty", what: "the child returns empty answers", goal: "Write report.md.", root: recovers, levels: 1,
			child:  func(*chat) modeltest.Reply { return modeltest.Reply{} },
			bounds: "reminders", verdict: accepted, really: true,
		},
	}
}

// treeOutcome is what came of a tree on one side.
type treeOutcome struct {
	runs, tokens int
	end          string
	really       bool
}

// treeModels puts the models of a tree up, and returns what reads how many tokens were used.
func treeModels(s *treeScenario, name, dir string) (tokens func() int) {
	root, child := models.add(name, s.root, dir), models.add(name+"-child", s.child, dir)
	return func() int {
		_, above := root.sent()
		_, below := child.sent()
		return above + below
	}
}

// runsOf returns the number of runs in a tree that were started.
func runsOf(t *testing.T, id string) int {
	t.Helper()
	r, err := gateway.GetRun(t.Context(), &harnessv1.GetRunRequest{RunId: id})
	if grpcstatus.Code(err) == codes.NotFound {
		return 0 // nothing was left for it
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 1
	for _, c := range r.GetRun().GetChildren() {
		n += runsOf(t, c.GetRunId())
	}
	return n
}

// playBareTree plays a tree in bare loops: a call of the sub-agent is another loop.
func playBareTree(t *testing.T, s *treeScenario) treeOutcome {
	t.Helper()
	w := newWorld(t, map[string]string{"notes.md": "Notes.\n"})
	name := s.name + "-bare"
	used := treeModels(s, name, w.dir)
	runs := 1
	var below func(prompt string) (string, error)
	below = func(prompt string) (string, error) {
		if runs == maxBareRuns {
			return "", errTooManyRuns
		}
		runs++
		loop := &bareLoop{world: w, delegate: below}
		end := loop.run(t, name+"-child", prompt)
		if loop.stopped {
			return "", errTooManyRuns
		}
		if end == turnsGone {
			return "[stopped after 50 turns]", nil
		}
		return w.summary, nil
	}
	loop := &bareLoop{world: w, delegate: below}
	end := loop.run(t, name, s.goal)
	if loop.stopped {
		end = fmt.Sprintf("%d runs", maxBareRuns)
	}
	return treeOutcome{runs: runs, tokens: used(), end: end, really: w.has("report.md")}
}

// playTree plays a tree in the harness.
func playTree(t *testing.T, s *treeScenario) treeOutcome {
	t.Helper()
	w := newWorld(t, map[string]string{"notes.md": "Notes.\n"})
	id := "tree-" + s.name
	used := treeModels(s, id, w.dir)
	agents := func(spec *harnessv1.RunSpec) {
		var below []*harnessv1.SubAgent
		for level := s.levels; level > 0; level-- {
			name := helper
			if level > 1 {
				name += fmt.Sprint("-", level)
			}
			below = []*harnessv1.SubAgent{{Name: name, Description: "Helps.", Instructions: "Help.", Model: "openai:" + id + "-child", Agents: below}}
		}
		spec.Agent.Agents = below
	}
	edits := []func(*harnessv1.RunSpec){agents}
	for _, edit := range []func(*harnessv1.RunSpec){s.bound, s.contract} {
		if edit != nil {
			edits = append(edits, edit)
		}
	}
	run := meshed(t, &scenario{goal: s.goal}, id, w.dir, edits)
	return treeOutcome{runs: runsOf(t, id), tokens: used(), end: run.verdict(), really: w.has("report.md")}
}

// TestTrees: trees of runs end with the right verdict, whatever a parent or a child does, and cost at most what
// they cost without bounds.
func TestTrees(t *testing.T) {
	program.Rely(t)
	all := treeScenarios()
	lines := make([]string, len(all))
	t.Run("trees", func(t *testing.T) {
		for i, s := range all {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				bare, got := playBareTree(t, s), playTree(t, s)
				if got.end != s.verdict || got.really != s.really {
					t.Errorf("%s ends %s (done: %t), want %s (%t)", s.what, got.end, got.really, s.verdict, s.really)
				}
				if bare.really != s.bare {
					t.Errorf("%s: done without bounds: %t", s.what, bare.really)
				}
				if got.runs > bare.runs {
					t.Errorf("%s: %d runs, and %d without bounds", s.what, got.runs, bare.runs)
				}
				lines[i] = line([]string{
					s.what, fmt.Sprint(bare.runs), rounded(bare.tokens), bare.end, yes(bare.really), s.bounds, fmt.Sprint(got.runs), rounded(got.tokens), got.end, yes(got.really),
				})
			})
		}
	})
	if slices.Contains(lines, "") {
		return // some were left out, or failed
	}
	page := tablePage
	if *tableFile != "" {
		page = *tableFile
	}
	before, text, after := treeTable.find(t, page)
	if *tableFile != "" {
		whole := line(treeTable.columns) + strings.Repeat("|---", len(treeTable.columns)) + "|\n" + strings.Join(lines, "")
		if err := os.WriteFile(page, []byte(before+treeTable.marker()+whole+treeTable.end()+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have := strings.SplitAfter(text, "\n")
	for i, want := range lines {
		if i+2 >= len(have) || withoutTokens(have[i+2]) != withoutTokens(want) {
			t.Errorf("%s has no line %q; run make gym", tablePage, want)
		}
	}
}

var treeTable = table{name: "trees", columns: []string{
	"tree", "without bounds: runs", tokenColumn, "claims", "really done", "bounds", "harness: runs", tokenColumn, "verdict", "really done",
}}

// withoutTokens returns a line of the table without the columns of tokens.
func withoutTokens(line string) string {
	cells := strings.Split(line, " | ")
	var rest []string
	for i, c := range cells {
		if i >= len(treeTable.columns) || treeTable.columns[i] != tokenColumn {
			rest = append(rest, c)
		}
	}
	return strings.Join(rest, " | ")
}
