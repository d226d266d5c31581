package tree_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

// accept has a call accepted, and returns its result.
func accept(t *testing.T, s *harnessv1.Snapshot, id, tool, arguments string) *tree.Reply {
	t.Helper()
	d, err := tree.Request(s, agents, tool, arguments)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	call := &harnessv1.PendingCall{CallId: id, Tool: tool, Delegation: d, Arguments: content.Inline(arguments)}
	reply := tree.Accept(s, parent, call, agents, time.Unix(0, 0))
	if reply == nil {
		s.PendingToolCalls = append(s.PendingToolCalls, call)
	}
	return reply
}

// TestRequestRefuses what cannot be carried out, and names the argument.
func TestRequestRefuses(t *testing.T) {
	s := waiting("look")
	schedule(s)
	run := tree.Find(s, "a").GetRunId()
	for _, c := range []struct{ tool, arguments, want string }{
		{"write", `{"prompt":"p","background":true}`, "background: write may change"},
		{"look", `{"prompt":"p","continue":"a-foreign"}`, "not a sub-agent of this run"},
		{"look", `{"prompt":"p","continue":"` + run + `"}`, "has not ended"},
		{"write", `{"prompt":"p","continue":"` + run + `"}`, "is a run of look"},
		{tree.AgentWait, `{}`, "no sub-agent works in the background"},
		{tree.AgentWait, `{"runs":["a-foreign"]}`, `"a-foreign" is not a sub-agent`},
		{tree.Delegate, `{"tasks":[{"id":"x","agent":"nowhere","prompt":"p"}]}`, `tasks[0].agent: there is no sub-agent "nowhere"`},
		{tree.Delegate, `{"tasks":[{"id":"x","agent":"look","prompt":"p"},{"id":"x","agent":"look","prompt":"p"}]}`, `tasks[1].id: "x" is used twice`},
		{tree.Delegate, `{"tasks":[{"id":"x","agent":"look","prompt":"p","after":["y"]}]}`, `tasks[0].after: there is no task "y"`},
		{tree.Delegate, `{"tasks":[{"id":"x","agent":"look","prompt":"p","after":["y"]},{"id":"y","agent":"look","prompt":"p","after":["x"]}]}`, "waits for itself"},
	} {
		if d, err := tree.Request(s, agents, c.tool, c.arguments); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, %v", c.tool, c.arguments, d, err)
		}
	}
	if d, err := tree.Request(s, agents, "write", `{"prompt":"p"}`); d != nil || err != nil {
		t.Errorf("a prompt alone: %v, %v", d, err)
	}
}

// TestBackground: the call has a result immediately, and the end is kept until the model knows it.
func TestBackground(t *testing.T) {
	s := &harnessv1.Snapshot{FirstSequence: 7}
	if reply := accept(t, s, "a", "look", `{"prompt":"p","background":true}`); reply == nil || reply.Failed || !strings.Contains(reply.Text, tree.ID(parent, 7, "a")) {
		t.Fatalf("its result is %v", reply)
	}
	if started, _ := schedule(s); len(started) != 1 || started[0].GetArguments() == nil {
		t.Fatalf("started %v", started)
	}
	c := tree.Find(s, "a")
	if st := tree.StateOf(tree.ParentOf(parent, s, c), &harnessv1.Step{Snapshot: s}); !st.GetWaits() || !tree.Live(s) {
		t.Errorf("the parent waits not: %v", st)
	}
	if tree.Sent(s); c.GetArguments() != nil || len(tree.Due(s)) != 0 {
		t.Errorf("once its start is sent it is %v", c)
	}
	if reply := accept(t, s, "w", tree.AgentWait, `{}`); reply != nil {
		t.Errorf("agent_wait does not wait: %v", reply)
	}
	if len(tree.Waited(s)) != 0 || !strings.Contains(tree.WaitReason(s, 1).GetMessage(), "look works") {
		t.Errorf("it waits: %v", tree.WaitReason(s, 1))
	}
	tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), CallId: "a", Version: 4, Order: 1, Status: done, Accepted: true, Answer: content.Inline("it is so")})
	if over := tree.Waited(s); len(over) != 1 || over[0].GetCallId() != "w" || len(tree.Untold(s)) != 1 || c.GetReport().GetAnswer().GetInline() != "it is so" {
		t.Errorf("after its end %v waits, untold %v", over, tree.Untold(s))
	}
	if tree.RecordTold(c); len(tree.Untold(s)) != 0 || c.GetReport().GetAnswer() != nil || tree.Live(s) {
		t.Errorf("told, it is %v", c)
	}
}

