package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The gates run in order and the first rejection decides: work_complete, the
// contract, the work items, the subscribers. Each time the next request reports what is
// missing, and the run ends once nothing is.
func TestStopGatesInOrder(t *testing.T) {
	t.Parallel()
	asked := map[int]bool{}
	var r *live.Run
	reply := func(n int) modeltest.Reply {
		switch n {
		case 0: // everything is open
			return live.Calls(live.Call("work_item_add", live.Args{"id": "draft", "title": "Write the draft"}))
		case 1: // silence counts as done: nothing was called
			return live.Message("I am done.")
		case 2: // the file and the item are missing
			return live.Calls(stopDone("first try"))
		case 3:
			return live.Calls(stopWrite("report.md", "# Report"))
		case 4: // the item is open
			return live.Calls(stopDone("second try"))
		case 5:
			return live.Calls(live.Call("work_item_update", live.Args{"id": "draft", "status": "DONE"}))
		case 6: // the subscriber objects
			return live.Calls(stopDone("third try"))
		case 7:
			return live.Calls(stopShell("echo tested"))
		}
		return live.Calls(stopDone("fourth try"))
	}
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		asked[n] = r.Exists("asked")
		return reply(n)
	}
	r = live.Prepare(t, m)
	s := stopPlay(r, stopNudges(false, 0), stopItems, stopWanted("report.md"), stopNoRules, stopHooks(
		&harnessv1.Hook{Topic: harnessv1.HookTopic_HOOK_TOPIC_AGENT_STOP, Command: "touch asked"},
		stopBlock(`called_work_complete && !("run_command" in tool_usage)`, "Nobody has run the tests: use run_command."),
	))
	s.Want("DONE agent_done accepted")
	stopSame(t, "rejections", stopRejected(s), "2 work_complete_not_called 1", "3 contract_not_satisfied 1",
		"5 work_items_incomplete 1", "7 agent_stop_hook_blocked 1")
	stopTold(t, s, 2, "work_complete")
	stopTold(t, s, 3, "report.md", "The file report.md is there")
	stopTold(t, s, 5, "draft", "Write the draft")
	stopTold(t, s, 7, "Nobody has run the tests: use run_command.")
	for n := range s.Requests {
		if n < 7 == asked[n] {
			t.Errorf("subscribers called before request %d: %t", n+1, asked[n])
		}
	}
	for _, n := range []int{2, 5, 7} { // news of a rejection do not name what another gate wants
		if strings.Contains(s.Added(n), "The file report.md is there") {
			t.Errorf("request %d mentions the contract", n+1)
		}
	}
	d := s.Result.GetReason().GetDetails()
	want := &harnessv1.StopDetails{Turn: 9, WorkCompleteCalled: true, ContractVerified: true, WorkItemsVerified: true}
	if !proto.Equal(d, want) {
		t.Errorf("details %v, want %v", d, want)
	}
	if got := content.Text(s.Result.GetSummary()); got != "fourth try" {
		t.Errorf("the summary is %q", got)
	}
	if c := s.Result.GetCoverage(); c.GetMet() != 1 || c.GetTotal() != 1 {
		t.Errorf("coverage %v", c)
	}
	stopStable(t, s)
}

// The state of a run has the kind and the number of its rejected stops.
func TestStopStateSaysWhyAStopWasRejected(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopDone("one")), live.Calls(stopDone("two"))), stopWanted("gone.md"), stopMaxTurns(3))
	s.Want("DONE max_turns")
	if state := s.State(); state.GetRejectedKind() != "contract_not_satisfied" || state.GetRejectedCount() != 2 {
		t.Errorf("rejected for %q, %d times", state.GetRejectedKind(), state.GetRejectedCount())
	}
}

