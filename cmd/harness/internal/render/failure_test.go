package render

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

// failures are errors of calls, and what people are shown of them.
var failures = map[string]struct{ tool, text, head, last string }{
	"a long output":             {runCommand, numbered(30) + "FAIL: want 4, have 5\n[exit code 3]", "exit code 3", "line 26|line 27|line 28|line 29|line 30|FAIL: want 4, have 5"},
	"one line":                  {runCommand, "cat: a: No such file or directory\n[exit code 1]", "exit code 1: cat: a: No such file or directory", ""},
	"no output":                 {runCommand, "[exit code 1]", "exit code 1", ""},
	"a signal":                  {runCommand, "working\n[exit code 137, killed by signal 9]", "exit code 137, killed by signal 9: working", ""},
	"a progress bar":            {runCommand, "10%\r50%\r100%\nE: broken\n\n[exit code 100]", "exit code 100", "100%|E: broken"},
	"colours":                   {runCommand, "\x1b[31mred\x1b[0m\nblue\n[exit code 1]", "exit code 1", "red|blue"},
	"no note":                   {runCommand, "a\nb", "failed", "a|b"},
	"nothing":                   {runCommand, "", "failed", ""},
	"a megabyte":                {runCommand, strings.Repeat("x", 1<<20) + "\nlast\n[exit code 2]", "exit code 2: last", ""},
	"another tool":              {"edit_file", "a.txt: old was not found\nmore", "a.txt: old was not found", ""},
	"a call that was changed":   {"edit_file", "The user changed this call before it ran. It ran with:\n- old: \"a\"\nIts result:\na.txt: old was not found", "a.txt: old was not found", ""},
	"a command that was, too":   {runCommand, "The user changed this call before it ran. It ran with:\n- command: \"sh a\"\nIts result:\nsh: 0: cannot open a\n[exit code 2]", "exit code 2: sh: 0: cannot open a", ""},
	"a text that looks like it": {"edit_file", "The user changed this call before it ran. It ran with:\nno more", "The user changed this call before it ran. It ran with:", ""},
}

func TestAFailureShowsItsEnd(t *testing.T) {
	for name, c := range failures {
		head, last := failure(c.tool, c.text)
		if head != c.head || strings.Join(last, "|") != c.last {
			t.Errorf("%s: got %q and %q, want %q and %q", name, head, last, c.head, c.last)
		}
		failed := &harnessv1.Event{Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{CallId: "c1", Tool: c.tool, Error: inline(c.text)}}}
		s := newStage(100, 40, Style{UTF8: true, Terminal: true})
		s.after(0, 1, calling("c1", c.tool, `{"command":"make"}`, ""))
		s.after(time.Second, 1, failed)
		s.Close()
		live := strings.Join(s.terminal.All(), "\n")
		for _, want := range append(strings.Split(c.last, "|"), c.head) {
			if plain := told(Style{UTF8: true}, failed); !strings.Contains(plain, want) {
				t.Errorf("%s: %q is not in the text:\n%s", name, want, plain)
			}
			if !strings.Contains(live, want) {
				t.Errorf("%s: %q is not on the terminal:\n%s", name, want, live)
			}
		}
	}
}

func TestTheEndOfAStoredErrorIsRead(t *testing.T) {
	blob := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Preview: "line 1\n"}}}
	whole := func(c *harnessv1.Content) string {
		if c.GetBlob() != nil {
			return numbered(5000) + "[exit code 4]"
		}
		return c.GetInline()
	}
	var out strings.Builder
	text := NewText(&out, Style{}, whole)
	text.Event(&harnessv1.Event{TurnNumber: 1, Event: &harnessv1.Event_ToolError{ToolError: &harnessv1.ToolError{Tool: runCommand, Error: blob}}})
	if got := out.String(); !strings.Contains(got, "exit code 4") || !strings.Contains(got, "line 5000") || strings.Contains(got, "line 1\n") {
		t.Errorf("got %s", got)
	}
}

// jargon are spellings of programs, which people are not shown.
var jargon = regexp.MustCompile(`\b0ms\b|Recorded\.|\b[a-z]+_[a-z_0-9]+\b`)

