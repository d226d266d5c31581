package judgement

import (
	"strings"
	"testing"
)

// Flagging an item adds a child that says what it revises and why, is HIGH and PENDING
// and has the role of its parent; the parent, though DONE, is open until a child is
// finished, and both are named to an agent that wants to stop.
func TestItemsFlaggedItemIsOpenUntilItsRevisionIsFinished(t *testing.T) {
	t.Parallel()
	s := play(t, replies(
		calls(call("work_item_add", args{"title": "Report", "role": "DELIVERABLE", "priority": "LOW"})),
		calls(itemsArtifact("w1", "Draft", "DELIVERABLE"), itemsSet("w1", "DONE")),
		calls(itemsFlag("w1", "the numbers of March are missing")),
		calls(call("work_complete", args{"summary": "one"})),
		calls(itemsArtifact("w2", "Final", "DELIVERABLE"), itemsSet("w2", "DONE")),
		done(),
	), itemsOn)
	s.want("DONE agent_done accepted")
	flagged := itemsAnswers(t, s, 2)[0]
	if flagged.id() != "w2" || flagged.fields["role"] != "DELIVERABLE" || flagged.fields["status"] != "PENDING" || flagged.fields["priority"] != "HIGH" {
		t.Fatalf("flagging answered %s", flagged.text)
	}
	child := itemsFind(t, s.state(), "w2")
	if child.GetRevisionOf() != "w1" || child.GetNotes() != "the numbers of March are missing" {
		t.Errorf("the revision is %v", child)
	}
	if !itemsFind(t, s.state(), "w1").GetRequiresRevision() {
		t.Error("the flagged item does not say that it requires a revision")
	}
	itemsEqual(t, "the changes of turn 3 and after", itemsChanges(s)[3:],
		"flagged w1 DONE 1/2", "added w2 PENDING 1/2", "artifact w2 PENDING 1/2", "updated w2 DONE 2/2")
	itemsHas(t, "the request behind the rejected stop", itemsReminder(s, 4), "w1", "w2", "the numbers of March are missing")
	itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: Draft", "w2 Revise: Report: Final")
}

// itemsReminder is what request n tells an agent whose stop was rejected.
func itemsReminder(s *story, n int) string {
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil && r.GetKind() == "work_items_incomplete" && e.GetTurnNumber() == uint32(n) {
			if text := s.news(n); strings.Contains(text, r.GetMessage()) {
				return r.GetMessage()
			}
		}
	}
	return ""
}

// One finished revision settles an item that was flagged twice; the other revision is
// open for itself. A skipped revision counts as finished.
func TestItemsOneFinishedRevisionSettlesTheItem(t *testing.T) {
	t.Parallel()
	s := play(t, replies(
		calls(itemsAdd("Report"), itemsSet("w1", "DONE")),
		calls(itemsFlag("w1", "too long"), itemsFlag("w1", "no source")),
		calls(call("work_complete", args{"summary": "one"})),
		calls(itemsSet("w3", "SKIPPED")),
		calls(call("work_complete", args{"summary": "two"})),
		calls(itemsSet("w2", "DONE")),
		done(),
	), itemsOn)
	s.want("DONE agent_done accepted")
	itemsHas(t, "the first reminder", itemsReminder(s, 3), `w1 "Report"`, `w2 "Revise: Report"`, `w3 "Revise: Report"`)
	second := itemsReminder(s, 5)
	itemsHas(t, "the second reminder", second, `w2 "Revise: Report"`)
	itemsLacks(t, "the second reminder", second, `w1 "Report"`, `w3 "Revise: Report"`)
}

// A failed control artifact without any revision is told to the model in its next
// request with the checks that failed, once; when a revision is there nothing is said.
func TestItemsFailedControlAsksForARevision(t *testing.T) {
	t.Parallel()
	audit := func(summary string) string {
		return `{"verdict":"fail","checks":[{"name":"figures","result":"fail","detail":"March is missing"},` +
			`{"name":"spelling","result":"pass","detail":"no errors found"},{"name":"sources","result":"fail","detail":"two are dead links"}],"summary":"` + summary + `"}`
	}
	s := play(t, replies(
		calls(itemsAdd("Report"), call("work_item_add", args{"title": "Audit", "role": "CONTROL"})),
		calls(itemsSet("w1", "DONE"), itemsArtifact("w2", audit("first"), "CONTROL")),
		calls(itemsList()), // told: request 3
		calls(itemsFlag("w1", "March and the links")),
		calls(itemsArtifact("w2", audit("second"), "CONTROL")),
		calls(itemsSet("w3", "DONE"), itemsSet("w2", "DONE")),
		done(),
	), itemsOn)
	s.want("DONE agent_done accepted")
	told := itemsTold(s, 2)
	itemsHas(t, "the request behind the audit", told, "figures", "March is missing", "sources", "two are dead links", "work_item_flag_revision")
	itemsLacks(t, "the request behind the audit", told, "no errors found")
	for n := 3; n < len(s.Requests); n++ {
		itemsLacks(t, "a later request", itemsTold(s, n), "March is missing")
	}
	for turn, want := range map[uint32]bool{2: false, 3: true, 4: false, 5: false, 6: false, 7: false} {
		got := false
		for _, kind := range itemsGuided(s, turn) {
			got = got || kind == "control"
		}
		if got != want {
			t.Errorf("turn %d is told of a failed audit: %t, want %t", turn, got, want)
		}
	}
}

// An audit that failed again with other words is told again, as long as nobody has
// flagged a revision; a passed one is not.
func TestItemsAnotherFailedControlIsToldToo(t *testing.T) {
	t.Parallel()
	audit := func(verdict, check string) string {
		return `{"verdict":"` + verdict + `","checks":[{"name":"` + check + `","result":"` + verdict + `","detail":"seen"}],"summary":"s"}`
	}
	s := play(t, replies(
		calls(itemsAdd("Audit")),
		calls(itemsArtifact("w1", audit("fail", "alpha"), "CONTROL")),
		calls(itemsArtifact("w1", audit("fail", "beta"), "CONTROL")),
		calls(itemsArtifact("w1", audit("pass", "gamma"), "CONTROL")),
		calls(itemsSet("w1", "DONE")),
		done(),
	), itemsOn)
	s.want("DONE agent_done accepted")
	itemsHas(t, "request 3", itemsTold(s, 2), "alpha")
	itemsHas(t, "request 4", itemsTold(s, 3), "beta")
	itemsLacks(t, "request 4", itemsTold(s, 3), "alpha")
	itemsLacks(t, "request 5", itemsTold(s, 4), "gamma", "audit failed")
}