// A contract that is not met holds the agent to it: the gap report with what, which and
// why is in the event and in the next request, and names nothing that is met.
func TestStopContractGapIsInTheNextRequest(t *testing.T) {
	t.Parallel()
	edit := func(spec *harnessv1.RunSpec) {
		stopWanted("there.md", "report.md")(spec)
		spec.Contract.RequiredOutputs = append(spec.Contract.RequiredOutputs, &harnessv1.RequiredOutput{
			Id: "cites", Description: "It cites a source",
			Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_CONTAINS_TEXT, In: "file:report.md", Pattern: `\[1\]`},
		}, &harnessv1.RequiredOutput{
			Id: "nice", Description: "A cover picture", Optional: true,
			Predicate: &harnessv1.Predicate{Type: harnessv1.PredicateType_PREDICATE_TYPE_FILE_EXISTS, Path: "cover.png"},
		})
	}
	s := live.Play(t, stopOnce(
		live.Calls(stopDone("one")), live.Calls(stopWrite("report.md", "No source.")),
		live.Calls(stopDone("two")), live.Calls(stopWrite("report.md", "A source [1].")),
	), edit, stopFiles(t, map[string]string{"there.md": "x"}))
	s.Want("DONE agent_done accepted")
	stopSame(t, "rejections", stopRejected(s), "1 contract_not_satisfied 1", "3 contract_not_satisfied 2")
	stopTold(t, s, 1, "report.md", "The file report.md is there", "cites", "It cites a source")
	stopTold(t, s, 3, "cites", "It cites a source")
	if strings.Contains(s.Added(3), "The file report.md is there") || strings.Contains(s.Added(1), "The file there.md is there") || strings.Contains(s.Added(1), "A cover picture") {
		t.Error("the message mentions outputs that are met or optional")
	}
	var gaps [][]string
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil {
			var ids []string
			for _, u := range r.GetGap().GetUnmetRequirements() {
				ids = append(ids, u.GetId())
				if u.GetWhy() == "" || u.GetDescription() == "" {
					t.Errorf("the gap report has no reason: %v", u)
				}
				stopTold(t, s, int(e.GetTurnNumber()), u.GetWhy())
			}
			gaps = append(gaps, ids)
		}
	}
	if fmt.Sprint(gaps) != "[[report.md cites] [cites]]" {
		t.Errorf("gaps %v", gaps)
	}
	if d := s.Result.GetReason().GetDetails(); !d.GetContractVerified() || d.GetWorkItemsVerified() {
		t.Errorf("details %v", d)
	}
}

// Open work items hold the agent to them: those that are open are named, those that are
// finished are not missed.
func TestStopOpenItemsAreInTheNextRequest(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(
		live.Calls(live.Call("work_item_add", live.Args{"id": "alpha", "title": "Read the sources"}), live.Call("work_item_add", live.Args{"id": "beta", "title": "Write the text"}),
			live.Call("work_item_add", live.Args{"id": "gamma", "title": "Draw a picture"}), live.Call("work_item_update", live.Args{"id": "alpha", "status": "DONE"})),
		live.Calls(stopDone("one")),
		live.Calls(live.Call("work_item_update", live.Args{"id": "beta", "status": "DONE"})), live.Calls(stopDone("two")),
		live.Calls(live.Call("work_item_update", live.Args{"id": "gamma", "status": "SKIPPED", "notes": "not wanted"})),
	), stopItems, func(spec *harnessv1.RunSpec) {
		spec.Config.Guidance = &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)} // only the rejection speaks of items
	})
	s.Want("DONE agent_done accepted")
	stopSame(t, "rejections", stopRejected(s), "2 work_items_incomplete 1", "4 work_items_incomplete 2")
	stopTold(t, s, 2, "beta", "Write the text", "gamma", "Draw a picture")
	stopTold(t, s, 4, "gamma", "Draw a picture")
	if strings.Contains(s.Added(2), "Read the sources") || strings.Contains(s.Added(4), "Write the text") {
		t.Error("finished items are named as if they were open")
	}
	if d := s.Result.GetReason().GetDetails(); !d.GetWorkItemsVerified() || d.GetContractVerified() {
		t.Errorf("details %v", d)
	}
}

// After the last retry the other gates still apply: the run continues until the
// contract is met, and is not accepted then.
func TestStopExhaustedRetriesLeadToTheOtherGates(t *testing.T) {
	t.Parallel()
	var r *live.Run
	m := func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 5 {
			r.Write("report.md", "by somebody else")
		}
		return live.Message("I am done.")
	}
	r = live.Prepare(t, m)
	s := stopPlay(r, stopNudges(false, 0), stopWanted("report.md"), stopNoRules)
	s.Want("DONE agent_done")
	stopSame(t, "rejections", stopRejected(s), "1 work_complete_not_called 1", "2 work_complete_not_called 2", "3 work_complete_not_called 3",
		"4 contract_not_satisfied 1", "5 contract_not_satisfied 2")
	for n := 4; n <= 5; n++ {
		stopTold(t, s, n, "The file report.md is there")
	}
	want := &harnessv1.StopDetails{Turn: 6, WorkCompleteRetriesExhausted: true, ContractVerified: true}
	if d := s.Result.GetReason().GetDetails(); !proto.Equal(d, want) {
		t.Errorf("details %v, want %v", d, want)
	}
}

