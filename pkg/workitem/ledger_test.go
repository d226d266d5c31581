package workitem_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

func TestEmptyLedgerIsComplete(t *testing.T) {
	for _, l := range []*ledger{nil, {}} {
		finished, total := workitem.Counts(l)
		if !workitem.IsComplete(l) || workitem.Percent(l) != 100 || finished != 0 || total != 0 || len(workitem.Open(l)) > 0 || len(workitem.Deliverables(l)) > 0 {
			t.Errorf("%v", l)
		}
		if len(workitem.Statuses(l)) != 0 || workitem.ShownHash(l) != 0 || workitem.State(l, nil, 3) != "" || workitem.Summary(l) != "" || workitem.Reminder(l) != "" {
			t.Errorf("%v has something to show", l)
		}
		if len(workitem.FailedControls(l)) > 0 || workitem.RevisionRequest(nil) != "" {
			t.Errorf("%v has failed audits", l)
		}
	}
	workitem.Upsert(nil, []*harnessv1.WorkItem{{Id: "w1"}})
	workitem.FromTemplates(nil, []*harnessv1.WorkItemTemplate{{Title: "T"}})
}

func TestPercentIsRoundedDown(t *testing.T) {
	l := with(t, "A", "B", "C")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
	apply(t, l, workitem.Update, "id", "w2", "status", "SKIPPED", "notes", "not wanted")
	if got := workitem.Percent(l); got != 66 {
		t.Errorf("%d", got)
	}
}

// The artifact of a revision that is DONE replaces the one that it revises, also along a
// chain; an unfinished or skipped revision replaces nothing.
func TestDeliverablesAreThoseOfFinishedRevisions(t *testing.T) {
	l := &ledger{}
	apply(t, l, workitem.Add, "title", "Report", "role", "DELIVERABLE")
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", "draft")
	apply(t, l, workitem.Add, "title", "Letter", "role", "DELIVERABLE")
	apply(t, l, workitem.SetArtifact, "id", "w2", "content", "letter")
	want := func(want ...string) {
		t.Helper()
		var got []string
		for _, d := range workitem.Deliverables(l) {
			got = append(got, d.GetItemId()+" "+d.GetTitle()+": "+d.GetContent().GetInline())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "thin")
	want("w1 Report: draft", "w2 Letter: letter")
	apply(t, l, workitem.SetArtifact, "id", "w3", "content", "second")
	want("w1 Report: draft", "w2 Letter: letter", "w3 Revise: Report: second")
	apply(t, l, workitem.Update, "id", "w3", "status", "DONE")
	want("w1 Report: second", "w2 Letter: letter")
	apply(t, l, workitem.FlagRevision, "id", "w3", "reason", "still thin")
	apply(t, l, workitem.SetArtifact, "id", "w4", "content", "third")
	apply(t, l, workitem.Update, "id", "w4", "status", "SKIPPED")
	want("w1 Report: second", "w2 Letter: letter", "w4 Revise: Report: third")
	apply(t, l, workitem.Update, "id", "w4", "status", "DONE")
	want("w1 Report: third", "w2 Letter: letter")
	apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "too long")
	apply(t, l, workitem.Update, "id", "w5", "status", "DONE")
	want("w1 Report: third", "w2 Letter: letter")
	apply(t, l, workitem.SetArtifact, "id", "w5", "content", "fourth")
	want("w1 Report: fourth", "w2 Letter: letter")
}

func TestDeliverables(t *testing.T) {
	l := with(t, "A", "B", "C", "D")
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", "one", "role", "DELIVERABLE")
	apply(t, l, workitem.SetArtifact, "id", "w2", "content", "two", "role", "WORKING")
	apply(t, l, workitem.SetArtifact, "id", "w4", "content", "four", "role", "DELIVERABLE")
	l.Items[3].Artifact = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte("four"))}}
	l.Items[2].Role, l.Items[2].Artifact = deliverable, content.Inline("")
	got := workitem.Deliverables(l)
	if len(got) != 2 || got[0].GetItemId() != "w1" || got[0].GetTitle() != "A" || got[0].GetContent().GetInline() != "one" || got[1].GetContent().GetBlob() == nil {
		t.Errorf("%v", got)
	}
}