// TestContinue: a message is given with an order, until that is sent, and an end from before is
// not the next one.
func TestContinue(t *testing.T) {
	s := waiting("look")
	schedule(s)
	report(t, s, "a", 4, 1, done, "agent_done")
	s.PendingToolCalls = nil
	c := tree.Find(s, "a")
	again := `{"prompt":"p","continue":"` + c.GetRunId() + `"}`
	accept(t, s, "b", "look", again)
	if second := tree.Accept(s, parent, &harnessv1.PendingCall{CallId: "c", Tool: "look", Delegation: &harnessv1.Delegation{ContinueRun: c.GetRunId()}}, agents, time.Unix(0, 0)); second == nil || !second.Failed {
		t.Error("it is continued twice")
	}
	if started, _ := schedule(s); len(started) != 1 || tree.OrderOf(c) != tree.Message || c.GetOrder() != 2 || tree.CallOf(c) != "b" || tree.Ended(c) {
		t.Fatalf("continued it is %v", c)
	}
	item := tree.OrderItem(parent, c, content.Inline("p"))
	if item.GetUserMessage().GetContent().GetInline() != "p" || item.GetOrder() != 2 {
		t.Errorf("it gets %v", item)
	}
	// Halted before the message was sent: its end of before confirms the halt, and the message follows.
	halted := proto.CloneOf(s)
	c = tree.Find(halted, "a")
	if tree.Stop(halted, halt) {
		t.Error("it has stopped unconfirmed")
	}
	report(t, halted, "a", 5, 3, done, "agent_done")
	if !tree.Stop(halted, halt) || tree.Ended(c) {
		t.Errorf("halted it is %v", c)
	}
	if tree.Continue(halted, false); tree.OrderOf(c) != tree.Message || c.GetOrder() != 4 {
		t.Errorf("then %v", c)
	}
	// Sent: a later order is no message.
	tree.Sent(s)
	c = tree.Find(s, "a")
	tree.Stop(s, halt)
	report(t, s, "a", 6, 3, parked, "interrupted")
	if tree.Continue(s, false); tree.OrderOf(c) != tree.Input || tree.OrderItem(parent, c, nil).GetResume() == nil {
		t.Errorf("after the message was sent %v", c)
	}
	report(t, s, "a", 9, 4, done, "agent_done")
	if !tree.Ended(c) {
		t.Error("its next end is not taken")
	}
}

// TestAbsent: the sender of an order reports for a run that is not there.
func TestAbsent(t *testing.T) {
	s := waiting("look")
	schedule(s)
	c := tree.Find(s, "a")
	tree.Stop(s, halt)
	if r := tree.AbsentItem(parent, c).GetChildReport(); tree.Take(s, r) != c || !tree.Stop(s, halt) || tree.WasThere(c) || len(tree.Due(s)) != 0 {
		t.Errorf("a run that has never been there: %v", c)
	}
	tree.Continue(s, false)
	report(t, s, "a", 4, 3, parked, "approval")
	used := s.GetSpent().GetUsage().GetInputTokens()
	tree.Stop(s, end)
	if r := tree.AbsentItem(parent, c).GetChildReport(); tree.Take(s, r) != c || !tree.Ended(c) || s.GetSpent().GetUsage().GetInputTokens() != used {
		t.Errorf("a run that was deleted: %v", c)
	}
	if tree.Take(s, tree.AbsentItem(parent, c).GetChildReport()) != nil {
		t.Error("the same report was taken twice")
	}
}

