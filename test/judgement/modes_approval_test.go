package judgement

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// A tool that executes asks by default: the run parks and reports the call, with which
// arguments, why and how long. Other calls of the response have run meanwhile. After a
// yes for this time the next call asks again.
func TestModesApprovalOnce(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(live.Calls(jitShell("echo 1 > one.txt"), jitRead("f00.txt")), live.Calls(jitShell("echo 2 > two.txt"))))
	jitFiles(r, 1)
	parked := jitBegin(r, modesAsk).Wait()
	parked.Want("PARKED approval")
	for _, e := range parked.Events {
		if a := e.GetApprovalRequested(); a != nil {
			if a.GetTool() != "run_command" || !strings.Contains(a.GetArguments().GetInline(), "echo 1") || a.GetWhy() == "" || a.GetDeadline() == nil {
				t.Errorf("asked is %v", a)
			}
		}
	}
	pending, err := live.Gateway(t).ListPending(t.Context(), &harnessv1.ListPendingRequest{RunId: r.ID})
	if err != nil || len(pending.GetPending()) != 1 || pending.GetPending()[0].GetCall().GetKind() != "approval" {
		t.Errorf("pending are %v, %v", pending, err)
	}
	if len(parked.Names("session.pause")) != 0 || r.State().GetPhase() != harnessv1.Phase_PHASE_AWAITING_TOOL {
		t.Errorf("phase %s, %v", r.State().GetPhase(), parked.Names())
	}
	if got := parked.Names("tool.result"); len(got) != 1 {
		t.Errorf("%d results while the run is parked, want that of the read", len(got))
	}
	if r.Exists("one.txt") {
		t.Error("it ran unasked")
	}
	modesApprove(r, parked, modesOnce, "")
	parked = r.Wait()
	modesApprove(r, parked, modesOnce, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	jitSame(t, "asked", modesAsked(s), "1 run_command", "2 run_command")
	if !r.Exists("one.txt") || !r.Exists("two.txt") || s.Result.GetTurnCount() != 3 {
		t.Errorf("one %t, two %t, %d turns", r.Exists("one.txt"), r.Exists("two.txt"), s.Result.GetTurnCount())
	}
}

// A yes for the run holds for this tool, for the other calls of it that wait, and for no
// other tool.
func TestModesApprovalForTheRun(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(
		live.Calls(jitShell("echo 1 > one.txt"), jitShell("echo 2 > two.txt")),
		live.Calls(jitShell("echo 3 > three.txt")), live.Calls(jitWrite("four.txt", "4")),
	), modesAsk, modesPolicy(&harnessv1.ToolRule{Name: "write_file", Policy: modesAsks}))
	r.Wait()
	first := r.State().GetPendingToolCalls()[0].GetCallId()
	if err := jitSend(r, modesDecision(first, modesForRun, "")); err != nil {
		t.Fatal(err)
	}
	modesApprove(r, r.Wait(), modesRefuse, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	jitSame(t, "asked", modesAsked(s), "1 run_command", "1 run_command", "3 write_file")
	for file, there := range map[string]bool{"one.txt": true, "two.txt": true, "three.txt": true, "four.txt": false} {
		if r.Exists(file) != there {
			t.Errorf("%s is there: %t", file, !there)
		}
	}
}

// The model gets the reason of a denial. Nothing ran, and the run continues.
func TestModesApprovalDenied(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("rm -rf build"), jitWrite("a.txt", "a"))), modesAsk)
	parked := r.Wait()
	if err := jitSend(r, modesDecision("no-such-call", modesOnce, "")); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a call that does not wait: %v", err)
	}
	id := modesWaiting(r)
	modesApprove(r, parked, modesRefuse, "The build is still needed.")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	modesSays(t, "the answer", jitResult(s, id), "The build is still needed.")
	jitSame(t, "denied", modesDenied(s), "1 run_command")
	if !r.Exists("a.txt") {
		t.Error("the other call did not run")
	}
	if err := jitSend(r, modesDecision(id, modesOnce, "")); status.Code(err) == codes.OK {
		t.Error("a second answer is taken")
	}
}

