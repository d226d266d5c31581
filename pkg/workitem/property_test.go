package workitem_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// calls draws a call of a tool, mostly a valid one.
func calls(t *rapid.T) (tool, arguments string) {
	id := rapid.OneOf(rapid.SampledFrom([]string{"", "w1", "w2", "w3", "w7", "w70", "a", "b.c", "a b"}), rapid.StringMatching(`w[1-9][0-9]{0,2}`))
	words := rapid.SampledFrom([]string{"", "Read", "Here is the report:\n\nSums.", "Sums.\n", failing, passing, string(make([]byte, 700))})
	tool = rapid.SampledFrom([]string{workitem.Add, workitem.Add, workitem.Update, workitem.Update, workitem.SetArtifact, workitem.FlagRevision, workitem.List}).Draw(t, "tool")
	return tool, args(
		"id", id.Draw(t, "id"), "title", words.Draw(t, "title"), "notes", words.Draw(t, "notes"), "reason", words.Draw(t, "reason"), "content", words.Draw(t, "content"),
		"status", rapid.SampledFrom([]string{"PENDING", "IN_PROGRESS", "DONE", "SKIPPED", "no", ""}).Draw(t, "status"),
		"priority", rapid.SampledFrom([]string{"HIGH", "LOW", "no", ""}).Draw(t, "priority"),
		"role", rapid.SampledFrom([]string{"DELIVERABLE", "WORKING", "CONTROL", "no", ""}).Draw(t, "role"),
	)
}

// populated draws a ledger that may be near its limits.
func populated(t *rapid.T) *ledger {
	l := &ledger{}
	for range rapid.SampledFrom([]int{0, 3, 62, 190}).Draw(t, "items") {
		out := applyTool(l, workitem.Add, args("title", "T"))
		if len(l.GetItems()) > 60 {
			applyTool(l, workitem.Update, args("id", out.Changed[0].GetId(), "status", "DONE"))
		}
	}
	return l
}

func TestCallsNeverExceedTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := populated(t)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			tool, arguments := calls(t)
			before := proto.CloneOf(l)
			out := applyTool(l, tool, arguments)
			if out.Result == "" || out.IsError && !proto.Equal(l, before) {
				t.Fatalf("%s %s: %+v", tool, arguments, out)
			}
			ids := map[string]bool{}
			for _, i := range l.GetItems() {
				if ids[i.GetId()] || i.GetId() == "" || len(i.GetId()) > 32 || i.GetTitle() == "" || len(i.GetTitle()) > workitem.MaxTitle || len(i.GetNotes()) > workitem.MaxNotes {
					t.Fatalf("%s %s left %v", tool, arguments, i)
				}
				ids[i.GetId()] = true
			}
			if len(l.GetItems()) > workitem.MaxItems || len(workitem.Open(l)) > workitem.MaxOpen {
				t.Fatalf("%s %s: %d items, %d open", tool, arguments, len(l.GetItems()), len(workitem.Open(l)))
			}
			if workitem.IsComplete(l) != (len(workitem.Open(l)) == 0) || workitem.IsComplete(l) && workitem.Percent(l) != 100 {
				t.Fatalf("complete %v with %d open, %d %%", workitem.IsComplete(l), len(workitem.Open(l)), workitem.Percent(l))
			}
			for _, flagged := range l.GetItems() {
				child := false
				for _, i := range l.GetItems() {
					child = child || i.GetRevisionOf() == flagged.GetId()
				}
				if flagged.GetRequiresRevision() && !child {
					t.Fatalf("%s is flagged and has no revision", flagged.GetId())
				}
			}
		}
	})
}

func TestUpsertRepeatsTheChangesOfACall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := populated(t)
		oneByOne, together := proto.CloneOf(l), proto.CloneOf(l)
		var changed []*harnessv1.WorkItem
		for range rapid.IntRange(1, 20).Draw(t, "calls") {
			tool, arguments := calls(t)
			out := applyTool(l, tool, arguments)
			workitem.Upsert(oneByOne, out.Changed)
			changed = workitem.Merge(changed, out.Changed)
			if !proto.Equal(l, oneByOne) {
				t.Fatalf("%s %s:\n%v\n%v", tool, arguments, l, oneByOne)
			}
		}
		workitem.Upsert(together, changed)
		if !proto.Equal(l, together) {
			t.Fatalf("merged:\n%v\n%v", l, together)
		}
	})
}

func TestItemsAreNeverChangedInPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := populated(t)
		before := append([]*harnessv1.WorkItem(nil), l.GetItems()...)
		copies := proto.CloneOf(l).GetItems()
		for range rapid.IntRange(1, 10).Draw(t, "calls") {
			applyTool(l, rapidTool(t), `{"id":"w1","status":"DONE","title":"T","notes":"n","content":"Sums.","reason":"r"}`)
		}
		for n := range before {
			if !proto.Equal(before[n], copies[n]) {
				t.Fatalf("%v was changed to %v", copies[n], before[n])
			}
		}
	})
}

func rapidTool(t *rapid.T) string {
	return rapid.SampledFrom([]string{workitem.Add, workitem.Update, workitem.SetArtifact, workitem.FlagRevision}).Draw(t, "tool")
}
