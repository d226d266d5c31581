package workitem_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
)

// worked returns a ledger with an item of each kind.
func worked(t testing.TB) *ledger {
	t.Helper()
	l := with(t, "Read the sources", "Write the report", "Draw the chart", "Check the sums", "Ask the bank")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
	apply(t, l, workitem.SetArtifact, "id", "w2", "content", "Sums.", "role", "DELIVERABLE")
	apply(t, l, workitem.Update, "id", "w2", "status", "DONE")
	apply(t, l, workitem.Update, "id", "w3", "status", "IN_PROGRESS")
	apply(t, l, workitem.Update, "id", "w5", "status", "SKIPPED", "notes", "closed today")
	apply(t, l, workitem.FlagRevision, "id", "w2", "reason", "The third sum is missing.")
	return l
}

func TestStateShowsOpenItemsFirstWithMarksUsageAndReads(t *testing.T) {
	usage := []*harnessv1.ToolUsage{{Tool: "write_file", Calls: 1}, {Tool: "read_file", Calls: 4}, {Tool: "idle"}, {Tool: "list", Calls: 1}}
	want := `Work items: 4 of 6 remain.
[!] w2 Write the report, has an artifact
[~] w3 Draw the chart
[ ] w4 Check the sums
[ ] w6 Revise: Write the report, high priority, revision of w2
[x] w1 Read the sources
[-] w5 Ask the bank
Marks: [ ] pending, [~] in progress, [x] done, [-] skipped, [!] finished but to be revised.
Tools used so far: read_file 4, list 1, write_file 1.
Only 4 reads so far. Before you write, read on until you know what you write about.
Go on with the next open item.`
	l := worked(t)
	if got := workitem.State(l, usage, 4); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := workitem.State(l, usage, 10); strings.Contains(got, "reads so far") || !strings.Contains(got, "read_file 4") {
		t.Errorf("ten reads are enough:\n%s", got)
	}
	if got := workitem.State(l, nil, 0); !strings.Contains(got, "Nothing has been read yet") || !strings.Contains(got, "used so far: none") {
		t.Errorf("no reads, no calls:\n%s", got)
	}
	if got := workitem.State(l, nil, 1); !strings.Contains(got, "1 read so far") {
		t.Errorf("one read:\n%s", got)
	}
}

func TestStateIsEmpty_WhenNothingIsOpen(t *testing.T) {
	l := with(t, "A")
	apply(t, l, workitem.Update, "id", "w1", "status", "DONE")
	if workitem.State(l, nil, 0) != "" || workitem.Summary(l) != "" || workitem.Reminder(l) != "" || workitem.ShownHash(l) != 0 {
		t.Error("a complete ledger has something to say")
	}
}

func TestTextsAreLimited(t *testing.T) {
	l := &ledger{}
	usage := make([]*harnessv1.ToolUsage, 128)
	for n := range usage {
		usage[n] = &harnessv1.ToolUsage{Tool: strings.Repeat("t", 64), Calls: 4_000_000_000}
	}
	for n := range workitem.MaxItems {
		id := fmt.Sprintf("%s%03d", strings.Repeat("i", 29), n)
		apply(t, l, workitem.Add, "title", strings.Repeat("t", 120), "notes", strings.Repeat("n", 512), "priority", "HIGH", "id", id)
		if n >= workitem.MaxOpen {
			apply(t, l, workitem.Update, "id", id, "status", "DONE")
		}
		if n == workitem.MaxOpen-1 {
			apply(t, l, workitem.Update, "id", id, "status", "DONE")
		}
	}
	state := workitem.State(l, usage, 3)
	if len(state) > 12<<10 || strings.Count(state, "\n[") != 40 || !strings.Contains(state, "… 160 more") || !strings.Contains(state, "and 112 others") {
		t.Errorf("%d bytes:\n%s", len(state), state)
	}
	reminder := workitem.Reminder(l)
	if len(reminder) > 8<<10 || strings.Count(reminder, "\n- ") != 21 || !strings.Contains(reminder, "and 43 more") {
		t.Errorf("%d bytes:\n%s", len(reminder), reminder)
	}
	if summary := workitem.Summary(l); len(summary) > 1<<10 || !strings.HasPrefix(summary, "63 of 200 work items remain: ") || !strings.HasSuffix(summary, "and 43 more") {
		t.Errorf("%d bytes: %s", len(summary), summary)
	}
}

func TestSummaryNamesOpenItemsInOneLine(t *testing.T) {
	l := worked(t)
	if got, want := workitem.Summary(l), "4 of 6 work items remain: w2, w3, w4, w6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	one := with(t, "A")
	if got, want := workitem.Summary(one), "1 of 1 work item remains: w1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestReminderSaysWhatToDo(t *testing.T) {
	got := workitem.Reminder(worked(t))
	for _, line := range []string{
		`- w2 "Write the report": finished, but flagged for revision; finish w6.`,
		`- w3 "Draw the chart": in progress; finish it.`,
		`- w4 "Check the sums": not begun; do it, or skip it.`,
		`- w6 "Revise: Write the report": revision of w2; not begun; do it, or skip it. Wanted: The third sum is missing.`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
	for _, finished := range []string{"w1", "w5"} {
		if strings.Contains(got, finished) {
			t.Errorf("%s is finished and named:\n%s", finished, got)
		}
	}
	if !strings.Contains(got, "4 of 6") || !strings.Contains(got, workitem.Update) || !strings.Contains(got, "work_complete") {
		t.Errorf("%s", got)
	}
}

func TestShownHashFollowsTheShownList(t *testing.T) {
	l := worked(t)
	before, shown := workitem.ShownHash(l), workitem.State(l, nil, 0)
	for what, change := range map[string]func(l *ledger){
		"a status": func(l *ledger) { apply(t, l, workitem.Update, "id", "w4", "status", "DONE") },
		"notes":    func(l *ledger) { apply(t, l, workitem.Update, "id", "w4", "notes", "n") },
		"an item":  func(l *ledger) { apply(t, l, workitem.Add, "title", "T") },
		"artifact": func(l *ledger) { apply(t, l, workitem.SetArtifact, "id", "w2", "content", "Other sums.") },
	} {
		changed := proto.CloneOf(l)
		change(changed)
		if same := workitem.State(changed, nil, 0) == shown; same != (workitem.ShownHash(changed) == before) {
			t.Errorf("%s: shown the same %v, hash the same %v", what, same, !same)
		}
	}
}

func TestGuidanceTeachesTheToolsAndTheSteps(t *testing.T) {
	text := workitem.Guidance()
	for _, name := range []string{workitem.Add, workitem.Update, workitem.List, workitem.SetArtifact, workitem.FlagRevision} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not in the guidance", name)
		}
	}
	at := 0
	for _, step := range []string{"1. Plan", "2. Execute", "3. Audit", "4. Revise", "5. Verify"} {
		next := strings.Index(text, step)
		if next < at {
			t.Errorf("%q is missing or out of order", step)
		}
		at = next
	}
	for _, part := range []string{"DELIVERABLE", "WORKING", "CONTROL", `"verdict"`, `"checks"`, `"summary"`} {
		if !strings.Contains(text, part) {
			t.Errorf("%s is not in the guidance", part)
		}
	}
	if plan := workitem.Planning(); !strings.Contains(plan, workitem.Add) || len(plan) > 2<<10 || len(text) > 4<<10 {
		t.Errorf("%d and %d bytes", len(plan), len(text))
	}
}
