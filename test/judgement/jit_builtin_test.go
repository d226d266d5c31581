package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// An agent that has read nothing by the third turn is advised to, in that turn, once. Listing
// around is not reading.
func TestJitNothingReadByTheThirdTurn(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(6)...))
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s), "3 no_reads_after_3_turns")
	jitTold(t, s, 2, "turn 3", "read")
	if got := jitNews(s, 3, "user"); len(got) > 0 {
		t.Errorf("the turn after it gets %q", got)
	}
	jitStable(t, s)
}

// An agent that has read something gets no such advice.
func TestJitSomethingReadByTheThirdTurn(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(append([]modeltest.Reply{live.Calls(jitLook()), live.Calls(jitRead("f00.txt"))}, jitLooks(3)...)...))
	jitFiles(r, 1)
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s))
}

// Six reads without a single look around bring the advice to search and to read side
// by side, in the fourth turn at the earliest, with the number of reads.
func TestJitReadsOneByOne(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reads []int // in each turn
		looks bool
		want  []string
	}{
		"six in three turns":    {reads: []int{2, 2, 2, 1, 1}, want: []string{"4"}},
		"six at once":           {reads: []int{6, 0, 0, 1, 1}, want: []string{"4"}},
		"the sixth comes late":  {reads: []int{1, 1, 1, 1, 1, 1, 1}, want: []string{"7"}},
		"five are no reason":    {reads: []int{1, 1, 1, 1, 1}},
		"one look is an excuse": {reads: []int{2, 2, 2, 1, 1}, looks: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, nil)
			files := jitFiles(r, 20)
			var all []modeltest.Reply
			for i, n := range c.reads {
				var one []modeltest.Call
				for range n {
					one, files = append(one, jitRead(files[0])), files[1:]
				}
				if n == 0 {
					one = append(one, jitShell(fmt.Sprint("echo ", i)))
				}
				if i == 1 && c.looks {
					one = append(one, jitLook())
				}
				all = append(all, live.Calls(one...))
			}
			r.Model.Answer = jitScript(all...)
			s := jitBegin(r).Wait()
			s.Want("DONE agent_done accepted")
			jitSame(t, "turns", jitOf(s, "serial_reads_suggest_parallel"), c.want...)
			if len(c.want) > 0 {
				jitTold(t, s, int(c.want[0][0]-'1'), "read 6 times", "search")
			}
			jitSame(t, "others", slices.DeleteFunc(jitFired(s), func(f string) bool { return strings.HasSuffix(f, "parallel") }))
		})
	}
}

func jitLook() modeltest.Call { return live.Call("list_directory", live.Args{}) }

// Many reads, nothing written and open work items bring the advice to begin, in the
// eighth turn at the earliest; not where something was written, not where nothing is
// open, and not without work items.
func TestJitManyReadsAndNothingWritten(t *testing.T) {
	t.Parallel()
	add := live.Call("work_item_add", live.Args{"title": "Report", "id": "report"})
	finish := live.Call("work_item_update", live.Args{"id": "report", "status": "DONE"})
	for name, c := range map[string]struct {
		first []modeltest.Call
		items bool
		want  []string
	}{
		"with open items":             {first: []modeltest.Call{add}, items: true, want: []string{"8"}},
		"something was written":       {first: []modeltest.Call{add, jitWrite("out.txt", "x")}, items: true},
		"all items are finished":      {first: []modeltest.Call{add, finish}, items: true},
		"there are no items":          {first: []modeltest.Call{jitLook()}, items: true},
		"the agent has no work items": {first: []modeltest.Call{jitLook()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, nil)
			all := []modeltest.Reply{live.Calls(c.first...)}
			for _, f := range jitFiles(r, 9) {
				all = append(all, live.Calls(jitRead(f)))
			}
			if c.items {
				all = append(all, live.Calls(finish))
			}
			r.Model.Answer = jitScript(all...)
			s := jitBegin(r, func(spec *harnessv1.RunSpec) {
				if c.items {
					jitItems(spec)
				}
			}).Wait()
			s.Want("DONE agent_done accepted")
			jitSame(t, "turns", jitOf(s, "no_deliverable_after_many_reads"), c.want...)
			if len(c.want) > 0 {
				jitTold(t, s, 7, "turn 8", "read 6 times")
			}
		})
	}
}

