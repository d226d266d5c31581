package judgement

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	modesLooking = "read_file list_directory find_files search_files"
	modesActing  = "write_file edit_file run_command"
	modesItems   = "work_item_add work_item_update work_item_list work_item_set_artifact work_item_flag_revision"
)

// In plan the system prompt lists the modes and names the present one, the model
// gets tools that only read, plan and ask, and a call of any other tool returns
// an error that names the mode, and has no effect. Neither a rule that allows nor a yes
// to everything changes that.
func TestModesPlanIsEnforcedThreeTimes(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(live.Calls(
		jitWrite("a.txt", "written"), live.Call("edit_file", live.Args{"path": "there.txt", "old": "as it was", "new": "edited"}),
		jitShell("echo run > b.txt"), jitRead("there.txt"),
	)))
	r.Write("there.txt", "as it was\n")
	s := jitBegin(r, modesIn("plan"), jitItems, modesPolicy(&harnessv1.ToolRule{Name: "*", Policy: modesAllow})).Wait()
	s.Want("DONE agent_done accepted")

	prompt := s.Requests[0].Messages[0]
	if prompt.Role != "system" {
		t.Fatalf("the first message is of %s", prompt.Role)
	}
	modesSays(t, "the system prompt", prompt.Content, "- plan:", "- execute:", "starts in plan mode", "message")

	for n := range s.Requests {
		modesHas(t, s, n, modesLooking+" "+modesItems+" ask_user work_complete", modesActing)
	}

	jitSame(t, "denied", modesDenied(s), "1 write_file", "1 edit_file", "1 run_command")
	for i, name := range []string{"write_file", "edit_file", "run_command"} {
		modesSays(t, "the answer", jitResult(s, jitID(1, i)), name, "plan mode")
	}
	modesSays(t, "the call beside them", jitResult(s, jitID(1, 3)), "as it was")
	if r.Exists("a.txt") || r.Exists("b.txt") {
		t.Error("something was written")
	}
	jitStable(t, s)
}

// jitID is the id of a call of a request, from 1, and of its place in it, from 0.
func jitID(request, i int) string {
	return "call_" + string(rune('0'+request)) + "_" + string(rune('0'+i))
}

// Client tools are judged by their annotations: plan has those that declare that
// they only look. A call of another never waits for the client.
func TestModesPlanHoldsForToolsOfClients(t *testing.T) {
	t.Parallel()
	s := jitAttend(live.Start(t, jitScript(live.Calls(live.Call("peek", live.Args{"v": 1}), live.Call("stash", live.Args{}), live.Call("shell", live.Args{}), live.Call("mystery", live.Args{}))), modesIn("plan"),
		jitClients(
			jitClient("peek", &harnessv1.ToolAnnotations{Reads: true}), jitClient("scout", &harnessv1.ToolAnnotations{Explores: true}),
			jitClient("stash", &harnessv1.ToolAnnotations{Reads: true, Writes: true}), jitClient("shell", &harnessv1.ToolAnnotations{Explores: true, Executes: true}),
			jitClient("mystery", nil),
		)))
	s.Want("DONE agent_done accepted")
	modesHas(t, s, 0, "peek scout", "stash shell mystery")
	jitSame(t, "denied", modesDenied(s), "1 stash", "1 shell", "1 mystery")
	var waited []string
	for _, e := range s.Events {
		if c := e.GetToolCall(); c.GetAwaits() != "" {
			waited = append(waited, c.GetTool())
		}
	}
	jitSame(t, "waited for", waited, "peek")
	modesSays(t, "the answer", jitResult(s, jitID(1, 1)), "plan mode")
}

// Execute is the default mode and has every tool.
func TestModesExecuteIsTheDefault(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*harnessv1.RunSpec){
		"not named": func(*harnessv1.RunSpec) {},
		"named":     modesIn("execute"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, jitScript(live.Calls(jitWrite("a.txt", "x"))), edit, jitItems, jitClients(jitClient("mystery", nil)))
			s.Want("DONE agent_done accepted")
			modesHas(t, s, 0, modesLooking+" "+modesActing+" "+modesItems+" ask_user work_complete mystery", "")
			modesSays(t, "the system prompt", s.Requests[0].Messages[0].Content, "starts in execute mode")
			if !s.Exists("a.txt") {
				t.Error("nothing was written")
			}
			if len(s.Names("mode.changed")) > 0 {
				t.Error("the mode changed")
			}
		})
	}
}

