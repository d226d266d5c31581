package workitem_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

const (
	pending    = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_PENDING
	inProgress = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_IN_PROGRESS
	done       = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_DONE
	skipped    = harnessv1.WorkItemStatus_WORK_ITEM_STATUS_SKIPPED

	high   = harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_HIGH
	medium = harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_MEDIUM

	deliverable = harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE
	working     = harnessv1.ArtifactRole_ARTIFACT_ROLE_WORKING
	control     = harnessv1.ArtifactRole_ARTIFACT_ROLE_CONTROL
)

type ledger = harnessv1.WorkItemLedger

// args returns arguments as JSON, from names and values in turn.
func args(pairs ...any) string {
	object := map[string]any{}
	for n := 0; n < len(pairs); n += 2 {
		object[pairs[n].(string)] = pairs[n+1]
	}
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// applyTool runs the tool with a name.
func applyTool(l *ledger, tool, arguments string) workitem.Outcome {
	switch tool {
	case workitem.Add:
		return workitem.AddItem(l, arguments)
	case workitem.Update:
		return workitem.UpdateItem(l, arguments)
	case workitem.List:
		return workitem.ListItems(l, arguments)
	case workitem.SetArtifact:
		return workitem.StoreArtifact(l, arguments)
	case workitem.FlagRevision:
		return workitem.FlagForRevision(l, arguments)
	}
	return workitem.Outcome{Result: "no such tool", IsError: true}
}

// apply calls a tool and fails the test if the call fails.
func apply(t testing.TB, l *ledger, tool string, pairs ...any) workitem.Outcome {
	t.Helper()
	out := applyTool(l, tool, args(pairs...))
	if out.IsError {
		t.Fatalf("%s %v: %s", tool, pairs, out.Result)
	}
	return out
}

// refused calls a tool and fails the test unless the call fails, names what it must
// and changes nothing.
func refused(t testing.TB, l *ledger, named []string, tool string, pairs ...any) {
	t.Helper()
	before := proto.CloneOf(l)
	out := applyTool(l, tool, args(pairs...))
	if !out.IsError || len(out.Changed) > 0 || len(out.Events) > 0 {
		t.Errorf("%s %v was not refused: %s", tool, pairs, out.Result)
	}
	for _, name := range named {
		if !strings.Contains(out.Result, name) {
			t.Errorf("%s %v: %q does not name %q", tool, pairs, out.Result, name)
		}
	}
	if !proto.Equal(l, before) {
		t.Errorf("%s %v was refused and changed the ledger", tool, pairs)
	}
}

// with returns a ledger with items of these titles.
func with(t testing.TB, titles ...string) *ledger {
	t.Helper()
	l := &ledger{}
	for _, title := range titles {
		apply(t, l, workitem.Add, "title", title)
	}
	return l
}

func item(l *ledger, id string) *harnessv1.WorkItem {
	for _, i := range l.GetItems() {
		if i.GetId() == id {
			return i
		}
	}
	return nil
}

func TestAddGeneratesIDsAndAcceptsValidOnes(t *testing.T) {
	l := &ledger{Stored: content.Inline("old")}
	out := apply(t, l, workitem.Add, "title", "First")
	if !strings.Contains(out.Result, `"id":"w1"`) || l.GetStored() != nil {
		t.Errorf("%s, stored %v", out.Result, l.GetStored())
	}
	apply(t, l, workitem.Add, "title", "Named", "id", "report.v1")
	apply(t, l, workitem.Add, "title", "Named like the next", "id", "w2")
	apply(t, l, workitem.Add, "title", "Far ahead", "id", "w4")
	apply(t, l, workitem.Add, "title", "Third")
	apply(t, l, workitem.Add, "title", "Fifth")
	var got []string
	for _, i := range l.GetItems() {
		got = append(got, i.GetId())
	}
	if want := "w1 report.v1 w2 w4 w3 w5"; strings.Join(got, " ") != want {
		t.Errorf("ids %v, want %s", got, want)
	}
	refused(t, l, []string{"w1", "taken", "First"}, workitem.Add, "title", "Again", "id", "w1")
	for _, id := range []string{"a b", "ä", strings.Repeat("x", 33), "a/b"} {
		refused(t, l, []string{"cannot be used"}, workitem.Add, "title", "Bad id", "id", id)
	}
	refused(t, l, []string{"title is empty"}, workitem.Add, "title", " \n ")
}

func TestAddUsesDefaultsForUnknownValues(t *testing.T) {
	for _, c := range []struct {
		priority, role any
		wantPriority   harnessv1.WorkItemPriority
		wantRole       harnessv1.ArtifactRole
	}{
		{nil, nil, medium, working},
		{"URGENT", "FINAL", medium, working},
		{"high", "deliverable", high, deliverable},
		{"HIGH", "CONTROL", high, control},
		{"", "", medium, working},
		{3, true, medium, working},
	} {
		l := &ledger{}
		apply(t, l, workitem.Add, "title", "T", "priority", c.priority, "role", c.role, "notes", "n")
		if i := item(l, "w1"); i.GetPriority() != c.wantPriority || i.GetRole() != c.wantRole || i.GetStatus() != pending || i.GetNotes() != "n" {
			t.Errorf("%v, %v gave %v", c.priority, c.role, i)
		}
	}
}

func TestTitlesAndNotesAreCutAtACharacterBoundary(t *testing.T) {
	l := &ledger{}
	apply(t, l, workitem.Add, "title", "x"+strings.Repeat("ü", 200)+"\nsecond line", "notes", "y"+strings.Repeat("€", 500))
	i := item(l, "w1")
	if len(i.GetTitle()) != 119 || len(i.GetNotes()) != 511 || !utf8.ValidString(i.GetTitle()) || !utf8.ValidString(i.GetNotes()) {
		t.Errorf("title of %d bytes, notes of %d bytes", len(i.GetTitle()), len(i.GetNotes()))
	}
	apply(t, l, workitem.Add, "title", "a\tb\n\nc")
	if got := item(l, "w2").GetTitle(); got != "a b c" {
		t.Errorf("title %q is not one line", got)
	}
}

func TestSkippedNeedsNotes(t *testing.T) {
	l := with(t, "A", "B")
	apply(t, l, workitem.Update, "id", "w2", "notes", "the bank is closed")
	before := proto.CloneOf(l)
	out := applyTool(l, workitem.Update, args("id", "w1", "status", "SKIPPED", "notes", " "))
	if !out.IsError || !strings.Contains(out.Result, "notes") || !strings.Contains(out.Result, "w1") || !proto.Equal(l, before) {
		t.Errorf("%+v, %v", out, l)
	}
	apply(t, l, workitem.Update, "id", "w1", "status", "SKIPPED", "notes", "not wanted")
	apply(t, l, workitem.Update, "id", "w2", "status", "SKIPPED")
	if item(l, "w1").GetStatus() != skipped || item(l, "w2").GetStatus() != skipped || item(l, "w2").GetNotes() != "the bank is closed" {
		t.Errorf("%v", l)
	}
}

func TestUpdateAllowsAnyTransition(t *testing.T) {
	names := map[string]harnessv1.WorkItemStatus{"PENDING": pending, "IN_PROGRESS": inProgress, "DONE": done, "SKIPPED": skipped}
	for from := range names {
		for to, want := range names {
			l := with(t, "A")
			apply(t, l, workitem.Update, "id", "w1", "status", from, "notes", "why")
			out := apply(t, l, workitem.Update, "id", "w1", "status", to)
			if got := item(l, "w1").GetStatus(); got != want {
				t.Errorf("%s to %s gave %s", from, to, got)
			}
			if changed := from != to; changed != (len(out.Events) == 1) || changed != (len(out.Changed) == 1) {
				t.Errorf("%s to %s: %d events, %d changed", from, to, len(out.Events), len(out.Changed))
			}
		}
	}
}

func TestUpdateKeepsOtherFields(t *testing.T) {
	l := with(t, "A")
	apply(t, l, workitem.Update, "id", "w1", "status", "in progress", "notes", "half way")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE", "notes", "")
	if i := item(l, "w1"); i.GetStatus() != done || i.GetNotes() != "half way" {
		t.Errorf("empty notes changed notes: %v", i)
	}
	apply(t, l, workitem.Update, "id", "w1", "notes", "all the way")
	if i := item(l, "w1"); i.GetStatus() != done || i.GetNotes() != "all the way" {
		t.Errorf("notes alone gave %v", i)
	}
	refused(t, l, []string{"PENDING", "IN_PROGRESS", "DONE", "SKIPPED", "finished"}, workitem.Update, "id", "w1", "status", "finished")
	refused(t, l, []string{"PENDING", "IN_PROGRESS", "DONE", "SKIPPED"}, workitem.Update, "id", "w1")
}

func TestUnknownItemListsTheExistingOnes(t *testing.T) {
	l := with(t, "A", "B")
	for _, call := range [][]any{
		{workitem.Update, "id", "w7", "status", "DONE"}, {workitem.SetArtifact, "id", "w7", "content", "c"}, {workitem.FlagRevision, "id", "w7", "reason", "r"},
	} {
		refused(t, l, []string{"w7", "w1, w2"}, call[0].(string), call[1:]...)
	}
	refused(t, &ledger{}, []string{workitem.Add}, workitem.Update, "id", "w1", "status", "DONE")
}

func TestListShowsItemsInOrder(t *testing.T) {
	l := with(t, "Read <a> & b", "Write")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE", "notes", "seen")
	out := apply(t, l, workitem.List)
	var list struct {
		Finished, Total, Percent, Open int
		Items                          []struct{ ID, Title, Status, Priority, Role, Notes string }
	}
	if err := json.Unmarshal([]byte(out.Result), &list); err != nil {
		t.Fatal(err)
	}
	if list.Finished != 1 || list.Total != 2 || list.Percent != 50 || list.Open != 1 || len(list.Items) != 2 {
		t.Errorf("%s", out.Result)
	}
	if i := list.Items[0]; i.ID != "w1" || i.Title != "Read <a> & b" || i.Status != "DONE" || i.Priority != "MEDIUM" || i.Notes != "seen" {
		t.Errorf("first item %+v", i)
	}
	if !strings.Contains(out.Result, "<a> &") || len(out.Changed) > 0 || len(out.Events) > 0 {
		t.Errorf("%s", out.Result)
	}
}

func TestListingOfAFullLedgerIsLimited(t *testing.T) {
	l := &ledger{}
	for n := range 200 {
		apply(t, l, workitem.Add, "title", strings.Repeat("t", 120), "notes", strings.Repeat("n", 512))
		if n >= 60 {
			apply(t, l, workitem.Update, "id", fmt.Sprintf("w%d", n+1), "status", "DONE")
		}
	}
	if out := apply(t, l, workitem.List); len(out.Result) > 64<<10 || !strings.Contains(out.Result, `"w200"`) {
		t.Errorf("%d bytes", len(out.Result))
	}
}

func TestSetArtifactKeepsTheRole(t *testing.T) {
	for _, c := range []struct {
		name        string
		added, with any
		want        harnessv1.ArtifactRole
		hint        string
	}{
		{"none ever given", nil, nil, working, ""},
		{"given when added", "DELIVERABLE", nil, deliverable, ""},
		{"given with the artifact", nil, "DELIVERABLE", deliverable, ""},
		{"changed with the artifact", "DELIVERABLE", "WORKING", working, ""},
		{"not known", "DELIVERABLE", "FINAL", working, "no role"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := &ledger{}
			apply(t, l, workitem.Add, "title", "T", "role", c.added)
			out := apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Sums.", "role", c.with)
			i := item(l, "w1")
			if i.GetRole() != c.want || i.GetArtifact().GetInline() != "Sums." || i.GetArtifactDigest() != content.Digest([]byte("Sums.")) {
				t.Errorf("%v", i)
			}
			if !strings.Contains(out.Result, c.hint) {
				t.Errorf("%s does not say %q", out.Result, c.hint)
			}
			apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Other sums.")
			if item(l, "w1").GetRole() != c.want {
				t.Errorf("a second artifact changed the role to %s", item(l, "w1").GetRole())
			}
		})
	}
}