// At four fifths of the turns, rounded down, the agent gets the number of turns that are
// left, once. A run of one turn gets nothing.
func TestJitTheTurnsComeToTheirEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		most uint32
		want []string
	}{
		"one turn":   {most: 1},
		"two turns":  {most: 2, want: []string{"1"}},
		"four turns": {most: 4, want: []string{"3"}},
		"five turns": {most: 5, want: []string{"4"}},
		"nine turns": {most: 9, want: []string{"7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(jitLooks(9)...), jitMaxTurns(c.most))
			s.Want("DONE max_turns")
			jitSame(t, "turns", jitOf(s, "approaching_turn_limit"), c.want...)
			if len(c.want) > 0 {
				jitTold(t, s, int(c.want[0][0]-'1'), "turn "+c.want[0]+" of at most "+string(rune('0'+c.most)), "work_complete")
			}
		})
	}
}

// Each message has a separate count of turns, which the rule uses.
func TestJitTheTurnsOfAMessageComeToTheirEnd(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(append([]modeltest.Reply{jitLooks(1)[0], jitLooks(2)[1], live.Done()}, jitLooks(5)...)...), jitMaxTurns(5))
	r.Wait().Want("DONE agent_done accepted")
	if err := jitSend(r, modesMessage("Look again.")); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("DONE max_turns")
	if s.Result.GetTurnCount() != 8 {
		t.Errorf("%d turns", s.Result.GetTurnCount())
	}
	jitSame(t, "turns", jitOf(s, "approaching_turn_limit"), "7")
}

// Items that were added, none of which is finished, and nothing read by the third turn
// bring the advice to begin. Rules that fire in the same turn come in their order.
func TestJitOnlyPlans(t *testing.T) {
	t.Parallel()
	add := func(title string) modeltest.Reply {
		return live.Calls(live.Call("work_item_add", live.Args{"title": title}))
	}
	s := live.Play(t, live.Replies(add("One"), add("Two"), add("Three"), add("Four")), jitItems, jitMaxTurns(4))
	s.Want("DONE max_turns")
	jitSame(t, "fired", jitFired(s), "3 no_reads_after_3_turns", "3 approaching_turn_limit", "3 all_planning_no_execution")
	jitTold(t, s, 2, "2 work items", "IN_PROGRESS")
	news := jitSaid(s, 2)
	at := func(word string) int {
		return slices.IndexFunc(news, func(m string) bool { return strings.Contains(m, word) })
	}
	if order := []int{at("not read anything"), at("of at most 4"), at("You have planned")}; !slices.IsSorted(order) || order[0] < 0 {
		t.Errorf("the texts are not in the order of the rules: %q", news)
	}
}

// An agent that has finished an item, or started with items and added none, does not only plan.
func TestJitDoesNotOnlyPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies   []modeltest.Reply
		templates []*harnessv1.WorkItemTemplate
	}{
		"one is finished": {replies: []modeltest.Reply{
			live.Calls(live.Call("work_item_add", live.Args{"title": "One", "id": "one"}), live.Call("work_item_add", live.Args{"title": "Two", "id": "two"})),
			live.Calls(live.Call("work_item_update", live.Args{"id": "one", "status": "DONE"})),
			live.Calls(live.Call("work_item_list", live.Args{})), live.Calls(live.Call("work_item_update", live.Args{"id": "two", "status": "SKIPPED", "notes": "not wanted"})),
		}},
		"none was added": {templates: []*harnessv1.WorkItemTemplate{{Id: "one", Title: "One"}}, replies: append(jitLooks(3),
			live.Calls(live.Call("work_item_update", live.Args{"id": "one", "status": "DONE"})))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, jitScript(c.replies...), jitItems, func(spec *harnessv1.RunSpec) { spec.Agent.WorkItemTemplates = c.templates })
			s.Want("DONE agent_done accepted")
			jitSame(t, "fired", jitFired(s), "3 no_reads_after_3_turns")
		})
	}
}