func TestUpsertReplacesByIDAndAppendsNewItems(t *testing.T) {
	l := with(t, "A", "B")
	l.Stored = content.Inline("old")
	workitem.Upsert(l, nil)
	if l.GetStored() == nil {
		t.Error("nothing was put in and the stored form is gone")
	}
	workitem.Upsert(l, []*harnessv1.WorkItem{{Id: "w3", Title: "C"}, {Id: "w1", Title: "A2"}, {Id: "x", Title: "X"}, {Id: "w3", Title: "C2"}})
	var got []string
	for _, i := range l.GetItems() {
		got = append(got, i.GetId()+"="+i.GetTitle())
	}
	if want := "w1=A2 w2=B w3=C2 x=X"; strings.Join(got, " ") != want || l.GetStored() != nil || l.GetLastNumber() != 3 {
		t.Errorf("%v, last number %d, want %s", got, l.GetLastNumber(), want)
	}
}

func TestMergeKeepsTheOrder(t *testing.T) {
	first := []*harnessv1.WorkItem{{Id: "w1", Title: "A"}, {Id: "w2", Title: "B"}}
	merged := workitem.Merge(first, []*harnessv1.WorkItem{{Id: "w3"}, {Id: "w1", Title: "A2"}})
	if len(merged) != 3 || merged[0].GetTitle() != "A2" || merged[1].GetId() != "w2" || merged[2].GetId() != "w3" || first[0].GetTitle() != "A" {
		t.Errorf("%v of %v", merged, first)
	}
}

func TestTemplatesBecomeItems(t *testing.T) {
	templates := []*harnessv1.WorkItemTemplate{
		{Title: "Look"},
		{Id: "w1", Title: "Named like the first"},
		{Id: "audit", Title: "Audit", Priority: high, Role: control, Notes: "n"},
		{Title: "Write"},
	}
	if err := workitem.CheckTemplates(templates); err != nil {
		t.Fatal(err)
	}
	l := &ledger{}
	workitem.FromTemplates(l, templates)
	want := &ledger{LastNumber: 3, Items: []*harnessv1.WorkItem{
		{Id: "w2", Title: "Look", Status: pending, Priority: medium, Role: working},
		{Id: "w1", Title: "Named like the first", Status: pending, Priority: medium, Role: working},
		{Id: "audit", Title: "Audit", Status: pending, Priority: high, Role: control, Notes: "n"},
		{Id: "w3", Title: "Write", Status: pending, Priority: medium, Role: working},
	}}
	if !proto.Equal(l, want) {
		t.Errorf("%v", l)
	}
	if out := apply(t, l, workitem.Add, "title", "More"); !strings.Contains(out.Result, `"w4"`) {
		t.Errorf("%s", out.Result)
	}
}

func TestCheckTemplatesNamesTheField(t *testing.T) {
	many := make([]*harnessv1.WorkItemTemplate, 65)
	for n := range many {
		many[n] = &harnessv1.WorkItemTemplate{Title: "T"}
	}
	for _, c := range []struct {
		field     string
		templates []*harnessv1.WorkItemTemplate
	}{
		{"", nil},
		{"", many[:64]},
		{"work_item_templates", many},
		{"work_item_templates[1].id", []*harnessv1.WorkItemTemplate{{Title: "T"}, {Id: "a b", Title: "T"}}},
		{"work_item_templates[2].id", []*harnessv1.WorkItemTemplate{{Id: "a", Title: "T"}, {Id: "b", Title: "T"}, {Id: "a", Title: "T"}}},
		{"work_item_templates[0].title", []*harnessv1.WorkItemTemplate{{Id: "a", Title: " "}}},
		{"work_item_templates[0].title", []*harnessv1.WorkItemTemplate{{Title: strings.Repeat("t", 121)}}},
		{"work_item_templates[0].notes", []*harnessv1.WorkItemTemplate{{Title: "T", Notes: strings.Repeat("n", 513)}}},
		{"work_item_templates[0].priority", []*harnessv1.WorkItemTemplate{{Title: "T", Priority: 9}}},
		{"work_item_templates[0].role", []*harnessv1.WorkItemTemplate{{Title: "T", Role: 9}}},
	} {
		err := workitem.CheckTemplates(c.templates)
		var invalid *fault.FieldError
		if c.field == "" {
			if err != nil {
				t.Errorf("%v", err)
			}
		} else if !errors.As(err, &invalid) || invalid.Field != c.field || invalid.Message == "" {
			t.Errorf("want %s, got %v", c.field, err)
		}
	}
}

func TestStatusesOfItems(t *testing.T) {
	l := with(t, "A", "B")
	apply(t, l, workitem.Update, "id", "w2", "status", "DONE", "notes", "n")
	if got := workitem.Statuses(l); string(got) != "\x01\x03" {
		t.Errorf("%v", got)
	}
}
