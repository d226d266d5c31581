package tree_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

const (
	work = harnessv1.ChildWant_CHILD_WANT_WORK
	halt = harnessv1.ChildWant_CHILD_WANT_HALT
	end  = harnessv1.ChildWant_CHILD_WANT_END

	parked    = harnessv1.RunStatus_RUN_STATUS_PARKED
	done      = harnessv1.RunStatus_RUN_STATUS_DONE
	cancelled = harnessv1.RunStatus_RUN_STATUS_CANCELLED
)

var parent = runlog.Run{Namespace: "n", ID: "p"}

var agents = []*harnessv1.SubAgent{
	{Name: "look", Description: "Looks.", Instructions: "Look.", ReadOnly: proto.Bool(true)},
	{Name: "write", Description: "Writes.", Instructions: "Write."},
}

// waiting returns the state of a parent with a call of each of the sub-agents.
func waiting(names ...string) *harnessv1.Snapshot {
	s := &harnessv1.Snapshot{FirstSequence: 7}
	for i, name := range names {
		call := &harnessv1.PendingCall{CallId: string(rune('a' + i)), Tool: name}
		tree.Accept(s, parent, call, agents, time.Unix(0, 0))
		s.PendingToolCalls = append(s.PendingToolCalls, call)
	}
	return s
}

// schedule returns the children that Schedule starts, and those for which nothing is left.
func schedule(s *harnessv1.Snapshot) (started, broke []*harnessv1.Child) {
	scheduled := tree.Schedule(s, parent, agents, false, time.Time{})
	for _, e := range scheduled.Events {
		if e.GetAgentStarted() != nil {
			started = append(started, tree.FindRun(s, e.GetAgentStarted().GetRunId()))
		}
	}
	return started, scheduled.Broke
}

// report has the child of a call report.
func report(t *testing.T, s *harnessv1.Snapshot, call string, version uint64, order uint32, status harnessv1.RunStatus, kind string) {
	t.Helper()
	c := tree.Find(s, call)
	r := &harnessv1.ChildReport{
		RunId: c.GetRunId(), CallId: call, Version: version, Order: order, Status: status,
		Reason: &harnessv1.StopReason{Kind: kind}, Usage: &harnessv1.Usage{InputTokens: version * 10},
	}
	if tree.Take(s, r) != c {
		t.Fatalf("the report of %s was not taken", call)
	}
}

func TestIDIsDerivedFromTheCall(t *testing.T) {
	id := tree.ID(parent, 7, "a")
	if len(id) != 26 || !strings.HasPrefix(id, "a-") || !runlog.Name.MatchString(id) {
		t.Errorf("got %q", id)
	}
	for _, other := range []string{tree.ID(runlog.Run{Namespace: "m", ID: "p"}, 7, "a"), tree.ID(parent, 8, "a"), tree.ID(parent, 7, "b")} {
		if other == id {
			t.Error("another call has the same child")
		}
	}
	if again := tree.ID(parent, 7, "a"); again != id {
		t.Errorf("again it is %q", again)
	}
}

// TestScheduleBoundsWork: at most 8 work, and of those that write one.
func TestScheduleBoundsWork(t *testing.T) {
	names := []string{"write", "write"}
	for range 12 {
		names = append(names, "look")
	}
	s := waiting(names...)
	started, broke := schedule(s)
	if len(started) != tree.MaxAtWork || len(broke) != 0 || tree.Find(s, "a").GetOrder() != 1 || tree.Find(s, "b").GetOrder() != 0 {
		t.Fatalf("started %v", started)
	}
	if again, _ := schedule(s); len(again) != 0 {
		t.Errorf("started %d more", len(again))
	}
	report(t, s, "a", 3, 1, done, "agent_done")
	if next, _ := schedule(s); len(next) != 1 || next[0].GetCallId() != "b" {
		t.Errorf("then %v", next)
	}
}