// The policy decides by tool, by a pattern of the call's text, and by an expression over
// its arguments; the last rule that fits decides, and a denial by pattern or expression
// is final, whatever follows it.
func TestModesPolicy(t *testing.T) {
	t.Parallel()
	type rules = []*harnessv1.ToolRule
	command := modeltest.Call{Name: "run_command", Arguments: `{"command":"touch ran && go test ./..."}`}
	write := modeltest.Call{Name: "write_file", Arguments: `{"path":"data/table.csv","content":"x"}`}
	for name, c := range map[string]struct {
		rules rules
		call  modeltest.Call
		want  string // run, ask or deny
	}{
		"a command without a rule":        {nil, command, "ask"},
		"a write without a rule":          {nil, write, "run"},
		"allowed by tool":                 {rules{{Name: "run_command", Policy: modesAllow}}, command, "run"},
		"asked for by tool":               {rules{{Name: "write_file", Policy: modesAsks}}, write, "ask"},
		"denied by tool":                  {rules{{Name: "write_file", Policy: modesDeny, Reason: "never"}}, write, "deny"},
		"denied by star":                  {rules{{Name: "*", Policy: modesDeny, Reason: "never"}}, write, "deny"},
		"another tool":                    {rules{{Name: "edit_file", Policy: modesDeny}}, write, "run"},
		"the last by tool decides":        {rules{{Name: "*", Policy: modesDeny}, {Name: "write_file", Policy: modesAllow}}, write, "run"},
		"allowed by pattern":              {rules{{Name: "run_command", Policy: modesAsks}, {Name: "run_command", Policy: modesAllow, Pattern: `go (test|vet)`}}, command, "run"},
		"no pattern that fits":            {rules{{Name: "run_command", Policy: modesAllow, Pattern: `^go build`}}, command, "ask"},
		"asked for by pattern":            {rules{{Name: "write_file", Policy: modesAsks, Pattern: `\.csv$`}}, write, "ask"},
		"denied by pattern of path":       {rules{{Name: "*", Policy: modesDeny, Pattern: `^data/`, Reason: "never"}}, write, "deny"},
		"denied by pattern of command":    {rules{{Name: "*", Policy: modesDeny, Pattern: `^touch`, Reason: "never"}}, command, "deny"},
		"a pattern's denial stands":       {rules{{Name: "*", Policy: modesDeny, Pattern: `^data/`, Reason: "never"}, {Name: "write_file", Policy: modesAllow}}, write, "deny"},
		"allowed by expression":           {rules{{Name: "run_command", Policy: modesAllow, When: `args.command.endsWith("./...")`}}, command, "run"},
		"no expression that holds":        {rules{{Name: "run_command", Policy: modesAllow, When: `args.command == "ls"`}}, command, "ask"},
		"asked for by expression":         {rules{{Name: "*", Policy: modesAsks, When: `tool == "write_file"`}}, write, "ask"},
		"denied by expression":            {rules{{Name: "*", Policy: modesDeny, When: `has(args.path) && args.path.endsWith(".csv")`, Reason: "never"}}, write, "deny"},
		"an expression's denial stands":   {rules{{Name: "*", Policy: modesDeny, When: `has(args.path)`, Reason: "never"}, {Name: "*", Policy: modesAllow}}, write, "deny"},
		"pattern and expression":          {rules{{Name: "*", Policy: modesDeny, Pattern: `csv`, When: `args.content == "y"`}}, write, "run"},
		"a denial that fails holds":       {rules{{Name: "*", Policy: modesDeny, When: `args.content > 3`, Reason: "never"}}, write, "deny"},
		"a denial over what is not there": {rules{{Name: "*", Policy: modesDeny, When: `args.path.endsWith(".csv")`, Reason: "never"}}, command, "ask"},
		"an allowance that fails":         {rules{{Name: "*", Policy: modesAsks}, {Name: "*", Policy: modesAllow, When: `args.content > 3`}}, write, "ask"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modesFate(t, live.Start(t, jitScript(live.Calls(c.call)), modesAsk, modesPolicy(c.rules...)), c.want)
		})
		t.Run(name+", yolo", func(t *testing.T) {
			t.Parallel()
			want := c.want
			if want == "ask" {
				want = "run" // a yes to everything lifts questions, and no denial
			}
			modesFate(t, live.Start(t, jitScript(live.Calls(c.call)), modesPolicy(c.rules...)), want)
		})
	}
}

