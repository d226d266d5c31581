package judgement

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// A custom rule fires once, in the first turn in which its condition is true: its
// text is the newest message of that turn, from the user's place, word for word.
func TestJitOwnRuleFiresOnce(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(live.Calls(jitWrite("a.txt", "1")), live.Calls(jitWrite("a.txt", "2")), live.Calls(jitWrite("a.txt", "3"))),
		jitRules(jitRule("test-first", "turn >= 2 && writes > 0", "Run the tests before you go on.")))
	s.Want("DONE agent_done accepted")
	jitSame(t, "turns", jitOf(s, "test-first"), "2")
	last := s.Requests[1].Messages[len(s.Requests[1].Messages)-1]
	if last.Role != "user" || last.Content != jitMark+"Run the tests before you go on." {
		t.Errorf("the newest message of the turn is %s %q", last.Role, last.Content)
	}
	if got := strings.Count(s.Text(len(s.Requests)-1), "Run the tests before you go on."); got != 1 {
		t.Errorf("it was said %d times", got)
	}
	if got := s.State().GetJit().GetFired(); len(got) != 2 || got[0] != "test-first" {
		t.Errorf("the state knows of %q", got)
	}
}

// A rule that is not to fire once fires in each turn in which its condition holds, and
// in no other.
func TestJitOwnRuleFiresEachTime(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(5)...), jitRules(jitAlways("odd", "turn % 2 == 1", "An odd turn, number {{ turn }}.")))
	s.Want("DONE agent_done accepted")
	jitSame(t, "turns", jitOf(s, "odd"), "1", "3", "5")
	for _, n := range []int{0, 2, 4} {
		jitTold(t, s, n, fmt.Sprintf("An odd turn, number %d.", n+1))
	}
	jitStable(t, s)
}

// The text of a rule may be computed: every name that a condition sees has the value of
// the turn that it is said in. The harness's own tools are counted too.
func TestJitTextIsComputed(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(
		live.Calls(live.Call("work_item_add", live.Args{"title": "One", "id": "one"}), live.Call("work_item_add", live.Args{"title": "Two", "id": "two"})),
		live.Calls(jitRead("f00.txt"), jitRead("f01.txt"), jitLook(), jitWrite("out.txt", "x")),
		live.Calls(live.Call("work_item_update", live.Args{"id": "one", "status": "DONE"}), live.Call("no_such_tool", live.Args{}), jitRead("gone.txt")),
		live.Calls(live.Call("work_item_update", live.Args{"id": "two", "status": "SKIPPED", "notes": "not wanted"})),
	))
	jitFiles(r, 2)
	s := jitBegin(r, jitItems, jitMaxTurns(20), jitRules(jitAlways("all", "true",
		`turn {{ turn }}/{{ max_turns }} reads {{ reads }} writes {{ writes }} explores {{ explores }} `+
			`items {{ work_items_complete }}/{{ work_items_total }} adds {{ tool_usage["work_item_add"] }} `+
			`read_file {{ tool_usage["read_file"] }} never {{ tool_usage["edit_file"] }} files {{ files_changed }} compactions {{ compaction_count }} `+
			`{{ reads > 1 ? "many" : "few" }}`))).Wait()
	s.Want("DONE agent_done accepted")
	for n, want := range []string{
		"turn 1/20 reads 0 writes 0 explores 0 items 0/0 adds 0 read_file 0 never 0 files 0 compactions 0 few",
		"turn 2/20 reads 0 writes 0 explores 0 items 0/2 adds 2 read_file 0 never 0 files 0 compactions 0 few",
		"turn 3/20 reads 2 writes 1 explores 1 items 0/2 adds 2 read_file 2 never 0 files 1 compactions 0 many",
		"turn 4/20 reads 3 writes 1 explores 1 items 1/2 adds 2 read_file 3 never 0 files 1 compactions 0 many",
		"turn 5/20 reads 3 writes 1 explores 1 items 2/2 adds 2 read_file 3 never 0 files 1 compactions 0 many",
	} {
		jitTold(t, s, n, want)
	}
}

// Built-in rules precede custom ones, which follow the order of the list.
func TestJitCustomRulesFollowTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(3)...), jitRules(jitRule("z", "turn == 3", "z"), jitRule("a", "turn == 3", "a")))
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s), "3 no_reads_after_3_turns", "3 z", "3 a")
	news := jitSaid(s, 2)
	if len(news) != 3 || news[1] != "z" || news[2] != "a" {
		t.Errorf("the turn gets %q", news)
	}
}