func TestPeopleAreShownWords(t *testing.T) {
	guided := func(kind, rule string) *harnessv1.Event {
		return &harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: kind, RuleId: rule, Text: "Read first."}}}
	}
	retried := func(adjustment string) *harnessv1.Event {
		return &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Model: "m", Error: "400", Adjustment: adjustment}}}
	}
	var events []*harnessv1.Event
	for _, kind := range []string{
		"tools", "work_items", "planning", "items_state", "control", "mode", "instructions", "doom_loop", "wait", "too_large", "hook", "plan", "background",
		"executor", "workspace", "guarded",
	} {
		events = append(events, guided(kind, ""))
	}
	for _, rule := range []string{"no_reads_after_3_turns", "approaching_turn_limit", "post_compaction_guidance", "all_planning_no_execution"} {
		events = append(events, guided("jit", rule))
	}
	for _, kind := range []string{"contract_not_satisfied", "work_complete_not_called", "work_items_incomplete"} {
		events = append(events, &harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{Kind: kind, Message: "Not yet."}}})
	}
	for _, kind := range harnessv1.Adjustment_name {
		if kind = strings.ToLower(strings.TrimPrefix(kind, "ADJUSTMENT_")); kind != "unspecified" {
			if adjusted[kind] == "" {
				t.Errorf("adjustment %s has no words", kind)
			}
			events = append(events, retried(kind))
		}
	}
	events = append(events, retried("a_new_one"),
		resulted("c1", "ask", "Yes.", 0),
		&harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Try: 1, Error: "cut", Wait: durationpb.New(0)}}})
	if got := told(Style{UTF8: true, Guidance: true}, events...); jargon.MatchString(got) {
		t.Errorf("%q in:\n%s", jargon.FindString(got), got)
	}
	done := told(Style{UTF8: true}, resulted("c1", "work_complete", "Recorded.", 0))
	if strings.Contains(done, "Recorded") || strings.Contains(done, "0ms") {
		t.Errorf("got %s", done)
	}
	for _, kind := range []string{
		"agent_done", "max_turns", "no_plan", "doom_loop", "stalled", "cancelled", "context_exhausted", "provider_error", "poison", "illegal_transition", "snapshot_too_large",
		"failed", "budget_exceeded:tool_calls", "budget_exceeded:wall_clock", "provider_unavailable", "client_tool", "approval", "question", "one_of_tomorrow",
	} {
		for _, message := range []string{"", "The reason."} {
			result := &harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_STALLED, Reason: &harnessv1.StopReason{Kind: kind, Message: message}}
			if got := strings.Join(Style{UTF8: true}.ResultLines(result), "\n"); jargon.MatchString(got) || !strings.Contains(got, message) {
				t.Errorf("%s: %s", kind, got)
			}
		}
	}
}

func TestTheSwitchOfAWireIsShownOnceOnAMachine(t *testing.T) {
	retried := func(model, adjustment string) *harnessv1.Event {
		return &harnessv1.Event{Event: &harnessv1.Event_ModelRetry{ModelRetry: &harnessv1.ModelRetry{Model: model, Error: "400", Adjustment: adjustment}}}
	}
	said := map[string]bool{}
	style := Style{Once: func(key string) bool { defer func() { said[key] = true }(); return !said[key] }}
	for _, want := range []string{"model: 400; its requests go to chat/completions from now on\n", ""} { // a run, and the next
		if got := told(style, retried("p:a", "wire_chat")); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for _, event := range []*harnessv1.Event{retried("p:b", "wire_chat"), retried("p:a", "no_member"), retried("p:a", "no_member")} {
		if told(style, event) == "" {
			t.Errorf("%v is not shown", event)
		}
	}
}

func TestAnUnmetContractIsShownWhereItChanged(t *testing.T) {
	evaluated := func(met uint32, unmet ...string) *harnessv1.Event {
		c := &harnessv1.ContractEvaluated{Coverage: &harnessv1.Coverage{Met: met, Total: 3}, Satisfied: len(unmet) == 0}
		for _, u := range unmet {
			id, why, _ := strings.Cut(u, ":")
			c.Coverage.Unmet = append(c.Coverage.Unmet, id)
			c.Requirements = append(c.Requirements, &harnessv1.RequirementCoverage{RequirementId: id, Why: why})
		}
		return &harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: c}}
	}
	got := told(Style{UTF8: true},
		evaluated(0, "a:none", "b:none", "c:none"),
		evaluated(0, "a:none", "b:none", "c:none"),
		evaluated(1, "b:none", "c:late"),
		evaluated(1, "b:none", "c:late"),
		evaluated(0, "a:gone", "b:none", "c:late"),
		evaluated(3))
	want := `contract: 0 of 3 requirements met
  ○ a  none
  ○ b  none
  ○ c  none
contract: 1 of 3 requirements met; 1 as before
  ○ c  late
contract: 0 of 3 requirements met; 2 as before
  ○ a  gone
✓ contract: 3 of 3 requirements met
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestPathsAreWhole(t *testing.T) {
	path := "services/" + strings.Repeat("deeply/nested/", 6) + "handler_of_orders.go"
	arguments := `{"content":"` + strings.Repeat("x", 300) + `","path":"` + path + `"}`
	asks := &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{CallId: "c1", Tool: "write_file", Arguments: inline(arguments)}}}
	for _, width := range []int{40, 80, 140} {
		s := newStage(width, 60, Style{UTF8: true, Terminal: true})
		s.after(0, 1, calling("c1", "write_file", arguments, ""))
		s.after(time.Second, 1, resulted("c1", "write_file", "Wrote 300 bytes.", 3*time.Millisecond))
		s.Close()
		if all := strings.Join(s.terminal.All(), ""); !strings.Contains(strings.ReplaceAll(all, " ", ""), path) {
			t.Errorf("%d columns: the path is cut:\n%s", width, strings.Join(s.terminal.All(), "\n"))
		}
	}
	for _, event := range []*harnessv1.Event{calling("c1", "write_file", arguments, ""), asks} {
		if got := told(Style{UTF8: true}, event); !strings.Contains(got, path) {
			t.Errorf("the path is cut: %s", got)
		}
	}
	if got := told(Style{UTF8: true}, asks); strings.Contains(got, "xxx") {
		t.Errorf("the prompt shows the text, and the line repeats it: %s", got)
	}
}