// TestOrdersAreDueUntilTheyAreConfirmed by a report that names them.
func TestOrdersAreDueUntilTheyAreConfirmed(t *testing.T) {
	s := waiting("look", "look", "write")
	schedule(s)
	if due := tree.Due(s); len(due) != 3 || tree.OrderOf(due[0]) != tree.Start {
		t.Fatalf("due are %v", due)
	}
	if tree.Stop(s, halt) {
		t.Error("it has stopped before its children have confirmed it")
	}
	if tree.Stop(s, halt); tree.Find(s, "a").GetOrder() != 2 {
		t.Error("the same order was given twice")
	}
	report(t, s, "a", 3, 1, parked, "approval") // before it took the order
	if tree.Stop(s, halt) || len(tree.Due(s)) != 3 {
		t.Error("a report from before the order confirms it")
	}
	report(t, s, "a", 4, 2, parked, "interrupted")
	report(t, s, "b", 5, 1, done, "agent_done") // it ended by itself
	report(t, s, "c", 5, 2, parked, runstate.KindAgent)
	if tree.Stop(s, halt) {
		t.Error("a child that waits for its own children has stopped")
	}
	report(t, s, "c", 6, 2, parked, "interrupted")
	if !tree.Stop(s, halt) || len(tree.Due(s)) != 0 {
		t.Errorf("it has not stopped: %v", s.GetChildren())
	}
	tree.Continue(s, false)
	if c := tree.Find(s, "a"); c.GetWant() != work || c.GetOrder() != 3 || tree.OrderItem(parent, c, nil).GetResume() == nil || tree.OrderItem(parent, c, nil).GetOrder() != 3 {
		t.Errorf("it does not continue: %v", c)
	}
	if tree.Find(s, "b").GetOrder() != 2 {
		t.Error("a child that has ended was ordered to work")
	}
	if tree.Stop(s, end) || tree.OrderItem(parent, tree.Find(s, "a"), nil).GetCancel() == nil {
		t.Error("it was not ordered to end")
	}
	report(t, s, "a", 9, 4, cancelled, "cancelled")
	report(t, s, "c", 9, 4, cancelled, "cancelled")
	if !tree.Stop(s, end) {
		t.Error("it has not ended")
	}
}

// TestReportsAreCumulative: the greatest version counts, and usage counts once.
func TestReportsAreCumulative(t *testing.T) {
	s := waiting("look")
	schedule(s)
	report(t, s, "a", 3, 1, parked, "approval")
	report(t, s, "a", 8, 1, done, "agent_done")
	old := &harnessv1.ChildReport{RunId: tree.Find(s, "a").GetRunId(), CallId: "a", Version: 5, Status: parked, Usage: &harnessv1.Usage{InputTokens: 999}}
	foreign := &harnessv1.ChildReport{RunId: "a-other", CallId: "a", Version: 99, Usage: &harnessv1.Usage{InputTokens: 999}}
	if tree.Take(s, old) != nil || tree.Take(s, foreign) != nil {
		t.Error("an older report, or one of another run, was taken")
	}
	if used := s.GetSpent().GetUsage().GetInputTokens(); used != 80 {
		t.Errorf("%d tokens are counted, want 80", used)
	}
}

// TestTheRunThatWaitsIsNamedAtEachLevel: a child whose own child waits for an answer does not work.
func TestTheRunThatWaitsIsNamedAtEachLevel(t *testing.T) {
	s := waiting("look")
	schedule(s)
	c := tree.Find(s, "a")
	step := func(below string) *harnessv1.Step {
		return &harnessv1.Step{To: runlog.Park, Snapshot: &harnessv1.Snapshot{
			Parent: &harnessv1.Parent{CallId: "a", Order: 1}, Status: parked,
			StopReason: &harnessv1.StopReason{Kind: runstate.KindAgent, Message: "Sub-agent b waits: why", Details: &harnessv1.StopDetails{Turn: 4, RunId: below}},
		}}
	}
	take := func(version uint64, below string) *harnessv1.StopReason {
		r, _, _ := tree.ReportOf(runlog.Run{Namespace: "n", ID: c.GetRunId()}, version, step(below))
		tree.Take(s, r)
		return tree.WaitReason(s, 1)
	}
	if r := take(3, ""); r.GetDetails().GetRunId() != "" || r.GetMessage() != "Sub-agent look works." {
		t.Errorf("while something below works: %v", r)
	}
	if r := take(5, "a-leaf"); r.GetDetails().GetRunId() != "a-leaf" || r.GetMessage() != "Sub-agent b waits: why" {
		t.Errorf("when a run below waits: %v", r)
	}
}

