package judgement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// The first turn always gets guidance for tools; with work items also how to work with
// them, from the plan to the verification, and to plan first. It is a user message
// marked as the harness's, and later turns do not get it again.
func TestItemsFirstTurnIsGuided(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(itemsAdd("a")), live.Calls(itemsSet("w1", "DONE")), live.Done()), itemsOn)
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "guidance of the first turn", itemsGuided(s, 1), "tools", "work_items", "planning")
	told := itemsTold(s, 0)
	at := 0
	for _, step := range []string{"Plan", "Execute", "Audit", "Revise", "Verify"} {
		next := strings.Index(told[at:], step)
		if next < 0 {
			t.Fatalf("the guidance has no %s after the steps before it:\n%s", step, told)
		}
		at += next
	}
	itemsHas(t, "the guidance", told, "tool", "work_item_add", "work_item_update", "work_item_list", "work_item_set_artifact", "work_item_flag_revision",
		"DELIVERABLE", "WORKING", "CONTROL", "verdict", "checks", "summary", "work_complete")
	if n := strings.Count(told, "[harness]"); n != 3 {
		t.Errorf("%d messages are marked as the harness's, want 3", n)
	}
	for turn := uint32(2); turn <= 3; turn++ {
		if got := itemsGuided(s, turn); slices.Contains(got, "work_items") || slices.Contains(got, "planning") || slices.Contains(got, "tools") {
			t.Errorf("turn %d is guided with %v", turn, got)
		}
	}
}

// Guidance can be disabled: then no message has it, not even the status of items.
func TestItemsGuidanceCanBeSwitchedOff(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Calls(itemsAdd("a")), live.Calls(itemsList()), live.Calls(itemsSet("w1", "DONE")), live.Done()), itemsOn, func(spec *harnessv1.RunSpec) {
		spec.Config.Guidance = &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)}
	})
	s.Want("DONE agent_done accepted")
	if got := s.Names("guidance.injected"); len(got) > 0 {
		t.Errorf("guidance is off, and there is %v", got)
	}
	for n := range s.Requests {
		itemsLacks(t, "a request", itemsTold(s, n), "[harness]")
	}
}

// While items are open a later turn gets how many remain, which ones with a mark
// for their status, what tools were used so far, and with fewer than ten reads that it
// should read on; without open items it gets nothing.
func TestItemsLaterTurnsGetTheStatusOfItems(t *testing.T) {
	t.Parallel()
	read := func(from, to int) []modeltest.Call {
		var all []modeltest.Call
		for i := from; i < to; i++ {
			all = append(all, live.Call("read_file", live.Args{"path": fmt.Sprintf("f%d.txt", i)}))
		}
		return all
	}
	r := live.Prepare(t, nil)
	for i := range 12 {
		r.Write(fmt.Sprintf("f%d.txt", i), fmt.Sprintf("content %d", i))
	}
	r.Model.Answer = live.Replies(
		live.Calls(itemsAdd("Read it"), itemsAdd("Sum it up"), itemsAdd("Print it"), itemsAdd("Frame it")),
		live.Calls(append(read(0, 3), itemsSet("w1", "DONE"), itemsSet("w2", "IN_PROGRESS"), itemsSet("w3", "SKIPPED"))...),
		live.Calls(append(read(3, 12), itemsSet("w4", "IN_PROGRESS"))...),
		live.Calls(itemsSet("w2", "DONE"), itemsSet("w4", "DONE")),
		live.Calls(itemsList()),
		live.Done(),
	)
	s := itemsBegin(r, itemsOn)
	s.Want("DONE agent_done accepted")

	second := itemsTold(s, 1)
	itemsHas(t, "turn 2", second, "4 of 4 remain", "[ ] w1 Read it", "[ ] w4 Frame it", "work_item_add 4", "Nothing has been read")
	third := itemsTold(s, 2)
	itemsHas(t, "turn 3", third, "2 of 4 remain", "[x] w1 Read it", "[~] w2 Sum it up", "[-] w3 Print it", "[ ] w4 Frame it",
		"work_item_add 4", "read_file 3", "work_item_update 3", "Only 3 reads")
	if strings.Index(third, "w2 Sum") > strings.Index(third, "w1 Read") {
		t.Errorf("open items do not come first:\n%s", third)
	}
	fourth := itemsTold(s, 3)
	itemsHas(t, "turn 4", fourth, "[~] w4 Frame it", "read_file 12")
	itemsLacks(t, "turn 4", fourth, "reads so far", "Nothing has been read")
	for turn := uint32(5); turn <= 6; turn++ {
		if got := itemsGuided(s, turn); slices.Contains(got, "items_state") {
			t.Errorf("turn %d mentions items, and none is open: %v", turn, got)
		}
	}
	itemsStable(t, s)
}

