package transcripts

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

var update = flag.Bool("update", false, "rewrite the stories in testdata")

// A story is a list of blocks: what happens, ----, and the records that follow
// from it, up to an empty line. What happens, a line each:
//
//	# words for the reader
//	agent JSON                       what the run's AgentSpec has besides instructions and a model
//	contract JSON                    the run's TaskContract
//	task JSON                        the run's Task
//	job PURPOSE TEXT                 what the model answers to the next job of a purpose; "job PURPOSE ! TEXT" is an error
//	judge down WHY                   no model answers jobs from now on
//	start GOAL                       with settings in front, such as: max_turns=5 prompts=off strict=on tool_calls=3 yolo=on window=16000 runs=2
//	                                 workspace=on quality=on items=on guidance=off jit=off hooks=off stall=off doom=off
//	model TEXT                       what the model answers next, \n for a new line; its calls follow, a line each:
//	  NAME ARGUMENTS
//	model cut off: TEXT              the same, ended by the length limit
//	outage MESSAGE                   the model cannot be reached in the next turn
//	refusal MESSAGE                  the provider refuses the next turn
//	tool NAME RESULT                 what the tool returns next; "tool NAME ! RESULT" is an error
//	say|interrupt|cancel [TEXT]      something comes into the inbox
//	mode NAME|replan [WHY]           so does this
//	answer CALL TEXT                 the answer to a question or of a client's tool; "answer CALL ! TEXT" is an error;
//	                                 CALL may be question, for the first that waits
//	check OUTPUT met|unmet [WHY]     how an output of the contract stands from now on; at first it is unmet
//	approve CALL once|run|deny [WHY]
//	reported CALL STATUS TEXT        the sub-agent of a call, or of a task as graph/ID, parks or ends, with this answer; PARKED:KIND
//	                                 is a park with a kind
//	graph JSON                       the run's graph: a list of tasks
//	resume [tool_calls=N runs=N]
//	timer [VERSION]                  the timer of the park at VERSION fires, by default the present one
//	again                            the last item is sent a second time
//	mid turn N: ...                  one of these while turn N is under way
//	die at started|admitted|responded|judged|tools|finished   the worker of the next turn dies there
//	ends ID HOW                      a background command ends by itself; those of calls with {"background":true} are bg1, bg2 …
//	lost background                  the tool host dies, and its background commands with it
//	lose ledger                      the tool host forgets its calls when the worker dies
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no stories", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			got := tell(t, string(want))
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(want) {
				t.Errorf("the story goes otherwise now; see with -update and git diff:\n%s", firstDifference(string(want), got))
			}
			if begun, ended := strings.Count(got, "* step.start "), strings.Count(got, "* step.end "); begun != ended {
				t.Errorf("%d times step.start, %d times step.end", begun, ended)
			}
		})
	}
}

// tell plays a story and returns it with what happened.
func tell(t *testing.T, story string) string {
	t.Helper()
	return tellTo(t, newDriver(t), story)
}

