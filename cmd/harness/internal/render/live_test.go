package render

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render/markdown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/rendertest"
)

var update = flag.Bool("update", false, "write the golden files")

// stage is a run on a terminal with a fixed clock.
type stage struct {
	*Live
	terminal *rendertest.Terminal
	now      time.Time
	version  uint64
}

func newStage(width, height int, style Style) *stage {
	s := &stage{terminal: rendertest.New(width, height), now: now}
	s.Live = newLive(LiveConfig{
		Out: s.terminal, Style: style, Size: func() (int, int) { return width, height }, Now: func() time.Time { return s.now },
		Initial: Initial{State: &harnessv1.Snapshot{
			MaxTurns: 50, TokenBudget: &harnessv1.TokenBudget{MaxInputTokens: 128000, SoftTokens: 102400, BlockingTokens: 121600},
			Config: &harnessv1.LoopConfig{Budgets: &harnessv1.Budgets{ToolCalls: new(uint32(300)), CostUsd: new(0.5)}},
		}},
	})
	return s
}

// after lets time pass and shows an event.
func (s *stage) after(d time.Duration, turn uint32, e *harnessv1.Event) {
	s.now = s.now.Add(d)
	s.version++
	e.Version, e.Id, e.Time, e.TurnNumber, e.MaxTurns = s.version, fmt.Sprintf("%d-0", s.version), timestamppb.New(s.now), turn, 50
	s.Event(e)
	s.Tick()
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

func begun(attempt uint32) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: attempt}}}
}

func responded(text string, calls uint32, in, out, cost uint64) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{
		Text: inline(text), ToolCalls: calls, Usage: &harnessv1.Usage{InputTokens: in, OutputTokens: out, CostMicroUsd: cost},
	}}}
}

func calling(id, tool, arguments, awaits string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: id, Tool: tool, Arguments: inline(arguments), Awaits: awaits}}}
}

func resulted(id, tool, result string, took time.Duration) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolResult{ToolResult: &harnessv1.ToolResult{CallId: id, Tool: tool, Result: inline(result), Duration: durationpb.New(took)}}}
}

func erred(id, tool, text string, took time.Duration) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: id, Tool: tool, Error: inline(text), Duration: durationpb.New(took)}}}
}

func stepEnded(outcome string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StepEnd{StepEnd: &harnessv1.StepEnd{Outcome: outcome}}}
}

const firstThought = "**Reading the program**\n\nThe tests of till fail. Either the test is wrong or the sum is; the names of the tests say that a sum of no amounts is expected to be 0.\n\n" +
	"I should read both files before I run anything, because a test that fails to compile looks like one that fails.\n\n" +
	"- till.go has the function\n- till_test.go has three cases\n\nThen I run the tests once."

const firstText = "I'll look around first, **before** I change anything:\n\n- what the `till` does\n- what the test says of it, and where the two do not agree with each other\n"