func TestSetArtifactEmitsItemAndDeliverable(t *testing.T) {
	l := with(t, "Report")
	out := apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Sums.", "role", "DELIVERABLE")
	if len(out.Events) != 2 || len(out.Changed) != 1 || out.Changed[0].GetArtifact().GetInline() != "Sums." {
		t.Fatalf("%v, changed %v", out.Events, out.Changed)
	}
	changed, updated := out.Events[0].GetWorkItemChanged(), out.Events[1].GetDeliverablesUpdated()
	if changed.GetChange() != "artifact" || changed.GetItem().GetArtifact() != nil || changed.GetItem().GetArtifactDigest() == "" || changed.GetTotal() != 1 || changed.GetFinished() != 0 {
		t.Errorf("%v", changed)
	}
	if updated.GetItemId() != "w1" || updated.GetTitle() != "Report" || updated.GetRole() != deliverable {
		t.Errorf("%v", updated)
	}
	out.Changed[0].Title = "changed by the caller"
	if item(l, "w1").GetTitle() != "Report" {
		t.Error("what is returned is shared with the ledger")
	}
}

func TestNarrationIsStrippedOrRejected(t *testing.T) {
	l := with(t, "Report")
	out := apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Here is the report:\n\n# Sales\n\nThey rose.\n", "role", "DELIVERABLE")
	if got := item(l, "w1").GetArtifact().GetInline(); got != "# Sales\n\nThey rose." {
		t.Errorf("stored %q", got)
	}
	if !strings.Contains(out.Result, "line 1") || !strings.Contains(out.Result, "Here is the report:") {
		t.Errorf("%s does not list the stripped lines", out.Result)
	}
	refused(t, l, []string{"line 5", "Next, I'll write"}, workitem.SetArtifact, "id", "w1",
		"content", "# Sales\n\nThey rose.\n\nNext, I'll write the section on costs.\n\n# Costs\n\nThey fell.")
	refused(t, l, []string{"empty"}, workitem.SetArtifact, "id", "w1", "content", " \n")
	clean := "# Sales\n\nThey rose.\n\n"
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", clean)
	if got := item(l, "w1").GetArtifact().GetInline(); got != clean {
		t.Errorf("a clean artifact was stored as %q", got)
	}
}

