package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The five tools are available only with work items; without them they leave
// no trace: no guidance, no state, no event, and a call of one is a call of a tool
// that is not there.
func TestItemsToolsNeedWorkItems(t *testing.T) {
	t.Parallel()
	five := []string{"work_item_add", "work_item_flag_revision", "work_item_list", "work_item_set_artifact", "work_item_update"}
	for name, on := range map[string]bool{"on": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edit, want := func(*harnessv1.RunSpec) {}, []string(nil)
			if on {
				edit, want = itemsOn, five
			}
			s := live.Play(t, live.Replies(live.Calls(itemsAdd("Read the sources")), live.Calls(itemsSet("w1", "DONE")), live.Done()), edit)
			s.Want("DONE agent_done accepted")
			var available []string
			for _, tool := range s.Requests[0].Tools {
				if strings.HasPrefix(tool.Name, "work_item") {
					available = append(available, tool.Name)
				}
			}
			slices.Sort(available)
			itemsEqual(t, "available", available, want...)
			if on {
				return
			}
			if got := s.Names("work_item.changed", "deliverables.updated"); len(got) > 0 || s.State().GetWorkItemLedger() != nil {
				t.Errorf("work items are off, and there are %v and %v", got, s.State().GetWorkItemLedger())
			}
			itemsEqual(t, "guidance of the first turn", itemsGuided(s, 1), "tools")
			itemsHas(t, "the answer", itemsAnswers(t, s, 0)[0].text, `There is no tool "work_item_add"`)
			if s.Result.GetReason().GetDetails().GetWorkItemsVerified() {
				t.Error("work_items_verified is true")
			}
		})
	}
}

// Items are listed in the order in which they were added, with status, priority, role
// and notes; the list, the events and the state say the same.
func TestItemsAreListedInOrderWithWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(
			live.Call("work_item_add", live.Args{"title": "Read the sources", "priority": "HIGH", "notes": "all four"}),
			live.Call("work_item_add", live.Args{"title": "Write the report", "id": "report", "role": "DELIVERABLE"}),
			live.Call("work_item_add", live.Args{"title": "Tidy up", "priority": "LOW"}),
		),
		live.Calls(live.Call("work_item_update", live.Args{"id": "w1", "status": "IN_PROGRESS", "notes": "two are read"}), itemsSet("report", "SKIPPED")),
		live.Calls(itemsList()),
		live.Calls(itemsSet("w1", "DONE"), itemsSet("w2", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	added := itemsAnswers(t, s, 0)
	itemsEqual(t, "ids of the added items", []string{added[0].id(), added[1].id(), added[2].id()}, "w1", "report", "w2")
	itemsEqual(t, "the list", itemsListed(t, itemsAnswers(t, s, 2)[0], "id", "title", "status", "priority", "role"),
		"w1 Read the sources IN_PROGRESS HIGH WORKING", "report Write the report SKIPPED MEDIUM DELIVERABLE", "w2 Tidy up PENDING LOW WORKING")
	itemsHas(t, "the list", itemsAnswers(t, s, 2)[0].text, "two are read")
	itemsLacks(t, "the list", itemsAnswers(t, s, 2)[0].text, "all four")
	itemsEqual(t, "the changes", itemsChanges(s),
		"added w1 PENDING 0/1", "added report PENDING 0/2", "added w2 PENDING 0/3",
		"updated w1 IN_PROGRESS 0/3", "updated report SKIPPED 1/3", "updated w1 DONE 2/3", "updated w2 DONE 3/3")
	itemsEqual(t, "the state", itemsLedger(s.State()), "w1 DONE HIGH WORKING", "report SKIPPED MEDIUM DELIVERABLE", "w2 DONE LOW WORKING")
}

// A bad priority becomes MEDIUM and a bad role WORKING; a bad status and an unknown id
// return the valid ones, and change nothing.
func TestItemsBadValuesGetDefaultsOrUsableErrors(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(
			live.Call("work_item_add", live.Args{"title": "First", "priority": "URGENT", "role": "FINAL"}),
			live.Call("work_item_add", live.Args{"title": "Second", "id": "second"}),
			live.Call("work_item_add", live.Args{"title": "  "}),
			live.Call("work_item_add", live.Args{"title": "Third", "id": "no good id!"}),
			live.Call("work_item_add", live.Args{"title": "Fourth", "id": "second"}),
		),
		live.Calls(
			itemsSet("w1", "FINISHED"),
			itemsSet("w7", "DONE"),
			itemsArtifact("w7", "text", ""),
			itemsFlag("w7", "wrong"),
		),
		live.Calls(itemsSet("w1", "DONE"), itemsSet("second", "DONE")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	added, changed := itemsAnswers(t, s, 0), itemsAnswers(t, s, 1)
	if added[0].fields["priority"] != "MEDIUM" || added[0].fields["role"] != "WORKING" {
		t.Errorf("added as %s", added[0].text)
	}
	itemsHas(t, "the answer to no title", added[2].text, "title")
	itemsHas(t, "the answer to a bad id", added[3].text, "no good id!", "leave it out")
	itemsHas(t, "the answer to a taken id", added[4].text, "second", "taken")
	itemsHas(t, "the answer to a bad status", changed[0].text, "FINISHED", "PENDING", "IN_PROGRESS", "DONE", "SKIPPED")
	for _, a := range changed[1:] {
		itemsHas(t, "the answer to an unknown id", a.text, `"w7"`, "w1", "second")
	}
	if n := len(s.Names("tool.error")); n != 7 {
		t.Errorf("%d calls failed, want 7: %v", n, s.Names("tool.error", "tool.result"))
	}
	itemsEqual(t, "the state", itemsLedger(s.State()), "w1 DONE MEDIUM WORKING", "second DONE MEDIUM WORKING")
}

// Every status may follow every other one.
func TestItemsAnyStatusMayFollowAnyOther(t *testing.T) {
	t.Parallel()
	// A way through all twelve changes of status, from PENDING back to PENDING.
	way := []string{
		"IN_PROGRESS", "PENDING", "DONE", "PENDING", "SKIPPED", "IN_PROGRESS", "DONE",
		"SKIPPED", "DONE", "IN_PROGRESS", "SKIPPED", "PENDING",
	}
	steps, want := []modeltest.Call{itemsAdd("It")}, []string{"PENDING"}
	for _, status := range way {
		steps, want = append(steps, itemsSet("w1", status)), append(want, status)
	}
	s := live.Play(t, live.Replies(live.Calls(steps...), live.Calls(itemsSet("w1", "DONE")), live.Done()), itemsOn, itemsNoLoops)
	s.Want("DONE agent_done accepted")
	var got []string
	for _, e := range s.Events {
		if c := e.GetWorkItemChanged(); c != nil && e.GetTurnNumber() == 1 {
			got = append(got, itemsStatus(c.GetItem()))
		}
	}
	itemsEqual(t, "statuses", got, want...)
	if n := len(s.Names("tool.error")); n != 0 {
		t.Errorf("%d changes were refused", n)
	}
}

// Notes that are empty, null or left out do not overwrite those that there are.
func TestItemsEmptyNotesDoNotOverwrite(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(live.Call("work_item_add", live.Args{"title": "It", "notes": "remember the milk"})),
		live.Calls(
			live.Call("work_item_update", live.Args{"id": "w1", "status": "IN_PROGRESS", "notes": ""}),
			live.Call("work_item_update", live.Args{"id": "w1", "status": "PENDING", "notes": nil}),
			live.Call("work_item_update", live.Args{"id": "w1", "status": "DONE"}),
		),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	if got := itemsFind(t, s.State(), "w1").GetNotes(); got != "remember the milk" {
		t.Errorf("the notes are %q", got)
	}
}

// How much is finished is in the list and the events: finished by all, 100 for an
// empty ledger, and what is skipped counts.
func TestItemsShareOfFinishedWork(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsList()),
		live.Calls(itemsAdd("a"), itemsAdd("b"), itemsAdd("c"), itemsList()),
		live.Calls(itemsSet("w1", "DONE"), itemsList()),
		live.Calls(itemsSet("w2", "SKIPPED"), itemsList()),
		live.Calls(itemsSet("w3", "DONE"), itemsList()),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	var percent []string
	for n := range 5 {
		answers := itemsAnswers(t, s, n)
		percent = append(percent, fmt.Sprint(answers[len(answers)-1].fields["percent"]))
	}
	itemsEqual(t, "percent", percent, "100", "0", "33", "66", "100")
	if d := s.Result.GetReason().GetDetails(); !d.GetWorkItemsVerified() {
		t.Errorf("details %v", d)
	}
}

// A ledger without items is complete.
func TestItemsEmptyLedgerIsComplete(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()), itemsOn)
	s.Want("DONE agent_done accepted")
	if s.Result.GetTurnCount() != 1 || !s.Result.GetReason().GetDetails().GetWorkItemsVerified() {
		t.Errorf("%d turns, %v", s.Result.GetTurnCount(), s.Result.GetReason())
	}
}

