package tree_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// delegates is a sub-agent that may delegate in turn.
var delegates = &harnessv1.SubAgent{
	Name: "look", ReadOnly: proto.Bool(true), Agents: []*harnessv1.SubAgent{{Name: "deeper"}},
}

// withRuns returns the state of a parent with calls of look and a budget of runs.
func withRuns(runs uint32, calls int) *harnessv1.Snapshot {
	names := make([]string, calls)
	for i := range names {
		names[i] = "look"
	}
	s := waiting(names...)
	s.Config = &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{Runs: &runs}}
	return s
}

// TestLeasesOfRuns: runs started and leased never exceed the budget, and a child that may not delegate gets
// none.
func TestLeasesOfRuns(t *testing.T) {
	for _, c := range []struct {
		budget  uint32
		leases  []uint32
		refused uint32
	}{{0, nil, 1}, {1, []uint32{0}, 1}, {2, []uint32{1}, 1}, {5, []uint32{1, 1, 0}, 0}, {41, []uint32{10, 7, 5}, 0}} {
		s := withRuns(c.budget, 3)
		scheduled := tree.Schedule(s, parent, []*harnessv1.SubAgent{delegates}, false, time.Time{})
		var taken uint32
		for i, lease := range c.leases {
			if got := s.GetChildren()[i].GetLease(); got.Runs == nil || got.GetRuns() != lease {
				t.Errorf("of %d runs, child %d gets %v, want %d", c.budget, i, got, lease)
			}
			taken += 1 + s.GetChildren()[i].GetLease().GetRuns()
		}
		if len(scheduled.Broke) != 3-len(c.leases) || taken > c.budget || int(s.GetSpent().GetRuns()) != len(c.leases) || min(s.GetSpent().GetRunsRefused(), 1) != c.refused {
			t.Errorf("of %d runs, %d are taken, %d calls got none, and %v is spent", c.budget, taken, len(scheduled.Broke), s.GetSpent())
		}
		if up := runstate.ExceededBudget(s, time.Time{}); (up.GetBudget() == "runs") != (c.budget == 1) {
			t.Errorf("of %d runs: %v", c.budget, up)
		}
	}
	s := withRuns(9, 1)
	schedule(s)
	if lease := s.GetChildren()[0].GetLease(); lease.Runs != nil {
		t.Errorf("a child that may not delegate has %v", lease)
	}
}

// TestRunsOfChildrenCount once, and a child that has used up its share gets more.
func TestRunsOfChildrenCount(t *testing.T) {
	s := withRuns(41, 1)
	tree.Schedule(s, parent, []*harnessv1.SubAgent{delegates}, false, time.Time{})
	c := tree.Find(s, "a")
	told := func(version uint64, runs uint32) {
		tree.Take(s, &harnessv1.ChildReport{
			RunId: c.GetRunId(), Version: version, Order: 1, Status: parked, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:runs"}, Runs: runs,
		})
	}
	told(3, 4)
	told(5, 10)
	if s.GetSpent().GetRuns() != 11 {
		t.Errorf("%d runs are counted, want 11", s.GetSpent().GetRuns())
	}
	if more, ok := tree.More(s, delegates, c); !ok || more.GetRuns() != 10+30/4 {
		t.Errorf("it gets %v, %v", more, ok)
	}
	if more, ok := tree.More(s, &harnessv1.SubAgent{Budgets: &harnessv1.Budgets{Runs: proto.Uint32(10)}}, c); ok {
		t.Errorf("beyond its definition it gets %v", more)
	}
	s.Config.Budgets.Tokens, c.Lease.Tokens = proto.Uint64(1_000_000), proto.Uint64(1)
	s.Config.Budgets.Runs = proto.Uint32(11)
	if more, ok := tree.More(s, delegates, c); ok {
		t.Errorf("it gets no runs but %v", more)
	}
}