// TestGraph: a layer starts when the one before has ended, and tasks after a failed one do not.
func TestGraph(t *testing.T) {
	s := &harnessv1.Snapshot{FirstSequence: 7}
	accept(t, s, "g", tree.Delegate, `{"tasks":[
		{"id":"end","agent":"look","prompt":"p3","after":["one","two"]},
		{"id":"one","agent":"look","prompt":"p1","title":"One"},
		{"id":"two","agent":"look","prompt":"p2"},
		{"id":"after","agent":"look","prompt":"p4","after":["two"]},
		{"id":"last","agent":"look","prompt":"p5","after":["end"]}]}`)
	var layers []string
	var artifacts []uint32
	run := func() {
		for _, e := range tree.Schedule(s, parent, agents, false, time.Time{}).Events {
			switch {
			case e.GetSubtaskStarted() != nil:
				layers = append(layers, "start "+e.GetSubtaskStarted().GetTitle())
			case e.GetSubtaskCompleted() != nil:
				layers = append(layers, "end "+e.GetSubtaskCompleted().GetTitle())
				artifacts = append(artifacts, e.GetSubtaskCompleted().GetArtifactsCreated())
			}
		}
	}
	ends := func(task string, accepted bool, text string) {
		c := tree.Find(s, "g/"+task)
		tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), Version: 9, Order: 1, Status: done, Accepted: accepted, Artifacts: uint32(len(task))})
		tree.EndTask(s, c, content.Inline(text))
		run()
	}
	run()
	if len(s.GetChildren()) != 2 || tree.Find(s, "g/one") == nil || !strings.Contains(tree.WaitReason(s, 1).GetMessage(), "2 sub-agents") {
		t.Fatalf("first %v", s.GetChildren())
	}
	ends("one", true, "first")
	if len(s.GetChildren()) != 2 || len(tree.Over(s)) != 0 {
		t.Error("the second layer began before the first had ended")
	}
	ends("two", false, "no luck")
	if got := strings.Join(layers, "; "); got != "start One, two; end One, two; start end, after; end end, after; start last; end last" {
		t.Errorf("layers %s", got)
	}
	if !slices.Equal(artifacts, []uint32{6, 0, 0}) { // those of one and two
		t.Errorf("artifacts %v", artifacts)
	}
	over := tree.Over(s)
	if len(over) != 1 || len(s.GetGraphs()) != 0 || len(s.GetChildren()) != 2 {
		t.Fatalf("over are %v", over)
	}
	text, failed, err := tree.GraphText(over[0], func(c *harnessv1.Content) (string, error) { return c.GetInline(), nil })
	if err != nil || !failed || !strings.Contains(text, "## One (one): done\n\nfirst") || !strings.Contains(text, "## two (two): failed\n\nno luck") ||
		!strings.Contains(text, "task two before it did not succeed") {
		t.Errorf("the result is %q, %v", text, err)
	}
}

// TestOnlyReadersExplore: the tool of a sub-agent that may write is one that writes, and so is delegate if one of the sub-agents
// may.
func TestOnlyReadersExplore(t *testing.T) {
	for _, c := range []struct {
		agents []*harnessv1.SubAgent
		writes string
	}{
		{agents, "write delegate"},
		{agents[:1], ""},
		{agents[1:], "write delegate"},
		{tree.Resolve([]*harnessv1.SubAgent{{Name: "explore"}, {Name: "task"}}), "task delegate"},
	} {
		var writes []string
		for _, spec := range tree.Tools(c.agents) {
			a := spec.GetAnnotations()
			if a.GetReads() == a.GetWrites() || a.GetExplores() != a.GetReads() {
				t.Errorf("%s has %v", spec.GetName(), a)
			}
			if a.GetWrites() {
				writes = append(writes, spec.GetName())
			}
		}
		if got := strings.Join(writes, " "); got != c.writes {
			t.Errorf("%q write, expected %q", got, c.writes)
		}
	}
}