// play shows a run with many kinds of events; scene is called where the terminal is
// compared.
func (s *stage) play(scene func(string)) {
	s.Header("r-till", "openai:gpt-5", "/home/ann/shop/till", "The tests of this program fail. Find out why and mend the program.")
	s.after(0, 0, &harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Segment: 1}}})
	s.after(100*time.Millisecond, 0, &harnessv1.Event{Event: &harnessv1.Event_ContextUsage{ContextUsage: &harnessv1.ContextUsage{UsedTokens: 42000, MaxInputTokens: 128000}}})
	s.after(0, 1, begun(1))
	s.now = s.now.Add(3 * time.Second)
	s.Tick()
	scene("thinking")
	for i := 0; i < len(firstThought); i += 9 {
		s.Delta(thought(1, 1, 1, i, firstThought[i:min(len(firstThought), i+9)]))
		s.Tick()
	}
	scene("reasoning")
	for i := 0; i < len(firstText)-40; i += 7 {
		s.Delta(piece(1, 1, 1, i, firstText[i:i+7]))
		s.Tick()
	}
	scene("writing")
	first := responded(firstText, 3, 41000, 310, 54000)
	first.GetModelResponse().Reasoning = inline(firstThought)
	first.GetModelResponse().Usage.ReasoningTokens, first.GetModelResponse().Usage.CacheWriteTokens = 120, 2000
	s.after(time.Second, 1, first)
	s.after(0, 1, calling("c1", "read_file", `{"path":"till.go"}`, ""))
	s.after(0, 1, calling("c2", "run_command", `{"command":"go test -count=1 ./... && go vet ./... && echo a long command whose middle says least"}`, ""))
	s.after(0, 1, calling("c3", "read_file", `{"path":"till_test.go","limit":200}`, ""))
	s.after(20*time.Millisecond, 1, resulted("c1", "read_file", "package till\n\nfunc Total", 3*time.Millisecond))
	s.after(0, 1, resulted("c3", "read_file", "package till", 2*time.Millisecond))
	s.now = s.now.Add(65 * time.Second)
	s.Tick()
	scene("tools")
	s.after(0, 1, erred("c2", "run_command", "--- FAIL: TestTotal (0.00s)\n    till_test.go:12: got 0", 65*time.Second))
	s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_WorkItemChanged{WorkItemChanged: &harnessv1.WorkItemChanged{Item: &harnessv1.WorkItem{Id: "w1", Title: "Mend the loop", Status: harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS}, Total: 2}}})
	s.after(0, 1, stepEnded("completed"))
	s.after(0, 0, &harnessv1.Event{Event: &harnessv1.Event_ContextPressure{ContextPressure: &harnessv1.ContextPressure{Level: "soft", UsedTokens: 104000, MaxInputTokens: 128000}}})
	s.after(0, 0, &harnessv1.Event{Event: &harnessv1.Event_CompactionStarted{CompactionStarted: &harnessv1.CompactionStarted{Level: "blocking", TokensBefore: 122000, Job: "k1"}}})
	s.now = s.now.Add(12 * time.Second)
	s.Tick()
	scene("waiting for a summary")
	s.after(0, 0, &harnessv1.Event{Event: &harnessv1.Event_CompactionCompleted{CompactionCompleted: compactedPass()}})
	s.after(0, 0, &harnessv1.Event{Event: &harnessv1.Event_ContextUsage{ContextUsage: &harnessv1.ContextUsage{UsedTokens: 62400, MaxInputTokens: 128000, Cleared: 34, Externalized: 2, Summarized: 41}}})
	s.after(0, 2, begun(1))
	s.after(time.Second, 2, &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Try: 1, Error: "429 too many requests", Wait: durationpb.New(4 * time.Second)}}})
	scene("retrying")
	second := responded("", 2, 104000, 60, 380000)
	second.GetModelResponse().Usage.ReasoningTokens = 40
	s.after(4*time.Second, 2, second)
	s.after(0, 2, calling("d1", "run_command", `{"command":"make deploy"}`, "approval"))
	s.after(0, 2, &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{CallId: "d1", Tool: "run_command", Arguments: inline(`{"command":"make deploy"}`), Why: "it runs commands"}}})
	s.after(0, 2, &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{CallId: "d2", Tool: "write_file", Reason: "the policy denies it"}}})
	s.after(0, 2, stepEnded("awaiting_tool"))
	scene("asking")
	s.after(time.Minute, 2, &harnessv1.Event{Event: &harnessv1.Event_ApprovalAnswered{ApprovalAnswered: &harnessv1.ApprovalAnswered{CallId: "d1", Tool: "run_command", Decision: harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE}}})
	s.after(0, 2, &harnessv1.Event{Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1, Resumed: true}}})
	s.after(0, 2, resulted("d1", "run_command", "deployed", 1200*time.Millisecond))
	s.after(0, 2, stepEnded("completed"))
	s.after(0, 2, &harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
		Coverage:     &harnessv1.Coverage{Met: 1, Total: 2, Unmet: []string{"cites"}},
		Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "cites", Why: "no match in file:report.md"}},
	}}})
	s.after(0, 2, &harnessv1.Event{Event: &harnessv1.Event_WorkerTakeover{WorkerTakeover: &harnessv1.WorkerTakeover{Attempt: 2}}})
	s.Result(&harnessv1.HarnessResult{
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, TurnCount: 2, ToolCalls: 4,
		Usage:  &harnessv1.Usage{InputTokens: 145000, OutputTokens: 370, CostMicroUsd: 434000, ReasoningTokens: 160, CacheWriteTokens: 2000},
		Reason: &harnessv1.StopReason{Kind: "agent_done", Message: "The agent completed the work."}, Duration: durationpb.New(75 * time.Second),
		Deliverables: []*harnessv1.Deliverable{{ItemId: "w1", Title: "The report", Content: inline("text")}},
		Coverage:     &harnessv1.Coverage{Met: 2, Total: 2},
	})
}