// TestInherit: children enter plan mode with their parent, and return to their own mode.
func TestInherit(t *testing.T) {
	s := waiting("look", "look")
	schedule(s)
	tree.Sent(s)
	a, b := tree.Find(s, "a"), tree.Find(s, "b")
	b.Lease = &harnessv1.Budgets{Tokens: proto.Uint64(5)}
	change := func(mode string) {
		s.Mode = mode
		tree.Inherit(s)
		tree.Inherit(s)
	}
	change("plan")
	item := tree.OrderItem(parent, a, nil)
	if item.GetModeChange().GetMode() != "plan" || !item.GetPlans() || item.GetOrder() != 2 || len(tree.Due(s)) != 2 {
		t.Errorf("in plan mode the order is %v", item)
	}
	if p := tree.ParentOf(parent, s, a); !p.GetPlans() || !tree.StateOf(p, &harnessv1.Step{Snapshot: s}).GetPlans() {
		t.Error("a child that starts does not learn it")
	}
	tree.Extend(b, b.GetLease()) // before the change is sent
	change("execute")
	if item := tree.OrderItem(parent, a, nil); item.GetModeChange() == nil || item.GetModeChange().GetMode() != "" || item.GetPlans() || item.GetOrder() != 3 {
		t.Errorf("after it the order is %v", item)
	}
	if item := tree.OrderItem(parent, b, nil); item.GetResume().GetBudgets().GetTokens() != 5 || item.GetPlans() || item.GetOrder() != 4 {
		t.Errorf("the order to continue is lost: %v", item)
	}
	s.Mode = "plan"
	s.Children[0].Want = end
	if tree.Inherit(s); a.GetOrder() != 3 {
		t.Error("a child that is to end gets another order")
	}
}