// An autonomous agent has no ask_user in any mode; a call of
// ask_user returns an error and the run does not wait.
func TestModesAnAutonomousAgentDoesNotAsk(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plan", "execute"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, jitScript(live.Calls(live.Call("ask_user", live.Args{"question": "Which?"}))), modesIn(name), func(spec *harnessv1.RunSpec) { spec.Agent.Autonomous = true })
			s.Want("DONE agent_done accepted")
			modesHas(t, s, 0, "work_complete", "ask_user")
			if got := s.Names("tool.error"); len(got) != 1 {
				t.Errorf("%d errors", len(got))
			}
		})
	}
}

// Custom modes name their tools, or are read-only, or both.
func TestModesOfOnesOwn(t *testing.T) {
	t.Parallel()
	own := []*harnessv1.ModeSpec{
		{Name: "scribe", Description: "Only texts", Tools: []string{"read_file", "write_file", "note"}},
		{Name: "look", ReadOnly: true},
		{Name: "peek-only", ReadOnly: true, Tools: []string{"read_file", "write_file"}},
		{Name: "free"},
	}
	note := jitClient("note", &harnessv1.ToolAnnotations{Writes: true})
	for name, c := range map[string]struct{ available, missing string }{
		"scribe":    {"read_file write_file note work_complete", "list_directory edit_file run_command ask_user work_item_add"},
		"look":      {modesLooking + " ask_user work_item_add work_complete", modesActing + " note"},
		"peek-only": {"read_file work_complete", "write_file list_directory note ask_user"},
		"free":      {modesLooking + " " + modesActing + " note ask_user work_complete", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, jitScript(live.Calls(jitShell("echo 1 > out.txt"), jitRead("out.txt"))), modesIn(name, own...), jitItems, jitClients(note))
			s.Want("DONE agent_done accepted")
			modesHas(t, s, 0, c.available, c.missing)
			modesSays(t, "the system prompt", s.Requests[0].Messages[0].Content, "- scribe: Only texts.", "note", "- look: Only tools that change nothing", "starts in "+name+" mode")
			denied := slices.Contains(strings.Fields(c.missing), "run_command") || name == "peek-only"
			if ran := s.Exists("out.txt"); ran == denied {
				t.Errorf("it ran: %t", ran)
			}
			if denied {
				modesSays(t, "the answer", jitResult(s, jitID(1, 0)), "run_command", name+" mode")
			}
		})
	}
}

// work_complete is available in every mode and never asks for approval, whatever
// the policy says; task_complete is taken for it.
func TestModesWorkCompleteIsAvailableEverywhere(t *testing.T) {
	t.Parallel()
	strict := []*harnessv1.ModeSpec{{Name: "strict", ReadOnly: true, Tools: []string{"read_file"}}}
	for _, mode := range []string{"plan", "execute", "strict"} {
		for _, name := range []string{"work_complete", "task_complete"} {
			for policy, rule := range map[string]*harnessv1.ToolRule{
				"no rule":      nil,
				"ask for all":  {Name: "*", Policy: modesAsks},
				"deny all":     {Name: "*", Policy: modesDeny},
				"ask for it":   {Name: "work_complete", Policy: modesAsks},
				"deny it":      {Name: "work_complete", Policy: modesDeny},
				"deny by text": {Name: "*", Policy: modesDeny, Pattern: "."},
			} {
				t.Run(mode+"/"+name+"/"+policy, func(t *testing.T) {
					t.Parallel()
					s := live.Play(t, live.Replies(live.Calls(live.Call(name, live.Args{"summary": "The result."}))), modesIn(mode, strict...), modesAsk, func(spec *harnessv1.RunSpec) {
						if rule != nil {
							spec.Agent.Tools = []*harnessv1.ToolRule{rule}
						}
					})
					s.Want("DONE agent_done accepted")
					modesHas(t, s, 0, "work_complete", "task_complete")
					if s.Result.GetTurnCount() != 1 || len(modesAsked(s)) != 0 || !s.Result.GetReason().GetDetails().GetWorkCompleteCalled() {
						t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
					}
				})
			}
		}
	}
}