// TestDeadlinesOfCalls: a call that waits has its own deadline, one in the background that of its child.
func TestDeadlinesOfCalls(t *testing.T) {
	limited := []*harnessv1.SubAgent{{Name: "look", ReadOnly: proto.Bool(true), Deadline: durationpb.New(time.Minute)}}
	s := &harnessv1.Snapshot{FirstSequence: 7}
	waits := &harnessv1.PendingCall{CallId: "a", Tool: "look"}
	tree.Accept(s, parent, waits, limited, time.Unix(0, 0))
	tree.Accept(s, parent, &harnessv1.PendingCall{CallId: "b", Tool: "look", Delegation: &harnessv1.Delegation{Background: true}}, limited, time.Unix(0, 0))
	a, b := tree.Find(s, "a"), tree.Find(s, "b")
	if waits.GetDeadline().GetSeconds() != 60 || a.GetDeadline() != nil || b.GetDeadline().GetSeconds() != 60 {
		t.Errorf("deadlines are %v, %v and %v", waits.GetDeadline(), a.GetDeadline(), b.GetDeadline())
	}
	tree.Schedule(s, parent, limited, false, time.Time{})
	if tree.EndOverdue(s, time.Unix(59, 0)); b.GetWant() != work {
		t.Errorf("before it: %v", b)
	}
	report(t, s, "b", 3, 1, done, "agent_done")
	if b.GetDeadline() != nil {
		t.Error("a child that has ended has a deadline")
	}
}

// TestDeadlinesOfTasks: a task of a graph has the deadline of its sub-agent from the start of its layer on. When that has passed, its child
// ends, started or not, and the result of the graph has why.
func TestDeadlinesOfTasks(t *testing.T) {
	limited := []*harnessv1.SubAgent{{Name: "look", Deadline: durationpb.New(time.Minute)}, {Name: "free"}}
	s := &harnessv1.Snapshot{FirstSequence: 7}
	tree.AddGraph(s, []*harnessv1.GraphTask{
		{Id: "one", Agent: "look", Prompt: "p"}, {Id: "two", Agent: "look", Prompt: "p"}, {Id: "free", Agent: "free", Prompt: "p"},
		{Id: "next", Agent: "look", Prompt: "p", After: []string{"free"}},
	})
	tree.Schedule(s, parent, limited, false, time.Unix(0, 0))
	one, two, free := tree.Find(s, "graph/one"), tree.Find(s, "graph/two"), tree.Find(s, "graph/free")
	if one.GetDeadline().GetSeconds() != 60 || two.GetDeadline().GetSeconds() != 60 || free.GetDeadline() != nil || two.GetOrder() != 0 {
		t.Fatalf("%v, %v, %v", one, two, free)
	}
	if tree.EndOverdue(s, time.Unix(59, 0)); one.GetWant() != work || one.GetOverdue() {
		t.Errorf("before it: %v", one)
	}
	tree.EndOverdue(s, time.Unix(60, 0))
	tree.EndOverdue(s, time.Unix(61, 0))
	for _, c := range []*harnessv1.Child{one, two} {
		if c.GetWant() != end || !c.GetOverdue() || c.GetDeadline() != nil || free.GetOverdue() {
			t.Errorf("after it: %v, %v", c, free)
		}
		tree.Take(s, &harnessv1.ChildReport{RunId: c.GetRunId(), Version: 9, Order: c.GetOrder(), Status: cancelled})
		tree.EndTask(s, c, content.Inline("half of it"))
	}
	tree.Schedule(s, parent, limited, false, time.Unix(70, 0))
	tree.Take(s, &harnessv1.ChildReport{RunId: free.GetRunId(), Version: 9, Order: free.GetOrder(), Status: done, Accepted: true})
	tree.EndTask(s, free, content.Inline("all of it"))
	tree.Schedule(s, parent, limited, false, time.Unix(100, 0))
	next := tree.Find(s, "graph/next")
	if next.GetDeadline().GetSeconds() != 160 {
		t.Errorf("of the next layer: %v", next)
	}
	tree.Take(s, &harnessv1.ChildReport{RunId: next.GetRunId(), Version: 9, Order: 1, Status: done, Accepted: true})
	tree.EndTask(s, next, content.Inline("the rest"))
	tree.Schedule(s, parent, limited, false, time.Unix(100, 0))
	text, failed, _ := tree.GraphText(tree.Over(s)[0], func(c *harnessv1.Content) (string, error) { return c.GetInline(), nil })
	const why = "failed\n\nThe deadline of the call passed before it had ended.\n\nhalf of it"
	if !failed || strings.Count(text, why) != 2 || !strings.Contains(text, "(next): done\n\nthe rest") {
		t.Errorf("the result is %q", text)
	}
}