// A condition or a text that cannot be computed is left out in that turn and recorded;
// the others are not touched by it, and it fires once it can.
func TestJitWhatCannotBeComputedIsLeftOutAndRecorded(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(jitLooks(2)...), jitRules(
		jitRule("condition", "10 / (turn - 1) == 10", "computed"),
		jitRule("text", "true", "a tenth is {{ 10 / (turn - 1) }}"),
		jitRule("sound", "true", "sound")))
	s.Want("DONE agent_done accepted")
	jitSame(t, "fired", jitFired(s), "1 sound", "2 condition", "2 text", "3 no_reads_after_3_turns")
	var failed []string
	for _, e := range s.Events {
		if h := e.GetHookError(); h != nil {
			failed = append(failed, fmt.Sprintf("%d %s %s", e.GetTurnNumber(), h.GetTopic(), h.GetHookId()))
			if h.GetError() == "" {
				t.Errorf("the event of %s has no error", h.GetHookId())
			}
		}
	}
	jitSame(t, "recorded", failed, "1 jit condition", "1 jit text")
	jitTold(t, s, 1, "a tenth is 10")
	jitTold(t, s, 1, "computed")
}

// A turn that continues after an approval does not get its rules again.
func TestJitATurnThatContinuesGetsItsRulesOnce(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1"))), jitRules(jitAlways("each", "true", "turn {{ turn }}")), modesAsk)
	modesApprove(r, r.Wait(), harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	jitSame(t, "turns", jitOf(s, "each"), "1", "2")
}

// A rule has fired for the whole run: another message does not let it fire again.
func TestJitOnceIsOnceInARun(t *testing.T) {
	t.Parallel()
	r := live.Start(t, live.Replies(live.Done()), jitRules(jitRule("once", "true", "once"), jitAlways("each", "true", "each")))
	r.Wait().Want("DONE agent_done accepted")
	if err := jitSend(r, modesMessage("And now?")); err != nil {
		t.Fatal(err)
	}
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 2 {
		t.Fatalf("%d turns", s.Result.GetTurnCount())
	}
	jitSame(t, "fired", jitFired(s), "1 once", "1 each", "2 each")
}

// A call that a person refuses did not run: it is counted as a call of its tool, and
// not as something that was written.
func TestJitARefusedCallHasWrittenNothing(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1 > out.txt"))), modesAsk, jitRules(jitAlways("each", "true",
		`writes {{ writes }} of {{ tool_usage["run_command"] }}`)))
	modesApprove(r, r.Wait(), harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY, "no")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	if r.Exists("out.txt") {
		t.Error("it ran")
	}
	jitTold(t, s, 1, "writes 0 of 1")
}

// One that a person allows did: on the tool host, and with the client that answers it.
func TestJitAnAllowedCallHasWritten(t *testing.T) {
	t.Parallel()
	r := live.Start(t, jitScript(live.Calls(jitShell("echo 1 > out.txt")), live.Calls(live.Call("deploy", live.Args{"v": 1}))), modesAsk,
		jitClients(jitClient("deploy", &harnessv1.ToolAnnotations{Writes: true, Executes: true})),
		jitRules(jitAlways("each", "true", `writes {{ writes }} of {{ tool_usage["run_command"] + tool_usage["deploy"] }}`)))
	modesApprove(r, r.Wait(), modesOnce, "")
	modesApprove(r, r.Wait(), modesOnce, "")
	s := jitAttend(r)
	s.Want("DONE agent_done accepted")
	for n, want := range []string{"writes 0 of 0", "writes 1 of 1", "writes 2 of 2"} {
		jitTold(t, s, n, want)
	}
}

// One that the policy denies has written nothing either, nor has one whose arguments do
// not fit.
func TestJitADeniedCallHasWrittenNothing(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(live.Calls(jitShell("echo 1 > out.txt"), live.Call("write_file", live.Args{"path": 7}))),
		modesPolicy(&harnessv1.ToolRule{Name: "run_command", Policy: harnessv1.ToolDecision_TOOL_DECISION_DENY}),
		jitRules(jitAlways("each", "true", `writes {{ writes }} of {{ tool_usage["run_command"] }} and {{ tool_usage["write_file"] }}`)))
	s.Want("DONE agent_done accepted")
	jitTold(t, s, 1, "writes 0 of 1 and 1")
}