func TestFlagRevisionAddsAChildThatClosesItsParent(t *testing.T) {
	l := &ledger{}
	apply(t, l, workitem.Add, "title", strings.Repeat("T", 119), "role", "DELIVERABLE", "priority", "LOW")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
	if !workitem.IsComplete(l) {
		t.Fatal("a finished item is open")
	}
	out := apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "No sources.")
	child := item(l, "w2")
	if !strings.Contains(out.Result, `"id":"w2"`) || child.GetRevisionOf() != "w1" || child.GetPriority() != high || child.GetStatus() != pending ||
		child.GetNotes() != "No sources." || child.GetRole() != deliverable || !strings.HasPrefix(child.GetTitle(), "Revise: T") || len(child.GetTitle()) > 120 {
		t.Errorf("%s gave %v", out.Result, child)
	}
	if parent := item(l, "w1"); !parent.GetRequiresRevision() || parent.GetStatus() != done {
		t.Errorf("parent %v", parent)
	}
	if len(out.Events) != 2 || out.Events[0].GetWorkItemChanged().GetChange() != "flagged" || out.Events[1].GetWorkItemChanged().GetChange() != "added" {
		t.Errorf("%v", out.Events)
	}
	if open := workitem.Open(l); len(open) != 2 {
		t.Errorf("open: %v", open)
	}
	apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "No dates either.")
	apply(t, l, workitem.Update, "id", "w2", "status", "SKIPPED")
	if open := workitem.Open(l); len(open) != 1 || open[0].GetId() != "w3" {
		t.Errorf("one finished child does not settle the parent: %v", open)
	}
	apply(t, l, workitem.Update, "id", "w3", "status", "DONE")
	if !workitem.IsComplete(l) || workitem.Percent(l) != 100 {
		t.Error("all is finished and it is not complete")
	}
	apply(t, l, workitem.FlagRevision, "id", "w3", "reason", "Once more.")
	if got := item(l, "w4"); got.GetTitle() != child.GetTitle() || got.GetRevisionOf() != "w3" {
		t.Errorf("the revision of a revision is %v", got)
	}
	refused(t, l, []string{"reason"}, workitem.FlagRevision, "id", "w1", "reason", " ")
}