// A change while the model writes applies from the next call on, those of the response
// included: a message reports it, the tools change, and calls that were denied run, or the
// other way round.
// The prefix does not change.
func TestModesChangeInMidRun(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	change := func(to string) func() {
		return func() {
			if err := jitSend(r, modesTo(to)); err != nil {
				t.Error(err)
			}
		}
	}
	r.Model.Answer = modesDoes(jitScript(
		live.Calls(jitWrite("one.txt", "1")), // begins in plan, changes to execute
		live.Calls(jitWrite("two.txt", "2")),
		live.Calls(jitShell("echo 3 > three.txt")), // changes to plan
		live.Calls(jitShell("echo 4 > four.txt")),
		live.Calls(jitLook()), // changes to a custom mode
		live.Calls(jitWrite("five.txt", "5"), jitShell("echo 6 > six.txt")),
	), map[int]func(){0: change("execute"), 2: change("plan"), 4: change("scribe")})
	s := jitBegin(r, modesIn("plan", &harnessv1.ModeSpec{Name: "scribe", Description: "Only texts.", Tools: []string{"write_file"}})).Wait()
	s.Want("DONE agent_done accepted")
	var changes []string
	for _, e := range s.Events {
		if c := e.GetModeChanged(); c != nil {
			changes = append(changes, c.GetFrom()+" to "+c.GetTo())
		}
	}
	jitSame(t, "changes", changes, "plan to execute", "execute to plan", "plan to scribe")
	jitSame(t, "guided", offGuided(s, "mode"), "guidance: mode", "guidance: mode", "guidance: mode")
	jitSame(t, "denied", modesDenied(s), "3 run_command", "4 run_command", "5 list_directory", "6 run_command")
	for file, there := range map[string]bool{"one.txt": true, "two.txt": true, "three.txt": false, "four.txt": false, "five.txt": true, "six.txt": false} {
		if r.Exists(file) != there {
			t.Errorf("%s is there: %t", file, !there)
		}
	}
	modesHas(t, s, 0, "read_file", modesActing)
	modesHas(t, s, 1, modesActing, "")
	modesHas(t, s, 2, modesActing, "")
	modesHas(t, s, 3, "read_file", modesActing)
	modesHas(t, s, 5, "write_file work_complete", "read_file run_command")
	jitTold(t, s, 1, "now execute", "was plan")
	jitTold(t, s, 3, "now plan", "was execute", "change nothing")
	jitTold(t, s, 5, "now scribe", "was plan", "Only texts.", "write_file")
	modesSays(t, "the answer", jitResult(s, jitID(6, 1)), "scribe mode")
	if got := s.State().GetMode(); got != "scribe" {
		t.Errorf("the state says %q", got)
	}
	for n := range s.Requests {
		if s.Requests[n].Messages[0].Content != s.Requests[0].Messages[0].Content {
			t.Fatalf("the system prompt of request %d is another one", n+1)
		}
	}
	jitStable(t, s)
}

// A change while a call runs acts on the calls of the same response that have not started:
// they are refused with the name of the mode, one that the mode allows runs, and the call
// that runs is left alone.
func TestModesChangeInTheOpenTurn(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(live.Calls(
		jitShell("echo 1 > one.txt; until test -e go.txt; do sleep 0.05; done; echo 2 > two.txt"),
		jitWrite("three.txt", "3"), jitShell("echo 4 > four.txt"), jitRead("one.txt"),
	)))
	jitBegin(r)
	modesUntilCall(r)
	out, err := live.Command(t, "send", r.ID, "--mode", "plan").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.Write("go.txt", "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if !r.Exists("two.txt") || r.Exists("three.txt") || r.Exists("four.txt") {
		t.Errorf("two %t, three %t, four %t", r.Exists("two.txt"), r.Exists("three.txt"), r.Exists("four.txt"))
	}
	jitSame(t, "denied", modesDenied(s), "1 write_file", "1 run_command")
	modesSays(t, "the answer", jitResult(s, jitID(1, 1)), "write_file", "plan mode")
	modesSays(t, "the answer", jitResult(s, jitID(1, 2)), "run_command", "plan mode")
	modesSays(t, "the call that reads", jitResult(s, jitID(1, 3)), "1")
	modesHas(t, s, 1, "read_file", modesActing)
	jitTold(t, s, 1, "now plan", "was execute")
	jitStable(t, s)
}