func TestHowARunLooks(t *testing.T) {
	for name, test := range map[string]struct {
		width int
		style Style
	}{"40": {40, Style{UTF8: true}}, "80": {80, Style{UTF8: true}}, "140": {140, Style{UTF8: true}}, "80-ascii": {80, Style{}}} {
		s := newStage(test.width, 50, test.style)
		var b strings.Builder
		s.play(func(scene string) {
			fmt.Fprintf(&b, "=== %s\n%s\n", scene, strings.Join(s.terminal.Screen(), "\n"))
		})
		fmt.Fprintf(&b, "=== in the end\n%s\n", strings.Join(s.terminal.All(), "\n"))
		if fault := s.terminal.Faults(); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		path := filepath.Join("testdata", "live-"+name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != string(want) {
			t.Errorf("%s differs\n got:\n%s\nwant:\n%s", path, b.String(), want)
		}
	}
}

// Colours change nothing but colours, and what lives never leaves a trace.
func TestColoursAndFramesLeaveNoTrace(t *testing.T) {
	for _, height := range []int{4, 7, 24, 60} {
		plain, coloured := newStage(80, height, Style{UTF8: true}), newStage(80, height, Style{UTF8: true, Colour: true})
		plain.play(func(string) {})
		coloured.play(func(string) {})
		got := strings.Join(coloured.terminal.All(), "\n")
		for _, left := range []string{"thinking", "█", "running"} {
			if strings.Contains(got, left) {
				t.Errorf("height %d: %q is in the rest:\n%s", height, left, got)
			}
		}
		bare := strings.NewReplacer("**", "", "`", "").Replace(strings.Join(plain.terminal.All(), "\n"))
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(bare), " ") {
			t.Errorf("height %d: with colours\n%s\nwithout\n%s", height, got, bare)
		}
	}
}

// The scrollback shows a text in the same way, however it arrives.
func TestStreamedTextLooksLikeTheWholeText(t *testing.T) {
	pieces := []string{"words and words ", "\n", "\n\n", "- item\n", "  - below\n", "1. one\n", "```go\nfunc f() {}\n", "```\n", "# head\n", "| a | b |\n|---|---|\n| c | d |\n", "**bold** ", "`code` ", "> quote\n", "日本語 ", "👩‍👩‍👧 ", "\x1b[2J", "&#27;[31m", "\t", "---\n"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(1, 20).Draw(t, "n") {
			b.WriteString(rapid.SampledFrom(pieces).Draw(t, "piece"))
		}
		text := b.String()
		width := rapid.IntRange(24, 100).Draw(t, "width")
		s := newStage(width, rapid.IntRange(6, 30).Draw(t, "height"), Style{UTF8: true, Colour: true})
		s.after(0, 1, begun(1))
		runes := []rune(text)
		offset := 0
		for len(runes) > 0 {
			n := rapid.IntRange(1, len(runes)).Draw(t, "cut")
			part := string(runes[:n])
			s.Delta(piece(1, 1, 1, offset, part))
			if rapid.Bool().Draw(t, "frame") {
				s.Tick()
			}
			offset, runes = offset+len(part), runes[n:]
		}
		s.after(0, 1, responded(text, 0, 1, 1, 0))
		s.Close()
		all := s.terminal.All()
		got := all[slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, "turn 1/50") })+1:]

		whole := rendertest.New(width, 500)
		look := markdown.Look{Width: width - 1, Colour: true, UTF8: true}
		for _, line := range markdown.New(look).Render(text) {
			fmt.Fprint(whole, line+"\r\n")
		}
		if want := whole.All(); !slices.Equal(got, want) {
			t.Fatalf("%q\nstreamed:\n%s\nwhole:\n%s", text, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if fault := s.terminal.Faults(); fault != "" {
			t.Fatalf("%q: %s", text, fault)
		}
	})
}

