package judgement

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// An artifact is stored with its role, and each store is an event; the result lists
// exactly the deliverables with id, title and content, in the order of the items.
func TestItemsResultListsExactlyTheDeliverables(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Notes"), itemsAdd("Report"), itemsAdd("Audit"), itemsAdd("Letter"), itemsAdd("Nothing")),
		live.Calls(
			itemsArtifact("w4", "Dear reader", "DELIVERABLE"),
			itemsArtifact("w1", "four sources", "WORKING"),
			itemsArtifact("w2", "# Report\n\nAll is well.\n", "DELIVERABLE"),
			itemsArtifact("w3", `{"verdict":"pass","checks":[{"name":"complete","result":"pass","detail":""}],"summary":"fine"}`, "CONTROL"),
		),
		live.Calls(itemsSet("w1", "DONE"), itemsSet("w2", "DONE"), itemsSet("w3", "DONE"), itemsSet("w4", "DONE"), itemsSet("w5", "SKIPPED")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "deliverables", itemsMade(t, s), "w2 Report: # Report\n\nAll is well.\n", "w4 Letter: Dear reader")
	var updated []string
	for _, e := range s.Events {
		if d := e.GetDeliverablesUpdated(); d != nil {
			updated = append(updated, fmt.Sprintf("%d %s %s %s", e.GetTurnNumber(), d.GetItemId(), d.GetTitle(), strings.TrimPrefix(d.GetRole().String(), "ARTIFACT_ROLE_")))
		}
	}
	itemsEqual(t, "updates", updated, "2 w4 Letter DELIVERABLE", "2 w1 Notes WORKING", "2 w2 Report DELIVERABLE", "2 w3 Audit CONTROL")
	item := itemsFind(t, s.State(), "w2")
	sum := sha256.Sum256([]byte("# Report\n\nAll is well.\n"))
	if item.GetArtifactDigest() != hex.EncodeToString(sum[:]) {
		t.Errorf("the digest of the artifact is %s", item.GetArtifactDigest())
	}
}

// Without a role an artifact keeps the role of its item: that of the artifact before it,
// else the one given when it was added, else WORKING.
func TestItemsArtifactKeepsItsRole(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("a"), itemsAdd("b"), live.Call("work_item_add", live.Args{"title": "c", "role": "DELIVERABLE"})),
		live.Calls(itemsArtifact("w1", "first", "DELIVERABLE"), itemsArtifact("w2", "first", ""), itemsArtifact("w3", "first", "")),
		live.Calls(itemsArtifact("w1", "second", ""), itemsArtifact("w2", "second", "")),
		live.Calls(itemsSet("w1", "DONE"), itemsSet("w2", "DONE"), itemsSet("w3", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "the state", itemsLedger(s.State()), "w1 DONE MEDIUM DELIVERABLE", "w2 DONE MEDIUM WORKING", "w3 DONE MEDIUM DELIVERABLE")
	itemsEqual(t, "deliverables", itemsMade(t, s), "w1 a: second", "w3 c: first")
}

// A large artifact is in the result whole, and so are deliverables of a run that ended
// without being accepted.
func TestItemsLargeDeliverableOfARunOutOfTurns(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("All work and no play. ", 3000) + "End."
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Novel")),
		live.Calls(itemsArtifact("w1", large, "DELIVERABLE")),
	), itemsOn, func(spec *harnessv1.RunSpec) { spec.Config.Stop = &harnessv1.StopConfig{MaxTurns: proto.Uint32(2)} })
	s.Want("DONE max_turns")
	itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Novel: "+large)
}

