package workitem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

const (
	passing = `{"verdict":"pass","checks":[{"name":"sums","result":"pass","detail":"they add up"}],"summary":"All well."}`
	failing = `{"verdict":"fail","checks":[{"name":"sums","result":"fail","detail":"the total is off by 3"},{"name":"dates","result":"pass","detail":"ok"},{"name":"sources","result":"fail"}],"summary":"Two faults."}`
)

func TestControlArtifactMustBeAnAudit(t *testing.T) {
	for content, named := range map[string]string{
		`All is well.`:                        "not valid JSON",
		"```json\n" + passing + "\n```":       "fence",
		`[]`:                                  "array",
		`null`:                                "null",
		passing + ` And more.`:                "behind",
		passing + passing:                     "behind",
		`{}`:                                  "verdict is missing",
		`{"verdict":"ok"}`:                    `verdict is "ok"`,
		`{"verdict":true}`:                    "verdict is true",
		`{"verdict":"pass"}`:                  "checks is missing",
		`{"verdict":"pass","checks":[]}`:      "checks is empty",
		`{"verdict":"pass","checks":{"a":1}}`: "checks is missing or no list",
		`{"verdict":"pass","checks":["sums"],"summary":"s"}`:                                           "checks[0] is no object",
		`{"verdict":"pass","checks":[{"result":"pass"}],"summary":"s"}`:                                "checks[0].name",
		`{"verdict":"pass","checks":[{"name":"a","result":"pass"},{"name":"b"}],"summary":"s"}`:        "checks[1].result is missing",
		`{"verdict":"pass","checks":[{"name":"a","result":"maybe"}],"summary":"s"}`:                    `checks[0].result is "maybe"`,
		`{"verdict":"pass","checks":[{"name":"a","result":"pass","detail":[1]}],"summary":"s"}`:        "checks[0].detail",
		`{"verdict":"pass","checks":[{"name":"a","result":"pass"}]}`:                                   "summary",
		`{"verdict":"pass","checks":[{"name":"a","result":"pass"}],"summary":" \n"}`:                   "summary",
		`{"verdict":"pass","checks":[{"name":"a","result":"pass"}],"summary":{"text":"not a string"}}`: "summary",
	} {
		l := with(t, "Audit")
		apply(t, l, workitem.SetArtifact, "id", "w1", "content", passing, "role", "CONTROL")
		refused(t, l, []string{named, "verdict"}, workitem.SetArtifact, "id", "w1", "content", content)
	}
}

func TestAuditMayBeAnObject(t *testing.T) {
	l := with(t, "Audit")
	out := applyTool(l, workitem.SetArtifact, `{"id":"w1","role":"CONTROL","content":`+failing+`}`)
	if out.IsError || item(l, "w1").GetControl().GetPassed() || item(l, "w1").GetArtifact().GetInline() != failing {
		t.Errorf("%s", out.Result)
	}
}

func TestAuditMayHaveNarration(t *testing.T) {
	l := with(t, "Audit")
	audit := strings.Replace(passing, "All well.", "Here is the report: let me know if you'd like me to go on.", 1)
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", audit, "role", "CONTROL")
	if got := item(l, "w1"); got.GetArtifact().GetInline() != audit || !got.GetControl().GetPassed() {
		t.Errorf("%v", got)
	}
}

func TestFailedAuditRequestsARevision(t *testing.T) {
	l := with(t, "Report", "Audit of the report", "Other audit")
	apply(t, l, workitem.SetArtifact, "id", "w3", "content", passing, "role", "CONTROL")
	if failed := workitem.FailedControls(l); len(failed) > 0 {
		t.Errorf("a passed audit counts as failed: %v", failed)
	}
	out := apply(t, l, workitem.SetArtifact, "id", "w2", "content", failing, "role", "CONTROL")
	if !strings.Contains(out.Result, workitem.FlagRevision) {
		t.Errorf("%s does not ask for a revision", out.Result)
	}
	failed := workitem.FailedControls(l)
	if len(failed) != 1 || failed[0].Key != "w2@"+item(l, "w2").GetArtifactDigest() || failed[0].ItemID != "w2" || failed[0].Title != "Audit of the report" ||
		!slices.Equal(failed[0].Checks, []string{"sums: the total is off by 3", "sources"}) {
		t.Fatalf("%+v", failed)
	}
	text := workitem.RevisionRequest(failed)
	for _, part := range []string{"w2", "Audit of the report", "sums: the total is off by 3", "sources", workitem.FlagRevision} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in\n%s", part, text)
		}
	}
	before := failed[0].Key
	apply(t, l, workitem.SetArtifact, "id", "w2", "content", strings.Replace(failing, "3", "4", 1))
	if key := workitem.FailedControls(l)[0].Key; key == before {
		t.Error("another audit has the same key")
	}
	apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "The total is off.")
	if failed := workitem.FailedControls(l); len(failed) > 0 {
		t.Errorf("there is a revision, and still %v", failed)
	}
}