// A change to the present mode changes nothing and emits no event.
func TestModesNoChangeNoWord(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Model.Answer = modesDoes(jitScript(live.Calls(jitLook())), map[int]func(){0: func() {
		if err := jitSend(r, modesTo("execute")); err != nil {
			t.Error(err)
		}
	}})
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	if len(s.Names("mode.changed")) != 0 || len(jitNews(s, 1, "user")) != 0 || len(s.Names("input.accepted")) != 1 {
		t.Errorf("%v, told %q", s.Names(), jitNews(s, 1, "user"))
	}
}

// A parked run applies the change and stays parked; the turn continues in the new
// mode. What waits for a person there is refused when the mode no longer allows it, even
// though the person says yes.
func TestModesAChangeWhileParkedAppliesToWaitingCalls(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1 > out.txt")), live.Calls(jitWrite("two.txt", "2"))), modesAsk)
	parked := r.Wait()
	if err := jitSend(r, modesTo("plan")); err != nil {
		t.Fatal(err)
	}
	parked = r.WaitAfter(parked.Events[len(parked.Events)-1].GetVersion())
	if got := parked.Result.GetReason().GetKind(); got != "approval" {
		t.Fatalf("the run waits for %q", got)
	}
	jitSame(t, "while it rests", parked.Names("mode.changed", "step.start"), "mode.changed")
	modesApprove(r, parked, modesOnce, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if r.Exists("out.txt") || r.Exists("two.txt") {
		t.Error("something ran in plan mode")
	}
	modesSays(t, "the answer", jitResult(s, jitID(1, 0)), "plan mode")
	modesHas(t, s, 1, "read_file", modesActing)
}

// The mode stays when another message reopens the run.
func TestModesTheModeLivesOnInTheNextSegment(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Model.Answer = modesDoes(live.Replies(live.Calls(jitLook()), live.Done(), live.Calls(jitWrite("out.txt", "x")), live.Done()), map[int]func(){0: func() {
		if err := jitSend(r, modesTo("plan")); err != nil {
			t.Error(err)
		}
	}})
	jitBegin(r).Wait().Want("DONE agent_done accepted")
	if err := jitSend(r, modesMessage("And now write it.")); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if len(s.Requests) != 4 || r.Exists("out.txt") {
		t.Errorf("%d requests, out.txt is there: %t", len(s.Requests), r.Exists("out.txt"))
	}
	modesHas(t, s, 2, "read_file", modesActing)
	jitStable(t, s)
}

// What was allowed for the whole run in execute is not allowed in plan.
func TestModesAGrantDoesNotReachIntoPlan(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Model.Answer = modesDoes(jitScript(live.Calls(jitShell("echo 1 > one.txt")), live.Calls(jitShell("echo 2 > two.txt")), live.Calls(jitShell("echo 3 > three.txt"))),
		map[int]func(){1: func() {
			if err := jitSend(r, modesTo("plan")); err != nil {
				t.Error(err)
			}
		}})
	jitBegin(r, modesAsk)
	modesApprove(r, r.Wait(), modesForRun, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if !r.Exists("one.txt") || r.Exists("two.txt") || r.Exists("three.txt") {
		t.Errorf("one %t, two %t, three %t", r.Exists("one.txt"), r.Exists("two.txt"), r.Exists("three.txt"))
	}
	jitSame(t, "denied", modesDenied(s), "2 run_command", "3 run_command")
}

// A mode that there is not is refused at the start, naming those that there are; so is
// an invalid custom mode.
func TestModesBadModesAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit  func(*harnessv1.RunSpec)
		words []string
	}{
		"unknown":       {modesIn("dream", &harnessv1.ModeSpec{Name: "scribe"}), []string{"spec.agent.mode", "dream", "plan, execute, scribe"}},
		"wrong case":    {modesIn("Plan"), []string{"spec.agent.mode", "Plan"}},
		"reserved":      {modesIn("", &harnessv1.ModeSpec{Name: "plan"}), []string{"spec.agent.modes[0].name", "plan"}},
		"twice":         {modesIn("", &harnessv1.ModeSpec{Name: "a"}, &harnessv1.ModeSpec{Name: "a"}), []string{"spec.agent.modes[1].name"}},
		"without name":  {modesIn("", &harnessv1.ModeSpec{}), []string{"spec.agent.modes[0].name"}},
		"not a name":    {modesIn("", &harnessv1.ModeSpec{Name: "A B"}), []string{"spec.agent.modes[0].name"}},
		"a tool's name": {modesIn("", &harnessv1.ModeSpec{Name: "a", Tools: []string{"not a tool"}}), []string{"spec.agent.modes[0].tools[0]"}},
		"no such tool":  {modesIn("", &harnessv1.ModeSpec{Name: "a", Tools: []string{"read_file", "reed_file"}}), []string{"spec.agent.modes[0].tools[1]", "reed_file"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jitRefused(live.Prepare(t, live.Replies(live.Done())), c.edit, c.words...)
		})
	}
}