func tellTo(t *testing.T, d *driver, story string) string {
	t.Helper()
	var out strings.Builder
	told := 0
	for _, block := range strings.Split(strings.TrimSpace(story), "\n\n") {
		script, _, _ := strings.Cut(block, "----")
		script = strings.TrimRight(script, "\n")
		silent := true
		for _, line := range strings.Split(script, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				silent = false
				d.play(line)
			}
		}
		out.WriteString(script + "\n")
		if !silent {
			d.rest()
			out.WriteString("----\n")
			for ; told < len(d.log); told++ {
				out.WriteString(render(d.log[told]))
			}
		}
		out.WriteByte('\n')
	}
	if wrong := d.rejudge(d.log); len(wrong) > 0 {
		t.Errorf("judged again, %s", strings.Join(wrong, "\n"))
	}
	if len(d.answers) > 0 {
		t.Errorf("%d answers of the model were never asked for", len(d.answers))
	}
	for purpose, left := range d.judges.answers {
		if len(left) > 0 {
			t.Errorf("%d answers to jobs of the purpose %s were never asked for", len(left), purpose)
		}
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

// play makes one line of a script happen.
func (d *driver) play(line string) {
	d.t.Helper()
	if call, ok := strings.CutPrefix(line, "  "); ok {
		name, arguments, _ := strings.Cut(call, " ")
		last := &d.answers[len(d.answers)-1].response
		id := fmt.Sprintf("c%d", len(d.log)+len(d.answers)*10+len(last.ToolCalls)+1)
		if first, rest, named := strings.Cut(name, ":"); named {
			id, name = first, rest
		}
		last.ToolCalls = append(last.ToolCalls, &harnessv1.ToolCall{Id: id, Name: name, Arguments: content.Inline(arguments)})
		return
	}
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "start":
		d.begin(specOf(d, rest))
	case "agent":
		if err := protojson.Unmarshal([]byte(rest), d.agent); err != nil {
			d.t.Fatal(line, err)
		}
		d.agent.Instructions, d.agent.Model = "You are the hero of a story.", "script:story"
	case "graph":
		graph := &harnessv1.RunSpec{}
		if err := protojson.Unmarshal([]byte(`{"graph":`+rest+`}`), graph); err != nil {
			d.t.Fatal(line, err)
		}
		d.graph = graph.GetGraph()
	case "contract":
		d.task = &harnessv1.TaskContract{}
		if err := protojson.Unmarshal([]byte(rest), d.task); err != nil {
			d.t.Fatal(line, err)
		}
	case "task":
		d.work = &harnessv1.Task{}
		if err := protojson.Unmarshal([]byte(rest), d.work); err != nil {
			d.t.Fatal(line, err)
		}
	case "job":
		purpose, text, _ := strings.Cut(rest, " ")
		d.judges.answers[purpose] = append(d.judges.answers[purpose], text)
	case "judge":
		d.judges.down = strings.TrimPrefix(rest, "down ")
	case "check":
		part := strings.SplitN(rest, " ", 3)
		seen := &harnessv1.RequirementCoverage{Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET}
		if part[1] == "met" {
			seen.Status, seen.Confidence = harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, 1
			seen.Evidence = []*harnessv1.Evidence{{Kind: "file", Text: part[0]}}
		}
		if len(part) == 3 {
			seen.Why = part[2]
		}
		d.checks[part[0]] = seen
	case "model":
		response := model.Response{Text: strings.ReplaceAll(rest, `\n`, "\n"), FinishReason: "stop", Usage: &harnessv1.Usage{InputTokens: 100, OutputTokens: 10}}
		if text, cut := strings.CutPrefix(rest, "cut off: "); cut {
			response.Text, response.FinishReason = text, "length"
		}
		d.answers = append(d.answers, answer{response: response})
	case "outage":
		d.answers = append(d.answers, answer{failure: &harnessv1.TurnError{
			Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE, Message: rest}})
	case "refusal":
		d.answers = append(d.answers, answer{failure: &harnessv1.TurnError{
			Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR, Message: rest}})
	case "tool":
		name, text, _ := strings.Cut(rest, " ")
		text, failed := strings.CutPrefix(text, "! ")
		d.results[name] = append(d.results[name], result{text: text, failed: failed})
	case "mid":
		at, what, _ := strings.Cut(strings.TrimPrefix(rest, "turn "), ": ")
		n, err := strconv.Atoi(at)
		if err != nil {
			d.t.Fatal(line)
		}
		d.onTurn[uint32(n)] = append(d.onTurn[uint32(n)], func(d *driver) { d.play(what) })
	case "die":
		d.crash = strings.TrimPrefix(rest, "at ")
	case "ends":
		id, end, _ := strings.Cut(rest, " ")
		d.endBackground(id, end)
	case "lost":
		d.loseBackground()
	case "lose":
		d.forget = true
	case "again":
		if n := len(d.inbox); n > 0 {
			d.send(proto.CloneOf(d.inbox[n-1]))
		}
	default:
		d.send(itemOf(d, word, rest))
	}
}