// A rule may look at the time that the run has worked. It does not fire before, and
// the time of a command counts.
func TestJitSecondsElapsed(t *testing.T) {
	t.Parallel()
	s := live.Play(t, jitScript(live.Calls(jitShell("sleep 1.5"))), jitRules(
		jitRule("late", "seconds_elapsed > 1000.0", "late"),
		jitAlways("clock", "true", "worked {{ seconds_elapsed }} s"),
		jitRule("a-second", "seconds_elapsed >= 1.5 && turn == 2", "a second and a half are over")))
	s.Want("DONE agent_done accepted")
	jitSame(t, "late", jitOf(s, "late"))
	jitSame(t, "a second and a half", jitOf(s, "a-second"), "2")
	first, second := jitSeconds(t, s, 0), jitSeconds(t, s, 1)
	if second-first < 1.5 {
		t.Errorf("the clock went from %v to %v over a command of 1.5 s", first, second)
	}
}

// jitSeconds is what request n says of the time.
func jitSeconds(t *testing.T, s *live.Transcript, n int) float64 {
	t.Helper()
	for _, m := range jitSaid(s, n) {
		if text, ok := strings.CutPrefix(m, "worked "); ok {
			seconds, err := strconv.ParseFloat(strings.TrimSuffix(text, " s"), 64)
			if err != nil {
				t.Fatal(err)
			}
			return seconds
		}
	}
	t.Fatalf("request %d does not tell the time", n+1)
	return 0
}

// Parked time does not count: the value in the second turn is at most the time before
// and after the park.
func TestJitParkedTimeDoesNotCount(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	r := live.Start(t, jitScript(live.Calls(live.Call("ask_user", live.Args{"question": "Which?"}))), jitRules(jitAlways("clock", "true", "worked {{ seconds_elapsed }} s")))
	parked := r.Wait()
	rest := parked.Events[len(parked.Events)-1].GetTime().AsTime()
	if err := exec.Command("sleep", "2").Run(); err != nil { // the run stays parked for 2 seconds
		t.Fatal(err)
	}
	answer := time.Now()
	jitAnswer(r, modesWaiting(r), "The blue one.")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	var second time.Time
	for _, e := range s.Events {
		if e.GetStepStart() != nil && e.GetTurnNumber() == 2 {
			second = e.GetTime().AsTime()
		}
	}
	most := rest.Sub(begin) + second.Sub(answer)
	if got := jitSeconds(t, s, 1); got <= 0 || got > most.Seconds() {
		t.Errorf("seconds_elapsed = %v in the second turn, want at most %v", got, most)
	}
}

// Files that the file tools change are counted, each once, where there is no repository.
func TestJitFilesChangedByTools(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(
		live.Calls(jitRead("f00.txt")),
		live.Calls(jitWrite("a.txt", "1"), jitWrite("b/c.txt", "1")),
		live.Calls(jitWrite("a.txt", "2"), live.Call("edit_file", live.Args{"path": "f00.txt", "old": "file 0", "new": "x"})),
	))
	jitFiles(r, 1)
	s := jitBegin(r, jitRules(jitAlways("count", "true", "changed {{ files_changed }}"), jitRule("two", "files_changed >= 2", "two files"))).Wait()
	s.Want("DONE agent_done accepted")
	for n, want := range []string{"changed 0", "changed 0", "changed 2", "changed 3"} {
		jitTold(t, s, n, want)
	}
	jitSame(t, "two files", jitOf(s, "two"), "3")
}

// In a repository git status counts too, so that changes by a command count, and what
// both name counts once.
func TestJitFilesChangedByGit(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, jitScript(
		live.Calls(jitShell("echo 1 > made-by-a-command.txt; echo more >> f00.txt")),
		live.Calls(jitWrite("f00.txt", "again"), jitWrite("made-by-a-tool.txt", "x")),
		live.Calls(jitShell("git checkout -q f00.txt && rm made-by-a-command.txt")),
	))
	jitFiles(r, 2)
	jitGit(r, "init", "-q")
	jitGit(r, "add", ".")
	jitGit(r, "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "-m", "first")
	s := jitBegin(r, jitRules(jitAlways("count", "true", "changed {{ files_changed }}"), jitRule("commit", "files_changed >= 3", "Commit what you have."))).Wait()
	s.Want("DONE agent_done accepted")
	// What a tool has changed stays changed, also when git no longer sees a difference.
	for n, want := range []string{"changed 0", "changed 2", "changed 3", "changed 2"} {
		jitTold(t, s, n, want)
	}
	jitSame(t, "three files", jitOf(s, "commit"), "3")
}

func jitGit(r *live.Run, arguments ...string) {
	r.T.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.Dir}, arguments...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		r.T.Fatalf("git %v: %v\n%s", arguments, err, out)
	}
}