// A change to a mode that there is not is refused, and so is one of a run that has ended;
// neither leaves a trace.
func TestModesBadChangesAreRefused(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Calls(live.Call("ask_user", live.Args{"question": "Which?"})), live.Done()), modesIn("", &harnessv1.ModeSpec{Name: "scribe"}))
	r.Wait()
	before := r.State()
	if err := jitSend(r, modesTo("dream")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a mode that there is not: %v", err)
	} else {
		modesSays(t, "the refusal", err.Error(), "mode_change.mode", "dream", "plan, execute, scribe")
	}
	if err := jitSend(r, modesTo("")); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no mode: %v", err)
	}
	if got := r.State(); got.GetMode() != before.GetMode() {
		t.Errorf("the mode is %q now", got.GetMode())
	}
	jitAnswer(r, modesWaiting(r), "This one.")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if err := jitSend(r, modesTo("plan")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("after the end: %v", err)
	}
	if len(r.Wait().Names("mode.changed")) != 0 {
		t.Error("the mode changed")
	}
}

// The mode can be changed over a Run stream, and with the command line.
func TestModesChangeFromOtherPlaces(t *testing.T) {
	t.Parallel()
	ask := live.Replies(live.Calls(live.Call("ask_user", live.Args{"question": "Go on?"})), live.Calls(jitWrite("out.txt", "x")), live.Done())
	for name, change := range map[string]func(*testing.T, *live.Run){
		"stream": func(t *testing.T, r *live.Run) {
			ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
			defer cancel()
			stream, err := live.Gateway(t).Run(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, req := range []*harnessv1.RunRequest{
				{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: r.ID}}},
				{Request: &harnessv1.RunRequest_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "execute"}}, RequestId: "change"},
			} {
				if err := stream.Send(req); err != nil {
					t.Fatal(err)
				}
			}
			for {
				m, err := stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if receipt := m.GetUpdate().GetReceipt(); receipt.GetRequestId() == "change" {
					if receipt.GetError() != "" {
						t.Fatal(receipt.GetError())
					}
					return
				}
			}
		},
		"command line": func(t *testing.T, r *live.Run) {
			cmd := live.Command(t, "send", r.ID, "--mode", "execute")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Start(t, ask, modesIn("plan"))
			r.Wait()
			change(t, r)
			jitAnswer(r, modesWaiting(r), "Yes.")
			s := r.Wait()
			s.Want("DONE agent_done accepted")
			if !r.Exists("out.txt") || len(s.Names("mode.changed")) != 1 {
				t.Errorf("out.txt is there: %t; %v", r.Exists("out.txt"), s.Names())
			}
			jitTold(t, s, 1, "now execute")
		})
	}
}

// A name that is near, or in another case, is no way around a mode.
func TestModesNoWayAroundByName(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(live.Calls(
		modeltest.Call{Name: "Write_File", Arguments: `{"path":"a.txt","content":"x"}`},
		modeltest.Call{Name: " write_file ", Arguments: `{"path":"a.txt","content":"x"}`},
		modeltest.Call{Name: "run_command", Arguments: `{"command":`},
	)), modesIn("plan"))
	s.Want("DONE agent_done accepted")
	if s.Exists("a.txt") {
		t.Error("it was written")
	}
	for i := range 3 {
		if r := jitResult(s, jitID(1, i)); strings.Contains(r, "Did you mean write_file") {
			t.Errorf("the text names a tool that the mode does not have: %s", r)
		}
	}
	modesSays(t, "the answer", jitResult(s, jitID(1, 2)), "plan mode")
}