// TestClientTools are passed on only where they are listed.
func TestClientTools(t *testing.T) {
	const stored = `{"tools":[{"name":"a","origin":"TOOL_ORIGIN_CLIENT"},{"name":"b","origin":"TOOL_ORIGIN_CLIENT"}]}`
	for want, tools := range map[string][]string{
		"": {"read_file"}, `{"tools":[{"name":"b","origin":"TOOL_ORIGIN_CLIENT"}]}`: {"read_file", "b"}, stored: {"a", "b"},
	} {
		if got, err := tree.ClientTools(stored, &harnessv1.SubAgent{Tools: tools}); got != want || err != nil {
			t.Errorf("%v: %s, %v", tools, got, err)
		}
	}
	if got, err := tree.ClientTools(stored, &harnessv1.SubAgent{}); got != "" || err != nil {
		t.Errorf("a sub-agent that lists no tools has %s, %v", got, err)
	}
}

// TestClash finds the first name, at all levels.
func TestClash(t *testing.T) {
	nested := []*harnessv1.SubAgent{{Name: "look"}, {Name: "write", Agents: []*harnessv1.SubAgent{{Name: "search"}}}}
	for names, want := range map[string]string{"read_file": "", "look": "agents[0].name", "search": "agents[1].agents[0].name"} {
		err := tree.CheckNames("agents", nested, []string{"run_command", names})
		if got := fault.FieldOf(err); want == "" && err != nil || want != "" && (got == nil || got.Field != want) {
			t.Errorf("%s: %v", names, err)
		}
	}
}

// TestReportOfAStoppingRun: it reports once everything below it has stopped.
func TestReportOfAStoppingRun(t *testing.T) {
	s := &harnessv1.Snapshot{Parent: &harnessv1.Parent{CallId: "a", Order: 2}, Status: parked}
	step := &harnessv1.Step{To: runlog.Park, Snapshot: s}
	if r, _, ok := tree.ReportOf(parent, 4, step); !ok || r.GetOrder() != 2 || r.GetVersion() != 4 {
		t.Errorf("a parked run reports %v, %v", r, ok)
	}
	s.Stopping = &harnessv1.Stopping{Interrupt: &harnessv1.Interrupt{}}
	if r, _, ok := tree.ReportOf(parent, 4, step); ok {
		t.Errorf("a run that still stops reports %v", r)
	}
}

// TestKnownReportsAndOrders are not sent again.
func TestKnownReportsAndOrders(t *testing.T) {
	s := waiting("look")
	schedule(s)
	report(t, s, "a", 3, 1, parked, "approval")
	c := tree.Find(s, "a")
	for version, known := range map[uint64]bool{2: true, 3: true, 4: false} {
		if tree.Knows(s, &harnessv1.ChildReport{RunId: c.GetRunId(), Version: version}) != known {
			t.Errorf("report %d: known is not %v", version, known)
		}
	}
	for order, taken := range map[uint32]bool{0: false, 1: true, 2: true} {
		if tree.Took(&harnessv1.Snapshot{Parent: &harnessv1.Parent{Order: order}}, c) != taken {
			t.Errorf("order %d: taken is not %v", order, taken)
		}
	}
}

// TestLeasesStayWithinTheBudget: leases and usage never exceed the budget.
func TestLeasesStayWithinTheBudget(t *testing.T) {
	s := waiting("look", "look", "look", "look", "look")
	s.Config = &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{Tokens: proto.Uint64(100_000), CostUsd: proto.Float64(0.05)}}
	started, broke := schedule(s)
	var tokens uint64
	var cost float64
	for _, c := range started {
		tokens += c.GetLease().GetTokens()
		cost += c.GetLease().GetCostUsd()
	}
	if len(started) != 3 || len(broke) != 2 || tokens > 100_000 || cost > 0.05+1e-9 || started[0].GetLease().GetTokens() != 25_000 || started[0].GetLease().GetCostUsd() != 0.02 {
		t.Errorf("%d started with %d tokens and $%v, %d not", len(started), tokens, cost, len(broke))
	}
	s = waiting("look")
	s.Config = &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{Tokens: proto.Uint64(100_000)}}
	schedule(s)
	c := tree.Find(s, "a")
	tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), CallId: "a", Version: 3, Order: 1, Status: parked,
		Reason: &harnessv1.StopReason{Kind: "budget_exceeded:tokens"}, Usage: &harnessv1.Usage{InputTokens: 25_000}})
	if more, ok := tree.More(s, agents[0], c); !ok || more.GetTokens() != 45_000 {
		t.Errorf("it gets %v, %v", more, ok)
	}
	if none, ok := tree.More(s, &harnessv1.SubAgent{Budgets: &harnessv1.Budgets{Tokens: proto.Uint64(25_000)}}, c); ok {
		t.Errorf("beyond its definition it gets %v", none)
	}
}