// An empty artifact is refused, and what was stored before stays.
func TestItemsEmptyArtifactIsRefused(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("a")),
		live.Calls(itemsArtifact("w1", "text", "DELIVERABLE")),
		live.Calls(itemsArtifact("w1", "", ""), itemsArtifact("w1", " \n", "")),
		live.Calls(itemsSet("w1", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	for _, a := range itemsAnswers(t, s, 2) {
		itemsHas(t, "the answer", a.text, "empty")
	}
	itemsEqual(t, "deliverables", itemsMade(t, s), "w1 a: text")
	if n := len(s.Names("tool.error")); n != 2 {
		t.Errorf("%d calls failed, want 2", n)
	}
}

// A few lines that announce an artifact or report on it are stripped at its edges; more
// of them, or one between the content, or nothing else, and it is refused with the
// reason while the former one stays; content is stored unchanged.
func TestItemsNarrationIsStrippedOrRefused(t *testing.T) {
	t.Parallel()
	body := "# Findings\n\nThe cache is cold at start.\n\nThe pool is too small.\n\nBoth cost 40 ms.\n"
	long := "# Plan\n\nOne.\n\nTwo.\n\nThree.\n\nFour.\n\nFive.\n\nSix.\n\nSeven."
	for name, c := range map[string]struct{ content, stored, why string }{
		"announced":       {"Here is the report:\n\n" + body, strings.TrimSpace(body), ""},
		"reported on":     {body + "\nI've saved the report as requested.\n", strings.TrimSpace(body), ""},
		"both":            {"Let me write the report.\n\n" + body + "\nThis has been saved.\n", strings.TrimSpace(body), ""},
		"content":         {body, body, ""},
		"looks like it":   {long + "\n\nI'll update the index on Monday, and Anna the tests.\n", long + "\n\nI'll update the index on Monday, and Anna the tests.\n", ""},
		"names a tool":    {body + "\nAfter this I will call task_complete.\n", strings.TrimSpace(body), ""},
		"whole product":   {"The following is the complete analysis\n\n" + body, strings.TrimSpace(body), ""},
		"nothing else":    {"I've created the report and saved it.", "", "not stored"},
		"too much":        {"Let me write the report.\nI'll create it now.\n\n" + body + "\nI've saved the report.\nNext, I'll check the report.\n", "", "not stored"},
		"between content": {"# Findings\n\nThe cache is cold.\n\nI've saved the report to report.md.\n\nThe pool is too small.\n", "", "I've saved the report"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(
				live.Calls(itemsAdd("Report")),
				live.Calls(itemsArtifact("w1", "The former text.", "DELIVERABLE")),
				live.Calls(itemsArtifact("w1", c.content, "")),
				live.Calls(itemsSet("w1", "DONE")),
				live.Done(),
			), itemsOn)
			s.Want("DONE agent_done accepted")
			answer := itemsAnswers(t, s, 2)[0].text
			switch c.stored {
			case "":
				itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: The former text.")
				itemsHas(t, "the answer", strings.ToLower(answer), strings.ToLower(c.why), "stays")
				itemsEqual(t, "failed calls", s.Names("tool.error"), "tool.error")
			case c.content:
				itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: "+c.stored)
				itemsLacks(t, "the answer", answer, "without words about it")
			default:
				itemsEqual(t, "deliverables", itemsMade(t, s), "w1 Report: "+c.stored)
				itemsHas(t, "the answer", answer, "without words about it")
			}
		})
	}
}

// Narration around a control artifact is stripped.
func TestItemsNarrationAroundAControlArtifactIsStripped(t *testing.T) {
	t.Parallel()
	audit := `{"verdict":"pass","checks":[{"name":"n","result":"pass","detail":"d"}],"summary":"s"}`
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Audit")),
		live.Calls(itemsArtifact("w1", "Here is the audit you asked for:\n\n"+audit, "CONTROL"), itemsSet("w1", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	item := itemsFind(t, s.State(), "w1")
	if got := itemsText(t, s.ID, item.GetArtifact()); got != audit || !item.GetControl().GetPassed() {
		t.Errorf("stored is %s", got)
	}
}

// A control artifact is a JSON object with a verdict, checks and a summary; anything
// else is refused with what is wrong, and what was stored before stays.
func TestItemsControlArtifactIsChecked(t *testing.T) {
	t.Parallel()
	good := `{"verdict":"pass","checks":[{"name":"n","result":"pass","detail":"d"}],"summary":"s"}`
	for name, c := range map[string]struct{ content, wrong string }{
		"prose":          {"All is well.", "JSON"},
		"list":           {`[1]`, "array"},
		"fenced":         {"```json\n" + good + "\n```", "fence"},
		"no verdict":     {`{"checks":[{"name":"n","result":"pass"}],"summary":"s"}`, "verdict"},
		"other verdict":  {`{"verdict":"good","checks":[{"name":"n","result":"pass"}],"summary":"s"}`, "verdict"},
		"no checks":      {`{"verdict":"pass","summary":"s"}`, "checks"},
		"empty checks":   {`{"verdict":"pass","checks":[],"summary":"s"}`, "checks is empty"},
		"nameless check": {`{"verdict":"pass","checks":[{"result":"pass"}],"summary":"s"}`, "checks[0].name"},
		"other result":   {`{"verdict":"pass","checks":[{"name":"n","result":"pass"},{"name":"m","result":"ok"}],"summary":"s"}`, "checks[1].result"},
		"no summary":     {`{"verdict":"pass","checks":[{"name":"n","result":"pass"}]}`, "summary"},
		"blank summary":  {`{"verdict":"pass","checks":[{"name":"n","result":"pass"}],"summary":"  "}`, "summary"},
		"more behind":    {good + " and more", "behind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := live.Play(t, live.Replies(
				live.Calls(itemsAdd("Audit")),
				live.Calls(itemsArtifact("w1", good, "CONTROL")),
				live.Calls(itemsArtifact("w1", c.content, "CONTROL")),
				live.Calls(itemsSet("w1", "DONE")),
				live.Done(),
			), itemsOn)
			s.Want("DONE agent_done accepted")
			itemsHas(t, "the answer", itemsAnswers(t, s, 2)[0].text, c.wrong)
			itemsEqual(t, "failed calls", s.Names("tool.error"), "tool.error")
			item := itemsFind(t, s.State(), "w1")
			if got := itemsText(t, s.ID, item.GetArtifact()); got != good || !item.GetControl().GetPassed() {
				t.Errorf("stored is %s, passed %t", got, item.GetControl().GetPassed())
			}
		})
	}
}