// An unattended run continues until every required output is proven, however often
// the agent claims to be done.
func TestStopUnattendedRunContinuesUntilAllIsProven(t *testing.T) {
	t.Parallel()
	var all []modeltest.Reply
	paths := []string{"one.md", "two.md", "three.md", "four.md", "five.md"}
	for i, path := range paths {
		all = append(all, live.Calls(stopDone(fmt.Sprint("claim ", i))), live.Calls(stopWrite(path, "x")))
	}
	s := live.Play(t, stopOnce(all...), stopWanted(paths...), func(spec *harnessv1.RunSpec) { spec.Agent.Autonomous = true })
	s.Want("DONE agent_done accepted")
	if c := s.Result.GetCoverage(); s.Result.GetTurnCount() != 11 || c.GetMet() != 5 || c.GetTotal() != 5 {
		t.Errorf("%d turns, coverage %v", s.Result.GetTurnCount(), c)
	}
	for i := range paths { // each rejection names exactly what is missing
		n := 2*i + 1
		for k, path := range paths {
			if got := strings.Contains(s.Added(n), "The file "+path+" is there"); got != (k >= i) {
				t.Errorf("request %d mentions %s: %t", n+1, path, got)
			}
		}
	}
	stopStable(t, s)
}

// Without a contract work_complete ends the run immediately.
func TestStopWithoutAContractWorkCompleteDecides(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()))
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || s.Result.GetCoverage() != nil || len(s.Names("contract.evaluated", "stop.rejected")) != 0 {
		t.Errorf("%d turns, coverage %v, %v", s.Result.GetTurnCount(), s.Result.GetCoverage(), s.Names())
	}
}

// Gates that are switched off ask nothing and leave no trace.
func TestStopGatesThatAreOffLeaveNoTrace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()), stopWanted("gone.md"), stopHooks(stopBlock("true", "never")), func(spec *harnessv1.RunSpec) {
		spec.Config.Contract = &harnessv1.ContractConfig{Enabled: proto.Bool(false)}
		spec.Config.Hooks = &harnessv1.HookConfig{Enabled: proto.Bool(false)}
	})
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || len(s.Names("contract.evaluated", "stop.rejected", "hook.result", "hook.error")) != 0 {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
	if strings.Contains(s.Text(0), "gone.md") {
		t.Error("a request mentions a disabled contract")
	}
	if d := s.Result.GetReason().GetDetails(); d.GetContractVerified() || s.Result.GetCoverage() != nil {
		t.Errorf("details %v, coverage %v", d, s.Result.GetCoverage())
	}
}

// Where work_complete is not required, the other gates still hold a silent agent.
func TestStopNotRequiredStillHasTheOtherGates(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Message("done"), live.Calls(stopWrite("report.md", "r")), live.Message("done")), stopNotRequired, stopNudges(false, 0), stopWanted("report.md"))
	s.Want("DONE agent_done accepted")
	stopSame(t, "rejections", stopRejected(s), "1 contract_not_satisfied 1")
	stopTold(t, s, 1, "The file report.md is there")
}

// Every rejection is a user message after the results of the calls
// of the turn, and stays in the conversation.
func TestStopRejectionsStayInTheConversation(t *testing.T) {
	t.Parallel()
	s := live.Play(t, stopOnce(live.Calls(stopDone("one")), live.Calls(stopRead("a.txt")), live.Calls(stopRead("b.txt"))), stopNoRules,
		loopsABC(t), stopHooks(stopBlock("turn == 1", "the changelog is missing")))
	s.Want("DONE agent_done accepted")
	m := stopLast(s, 1)
	if m.Role != "user" || !strings.Contains(m.Content, "the changelog is missing") {
		t.Errorf("request 2 ends with %s %q", m.Role, m.Content)
	}
	roles := []string{}
	for _, m := range s.Requests[1].Messages[len(s.Requests[0].Messages):] {
		roles = append(roles, m.Role)
	}
	if !slices.Equal(roles, []string{"assistant", "tool", "user"}) {
		t.Errorf("the roles after the stop are %v", roles)
	}
	for n := 1; n < len(s.Requests); n++ {
		if got := strings.Count(s.Text(n), "the changelog is missing"); got != 1 {
			t.Errorf("request %d says it %d times", n+1, got)
		}
	}
}
