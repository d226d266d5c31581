package render

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// told is what people are shown of events of one turn.
func told(style Style, events ...*harnessv1.Event) string {
	var out strings.Builder
	t := NewText(&out, style, nil)
	t.turn = 1
	for _, e := range events {
		e.TurnNumber = 1
		t.Event(e)
	}
	return out.String()
}

func changed(finished, total uint32, item *harnessv1.WorkItem) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_WorkItemChanged{WorkItemChanged: &harnessv1.WorkItemChanged{Item: item, Finished: finished, Total: total}}}
}

func turnEnd() *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_StepEnd{StepEnd: &harnessv1.StepEnd{Outcome: "completed"}}}
}

func called(tool string) *harnessv1.Event {
	return &harnessv1.Event{Event: &harnessv1.Event_ToolCall{ToolCall: &harnessv1.ToolCalled{CallId: "c1", Tool: tool}}}
}

const (
	isPending = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING
	isDone    = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE
	underWay  = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS
)

func TestChangedWorkItemsAreListedOnceAtTheEndOfTheTurn(t *testing.T) {
	got := told(Style{UTF8: true},
		called("work_item_add"),
		changed(0, 3, &harnessv1.WorkItem{Id: "w1", Title: "Read the sources", Status: isPending}),
		changed(0, 3, &harnessv1.WorkItem{Id: "w2", Title: "Write the report", Status: isPending}),
		changed(1, 3, &harnessv1.WorkItem{Id: "w1", Title: "Read the sources", Status: isDone}),
		changed(1, 3, &harnessv1.WorkItem{Id: "w2", Title: "Write the report", Status: underWay, ArtifactDigest: "d", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE}),
		called("work_item_list"),
		turnEnd(), turnEnd())
	want := `  → work_item_list
work items: 1 of 3 finished
  ✓ w1 Read the sources
  ▸ w2 Write the report  deliverable
  ... 1 more
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestALongListShowsWhatChangedAndWhatIsOpen(t *testing.T) {
	var w work
	var s Style
	add := func(id string, status harnessv1.WorkItemStatus, total int) {
		w.change(&harnessv1.WorkItemChanged{Item: &harnessv1.WorkItem{Id: id, Title: "t", Status: status}, Finished: 12, Total: uint32(total)})
	}
	for i := range 12 {
		add("d"+string(rune('a'+i)), isDone, 30)
	}
	for i := range 4 {
		add("o"+string(rune('a'+i)), isPending, 30)
	}
	w.flush(s)
	add("da", isDone, 30)
	got := strings.Join(w.flush(s), "|")
	want := "work items: 12 of 30 finished|  [x] da t|  [x] db t|  [x] dc t|  [x] dd t|  [x] de t|  [x] df t|  [ ] oa t|  [ ] ob t|  [ ] oc t|  [ ] od t|  ... 20 more"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again := w.flush(s); again != nil {
		t.Errorf("nothing changed, and yet: %q", again)
	}
}

func TestWhatKeepsTheAgentOnItsWay(t *testing.T) {
	for name, test := range map[string]struct {
		event *harnessv1.Event
		want  string
	}{
		"a contract that is not met": {&harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
			Coverage:     &harnessv1.Coverage{Met: 3, Total: 5, Unmet: []string{"cites", "tests"}},
			Requirements: []*harnessv1.RequirementCoverage{{RequirementId: "tests", Why: "exit code 2:\nFAIL"}},
		}}}, "contract: 3 of 5 requirements met\n  ○ cites\n  ○ tests  exit code 2: FAIL\n"},
		"a contract that lacks an answer": {&harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
			Coverage: &harnessv1.Coverage{Met: 2, Total: 2},
		}}}, "contract: 2 of 2 requirements met; the user has a question to answer\n"},
		"a contract that is met": {&harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
			Satisfied: true, Coverage: &harnessv1.Coverage{Met: 1, Total: 1},
		}}}, "✓ contract: 1 of 1 requirement met\n"},
		"a stop that the contract refuses": {&harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
			Kind: "contract_not_satisfied", Message: "long", Gap: &harnessv1.GapReport{
				UnmetRequirements: []*harnessv1.UnmetRequirement{{Id: "cites"}, {Id: "tests"}}, UnansweredQuestions: []string{"q"},
			},
		}}}, "not done yet: 2 requirements to meet, 1 question without an answer\n"},
		"a stop that is refused otherwise": {&harnessv1.Event{Event: &harnessv1.Event_StopRejected{StopRejected: &harnessv1.StopRejected{
			Kind: "work_items_incomplete", Message: "w4 is open.",
		}}}, "not done yet: w4 is open.\n"},
		"a stall": {&harnessv1.Event{Event: &harnessv1.Event_StallDetected{StallDetected: &harnessv1.StallDetected{Turns: 3}}}, "no progress in 3 turns\n"},
		"a loop": {&harnessv1.Event{Event: &harnessv1.Event_DoomLoopDetected{DoomLoopDetected: &harnessv1.DoomLoopDetected{
			Kind: "strict", Length: 2, Repeats: 2, Tools: []string{"read_file", "list_directory"}, Correction: 1,
		}}}, "the same calls again: read_file → list_directory, 2 times; the agent must try another way (1)\n"},
		"a loop that ends the run": {&harnessv1.Event{Event: &harnessv1.Event_DoomLoopDetected{DoomLoopDetected: &harnessv1.DoomLoopDetected{
			Kind: "loose", Length: 1, Repeats: 5, Tools: []string{"read_file"},
		}}}, "the same calls again, with other results: read_file, 5 times\n"},
		"guidance": {&harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{
			Kind: "jit", RuleId: "test-first", Text: "Run the tests\nbefore you go on.",
		}}}, "guidance (just-in-time rule test-first): Run the tests before you go on.\n"},
		"guidance with a command for the person": {&harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{
			Kind: "guarded", Text: strings.Repeat("a/AGENTS.md, ", 20) + "The user accepts them with: harness trust.",
		}}}, "guidance (changed files): " + strings.Repeat("a/AGENTS.md, ", 20) + "The user accepts them with: harness trust.\n"},
		"the state of the work items, which are listed when they change": {&harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{
			Kind: "items_state", Text: "1 of 2 remain",
		}}}, ""},
		"a deliverable": {&harnessv1.Event{Event: &harnessv1.Event_DeliverablesUpdated{DeliverablesUpdated: &harnessv1.DeliverablesUpdated{
			ItemId: "w3", Title: "Report", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE,
		}}}, "  ✓ deliverable: Report  w3\n"},
		"an artifact for the agent's own use": {&harnessv1.Event{Event: &harnessv1.Event_DeliverablesUpdated{DeliverablesUpdated: &harnessv1.DeliverablesUpdated{
			ItemId: "w3", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_WORKING,
		}}}, ""},
		"a mode": {&harnessv1.Event{Event: &harnessv1.Event_ModeChanged{ModeChanged: &harnessv1.ModeChanged{From: "plan", To: "execute"}}}, "mode: plan → execute\n"},
		"a hook that denies": {&harnessv1.Event{Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{
			HookId: "no-rm", Topic: "before_tool_call", Action: "deny", Reason: "not here",
		}}}, "hook no-rm denies (before_tool_call): not here\n"},
		"a hook that has nothing against it": {&harnessv1.Event{Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{HookId: "x", Action: "continue"}}}, ""},
		"a hook that fails": {&harnessv1.Event{Event: &harnessv1.Event_HookError{HookError: &harnessv1.HookError{
			HookId: "x", Topic: "before_tool_call", Error: "timeout", FailedClosed: true,
		}}}, "hook x failed (before_tool_call): timeout; treated as a denial\n"},
		"a plan that was not there before": {&harnessv1.Event{Event: &harnessv1.Event_PlanCommit{PlanCommit: &harnessv1.PlanCommit{Plan: "first a, then b"}}}, "new plan: first a, then b\n"},
	} {
		if got := told(Style{UTF8: true}, test.event); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

func TestGuidanceThatOpensEveryRunIsNotShown(t *testing.T) {
	for kind, atStart := range map[string]bool{
		"tools": true, "work_items": true, "planning": true, "instructions": true, "contract": true, "jit": false, "hook": false, "control": false, "mode": false,
	} {
		for turn := range uint32(3) {
			for _, asked := range []bool{false, true} {
				var out strings.Builder
				text := NewText(&out, Style{Guidance: asked}, nil)
				text.Event(&harnessv1.Event{TurnNumber: turn, Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: kind, Text: "t"}}})
				hidden := atStart && turn <= 1 && !asked
				if hidden && out.Len() > 0 || !hidden && !strings.Contains(out.String(), "guidance ("+guidanceWords(&harnessv1.GuidanceInjected{Kind: kind})+"): t\n") {
					t.Errorf("%s at turn %d, asked for %v: %q", kind, turn, asked, out.String())
				}
			}
		}
	}
}

func TestGuidanceFollowsTheHeadingOfItsTurn(t *testing.T) {
	var out strings.Builder
	text := NewText(&out, Style{Guidance: true}, nil)
	text.Event(&harnessv1.Event{TurnNumber: 1, MaxTurns: 5, Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: "tools", Text: "t"}}})
	text.Event(&harnessv1.Event{TurnNumber: 1, MaxTurns: 5, Event: &harnessv1.Event_StepStart{StepStart: &harnessv1.StepStart{Attempt: 1}}})
	if want := "\nturn 1/5\nguidance (tools): t\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestACallThatIsReviewedSaysSo(t *testing.T) {
	request := func(id string) *harnessv1.Event {
		return &harnessv1.Event{Event: &harnessv1.Event_ApprovalRequested{ApprovalRequested: &harnessv1.ApprovalRequested{CallId: id, Tool: "write_file", Why: "look"}}}
	}
	announced := called("write_file")
	announced.GetToolCall().Awaits = "review"
	got := told(Style{}, announced, request("c1"), request("c2"))
	want := "  > write_file\n  ? write_file waits for a review: look\n  ? write_file waits for approval: look\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTheFirstPlanOfASegmentIsNotRepeated(t *testing.T) {
	got := told(Style{},
		&harnessv1.Event{Event: &harnessv1.Event_SessionStart{SessionStart: &harnessv1.SessionStart{Segment: 1, Goal: "g"}}},
		&harnessv1.Event{Event: &harnessv1.Event_PlanCommit{PlanCommit: &harnessv1.PlanCommit{Plan: "g"}}})
	if got != "" {
		t.Errorf("%q", got)
	}
}

func TestAResultNamesWhatWasMadeAndWhatIsMissing(t *testing.T) {
	lines := Style{UTF8: true}.ResultLines(&harnessv1.HarnessResult{
		Status:   harnessv1.RunStatus_RUN_STATUS_DONE,
		Coverage: &harnessv1.Coverage{Met: 3, Total: 5, Unmet: []string{"cites", "tests"}},
		Deliverables: []*harnessv1.Deliverable{
			{ItemId: "w1", Title: "Report", Content: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: strings.Repeat("x", 2345)}}},
			{ItemId: "w2", Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Size: 7_100_000}}}},
		},
	})
	want := "3 of 5 requirements met; missing: cites, tests|deliverables:|• Report  w1 · 2.3 kB|• w2  w2 · 7.1 MB"
	if got := strings.Join(lines[2:], "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if bare := (Style{}).ResultLines(&harnessv1.HarnessResult{}); len(bare) != 2 {
		t.Errorf("a run without a contract and without items: %q", bare)
	}
}

func TestContractLinesHaveEachRequirement(t *testing.T) {
	contract := &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{
		{Id: "report", Description: "The report exists"}, {Id: "tests", Description: "Tests pass"}, {Id: "nice", Description: "It is nice", Optional: true},
	}}
	ledger := &harnessv1.CoverageLedger{Requirements: []*harnessv1.RequirementCoverage{
		{RequirementId: "report", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET, Evidence: []*harnessv1.Evidence{{Kind: "file", Text: "report.md"}}},
		{RequirementId: "tests", Status: harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET, Why: "exit code 2", Unknown: true},
	}}
	want := "  ✓ report  The report exists  file: report.md|  ○ tests  Tests pass  unknown: exit code 2|  ○ nice  It is nice  not met · optional"
	if got := strings.Join((Style{UTF8: true}).ContractLines(contract, ledger), "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if lines := (Style{}).ContractLines(nil, nil); lines != nil {
		t.Errorf("%q", lines)
	}
}

func TestWhatOthersWroteOfWorkAndContractsCannotMoveTheCursor(t *testing.T) {
	const evil = "a\x1b[2Jb\a\n"
	got := told(Style{}, changed(0, 1, &harnessv1.WorkItem{Id: evil[:2], Title: evil, Control: &harnessv1.ControlVerdict{FailedChecks: []string{evil}}}), turnEnd(),
		&harnessv1.Event{Event: &harnessv1.Event_ContractEvaluated{ContractEvaluated: &harnessv1.ContractEvaluated{
			Coverage: &harnessv1.Coverage{Unmet: []string{evil[:2]}}, Requirements: []*harnessv1.RequirementCoverage{{RequirementId: evil[:2], Why: evil}}}}},
		&harnessv1.Event{Event: &harnessv1.Event_HookResult{HookResult: &harnessv1.HookResult{HookId: evil[:2], Action: "deny", Reason: evil}}},
		&harnessv1.Event{Event: &harnessv1.Event_ModeChanged{ModeChanged: &harnessv1.ModeChanged{From: evil, To: evil}}},
		&harnessv1.Event{Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{Kind: evil, Text: evil}}})
	if strings.ContainsAny(got, "\x1b\a") || !strings.Contains(got, "mode: ") {
		t.Errorf("%q", got)
	}
}