// TestSpecHasNoMoreRights than the parent.
func TestSpecHasNoMoreRights(t *testing.T) {
	deny := []*harnessv1.ToolRule{{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}}
	spec := &harnessv1.RunSpec{
		Agent:     &harnessv1.AgentSpec{Tools: deny, ReadOnly: true, Hooks: []*harnessv1.Hook{{Command: "true"}}, Web: &harnessv1.Web{Fetch: true}},
		Workspace: "/w", Config: &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{}, Tools: &harnessv1.ToolConfig{}},
	}
	s := &harnessv1.Snapshot{Mode: "plan", Model: "openai:x", Workspace: "/w", Autonomous: true}
	def := &harnessv1.SubAgent{Name: "write", Mode: "execute", Tools: []string{"read_file"}, MaxTurns: proto.Uint32(3)}
	got := tree.Spec(spec, s, def, &harnessv1.Child{Lease: &harnessv1.Budgets{Tokens: proto.Uint64(5)}}, content.Inline("go"))
	a := got.GetAgent()
	if len(a.GetTools()) != 1 || !a.GetReadOnly() || a.GetMode() != "execute" || len(a.GetHooks()) != 1 || !a.GetAutonomous() || a.GetModel() != "openai:x" ||
		len(a.GetOnlyTools()) != 1 || len(a.GetAgents()) != 0 || got.GetConfig().GetSandbox() == nil || got.GetConfig().GetStop().GetMaxTurns() != 3 ||
		got.GetConfig().GetBudgets().GetTokens() != 5 || got.GetWorkspace() != "/w" || !a.GetWeb().GetFetch() {
		t.Errorf("got %v", got)
	}
}

// TestTextIsAnAnswer: whatever the parent requires, a child needs no work_complete and gets no reminders, unless its definition
// has a contract or sets them.
func TestTextIsAnAnswer(t *testing.T) {
	strict := &harnessv1.LoopConfig{
		Stop:         &harnessv1.StopConfig{RequireWorkComplete: proto.Bool(true), Policy: harnessv1.StopPolicy_STOP_POLICY_STRICT},
		Continuation: &harnessv1.ContinuationConfig{Enabled: proto.Bool(true), MaxPrompts: proto.Uint32(4)},
	}
	contract := &harnessv1.TaskContract{Goal: "g"}
	for name, c := range map[string]struct {
		def     *harnessv1.SubAgent
		config  *harnessv1.LoopConfig
		require bool
		prompts uint32
	}{
		"by default":                  {&harnessv1.SubAgent{}, nil, false, 0},
		"of a strict parent":          {&harnessv1.SubAgent{}, strict, false, 0},
		"with a contract":             {&harnessv1.SubAgent{Contract: contract}, strict, true, 4},
		"with a contract, by default": {&harnessv1.SubAgent{Contract: contract}, nil, true, 2},
		"with a contract that sets":   {&harnessv1.SubAgent{Contract: contract, RequireWorkComplete: proto.Bool(false), MaxContinuationPrompts: proto.Uint32(0)}, strict, false, 0},
		"that requires it":            {&harnessv1.SubAgent{RequireWorkComplete: proto.Bool(true)}, nil, true, 0},
		"that has reminders":          {&harnessv1.SubAgent{MaxContinuationPrompts: proto.Uint32(1)}, nil, false, 1},
	} {
		got := runstate.Resolve(tree.Spec(&harnessv1.RunSpec{Config: c.config}, &harnessv1.Snapshot{}, c.def, &harnessv1.Child{}, content.Inline("go")).GetConfig(), 0)
		if got.GetStop().GetRequireWorkComplete() != c.require || got.GetContinuation().GetEnabled() != (c.prompts > 0) || c.prompts > 0 && got.GetContinuation().GetMaxPrompts() != c.prompts {
			t.Errorf("a definition %s: %v, %v", name, got.GetStop(), got.GetContinuation())
		}
	}
	if !strict.GetStop().GetRequireWorkComplete() {
		t.Error("the settings of the parent were changed")
	}
}