// A failed audit keeps its item open, whatever its status, until an item is a revision or
// the audit passes; so does one that passes with a failed check.
func TestFailedAuditIsOpen(t *testing.T) {
	inconsistent := strings.Replace(failing, `"verdict":"fail"`, `"verdict":"pass"`, 1)
	if inconsistent == failing {
		t.Fatal("the audit has no verdict")
	}
	for _, audit := range []string{failing, inconsistent} {
		for _, status := range []string{"DONE", "SKIPPED"} {
			l := with(t, "Report", "Audit")
			apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
			apply(t, l, workitem.SetArtifact, "id", "w2", "content", audit, "role", "CONTROL")
			out := apply(t, l, workitem.Update, "id", "w2", "status", status, "notes", "n")
			if !strings.Contains(out.Result, workitem.FlagRevision) {
				t.Errorf("%s does not ask for a revision", out.Result)
			}
			if open := workitem.Open(l); len(open) != 1 || open[0].GetId() != "w2" || len(workitem.FailedControls(l)) != 1 {
				t.Fatalf("%s: open are %v", status, open)
			}
			for what, text := range map[string]string{"reminder": workitem.Reminder(l), "state": workitem.State(l, nil, 0)} {
				if !strings.Contains(text, "w2") || what == "reminder" && (!strings.Contains(text, "the total is off by 3") || !strings.Contains(text, workitem.FlagRevision)) {
					t.Errorf("%s: %s", what, text)
				}
			}
			passed := proto.CloneOf(l)
			apply(t, passed, workitem.SetArtifact, "id", "w2", "content", passing)
			apply(t, l, workitem.FlagRevision, "id", "w1", "reason", "r")
			apply(t, l, workitem.Update, "id", "w3", "status", "DONE")
			if !workitem.IsComplete(l) || !workitem.IsComplete(passed) {
				t.Errorf("open are %v and %v", workitem.Open(l), workitem.Open(passed))
			}
		}
	}
}

func TestNarrationAroundAnAuditIsStripped(t *testing.T) {
	for _, text := range []string{"Here is the audit:\n\n" + failing, "The following is the complete audit.\n\n" + failing, failing + "\n\nNext, I'll call task_complete."} {
		l := with(t, "Audit")
		out := apply(t, l, workitem.SetArtifact, "id", "w1", "content", text, "role", "CONTROL")
		if i := item(l, "w1"); i.GetArtifact().GetInline() != failing || i.GetControl() == nil || !strings.Contains(out.Result, "without words about it") {
			t.Errorf("%s left %v", out.Result, i)
		}
	}
}

func TestReplacedAuditHasNoVerdict(t *testing.T) {
	l := with(t, "Audit")
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", failing, "role", "CONTROL")
	apply(t, l, workitem.SetArtifact, "id", "w1", "content", "Notes.", "role", "WORKING")
	if item(l, "w1").GetControl() != nil || len(workitem.FailedControls(l)) > 0 {
		t.Errorf("%v", item(l, "w1"))
	}
}

func TestRevisionRequestIsLimited(t *testing.T) {
	checks := make([]string, 40)
	for n := range checks {
		checks[n] = fmt.Sprintf(`{"name":"c%d","result":"fail","detail":%q}`, n, strings.Repeat("d", 400))
	}
	l := &ledger{}
	for n := range 12 {
		apply(t, l, workitem.Add, "title", strings.Repeat("t", 120))
		apply(t, l, workitem.SetArtifact, "id", fmt.Sprintf("w%d", n+1), "role", "CONTROL",
			"content", `{"verdict":"fail","checks":[`+strings.Join(checks, ",")+`],"summary":"s"}`)
	}
	for _, check := range item(l, "w1").GetControl().GetFailedChecks() {
		if len(check) > 160 {
			t.Errorf("%d bytes of a check", len(check))
		}
	}
	if n := len(item(l, "w1").GetControl().GetFailedChecks()); n != 16 {
		t.Errorf("%d checks are kept, want 16", n)
	}
	if text := workitem.RevisionRequest(workitem.FailedControls(l)); len(text) > 24<<10 || !strings.Contains(text, "4 audits more") {
		t.Errorf("%d bytes: …%s", len(text), text[len(text)-300:])
	}
}