func TestSecondTryMarksTheTextAboveAsVoid(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	s.Delta(piece(1, 1, 1, 0, "only begun"))
	s.Tick()
	s.Delta(piece(1, 1, 2, 0, "# Heading\nand more"))
	s.Tick()
	if got := strings.Join(s.terminal.All(), "\n"); strings.Contains(got, "only begun") || strings.Contains(got, "starts again") {
		t.Errorf("after a try without finished blocks:\n%s", got)
	}
	s.Delta(piece(1, 2, 1, 0, "the text "))
	s.after(0, 1, responded("the text that holds", 0, 1, 1, 0))
	s.Close()
	got := strings.Join(s.terminal.All(), "\n")
	want := "# Heading\n\n↻ the answer starts again: ignore its text above\n\nthe text that holds"
	if !strings.HasSuffix(got, want) || strings.Contains(got, "and more") {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Everything that others write, in every place where it is shown.
func TestNothingThatOthersWriteReachesTheTerminalAsControl(t *testing.T) {
	evil := "a\x1b[2Jb\x1b]0;c\x07d\u009b31me\rf\x00\u202eg"
	for _, style := range []Style{{UTF8: true, Colour: true}, {}} {
		s := newStage(100, 30, style)
		s.Header(evil, evil, evil, evil)
		s.after(0, 1, begun(1))
		s.Delta(thought(1, 1, 1, 0, evil))
		s.Tick()
		s.Delta(piece(1, 1, 1, 0, evil))
		s.Tick()
		s.after(0, 1, responded(evil+"\n\n```"+evil+"\n"+evil+"\n```\n", 1, 1, 1, 0))
		s.after(0, 1, calling("c", evil, evil, ""))
		s.Tick()
		s.after(0, 1, calling("j", "t", `{"a`+"\\u001b[2J"+`":"b`+"\\u001b[2J\\u202e"+`"}`, ""))
		s.after(0, 1, calling("q", evil, `{"question":"`+"\\u001b[2J"+`"}`, "question"))
		s.after(0, 1, erred("c", evil, evil, time.Second))
		s.after(0, 1, resulted("j", "t", evil, time.Second))
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{CallId: "x", Tool: evil, Reason: evil}}})
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{CallId: "y", Tool: evil, Arguments: inline(evil), Why: evil}}})
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: evil, RuleId: evil, Text: evil}}})
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{HookId: evil, Topic: evil, Error: evil}}})
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_ExecutorMissing{ExecutorMissing: &harnessv1.ExecutorMissing{Executor: evil}}})
		s.Tick()
		_, _ = s.Write([]byte(evil + "\n"))
		s.Remark(evil)
		s.Result(&harnessv1.HarnessResult{Reason: &harnessv1.StopReason{Kind: evil, Message: evil}, Deliverables: []*harnessv1.Deliverable{{ItemId: evil, Title: evil}}})
		if fault := s.terminal.Faults(); fault != "" {
			t.Error(fault)
		}
		if all := strings.Join(s.terminal.All(), "\n"); strings.ContainsRune(all, '\u202e') || strings.Count(all, "b") < 10 {
			t.Errorf("%q", all)
		}
	}
}

// The line about files that wait ends with the command that the person needs: a narrow screen shows all of it.
func TestFilesThatWaitAreShownWhole(t *testing.T) {
	s := newStage(60, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	for kind, whole := range map[string]bool{"guarded": true, "skills": true, "hook": false} {
		text := strings.Repeat(kind+"/AGENTS.md, ", 10) + "accept them with harness trust " + kind
		s.after(0, 1, &harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: kind, Text: text}}})
		s.Tick()
		all := strings.Join(strings.Fields(strings.Join(s.terminal.All(), " ")), " ")
		if strings.Contains(all, "harness trust "+kind) != whole {
			t.Errorf("%s:\n%s", kind, strings.Join(s.terminal.All(), "\n"))
		}
	}
	s.Close()
	if fault := s.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
}

func TestPromptRemovesTheLiveLines(t *testing.T) {
	s := newStage(80, 24, Style{UTF8: true})
	s.after(0, 1, begun(1))
	s.after(0, 1, calling("c", "sleep", `{}`, ""))
	s.Asking(true)
	fmt.Fprint(s.terminal, "Allow it? y\r\n") // what the prompt writes and the person types
	s.Remark("a remark")
	s.now = s.now.Add(time.Minute)
	s.Tick()
	before := strings.Join(s.terminal.All(), "\n")
	if strings.Contains(before, "running") || !strings.HasSuffix(before, "Allow it? y\n(a remark)") {
		t.Errorf("while asked:\n%s", before)
	}
	s.Asking(false)
	s.after(0, 1, begun(1))
	if got := strings.Join(s.terminal.All(), "\n"); !strings.HasPrefix(got, before) || !strings.Contains(got, "thinking") {
		t.Errorf("afterwards:\n%s", got)
	}
	s.Close()
	if fault := s.terminal.Faults(); fault != "" {
		t.Error(fault)
	}
}