// TestResultNamesTheFiles that were changed, the first 10.
func TestResultNamesTheFiles(t *testing.T) {
	c := &harnessv1.Child{RunId: "a-1", Agent: "look", Report: &harnessv1.ChildReport{Status: done, Accepted: true}}
	for want, files := range map[string]*harnessv1.ChangedFiles{
		"[look: DONE; 0 turns, 0 tokens; 1 file changed: a; run a-1]":                                         {Paths: []string{"a"}},
		"[look: DONE; 0 turns, 0 tokens; 2 files changed: a, b; run a-1]":                                     {Paths: []string{"a", "b"}},
		"[look: DONE; 0 turns, 0 tokens; more than 1 files changed: a and others; run a-1]":                   {Paths: []string{"a"}, More: true},
		"[look: DONE; 0 turns, 0 tokens; 11 files changed: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and others; run a-1]": {Paths: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}},
	} {
		c.Report.Files = files
		if got, _ := tree.ResultText(c, "x"); got != want+"\n\nx" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestResultOfAWorktree names the merge only if there are changes.
func TestResultOfAWorktree(t *testing.T) {
	for unchanged, want := range map[bool]string{false: "] Its changes are in its worktree: merge_agent_work ", true: "] It has changed nothing in its worktree: "} {
		c := &harnessv1.Child{RunId: "a-1", Agent: "look", Worktree: true, Report: &harnessv1.ChildReport{Status: done, Accepted: true, Unchanged: unchanged}}
		if got, failed := tree.ResultText(c, "x"); !strings.Contains(got, want) || failed {
			t.Errorf("unchanged %t: %q", unchanged, got)
		}
	}
}

// TestReportCountsDeliverables of a run that has ended.
func TestReportCountsDeliverables(t *testing.T) {
	s := &harnessv1.Snapshot{Parent: &harnessv1.Parent{RunId: "up"}, Status: done}
	result := &harnessv1.HarnessResult{Deliverables: []*harnessv1.Deliverable{{}, {}, {}}}
	r, _, ok := tree.ReportOf(parent, 3, &harnessv1.Step{To: runlog.End, Snapshot: s, Message: &harnessv1.Step_Result{Result: result}})
	if !ok || r.GetArtifacts() != 3 {
		t.Errorf("reported %v", r)
	}
}

// TestParentGivesRunsThatAreShort: in a run with a parent a call for which no run is left waits, and its park asks for more; only
// when the parent has refused that, it gets nothing.
func TestParentGivesRunsThatAreShort(t *testing.T) {
	s := withRuns(1, 2)
	s.Parent, s.Status = &harnessv1.Parent{RunId: "up", Order: 1}, parked
	scheduled := tree.Schedule(s, parent, agents, false, time.Time{})
	if len(scheduled.Broke) != 0 || s.GetShort() != "runs" || tree.Find(s, "a").GetOrder() != 1 || tree.Find(s, "b").GetOrder() != 0 || len(tree.Wanted(s)) != 2 {
		t.Fatalf("short of %q, children %v", s.GetShort(), s.GetChildren())
	}
	asks := func() (kind, short string) {
		s.StopReason = tree.WaitReason(s, 1)
		r, _, _ := tree.ReportOf(parent, 3, &harnessv1.Step{To: runlog.Park, Snapshot: s})
		return r.GetReason().GetKind(), r.GetShort()
	}
	if kind, short := asks(); kind != runstate.KindAgent || short != "runs" {
		t.Errorf("while the first works it reports %s, short of %q", kind, short)
	}
	report(t, s, "a", 3, 1, done, "agent_done")
	tree.Schedule(s, parent, agents, false, time.Time{})
	if kind, short := asks(); kind != "budget_exceeded:runs" || short != "runs" {
		t.Errorf("then it reports %s, short of %q", kind, short)
	}
	more := proto.CloneOf(s)
	more.Config.Budgets.Runs = proto.Uint32(2)
	if tree.Schedule(more, parent, agents, false, time.Time{}); more.GetShort() != "" || tree.Find(more, "b").GetOrder() != 1 {
		t.Errorf("with more it does not start: %v", more.GetChildren())
	}
	if scheduled := tree.Schedule(s, parent, agents, true, time.Time{}); len(scheduled.Broke) != 1 || s.GetShort() != "" || s.GetSpent().GetRunsRefused() != 0 {
		t.Errorf("refused: %v, %v", scheduled.Broke, s.GetSpent())
	}
}

// TestParentGetsWhatAChildLacks: a run requests from its parent what it cannot give a child.
func TestParentGetsWhatAChildLacks(t *testing.T) {
	s := withRuns(1, 1)
	s.Parent = &harnessv1.Parent{RunId: "up", Order: 1}
	tree.Schedule(s, parent, []*harnessv1.SubAgent{delegates}, false, time.Time{})
	c := tree.Find(s, "a")
	tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), Version: 3, Order: 1, Status: parked, Reason: &harnessv1.StopReason{Kind: runstate.KindAgent}, Short: "runs"})
	if _, ok := tree.More(s, delegates, c); ok || tree.Lacks(c) != "runs" || tree.Refuses(s, c, false) {
		t.Error("it is given or refused what its parent may have")
	}
	if tree.Schedule(s, parent, nil, false, time.Time{}); s.GetShort() != "runs" {
		t.Errorf("it is short of %q", s.GetShort())
	}
	if tree.Refuses(s, c, true) {
		t.Error("it is refused more while something below it works")
	}
	tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), Version: 4, Order: 1, Status: parked, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:runs"}, Short: "runs"})
	if !tree.Refuses(s, c, true) {
		t.Error("it waits for ever")
	}
	tree.Refuse(c)
	if item := tree.OrderItem(parent, c, nil); !item.GetRefused() || item.GetResume() == nil || item.GetOrder() != 2 {
		t.Errorf("the order is %v", item)
	}
	tokens := &harnessv1.Child{Agent: "look", CallId: "a", Want: work, Order: 1, Lease: &harnessv1.Budgets{Tokens: proto.Uint64(30_000)}, Report: &harnessv1.ChildReport{
		Status: parked, Order: 1, Short: "tokens", Reason: &harnessv1.StopReason{Kind: runstate.KindAgent}, Usage: &harnessv1.Usage{InputTokens: 1_000},
	}}
	s = withRuns(9, 1)
	s.Config.Budgets.Tokens, s.Children = proto.Uint64(200_000), []*harnessv1.Child{tokens}
	if more, ok := tree.More(s, delegates, tokens); !ok || more.GetTokens() != 30_000+(200_000-29_000)/4 {
		t.Errorf("short of tokens for a call it gets %v, %v", more, ok)
	}
}

