package workitem_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// saveCall is a call of save_artifact; fields that are left out are missing.
func saveCall(t testing.TB, id string, more ...any) string {
	t.Helper()
	arguments := map[string]any{"kind": "insight", "title": "Prices", "content": "Prices rose by 4 %."}
	if id != "" {
		arguments["id"] = id
	}
	for i := 0; i < len(more); i += 2 {
		arguments[more[i].(string)] = more[i+1] //nolint:forcetypeassert // of this file
	}
	data, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func artifactIDs(l *ledger) []string {
	var ids []string
	for _, a := range l.GetArtifacts() {
		ids = append(ids, a.GetId())
	}
	return ids
}

// TestSavedArtifactsHaveIds: made-up ids are a1, a2 and so on without those that the agent has chosen; a
// replacement takes none. A ledger that is folded from what Save returned is equal.
func TestSavedArtifactsHaveIds(t *testing.T) {
	l, folded := &ledger{}, &ledger{}
	for _, c := range []struct {
		id, kind, want string
		all            []string
	}{
		{"", "insight", "a1", []string{"a1"}},
		{"a3", "insight", "a3", []string{"a1", "a3"}},
		{"", "document", "a2", []string{"a1", "a3", "a2"}},
		{"", "insight", "a4", []string{"a1", "a3", "a2", "a4"}},
		{"a1", "document", "a1", []string{"a1", "a3", "a2", "a4"}},
		{"report", "document", "report", []string{"a1", "a3", "a2", "a4", "report"}},
		{"a5", "insight", "a5", []string{"a1", "a3", "a2", "a4", "report", "a5"}},
		{"", "insight", "a6", []string{"a1", "a3", "a2", "a4", "report", "a5", "a6"}},
	} {
		l.Stored = content.Inline("stored")
		o := workitem.Save(l, saveCall(t, c.id, "kind", c.kind))
		if o.IsError || len(o.Saved) != 1 || o.Saved[0].GetId() != c.want || !slices.Equal(artifactIDs(l), c.all) {
			t.Fatalf("%q: %+v, the ledger has %v", c.id, o, artifactIDs(l))
		}
		if !strings.Contains(o.Result, fmt.Sprintf(`"id":%q`, c.want)) || !strings.Contains(o.Result, fmt.Sprintf(`"artifacts":%d`, len(c.all))) {
			t.Errorf("the model reads %s", o.Result)
		}
		if l.GetStored() != nil {
			t.Error("the stored form was not cleared")
		}
		if len(o.Events) != 1 || !proto.Equal(o.Events[0].GetDeliverablesUpdated(), &harnessv1.DeliverablesUpdated{
			ItemId: c.want, Title: "Prices", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE,
		}) {
			t.Errorf("events %v", o.Events)
		}
		folded.Stored = content.Inline("stored")
		workitem.UpsertArtifacts(folded, o.Saved)
		if !proto.Equal(folded, l) {
			t.Fatalf("folded %v, want %v", folded, l)
		}
	}
	o := workitem.Save(l, saveCall(t, "a1", "title", "Other"))
	l.Artifacts[0].Title = "changed later"
	if o.Saved[0].GetTitle() != "Other" {
		t.Error("what Save returns is a part of the ledger")
	}
	stored := content.Inline("stored")
	l.Stored = stored
	if workitem.UpsertArtifacts(l, nil); l.GetStored() != stored {
		t.Error("nothing was stored, and the stored form was cleared")
	}
	workitem.UpsertArtifacts(nil, o.Saved)
	l.Artifacts = nil // of another attempt: ids are not made up twice
	if o := workitem.Save(l, saveCall(t, "")); o.Saved[0].GetId() != "a7" {
		t.Errorf("got the id %s", o.Saved[0].GetId())
	}
}

// TestSavedArtifact has everything that the call gave; absent fields are not stored.
func TestSavedArtifact(t *testing.T) {
	l := &ledger{}
	o := workitem.Save(l, saveCall(t, "x", "title", " Prices\nnow ", "content", "é1 rose.", "data", map[string]any{"priority": "high"},
		"citations", []map[string]string{{"source": "s1", "quote": strings.Repeat("q", 1200)}, {"source": "s2"}}))
	want := &harnessv1.Artifact{
		Id: "x", Kind: "insight", Title: "Prices now", Content: content.Inline("é1 rose."), Chars: 8, Data: content.Inline(`{"priority":"high"}`),
		Citations: []*harnessv1.Citation{{Source: "s1", Quote: content.Cut(strings.Repeat("q", 1200), 1000)}, {Source: "s2"}},
	}
	if o.IsError || !proto.Equal(l.GetArtifacts()[0], want) || len(want.GetCitations()[0].GetQuote()) > 1000 {
		t.Errorf("%+v stored %v", o, l.GetArtifacts())
	}
	workitem.Save(l, saveCall(t, "x", "data", nil, "citations", nil))
	if a := l.GetArtifacts()[0]; a.GetData() != nil || a.GetCitations() != nil || len(l.GetArtifacts()) != 1 {
		t.Errorf("stored %v", l.GetArtifacts())
	}
}

// TestSaveRefuses: the ledger stays unchanged, and the model reads what to change.
func TestSaveRefuses(t *testing.T) {
	citations := func(n int) []map[string]string { return slices.Repeat([]map[string]string{{"source": "s"}}, n) }
	data := func(n int) string { return strings.Repeat("x", n-len(`{"k":""}`)) }
	for _, c := range []struct {
		name, told string // told "" if it is stored
		arguments  string
	}{
		{"an empty content", "content is empty", saveCall(t, "", "content", "")},
		{"white space", "content is empty", saveCall(t, "", "content", " \n\t")},
		{"a long content", "at most", saveCall(t, "", "content", strings.Repeat("Prices rose. ", 1<<17))},
		{"50 citations", "", saveCall(t, "", "citations", citations(50))},
		{"51 citations", "51 citations", saveCall(t, "", "citations", citations(51))},
		{"data of 16 KiB", "", saveCall(t, "", "data", map[string]string{"k": data(16 << 10)})},
		{"more data", "has 16385 bytes", saveCall(t, "", "data", map[string]string{"k": data(16<<10 + 1)})},
		{"broken arguments", "arguments", `{"kind":`},
	} {
		l := &ledger{Stored: content.Inline("stored")}
		before := proto.CloneOf(l)
		o := workitem.Save(l, c.arguments)
		if c.told == "" {
			if o.IsError || len(l.GetArtifacts()) != 1 {
				t.Errorf("%s: %s", c.name, o.Result)
			}
			continue
		}
		if !o.IsError || !strings.Contains(o.Result, c.told) || !proto.Equal(l, before) || len(o.Saved)+len(o.Events) > 0 {
			t.Errorf("%s: %.200s", c.name, o.Result)
		}
	}
	if o := workitem.Save(nil, saveCall(t, "")); !o.IsError {
		t.Errorf("without a ledger: %+v", o)
	}
}

// TestSaveBoundsArtifacts: 200, of which each may be replaced.
func TestSaveBoundsArtifacts(t *testing.T) {
	l := &ledger{}
	for n := range workitem.MaxArtifacts {
		if o := workitem.Save(l, saveCall(t, "")); o.IsError {
			t.Fatalf("%d: %s", n+1, o.Result)
		}
	}
	if len(l.GetArtifacts()) != 200 {
		t.Fatalf("%d artifacts", len(l.GetArtifacts()))
	}
	before := proto.CloneOf(l)
	for _, id := range []string{"", "other"} {
		if o := workitem.Save(l, saveCall(t, id)); !o.IsError || !strings.Contains(o.Result, "may have 200") || !proto.Equal(l, before) {
			t.Errorf("id %q: %s", id, o.Result)
		}
	}
	if o := workitem.Save(l, saveCall(t, "a7", "title", "New")); o.IsError || l.GetArtifacts()[6].GetTitle() != "New" || len(l.GetArtifacts()) != 200 {
		t.Errorf("a replacement: %s", o.Result)
	}
}

// TestSaveChecksNarrationAsWorkItemsDo: the same content is stored in the same form, or refused.
func TestSaveChecksNarrationAsWorkItemsDo(t *testing.T) {
	outcomes := map[string]int{}
	for _, text := range []string{
		"Prices rose by 4 %.",
		"Here is the report:\n\n# Prices\n\nPrices rose by 4 % in May. Rents rose by 2 %.\n\nLet me know if you need anything else!",
		"I'll write the report now. Let me start by reading the files.",
		"I have completed the task. I read all of the files and wrote the report.",
	} {
		l, items := &ledger{}, &ledger{}
		apply(t, items, workitem.Add, "title", "Report", "role", "DELIVERABLE")
		arguments, _ := json.Marshal(map[string]string{"id": "w1", "content": text})
		saved, set := workitem.Save(l, saveCall(t, "", "content", text)), workitem.StoreArtifact(items, string(arguments))
		if saved.IsError != set.IsError {
			t.Errorf("%q: %s, as a work item %s", text, saved.Result, set.Result)
		}
		if saved.IsError {
			outcomes["refused"]++
			continue
		}
		stored := content.Text(l.GetArtifacts()[0].GetContent())
		if want := content.Text(items.GetItems()[0].GetArtifact()); stored != want {
			t.Errorf("stored %q, as a work item %q", stored, want)
		}
		if stripped := stored != text; stripped != strings.Contains(saved.Result, "Stored without words about it") {
			t.Errorf("stored %q, and the model reads %s", stored, saved.Result)
		} else if stripped {
			outcomes["stripped"]++
		}
	}
	if outcomes["refused"] == 0 || outcomes["stripped"] == 0 {
		t.Errorf("%v: the texts do not show it", outcomes)
	}
}

func TestKindsOfArtifacts(t *testing.T) {
	for text, want := range map[string]bool{
		"finding": true, "a": true, "a_2": true, strings.Repeat("a", 32): true,
		"": false, " ": false, "Finding": false, "2a": false, "_a": false, "a-b": false, "a b": false, "a\n": false, strings.Repeat("a", 33): false,
	} {
		if workitem.IsKind(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

// TestHasQuote: a source without words of it is no quote.
func TestHasQuote(t *testing.T) {
	quoting := func(quotes ...string) *harnessv1.Artifact {
		a := &harnessv1.Artifact{}
		for _, q := range quotes {
			a.Citations = append(a.Citations, &harnessv1.Citation{Source: "s1", Quote: q})
		}
		return a
	}
	if workitem.HasQuote(quoting()) || workitem.HasQuote(quoting("", " \n\t")) || !workitem.HasQuote(quoting("", "words")) {
		t.Error("quotes are not what counts")
	}
}

// TestSavedArtifactsAreDeliverables with their kind, before those of work items.
func TestSavedArtifactsAreDeliverables(t *testing.T) {
	l := &ledger{}
	apply(t, l, workitem.Add, "title", "Letter", "role", "DELIVERABLE")
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Dear all, prices rose.")
	workitem.Save(l, saveCall(t, ""))
	workitem.Save(l, saveCall(t, "", "kind", "document", "title", "Report", "content", "Rents rose."))
	got, want := workitem.Deliverables(l), []*harnessv1.Deliverable{
		{ItemId: "a1", Title: "Prices", Kind: "insight", Content: content.Inline("Prices rose by 4 %.")},
		{ItemId: "a2", Title: "Report", Kind: "document", Content: content.Inline("Rents rose.")},
		{ItemId: "w1", Title: "Letter", Content: content.Inline("Dear all, prices rose.")},
	}
	if !slices.EqualFunc(got, want, func(a, b *harnessv1.Deliverable) bool { return proto.Equal(a, b) }) {
		t.Errorf("%v", got)
	}
}