// An agent may bring items with it; they are open from the start.
func TestItemsOfTheAgentAreThereFromTheStart(t *testing.T) {
	t.Parallel()
	own := func(spec *harnessv1.RunSpec) {
		itemsOn(spec)
		spec.Agent.WorkItemTemplates = []*harnessv1.WorkItemTemplate{
			{Id: "report", Title: "Write the report", Role: harnessv1.ArtifactRole_ARTIFACT_ROLE_DELIVERABLE},
			{Title: "Check it", Priority: harnessv1.WorkItemPriority_WORK_ITEM_PRIORITY_HIGH},
		}
	}
	s := live.Play(t, live.Replies(live.Done(), live.Calls(itemsSet("report", "DONE"), itemsSet("w1", "DONE")), live.Done()), own)
	s.Want("DONE agent_done accepted")
	itemsHas(t, "the request behind the stop", s.Added(1), "report", "Write the report", "w1", "Check it")
	itemsEqual(t, "the state", itemsLedger(s.State()), "report DONE MEDIUM DELIVERABLE", "w1 DONE HIGH WORKING")
}

// Items of an agent that has no work items, or that cannot be, are refused at start.
func TestItemsOfTheAgentAreCheckedAtStart(t *testing.T) {
	t.Parallel()
	template := func(id, title string) *harnessv1.WorkItemTemplate {
		return &harnessv1.WorkItemTemplate{Id: id, Title: title}
	}
	for name, c := range map[string]struct {
		field string
		on    bool
		items []*harnessv1.WorkItemTemplate
	}{
		"off":      {"work_item_templates", false, []*harnessv1.WorkItemTemplate{template("", "a")}},
		"no title": {"work_item_templates[1].title", true, []*harnessv1.WorkItemTemplate{template("", "a"), template("", " ")}},
		"bad id":   {"work_item_templates[0].id", true, []*harnessv1.WorkItemTemplate{template("a b", "a")}},
		"twice":    {"work_item_templates[1].id", true, []*harnessv1.WorkItemTemplate{template("a", "a"), template("a", "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(live.Done()))
			spec := r.Spec()
			if c.on {
				itemsOn(spec)
			}
			spec.Agent.WorkItemTemplates = c.items
			_, err := live.Gateway(t).StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: spec})
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "spec.agent."+c.field) {
				t.Errorf("refused with %v, want %s", err, c.field)
			}
		})
	}
}