// TestEndExhausted: a child that is parked for a limit that its definition sets gets the order to end. One that is parked for a limit of its
// parent, of a run below it or of all runs does not.
func TestEndExhausted(t *testing.T) {
	own := &harnessv1.Budgets{
		Tokens: proto.Uint64(50), CostUsd: proto.Float64(0.5), Turns: proto.Uint32(5), ToolCalls: proto.Uint32(5), WallClock: durationpb.New(time.Minute), Runs: proto.Uint32(1),
	}
	reached := &harnessv1.Budgets{Tokens: proto.Uint64(50), CostUsd: proto.Float64(0.5)}
	less := &harnessv1.Budgets{Tokens: proto.Uint64(49), CostUsd: proto.Float64(0.4)}
	none := &harnessv1.Budgets{}
	for _, c := range []struct {
		kind         string
		limit, lease *harnessv1.Budgets
		below, ends  bool
	}{
		{"budget_exceeded:tokens", own, reached, false, true},
		{"budget_exceeded:cost", own, reached, false, true},
		{"budget_exceeded:tokens", own, reached, true, true}, // the runs below it use its lease
		{"budget_exceeded:tokens", own, less, false, false},
		{"budget_exceeded:cost", own, less, false, false},
		{"budget_exceeded:tokens", none, reached, false, false},
		{"budget_exceeded:cost", nil, reached, false, false},
		{"budget_exceeded:turns", own, none, false, true},
		{"budget_exceeded:tool_calls", own, none, false, true},
		{"budget_exceeded:wall_clock", own, none, false, true},
		{"budget_exceeded:turns", none, none, false, false},
		{"budget_exceeded:tool_calls", nil, none, false, false},
		{"budget_exceeded:wall_clock", none, none, false, false},
		{"budget_exceeded:turns", own, none, true, false},
		{"budget_exceeded:tool_calls", own, none, true, false},
		{"budget_exceeded:wall_clock", own, none, true, false},
		{"budget_exceeded:runs", own, reached, false, false},
		{"approval", own, reached, false, false},
	} {
		reason := &harnessv1.StopReason{Kind: c.kind}
		if c.below {
			reason.Details = &harnessv1.StopDetails{RunId: "a-below"}
		}
		child := &harnessv1.Child{Want: work, Order: 2, Lease: c.lease, Report: &harnessv1.ChildReport{Status: parked, Order: 2, Reason: reason}}
		if got := tree.EndExhausted(child, &harnessv1.SubAgent{Budgets: c.limit}); got != c.ends || got != (child.GetWant() == end && child.GetOrder() == 3) {
			t.Errorf("%s of %v with %v: %v, %v", c.kind, c.limit, c.lease, got, child)
		}
		child.Want, child.Order, child.Exhausted = work, 3, "" // a newer order, which the child has not confirmed
		if tree.EndExhausted(child, &harnessv1.SubAgent{Budgets: c.limit}) {
			t.Errorf("%s: it ends by an old report", c.kind)
		}
	}
}

// TestMoreIsAtMostTheDefinition: a definition that allows nothing of a budget gets nothing more of it.
func TestMoreIsAtMostTheDefinition(t *testing.T) {
	s := waiting("look")
	s.Config = &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{Tokens: proto.Uint64(1_000_000), CostUsd: proto.Float64(9)}}
	nothing := &harnessv1.Budgets{Tokens: proto.Uint64(0), CostUsd: proto.Float64(0)}
	for _, budget := range []string{"tokens", "cost"} {
		c := &harnessv1.Child{Want: work, Order: 1, Lease: proto.CloneOf(nothing), Report: &harnessv1.ChildReport{
			Status: parked, Order: 1, Reason: &harnessv1.StopReason{Kind: "budget_exceeded:" + budget},
		}}
		if lease, ok := tree.More(s, &harnessv1.SubAgent{Budgets: nothing}, c); ok {
			t.Errorf("of %s it gets %v", budget, lease)
		}
	}
}