// TestChildThatReadsOnlyStaysSo: a child whose tools were found to read only has no others, whatever they become.
func TestChildThatReadsOnlyStaysSo(t *testing.T) {
	def := &harnessv1.SubAgent{Name: "reader", Tools: []string{"mcp__s__*"}}
	for _, writes := range []bool{false, true} {
		got := tree.Spec(&harnessv1.RunSpec{}, &harnessv1.Snapshot{}, def, &harnessv1.Child{Writes: writes}, content.Inline("go"))
		if got.GetAgent().GetReadOnly() == writes {
			t.Errorf("writes %v: read-only is %v", writes, got.GetAgent().GetReadOnly())
		}
	}
}

// TestApprovalsOfTheParentHold: a child starts with the tools and the rules that were approved for the rest of its parent's run.
func TestApprovalsOfTheParentHold(t *testing.T) {
	s := waiting("look")
	schedule(s)
	s.GrantedTools = []string{"fetch"}
	s.Grants = []*harnessv1.ToolRule{{Name: "run_command", Prefix: "go test"}}
	started := &harnessv1.RepairTrigger{Spec: &harnessv1.RunSpec{}, Tier: "pro"}
	step := tree.FirstStep(parent, s, started, agents[0], tree.Find(s, "a"), content.Inline("go"), nil, time.Unix(0, 0))
	got := step.GetSnapshot()
	if len(got.GetGrants()) != 1 || !proto.Equal(got.GetGrants()[0], s.GetGrants()[0]) || len(got.GetGrantedTools()) != 1 {
		t.Errorf("approved are %v and %v", got.GetGrantedTools(), got.GetGrants())
	}
	if p := step.GetRepairTrigger().GetParent(); p.GetRunId() != parent.ID || step.GetRepairTrigger().GetTier() != "pro" {
		t.Errorf("it is started with %v", step.GetRepairTrigger())
	}
}

func TestStateOfTheParent(t *testing.T) {
	s := waiting("look")
	schedule(s)
	p := tree.ParentOf(parent, s, tree.Find(s, "a"))
	at := func(change func(*harnessv1.Snapshot)) *harnessv1.ParentState {
		s := proto.CloneOf(s)
		change(s)
		return tree.StateOf(p, &harnessv1.Step{Snapshot: s})
	}
	if st := at(func(*harnessv1.Snapshot) {}); !st.GetWaits() || st.GetWant() != work || st.GetOrder() != 1 || st.GetGone() {
		t.Errorf("it waits: %v", st)
	}
	for name, change := range map[string]func(*harnessv1.Snapshot){
		"another incarnation": func(s *harnessv1.Snapshot) { s.FirstSequence = 8 },
		"ended":               func(s *harnessv1.Snapshot) { s.Phase = harnessv1.Phase_PHASE_DONE },
		"the call is over":    func(s *harnessv1.Snapshot) { s.PendingToolCalls = nil },
	} {
		if st := at(change); st.GetWaits() {
			t.Errorf("%s: %v", name, st)
		}
	}
	if st := tree.StateOf(p, nil); st.GetWaits() || !st.GetGone() {
		t.Errorf("without a parent %v", st)
	}
}