// The two rules about a shortened conversation stay silent where compaction is switched off:
// also in a run whose window is full, and custom rules count no compaction.
func TestJitNoCompactionNoWordOfIt(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(6)...), jitRules(jitAlways("counts", "compaction_count == 0", "{{ compaction_count }} compactions")),
		func(spec *harnessv1.RunSpec) {
			spec.Config.Context = jitWindow(3800)
			spec.Config.Context.Compaction = proto.Bool(false)
		})
	s.Want("DONE agent_done accepted")
	if len(s.Names("context.pressure")) == 0 {
		t.Error("the window was never full: the test shows nothing")
	}
	jitSame(t, "after a compaction", jitOf(s, "post_compaction_guidance"))
	jitSame(t, "after two", jitOf(s, "repeated_compaction_warning"))
	jitSame(t, "counted", jitOf(s, "counts"), "1", "2", "3", "4", "5", "6", "7")
	jitTold(t, s, 6, "0 compactions")
}

func jitWindow(tokens uint32) *harnessv1.ContextConfig {
	return &harnessv1.ContextConfig{MaxInputTokens: &tokens}
}

// Rules go by what tools do, as their annotations say, and not by names: the tools of a
// client with custom names make them fire, and keep them silent, as well.
func TestJitGoesByAnnotationsOfForeignTools(t *testing.T) {
	t.Parallel()
	peek := jitClient("peek", &harnessv1.ToolAnnotations{Reads: true})
	stash := jitClient("stash", &harnessv1.ToolAnnotations{Writes: true})
	scout := jitClient("scout", &harnessv1.ToolAnnotations{Explores: true})
	lure := jitClient("read_file_carefully", nil)
	turns := func(n int, names ...string) []modeltest.Reply {
		var all []modeltest.Reply
		for i := range n {
			var one []modeltest.Call
			for _, name := range names {
				one = append(one, live.Call(name, live.Args{"v": i}))
			}
			all = append(all, live.Calls(one...))
		}
		return all
	}
	add := live.Calls(live.Call("work_item_add", live.Args{"title": "Report", "id": "report"}))
	finish := live.Calls(live.Call("work_item_update", live.Args{"id": "report", "status": "DONE"}))
	for name, c := range map[string]struct {
		replies []modeltest.Reply
		want    []string
	}{
		"a name alone is no read":     {turns(4, "read_file_carefully"), []string{"3 no_reads_after_3_turns"}},
		"reads":                       {turns(4, "peek"), nil},
		"reads one by one":            {turns(4, "peek", "peek"), []string{"4 serial_reads_suggest_parallel"}},
		"looks around":                {slices.Concat(turns(1, "scout"), turns(4, "peek", "peek")), nil},
		"reads and writes nothing":    {slices.Concat([]modeltest.Reply{add}, turns(1, "scout", "peek"), turns(7, "peek"), []modeltest.Reply{finish}), []string{"8 no_deliverable_after_many_reads"}},
		"reads, and writes something": {slices.Concat([]modeltest.Reply{add}, turns(1, "scout", "peek", "stash"), turns(7, "peek"), []modeltest.Reply{finish}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := jitAttend(live.Start(t, jitScript(c.replies...), jitItems, jitClients(peek, stash, scout, lure)))
			s.Want("DONE agent_done accepted")
			jitSame(t, "fired", jitFired(s), c.want...)
		})
	}
}
