package judgement

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// Flagging an item adds a child with what it revises and why, HIGH and PENDING
// and has the role of its parent; the parent, though DONE, is open until a child is
// finished, and both are named to an agent that wants to stop.
func TestItemsFlaggedItemIsOpenUntilItsRevisionIsFinished(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(live.Call("work_item_add", live.Args{"title": "Report", "role": "DELIVERABLE", "priority": "LOW"})),
		live.Calls(itemsArtifact("w1", "Draft", "DELIVERABLE"), itemsSet("w1", "DONE")),
		live.Calls(itemsFlag("w1", "the numbers of March are missing")),
		live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
		live.Calls(itemsArtifact("w2", "Final", "DELIVERABLE"), itemsSet("w2", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	flagged := itemsAnswers(t, s, 2)[0]
	if flagged.id() != "w2" || flagged.fields["role"] != "DELIVERABLE" || flagged.fields["status"] != "PENDING" || flagged.fields["priority"] != "HIGH" {
		t.Fatalf("flagging answered %s", flagged.text)
	}
	child := itemsFind(t, s.State(), "w2")
	if child.GetRevisionOf() != "w1" || child.GetNotes() != "the numbers of March are missing" {
		t.Errorf("the revision is %v", child)
	}
	if !itemsFind(t, s.State(), "w1").GetRequiresRevision() {
		t.Error("requires_revision of the flagged item is false")
	}
	itemsEqual(t, "the changes of turn 3 and after", itemsChanges(s)[3:],
		"flagged w1 DONE 1/2", "added w2 PENDING 1/2", "artifact w2 PENDING 1/2", "updated w2 DONE 2/2")
	itemsHas(t, "the request behind the rejected stop", itemsReminder(s, 4), "w1", "w2", "the numbers of March are missing")
	itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: Final")
}

// itemsReminder is what request n tells an agent whose stop was rejected.
func itemsReminder(s *live.Transcript, n int) string {
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil && r.GetKind() == "work_items_incomplete" && e.GetTurnNumber() == uint32(n) {
			if text := s.Added(n); strings.Contains(text, r.GetMessage()) {
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
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Report"), itemsSet("w1", "DONE")),
		live.Calls(itemsFlag("w1", "too long"), itemsFlag("w1", "no source")),
		live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
		live.Calls(itemsSet("w3", "SKIPPED")),
		live.Calls(live.Call("work_complete", live.Args{"summary": "two"})),
		live.Calls(itemsSet("w2", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the first reminder", itemsReminder(s, 3), `w1 "Report"`, `w2 "Revise: Report"`, `w3 "Revise: Report"`)
	second := itemsReminder(s, 5)
	itemsHas(t, "the second reminder", second, `w2 "Revise: Report"`)
	itemsLacks(t, "the second reminder", second, `w1 "Report"`, `w3 "Revise: Report"`)
}

// A failed control artifact without any revision is in the model's next
// request with the checks that failed, once; when a revision is there nothing is said.
func TestItemsFailedControlAsksForARevision(t *testing.T) {
	t.Parallel()
	audit := func(summary string) string {
		return `{"verdict":"fail","checks":[{"name":"figures","result":"fail","detail":"March is missing"},` +
			`{"name":"spelling","result":"pass","detail":"no errors found"},{"name":"sources","result":"fail","detail":"two are dead links"}],"summary":"` + summary + `"}`
	}
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Report"), live.Call("work_item_add", live.Args{"title": "Audit", "role": "CONTROL"})),
		live.Calls(itemsSet("w1", "DONE"), itemsArtifact("w2", audit("first"), "CONTROL")),
		live.Calls(itemsList()), // told: request 3
		live.Calls(itemsFlag("w1", "March and the links")),
		live.Calls(itemsArtifact("w2", audit("second"), "CONTROL")),
		live.Calls(itemsSet("w3", "DONE"), itemsSet("w2", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
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
			t.Errorf("turn %d mentions a failed audit: %t, want %t", turn, got, want)
		}
	}
}

// A run cannot end on a failed audit, whatever the status of its item, nor on one that
// passes with a failed check: its item is open, and the next request names the failed
// checks and asks for a revision. A finished revision lets it end.
func TestItemsFailedControlKeepsTheRunOpen(t *testing.T) {
	t.Parallel()
	for verdict, status := range map[string]string{"fail": "SKIPPED", "pass": "DONE"} {
		t.Run(verdict+" "+status, func(t *testing.T) {
			t.Parallel()
			audit := `{"verdict":"` + verdict + `","checks":[{"name":"figures","result":"fail","detail":"March is missing"},{"name":"spelling","result":"pass","detail":"no errors found"}],"summary":"s"}`
			s := live.Play(t, live.Replies(
				live.Calls(live.Call("work_item_add", live.Args{"title": "Report", "role": "DELIVERABLE"}), live.Call("work_item_add", live.Args{"title": "Audit", "role": "CONTROL"})),
				live.Calls(itemsArtifact("w1", "Draft", ""), itemsSet("w1", "DONE"), itemsArtifact("w2", audit, ""), itemsSet("w2", status)),
				live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
				live.Calls(itemsFlag("w1", "March is missing"), itemsArtifact("w3", "Final", ""), itemsSet("w3", "DONE")),
				live.Done(),
			), itemsOn)
			s.Want("DONE agent_done accepted")
			itemsHas(t, "the request after the audit", itemsTold(s, 2), "figures", "March is missing", "work_item_flag_revision")
			reminder := itemsReminder(s, 3)
			itemsHas(t, "the request after the rejected stop", reminder, `w2 "Audit"`, "figures", "March is missing", "work_item_flag_revision")
			itemsLacks(t, "the request after the rejected stop", reminder, "no errors found", "w1")
			if s.Result.GetTurnCount() != 5 {
				t.Errorf("ended in turn %d", s.Result.GetTurnCount())
			}
			itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: Final")
		})
	}
}

// SKIPPED needs notes with the reason: without any the status is unchanged.
func TestItemsSkippedNeedsNotes(t *testing.T) {
	t.Parallel()
	skip := func(notes string) modeltest.Call {
		return live.Call("work_item_update", live.Args{"id": "w1", "status": "SKIPPED", "notes": notes})
	}
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Ask the bank")),
		live.Calls(skip("")),
		live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
		live.Calls(skip("it is closed")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the answer", itemsAnswers(t, s, 1)[0].text, "notes", "w1")
	itemsHas(t, "the reminder", itemsReminder(s, 3), `w1 "Ask the bank"`)
	if n := len(s.Names("tool.error")); n != 1 || itemsFind(t, s.State(), "w1").GetNotes() != "it is closed" {
		t.Errorf("%d errors, %v", n, itemsFind(t, s.State(), "w1"))
	}
}

// An audit that failed again with other words is reported again, as long as no item is
// flagged a revision; a passed one is not.
func TestItemsAnotherFailedControlIsReported(t *testing.T) {
	t.Parallel()
	audit := func(verdict, check string) string {
		return `{"verdict":"` + verdict + `","checks":[{"name":"` + check + `","result":"` + verdict + `","detail":"seen"}],"summary":"s"}`
	}
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Audit")),
		live.Calls(itemsArtifact("w1", audit("fail", "alpha"), "CONTROL")),
		live.Calls(itemsArtifact("w1", audit("fail", "beta"), "CONTROL")),
		live.Calls(itemsArtifact("w1", audit("pass", "gamma"), "CONTROL")),
		live.Calls(itemsSet("w1", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "request 3", itemsTold(s, 2), "alpha")
	itemsHas(t, "request 4", itemsTold(s, 3), "beta")
	itemsLacks(t, "request 4", itemsTold(s, 3), "alpha")
	itemsLacks(t, "request 5", itemsTold(s, 4), "gamma", "audit failed")
}