func TestResultText(t *testing.T) {
	c := &harnessv1.Child{RunId: "a-1", Agent: "look", Report: &harnessv1.ChildReport{
		Status: done, Accepted: true, Turns: 2, Usage: &harnessv1.Usage{InputTokens: 5, CostMicroUsd: 1200},
	}}
	if text, failed := tree.ResultText(c, "It is so."); failed || text != "[look: DONE; 2 turns, 5 tokens, $0.0012; run a-1]\n\nIt is so." {
		t.Errorf("%q, %v", text, failed)
	}
	if text, failed := tree.ResultText(c, " "); failed || !strings.Contains(text, ": DONE, without an answer;") || !strings.Contains(text, "It gave no answer.") {
		t.Errorf("without an answer %q, %v", text, failed)
	}
	for name, change := range map[string]func(*harnessv1.Child){
		"not accepted": func(c *harnessv1.Child) { c.Report.Accepted = false },
		"cancelled":    func(c *harnessv1.Child) { c.Report.Status = cancelled },
		"overdue":      func(c *harnessv1.Child) { c.Overdue = true },
	} {
		c := proto.CloneOf(c)
		change(c)
		if text, failed := tree.ResultText(c, "half"); !failed || !strings.Contains(text, "half") {
			t.Errorf("%s: %q, %v", name, text, failed)
		}
	}
}

// TestCheckNamesTheField of each bad definition.
func TestCheckNamesTheField(t *testing.T) {
	ok := func() *harnessv1.SubAgent {
		return &harnessv1.SubAgent{Name: "x", Description: "d", Instructions: "i"}
	}
	deep := ok()
	for i := range tree.MaxDepth {
		next := ok()
		next.Name = "x" + strconv.Itoa(i)
		next.Agents = []*harnessv1.SubAgent{deep}
		deep = next
	}
	for field, list := range map[string][]*harnessv1.SubAgent{
		"":                         {ok(), {Name: "explore"}},
		"agents":                   make([]*harnessv1.SubAgent, tree.MaxAgents+1),
		"agents[0].name":           {{Name: "no good"}},
		"agents[1].name":           {ok(), ok()},
		"agents[0].instructions":   {{Name: "x", Description: "d"}},
		"agents[0].description":    {{Name: "x", Instructions: "i"}},
		"agents[0].mode":           {{Name: "explore", Mode: "nowhere"}},
		"agents[0].workspace":      {{Name: "explore", Workspace: "moon"}},
		"agents[0].max_turns":      {{Name: "explore", MaxTurns: proto.Uint32(0)}},
		"agents[0].deadline":       {{Name: "explore", Deadline: durationpb.New(-time.Second)}},
		"agents[0].tools[0]":       {{Name: "explore", Tools: []string{"a b"}}},
		"agents[0].agents[0].name": {{Name: "explore", Agents: []*harnessv1.SubAgent{{Name: "?"}}}},
		"agents[0]" + strings.Repeat(".agents[0]", tree.MaxDepth-1) + ".agents": {deep},
		"agents[0].agents[0].agents[0].name":                                    {{Name: "task", Agents: []*harnessv1.SubAgent{{Name: "explore", Agents: []*harnessv1.SubAgent{{Name: "task"}}}}}},
	} {
		err := tree.Check("agents", list, []string{"plan", "execute"})
		if got := fault.FieldOf(err); field == "" && err != nil || field != "" && (got == nil || got.Field != field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := tree.Check("agents", []*harnessv1.SubAgent{{Name: "work_complete", Description: "d", Instructions: "i"}}, nil); err == nil {
		t.Error("a tool of the harness was taken")
	}
}

// TestBuiltins are complete, and may be changed in part.
func TestBuiltins(t *testing.T) {
	var list []*harnessv1.SubAgent
	for _, name := range tree.Builtins() {
		list = append(list, &harnessv1.SubAgent{Name: name})
	}
	if err := tree.Check("agents", list, nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range tree.Resolve(list) {
		if a.GetInstructions() == "" || a.GetDescription() == "" {
			t.Errorf("%s is not complete", a.GetName())
		}
	}
	changed := tree.Resolve([]*harnessv1.SubAgent{{Name: "explore", MaxAnswerWords: proto.Uint32(0), Description: "Mine."}})[0]
	if changed.GetMaxAnswerWords() != 0 || changed.GetDescription() != "Mine." || !changed.GetReadOnly() {
		t.Errorf("got %v", changed)
	}
	if len(tree.Tools(tree.Resolve(list))) != 8 {
		t.Error("a tool is missing")
	}
	if prompt, err := tree.Prompt(`{"prompt":"go"}`); err != nil || prompt != "go" {
		t.Errorf("the prompt is %q, %v", prompt, err)
	}
}