// modesFate fails the test unless the only call of a run had this fate.
func modesFate(t *testing.T, r *live.Run, want string) {
	t.Helper()
	s := r.Wait()
	ran := r.Exists("ran") || r.Exists("data/table.csv")
	got := "nothing"
	switch {
	case s.Result.GetReason().GetKind() == "approval":
		got = "ask"
	case len(modesDenied(s)) == 1:
		got = "deny"
		if !strings.Contains(jitResult(s, jitID(1, 0)), "never") {
			t.Errorf("the result has no reason: %s", jitResult(s, jitID(1, 0)))
		}
	case ran:
		got = "run"
	}
	if got != want || ran != (want == "run") {
		t.Errorf("it is %s, want %s; ran: %t", got, want, ran)
	}
}

// What was allowed for the run is still denied where a rule denies it.
func TestModesAGrantNeverLiftsADenial(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1 > one.txt")), live.Calls(jitShell("rm one.txt")), live.Calls(jitShell("echo 2 > two.txt"))), modesAsk,
		modesPolicy(&harnessv1.ToolRule{Name: "run_command", Policy: modesDeny, Pattern: `\brm\b`, Reason: "Nothing is removed here."}))
	modesApprove(r, r.Wait(), modesForRun, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	jitSame(t, "denied", modesDenied(s), "2 run_command")
	jitSame(t, "asked", modesAsked(s), "1 run_command")
	modesSays(t, "the answer", jitResult(s, jitID(2, 0)), "Nothing is removed here.")
	if !r.Exists("one.txt") || !r.Exists("two.txt") {
		t.Errorf("one %t, two %t", r.Exists("one.txt"), r.Exists("two.txt"))
	}
}

// Tools of a client that execute ask too, and then wait for the client; a tool with a
// custom name is denied by its arguments.
func TestModesPolicyHoldsForToolsOfClients(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(live.Call("deploy", live.Args{"v": "test"}), live.Call("deploy", live.Args{"v": "production"}))), modesAsk,
		jitClients(jitClient("deploy", &harnessv1.ToolAnnotations{Executes: true})),
		modesPolicy(&harnessv1.ToolRule{Name: "deploy", Policy: modesDeny, When: `args.v == "production"`, Reason: "never"}))
	parked := r.Wait()
	modesApprove(r, parked, modesOnce, "")
	s := r.Wait()
	s.Want("PARKED client_tool")
	s = jitAttend(r)
	s.Want("DONE agent_done accepted")
	jitSame(t, "denied", modesDenied(s), "1 deploy")
	modesSays(t, "the answer", jitResult(s, jitID(1, 0)), "result 1")
	modesSays(t, "the refusal", jitResult(s, jitID(1, 1)), "never")
}

// A policy that cannot be is refused at the start with its place.
func TestModesBadPoliciesAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  *harnessv1.ToolRule
		words []string
	}{
		"pattern":      {&harnessv1.ToolRule{Name: "*", Policy: modesDeny, Pattern: "("}, []string{"spec.agent.tools[1].pattern"}},
		"expression":   {&harnessv1.ToolRule{Name: "*", Policy: modesDeny, When: "args.path =="}, []string{"spec.agent.tools[1].when", "line 1"}},
		"unknown name": {&harnessv1.ToolRule{Name: "*", Policy: modesDeny, When: "argument.path == ''"}, []string{"spec.agent.tools[1].when", "argument"}},
		"tool":         {&harnessv1.ToolRule{Name: "a tool", Policy: modesDeny}, []string{"spec.agent.tools[1].name"}},
		"decision":     {&harnessv1.ToolRule{Name: "*", Policy: 9}, []string{"spec.agent.tools[1].policy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jitRefused(live.Prepare(t, live.Replies(live.Done())), modesPolicy(&harnessv1.ToolRule{Name: "*", Policy: modesAsks}, c.rule), c.words...)
		})
	}
}