// A rule that cannot be is refused at the start, with its place and what to do.
func TestJitBadRulesAreRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	good := jitRule("good", "true", "x")
	for name, c := range map[string]struct {
		rule  *harnessv1.JitRule
		words []string
	}{
		"no expression":       {jitRule("a", "turn >", "x"), []string{"spec.agent.jit[1].when", "line 1, column 7"}},
		"an unknown name":     {jitRule("a", "turn > 1 &&\n weather == 'fine'", "x"), []string{"spec.agent.jit[1].when", "line 2, column 2", "weather", "files_changed"}},
		"no truth":            {jitRule("a", "turn + 1", "x"), []string{"spec.agent.jit[1].when", "expected bool"}},
		"empty condition":     {jitRule("a", " ", "x"), []string{"spec.agent.jit[1].when"}},
		"empty text":          {jitRule("a", "true", " "), []string{"spec.agent.jit[1].text"}},
		"text that is no one": {jitRule("a", "true", "turn {{ trun }}"), []string{"spec.agent.jit[1].text", "trun"}},
		"too long a text":     {jitRule("a", "true", strings.Repeat("x", 4097)), []string{"spec.agent.jit[1].text", "4096"}},
		"an id twice":         {jitRule("good", "true", "x"), []string{"spec.agent.jit[1].id", "jit[0]"}},
		"a built-in id":       {jitRule("no_reads_after_3_turns", "true", "x"), []string{"spec.agent.jit[1].id", "built-in"}},
		"no id":               {jitRule("", "true", "x"), []string{"spec.agent.jit[1].id"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jitRefused(live.Prepare(t, live.Replies(live.Done())), jitRules(good, c.rule), c.words...)
		})
	}
	t.Run("too many", func(t *testing.T) {
		t.Parallel()
		var rules []*harnessv1.JitRule
		for i := range 65 {
			rules = append(rules, jitRule(fmt.Sprint("r", i), "true", "x"))
		}
		jitRefused(live.Prepare(t, live.Replies(live.Done())), jitRules(rules...), "spec.agent.jit", "64")
	})
}

// Over a long run with rules of both kinds, items and a change of the mode, each request
// begins with the one before it, byte for byte.
func TestJitALongRunKeepsItsPrefix(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	files := jitFiles(r, 30)
	r.Model.Answer = func(n int, _ *modeltest.Request) modeltest.Reply {
		switch n {
		case 0:
			return live.Calls(live.Call("work_item_add", live.Args{"title": "Read all", "id": "all"}))
		case 10:
			if err := jitSend(r, modesTo("plan")); err != nil {
				t.Error(err)
			}
		case 30:
			return live.Calls(live.Call("work_item_update", live.Args{"id": "all", "status": "DONE"}), modesDone)
		}
		return live.Calls(jitRead(files[n-1]))
	}
	s := jitBegin(r, jitItems, jitMaxTurns(35), jitRules(
		jitAlways("each", "turn % 3 == 0", "turn {{ turn }}, {{ reads }} reads, {{ files_changed }} files, {{ seconds_elapsed < 0.0 }}"),
		jitRule("once", "reads > 4", "more than four"))).Wait()
	s.Want("DONE agent_done accepted")
	if len(s.Requests) != 31 || len(jitFired(s)) != 10+1+3 {
		t.Errorf("%d requests, fired %q", len(s.Requests), jitFired(s))
	}
	jitStable(t, s)
}

// A rule can fire in the first turn; that it fired is also remembered
// over a turn that the provider did not answer.
func TestJitAnOutageDoesNotRepeatARule(t *testing.T) {
	t.Parallel()
	failed := 0
	r := live.Start(t, func(_ int, _ *modeltest.Request) modeltest.Reply {
		if failed++; failed < 3 {
			return modeltest.Reply{Status: 503}
		}
		return live.Done()
	}, jitRules(jitRule("once", "true", "said once"), jitAlways("each", "true", "said each turn")), func(spec *harnessv1.RunSpec) {
		spec.Config.Model = &harnessv1.ModelConfig{MaxTries: proto.Uint32(2), BackoffInitial: modesSoon, OutageRetry: modesSoon}
	})
	s := r.Follow(harnessv1.WatchUntil_WATCH_UNTIL_END, 0)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || len(s.Names("session.resume")) == 0 {
		t.Fatalf("%d turns, %v", s.Result.GetTurnCount(), s.Names())
	}
	last := s.Text(len(s.Requests) - 1)
	for _, text := range []string{"said once", "said each turn"} {
		if got := strings.Count(last, text); got != 1 {
			t.Errorf("%q is %[2]d times in the only turn, want once", text, got)
		}
	}
}