func itemOf(d *driver, word, rest string) *harnessv1.InboxItem {
	switch word {
	case "say":
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(rest)}}}
	case "interrupt":
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: rest}}}
	case "cancel":
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: rest}}}
	case "mode":
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: rest}}}
	case "replan":
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Replan{Replan: &harnessv1.ReplanRequest{Reason: rest}}}
	case "answer":
		call, text, _ := strings.Cut(rest, " ")
		if call == "question" { // the first that is put, whatever its call is called
			for _, c := range runstate.AwaitedCalls(d.snapshot()) {
				if c.GetKind() == runstate.KindQuestion {
					call = c.GetCallId()
					break
				}
			}
		}
		text, failed := strings.CutPrefix(text, "! ")
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
			CallId: call, Result: content.Inline(text), IsError: failed,
		}}}
	case "reported":
		part := strings.SplitN(rest, " ", 3)
		c := tree.Find(d.snapshot(), part[0])
		status, kind, parks := strings.Cut(part[1], ":")
		if !parks {
			kind = "agent_done"
		}
		return tree.ReportItem(&harnessv1.ChildReport{
			RunId: c.GetRunId(), CallId: part[0], Version: c.GetReport().GetVersion() + 9, Order: c.GetOrder(),
			Status: harnessv1.RunStatus(harnessv1.RunStatus_value["RUN_STATUS_"+status]), Accepted: status == "DONE",
			Reason: &harnessv1.StopReason{Kind: kind}, Turns: 2, Usage: &harnessv1.Usage{InputTokens: 900, OutputTokens: 100}, Answer: content.Inline(part[2]),
		})
	case "resume":
		budgets := &harnessv1.Budgets{}
		settings(d, rest, func(key string, n uint32) {
			switch key {
			case "tool_calls":
				budgets.ToolCalls = &n
			case "runs":
				budgets.Runs = &n
			}
		})
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: budgets}}}
	case "timer":
		version := d.snapshot().GetParkVersion()
		if rest != "" {
			version, _ = strconv.ParseUint(rest, 10, 64)
		}
		return &harnessv1.InboxItem{
			Id:    fmt.Sprintf("timer-%d", version),
			Input: &harnessv1.InboxItem_TimerFired{TimerFired: &harnessv1.TimerFired{ParkVersion: version}},
		}
	case "approve":
		part := strings.SplitN(rest, " ", 3)
		a := &harnessv1.Approval{CallId: part[0], Decision: map[string]harnessv1.ApprovalDecision{
			"once": harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE,
			"run":  harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN,
			"deny": harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY,
		}[part[1]]}
		if len(part) == 3 {
			a.Reason = part[2]
		}
		return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Approval{Approval: a}}
	}
	d.t.Fatalf("no story goes %q", word)
	return nil
}

// specOf takes the settings off the front of a goal.
func specOf(d *driver, text string) *harnessv1.RunSpec {
	c := &harnessv1.LoopConfig{
		Stop: &harnessv1.StopConfig{}, Continuation: &harnessv1.ContinuationConfig{}, Budgets: &harnessv1.Budgets{},
		Tools: &harnessv1.ToolConfig{}, Model: &harnessv1.ModelConfig{OutageRetry: durationpb.New(time.Minute)},
		WorkItems: &harnessv1.WorkItemConfig{}, Guidance: &harnessv1.GuidanceConfig{}, Hooks: &harnessv1.HookConfig{},
		Stall: &harnessv1.StallConfig{}, DoomLoop: &harnessv1.DoomLoopConfig{}, Context: &harnessv1.ContextConfig{},
	}
	workspace := ""
	goal := settings(d, text, func(key string, n uint32) {
		no, yes := false, true
		switch key {
		case "window":
			c.Context.MaxInputTokens = &n
		case "max_turns":
			c.Stop.MaxTurns = &n
		case "retries":
			c.Stop.WorkCompleteMaxRetries = &n
		case "tool_calls":
			c.Budgets.ToolCalls = &n
		case "turns":
			c.Budgets.Turns = &n
		case "runs":
			c.Budgets.Runs = &n
		case "prompts":
			c.Continuation.Enabled = &no
		case "required":
			c.Stop.RequireWorkComplete = &no
		case "strict":
			c.Stop.Policy = harnessv1.StopPolicy_STOP_POLICY_STRICT
		case "yolo":
			c.Tools.Yolo = &yes
		case "items":
			c.WorkItems.Enabled = &yes
		case "guidance":
			c.Guidance.Enabled = &no
		case "jit":
			c.Guidance.Jit = &no
		case "hooks":
			c.Hooks.Enabled = &no
		case "stall":
			c.Stall.Enabled = &no
		case "quality":
			c.Quality = &harnessv1.QualityConfig{Enabled: &yes, Model: "script:judge"}
		case "workspace":
			workspace = "/w"
		case "doom":
			c.DoomLoop.Enabled = &no
		default:
			d.t.Fatalf("no setting is called %q", key)
		}
	})
	return &harnessv1.RunSpec{Goal: content.Inline(goal), Agent: d.agent, Config: c, Contract: d.task, Workspace: workspace, Graph: d.graph, Task: d.work}
}

func settings(d *driver, text string, set func(key string, n uint32)) (rest string) {
	for {
		word, after, _ := strings.Cut(text, " ")
		key, number, is := strings.Cut(word, "=")
		if !is {
			return text
		}
		n := uint64(0)
		if number != "off" && number != "on" {
			var err error
			if n, err = strconv.ParseUint(number, 10, 32); err != nil {
				d.t.Fatal(word, err)
			}
		}
		set(key, uint32(n))
		text = after
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\n  told %s\n  now  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("told %d lines, now %d", len(w), len(g))
}