// itemsBegin starts a prepared run and waits until it is parked or has ended.
func itemsBegin(r *live.Run, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
	r.T.Helper()
	if _, err := live.Gateway(r.T).StartRun(r.T.Context(), &harnessv1.StartRunRequest{RunId: r.ID, Spec: r.Spec(edits...)}); err != nil {
		r.T.Fatal(err)
	}
	return r.Wait()
}

// An agent that wants to stop with open items is rejected, with their names in its next
// request, each time; the count is in the event.
func TestItemsOpenOnesAreNamedToAnAgentThatWantsToStop(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		live.Calls(itemsAdd("Read the sources"), itemsAdd("Write the report"), itemsAdd("Tidy up")),
		live.Calls(itemsSet("w1", "DONE"), itemsSet("w2", "IN_PROGRESS")),
		live.Calls(live.Call("work_complete", live.Args{"summary": "one"})),
		live.Calls(live.Call("work_complete", live.Args{"summary": "two"})),
		live.Calls(itemsSet("w2", "DONE"), itemsSet("w3", "SKIPPED")),
		live.Done(),
	), itemsOn)
	s.Want("DONE agent_done accepted")
	var counts []string
	for _, e := range s.Events {
		if r := e.GetStopRejected(); r != nil {
			counts = append(counts, fmt.Sprintf("%d %s %d", e.GetTurnNumber(), r.GetKind(), r.GetCount()))
		}
	}
	itemsEqual(t, "rejections", counts, "3 work_items_incomplete 1", "4 work_items_incomplete 2")
	for n := 3; n <= 4; n++ {
		told := itemsReminder(s, n)
		itemsHas(t, "the reminder", told, `w2 "Write the report"`, `w3 "Tidy up"`, "2 of 3", "work_item_update", "SKIPPED")
		itemsLacks(t, "the reminder", told, "Read the sources")
	}
	if d := s.Result.GetReason().GetDetails(); !d.GetWorkItemsVerified() {
		t.Errorf("details %v", d)
	}
	itemsStable(t, s)
}

// Many items stay within bounds: the list in the request is cut, open ones
// first, and the state holds all.
func TestItemsManyStayReadable(t *testing.T) {
	t.Parallel()
	var add, finish []modeltest.Call
	for i := 1; i <= 60; i++ {
		add = append(add, itemsAdd(fmt.Sprintf("Item number %d with a title of some length", i)))
		finish = append(finish, itemsSet(fmt.Sprintf("w%d", i), "DONE"))
	}
	s := live.Play(t, live.Replies(live.Calls(add...), live.Calls(finish[:30]...), live.Done(), live.Calls(finish[30:]...), live.Done()), itemsOn)
	s.Want("DONE agent_done accepted")
	told := itemsTold(s, 2)
	itemsHas(t, "turn 3", told, "30 of 60 remain", "[ ] w31 ", "[ ] w60 ", "20 more")
	if n := strings.Count(told, "\n[x] ") + strings.Count(told, "\n[ ] "); n != 40 {
		t.Errorf("%d items are listed, want 40", n)
	}
	itemsHas(t, "the reminder", itemsReminder(s, 3), "w31", "w50", "and 10 more")
	itemsLacks(t, "the reminder", itemsReminder(s, 3), "w51")
	if n := len(s.State().GetWorkItemLedger().GetItems()); n != 60 {
		t.Errorf("the state has %d items", n)
	}
}