// modesHeredoc is a command of 22.9 KB whose last line does harm.
func modesHeredoc() string {
	var b strings.Builder
	b.WriteString("cat > notes.txt <<'EOF'\n")
	for i := 0; b.Len() < 22_860; i++ {
		fmt.Fprintf(&b, "%d: \"quoted\" \\ and <plain>\n", i)
	}
	b.WriteString("EOF\ntouch harm.txt # the end\n")
	return b.String()
}

// What is approved is shown: all of a long command is in the event, in the list and in the
// run, over gRPC and over HTTP, with how it will be run.
func TestModesApprovalShowsTheWholeCall(t *testing.T) {
	t.Parallel()
	command := modesHeredoc()
	r := live.Start(t, jitScript(live.Calls(jitShell(command))), modesAsk)
	parked := r.Wait()
	parked.Want("PARKED approval")
	want, err := json.Marshal(live.Args{"command": command})
	if err != nil || len(want) < 22_900 {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	same := func(where string, arguments string) {
		var got struct{ Command string }
		if json.Unmarshal([]byte(arguments), &got) != nil || got.Command != command {
			t.Errorf("%s has %d bytes of %d", where, len(arguments), len(want))
		}
	}
	for _, e := range parked.Events {
		if a := e.GetApprovalRequested(); a != nil {
			same("the event", a.GetArguments().GetInline())
			p := a.GetPreview()
			if c := p.GetCommand(); len(p.GetDigest()) != 64 || c.GetDirectory() != r.Dir || c.GetLevel() == 0 ||
				c.GetNetwork() != harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL {
				t.Errorf("the preview is %v", p)
			}
		}
	}
	same("the result", parked.Result.GetPending()[0].GetArguments().GetInline())
	type call struct{ Arguments json.RawMessage }
	var list struct{ Pending []struct{ Call call } }
	modesGet(t, "/v1/pending?run_id="+r.ID, &list)
	var run struct{ Pending []call }
	modesGet(t, "/v1/runs/"+r.ID, &run)
	if len(list.Pending) != 1 || len(run.Pending) != 1 {
		t.Fatalf("%d and %d calls over HTTP", len(list.Pending), len(run.Pending))
	}
	same("the list over HTTP", string(list.Pending[0].Call.Arguments))
	same("the run over HTTP", string(run.Pending[0].Arguments))
	events := 0
	for line := range strings.SplitSeq(live.Get(t, "/v1/runs/"+r.ID+"/events?until=now", "application/x-ndjson"), "\n") {
		var e struct {
			Type string
			Data call
		}
		if json.Unmarshal([]byte(line), &e) == nil && e.Type == "approval.requested" {
			events++
			same("the event over HTTP", string(e.Data.Arguments))
		}
	}
	if events != 1 {
		t.Errorf("%d events over HTTP", events)
	}
	modesApprove(r, parked, modesRefuse, "")
	r.Wait().Want("DONE agent_done accepted")
	if r.Exists("harm.txt") {
		t.Error("it ran")
	}
}

// An answer that names the digest of another call is refused, and the call waits on.
func TestModesApprovalOfAnotherCall(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1 > one.txt"))), modesAsk)
	parked := r.Wait()
	id, shown := modesWaiting(r), parked.Result.GetPending()[0].GetPreview().GetDigest()
	answer := func(digest string) error {
		request := modesDecision(id, modesOnce, "")
		request.GetApproval().Digest = digest
		return jitSend(r, request)
	}
	if err := answer(strings.Repeat("0", 64)); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("another digest: %v", err)
	}
	if err := answer("0"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("no digest: %v", err)
	}
	if err := answer(shown); err != nil {
		t.Error(err)
	}
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	for _, e := range s.Events {
		if a := e.GetApprovalAnswered(); a != nil && a.GetDigest() != shown {
			t.Errorf("the event has the digest %q", a.GetDigest())
		}
	}
}

func modesGet(t *testing.T, path string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(live.Get(t, path, "application/json")), into); err != nil {
		t.Fatal(err)
	}
}