func TestLedgerLimits(t *testing.T) {
	l := &ledger{}
	for range workitem.MaxOpen {
		apply(t, l, workitem.Add, "title", "T")
	}
	refused(t, l, []string{"64", "SKIPPED"}, workitem.Add, "title", "One too many")
	refused(t, l, []string{"64"}, workitem.FlagRevision, "id", "w1", "reason", "r")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
	refused(t, l, []string{"64"}, workitem.FlagRevision, "id", "w1", "reason", "it would be open again, and its child")
	apply(t, l, workitem.Add, "title", "Room for one")
	refused(t, l, []string{"64"}, workitem.Update, "id", "w1", "status", "PENDING")
	for n := 2; n <= workitem.MaxItems; n++ {
		apply(t, l, workitem.Update, "id", fmt.Sprintf("w%d", n), "status", "DONE")
		if n < workitem.MaxItems-workitem.MaxOpen {
			apply(t, l, workitem.Add, "title", "T")
		}
		if len(l.GetItems()) < workitem.MaxItems && len(workitem.Open(l)) < workitem.MaxOpen {
			apply(t, l, workitem.Add, "title", "T")
		}
		if n == len(l.GetItems()) {
			break
		}
	}
	for len(l.GetItems()) < workitem.MaxItems {
		out := apply(t, l, workitem.Add, "title", "T")
		apply(t, l, workitem.Update, "id", out.Changed[0].GetId(), "status", "SKIPPED")
	}
	refused(t, l, []string{"200", workitem.Update}, workitem.Add, "title", "One too many")
	refused(t, l, []string{"200"}, workitem.FlagRevision, "id", "w1", "reason", "r")
}

func TestInvalidCallChangesNothing(t *testing.T) {
	l := with(t, "A")
	for _, text := range []string{"", "null", "[]", "7", "{", `{"id":}`, `{"id":"w1"} {}`} {
		for _, name := range []string{workitem.Add, workitem.Update, workitem.SetArtifact, workitem.FlagRevision} {
			before := proto.CloneOf(l)
			if out := applyTool(l, name, text); !out.IsError || out.Result == "" || !proto.Equal(l, before) {
				t.Errorf("%s %q: %+v", name, text, out)
			}
		}
	}
	if out := applyTool(nil, workitem.Add, args("title", "T")); !out.IsError {
		t.Errorf("a run without work items: %+v", out)
	}
}
