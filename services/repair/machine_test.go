package repair_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

var errBroken = errors.New("broken")

// viewOf is a view whose newest record is a step to an executor.
func viewOf(to string, change func(*harnessv1.Snapshot)) runlog.View {
	s := &harnessv1.Snapshot{InboxCursor: 10, ParkVersion: 4, Status: harnessv1.RunStatus_RUN_STATUS_PARKED}
	if change != nil {
		change(s)
	}
	rec := &harnessv1.Record{Version: 4, Body: &harnessv1.Record_Step{Step: &harnessv1.Step{To: to, Snapshot: s}}}
	e := runlog.Entry{Run: runlog.Run{Namespace: "n", ID: "r"}, Sequence: 20, Header: runlog.HeaderOf(rec), Record: rec}
	return runlog.View{Newest: e, Step: e, InboxSequence: 15}
}

func expired(s *harnessv1.Snapshot) { s.ExpireTime = timestamppb.New(noon) }

// eventsByName are the events that machines are fed in the tables below, by name.
var eventsByName = map[string]repair.Event{
	"parked":      repair.ViewRead{View: viewOf(runlog.Park, nil)},
	"drained":     repair.ViewRead{View: viewOf(runlog.Park, func(s *harnessv1.Snapshot) { s.InboxCursor = 15 })},
	"another":     repair.ViewRead{View: viewOf(runlog.Park, func(s *harnessv1.Snapshot) { s.ParkVersion = 2 })},
	"running":     repair.ViewRead{View: viewOf("turn", nil)},
	"deleted":     repair.ViewRead{View: viewOf(runlog.End, expired)},
	"undecodable": repair.ViewRead{View: runlog.View{Newest: runlog.Entry{Err: errBroken}}},
	"not found":   repair.NotFound{Err: runlog.ErrNotFound},
	"none":        repair.Newest{},
	"newest 9":    repair.Newest{Sequence: 9},
	"newest 10":   repair.Newest{Sequence: 10},
	"newest 20":   repair.Newest{Sequence: 20},
	"items":       repair.Items{Items: []*harnessv1.InboxItem{{Sequence: 12, Input: &harnessv1.InboxItem_Cancel{}}, {Sequence: 13}, {Sequence: 14, Input: &harnessv1.InboxItem_Cancel{}}}},
	"unknown":     repair.Items{Items: []*harnessv1.InboxItem{{Id: "a", Sequence: 12}}},
	"attended":    repair.Attendance{Yes: true},
	"unattended":  repair.Attendance{},
	"done":        repair.Done{},
	"fenced":      repair.Conflict{},
	"busy":        repair.Busy{},
	"failed":      repair.Failure{Err: errBroken},
}

// brief is an action in a few words.
func brief(a repair.Action) string {
	switch a := a.(type) {
	case repair.ReadView:
		return fmt.Sprint("view ", a.Contains)
	case repair.ReadItems:
		return fmt.Sprintf("items (%d, %d]", a.After, a.UpTo)
	case repair.ReadAckFloor:
		return "ack floor of " + a.Executor
	case repair.Redeliver:
		return fmt.Sprintf("redeliver to %s from %d", a.Executor, a.From)
	case repair.CheckAttendance:
		return fmt.Sprint("check ", a.View.Newest.Sequence)
	case repair.Append:
		to := a.Record.GetStep().GetTo()
		if to == "" {
			to = "journal"
		}
		return fmt.Sprintf("append %s after %d", to, a.View.Newest.Sequence)
	case repair.AppendItem:
		return fmt.Sprintf("append %q unless after %d", a.Item.GetId(), a.After)
	case repair.Erase:
		return fmt.Sprintf("erase to %d but %d", a.UpTo, a.Keep)
	case repair.SetTimer:
		return fmt.Sprintf("timer %d at %s", a.Version, a.At.Format(time.TimeOnly))
	case repair.PutBack:
		text := "put back " + a.Delay.String()
		if a.Spread > 0 {
			text += " to " + (a.Delay + a.Spread).String()
		}
		if a.Err != nil {
			text += ": " + a.Err.Error()
		}
		return text
	case repair.Finish:
		if a.Err != nil {
			return "finish: " + a.Err.Error()
		}
		return "finish"
	case repair.Observe:
		return fmt.Sprintf("observe %d, cursor %d", len(a.Batch.GetItems()), a.Batch.GetCursor())
	}
	name := fmt.Sprintf("%T", a)
	return strings.ToLower(strings.TrimPrefix(name[strings.LastIndex(name, "."):], "."))
}

// cells checks each (state, event) cell of a machine: those of the table, as
// "state: event" to "next state: action", and that all others are rejected.
// machines are named by their state, final states first.
func cells[M repair.Machine[M]](t *testing.T, names []string, machines map[string]M, table map[string]string, stateOf func(M) string) {
	t.Helper()
	checked := 0
	for _, state := range names {
		for name, event := range eventsByName {
			next, a := machines[state].Next(event)
			got := stateOf(next) + ": " + brief(a)
			want, listed := table[state+": "+name]
			if !listed {
				want = state + ": reject"
			} else {
				checked++
			}
			if got != want {
				t.Errorf("%s: %s leads to %q, want %q", state, name, got, want)
			}
		}
	}
	if checked != len(table) {
		t.Errorf("%d of %d cells exist", checked, len(table))
	}
}

// after feeds events to a machine from its start.
func after[M repair.Machine[M]](m M, names ...string) M {
	m, _ = m.Start()
	for _, name := range names {
		m, _ = m.Next(eventsByName[name])
	}
	return m
}

func TestWakeCells(t *testing.T) {
	names := []string{"done", "viewing", "checking", "appending", "erasing", "closing", "scheduling"}
	states := map[repair.WakeState]string{
		repair.WakeDone: "done", repair.WakeViewing: "viewing", repair.WakeChecking: "checking", repair.WakeAppending: "appending",
		repair.WakeErasing: "erasing", repair.WakeClosing: "closing", repair.WakeScheduling: "scheduling",
	}
	start := repair.Wake{Message: 15, KeepDeleted: time.Minute}
	cells(t, names, map[string]repair.Wake{
		"done": after(start, "drained"), "viewing": after(start), "checking": after(start, "parked"), "appending": after(start, "parked", "attended"),
		"erasing": after(start, "not found"), "closing": after(start, "deleted"), "scheduling": after(start, "deleted", "done"),
	}, map[string]string{
		"viewing: parked":      "checking: check 20",
		"viewing: another":     "checking: check 20",
		"viewing: drained":     "done: ack",
		"viewing: running":     "done: ack",
		"viewing: deleted":     "closing: erase to 20 but 20",
		"viewing: undecodable": "done: put back 1s: broken",
		"viewing: not found":   "erasing: erase to 15 but 0",
		"viewing: failed":      "done: put back 1s: broken",
		"checking: attended":   "appending: append repair after 20",
		"checking: unattended": "done: put back 1m0s",
		"checking: failed":     "done: put back 1m0s: broken",
		"appending: done":      "done: ack",
		"appending: fenced":    "viewing: view 15",
		"appending: failed":    "done: put back 1s: broken",
		"erasing: done":        "done: ack",
		"erasing: busy":        "done: put back 1s to 11s",
		"erasing: failed":      "done: put back 1s: broken",
		"closing: done":        "scheduling: timer 4 at 12:01:00",
		"closing: busy":        "done: put back 1s to 11s",
		"closing: failed":      "done: put back 1s: broken",
		"scheduling: done":     "done: ack",
		"scheduling: failed":   "done: put back 1s: broken",
	}, func(w repair.Wake) string { return states[w.State] })
}

func TestTimerCells(t *testing.T) {
	names := []string{"done", "viewing", "confirming", "storing", "erasing"}
	states := map[repair.TimerState]string{
		repair.TimerDone: "done", repair.TimerViewing: "viewing", repair.TimerConfirming: "confirming", repair.TimerStoring: "storing", repair.TimerErasing: "erasing",
	}
	start := repair.Timer{ParkVersion: 4}
	cells(t, names, map[string]repair.Timer{
		"done": after(start, "parked", "done"), "viewing": after(start), "confirming": after(start, "not found"),
		"storing": after(start, "parked"), "erasing": after(start, "deleted"),
	}, map[string]string{
		"viewing: parked":       `storing: append "timer 4" unless after 10`,
		"viewing: drained":      `storing: append "timer 4" unless after 15`,
		"viewing: running":      `storing: append "timer 4" unless after 10`,
		"viewing: another":      `storing: append "timer 4" unless after 10`,
		"viewing: deleted":      "erasing: erase to 20 but 0",
		"viewing: undecodable":  `storing: append "timer 4" unless after 0`,
		"viewing: not found":    "confirming: readnewest",
		"viewing: failed":       "done: finish: broken",
		"confirming: none":      "done: finish",
		"confirming: newest 9":  "done: finish: " + runlog.ErrNotFound.Error(),
		"confirming: newest 10": "done: finish: " + runlog.ErrNotFound.Error(),
		"confirming: newest 20": "done: finish: " + runlog.ErrNotFound.Error(),
		"confirming: failed":    "done: finish: broken",
		"storing: done":         "done: finish",
		"storing: failed":       "done: finish: broken",
		"erasing: done":         "done: finish",
		"erasing: failed":       "done: finish: broken",
	}, func(m repair.Timer) string { return states[m.State] })
}

// TestTimerOfAFormerParkIsDropped: the run has left the park that set the timer.
func TestTimerOfAFormerParkIsDropped(t *testing.T) {
	m, a := repair.Timer{ParkVersion: 3}.Next(eventsByName["parked"])
	if m.State != repair.TimerDone || brief(a) != "finish" {
		t.Errorf("it leads to %v: %s", m.State, brief(a))
	}
}

func TestRecoveryCells(t *testing.T) {
	names := []string{"done", "viewing", "reading", "appending"}
	states := map[repair.RecoveryState]string{
		repair.RecoveryDone: "done", repair.RecoveryViewing: "viewing", repair.RecoveryReading: "reading", repair.RecoveryAppending: "appending",
	}
	start := repair.Recovery{Step: 20}
	cells(t, names, map[string]repair.Recovery{
		"done": after(start, "running", "newest 9"), "viewing": after(start), "reading": after(start, "running"), "appending": after(start, "running", "newest 20"),
	}, map[string]string{
		"viewing: parked":      "reading: ack floor of park",
		"viewing: drained":     "reading: ack floor of park",
		"viewing: another":     "reading: ack floor of park",
		"viewing: deleted":     "reading: ack floor of end",
		"viewing: running":     "reading: ack floor of turn",
		"viewing: undecodable": "done: finish",
		"viewing: not found":   "done: finish: " + runlog.ErrNotFound.Error(),
		"viewing: failed":      "done: finish: broken",
		"reading: none":        "done: finish",
		"reading: newest 9":    "done: finish",
		"reading: newest 10":   "done: finish",
		"reading: newest 20":   "appending: append turn after 20",
		"reading: not found":   "appending: append journal after 20",
		"reading: failed":      "done: finish: broken",
		"appending: done":      "done: finish",
		"appending: fenced":    "done: finish",
		"appending: failed":    "done: finish: broken",
	}, func(m repair.Recovery) string { return states[m.State] })
}

// TestRecoveryOfABegunStep: a step that was begun, that was acknowledged, and whose run the
// leader has no newer record of, is delivered again. Each of the three alone changes nothing.
func TestRecoveryOfABegunStep(t *testing.T) {
	begun := viewOf("turn", nil)
	begun.Newest = runlog.Entry{Run: begun.Step.Run, Sequence: 21, Record: &harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{}}}}
	moved := begun
	moved.Newest.Sequence = 22
	for name, c := range map[string]struct {
		events []repair.Event
		want   string
	}{
		"lost":            {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}, repair.ViewRead{View: begun}}, "redeliver to turn from 20"},
		"delivered again": {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}, repair.ViewRead{View: begun}, repair.Done{}}, "finish"},
		"reset fails":     {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}, repair.ViewRead{View: begun}, repair.Failure{Err: errBroken}}, "finish: broken"},
		"compared with":   {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}}, "view 23"},
		"leader away":     {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Failure{Err: errBroken}}, "finish: broken"},
		"a worker has it": {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 19}}, "finish"},
		"no consumer":     {[]repair.Event{repair.ViewRead{View: begun}, repair.NotFound{Err: runlog.ErrNotFound}}, "finish"},
		"moved meanwhile": {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}, repair.ViewRead{View: moved}}, "finish"},
		"deleted":         {[]repair.Event{repair.ViewRead{View: begun}, repair.Newest{Sequence: 20}, repair.Newest{Sequence: 23}, repair.NotFound{Err: runlog.ErrNotFound}}, "finish: " + runlog.ErrNotFound.Error()},
	} {
		m := repair.Recovery{Step: 20}
		m, a := m.Start()
		for _, e := range c.events {
			m, a = m.Next(e)
		}
		if brief(a) != c.want {
			t.Errorf("%s: %s, want %s", name, brief(a), c.want)
		}
	}
}

func TestInboxReadCells(t *testing.T) {
	names := []string{"done", "locating", "reading"}
	states := map[repair.InboxReadState]string{repair.InboxDone: "done", repair.InboxLocating: "locating", repair.InboxReading: "reading"}
	start := repair.InboxRead{Trigger: viewOf("repair", nil).Step}
	cells(t, names, map[string]repair.InboxRead{
		"done": after(start, "none"), "locating": after(start), "reading": after(start, "newest 20"),
	}, map[string]string{
		"locating: parked":      "reading: items (10, 15]",
		"locating: drained":     "reading: items (10, 15]",
		"locating: another":     "reading: items (10, 15]",
		"locating: running":     "reading: items (10, 15]",
		"locating: deleted":     "reading: items (10, 15]",
		"locating: undecodable": "done: observe 0, cursor 10",
		"locating: none":        "done: observe 0, cursor 10",
		"locating: newest 9":    "done: observe 0, cursor 10",
		"locating: newest 10":   "done: observe 0, cursor 10",
		"locating: newest 20":   "reading: items (10, 20]",
		"locating: not found":   "done: finish: " + runlog.ErrNotFound.Error(),
		"locating: failed":      "done: finish: broken",
		"reading: items":        "done: observe 1, cursor 12",
		"reading: unknown":      "done: finish: unknown kind of input: input a waits for a newer program",
		"reading: failed":       "done: finish: broken",
	}, func(m repair.InboxRead) string { return states[m.State] })
}

// TestInboxReadOfAWakeSeesItsTrigger: between turns any replica may answer.
func TestInboxReadOfAWakeSeesItsTrigger(t *testing.T) {
	trigger := viewOf("repair", nil).Step
	if _, a := (repair.InboxRead{Trigger: trigger}).Start(); brief(a) != "readlastitem" {
		t.Errorf("between turns it starts with %s", brief(a))
	}
	trigger.Record.GetStep().Message = &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}
	if _, a := (repair.InboxRead{Trigger: trigger}).Start(); brief(a) != "view 20" {
		t.Errorf("woken it starts with %s", brief(a))
	}
}

// TestRunFeedsBackEachResult until an action ends the machine.
func TestRunFeedsBackEachResult(t *testing.T) {
	var done []string
	results := []string{"parked", "attended", "fenced", "drained"}
	end := repair.Run(repair.Wake{Message: 15}, func(a repair.Action) repair.Event {
		done = append(done, brief(a))
		return eventsByName[results[len(done)-1]]
	})
	want := "[view 15 check 20 append repair after 20 view 15]"
	if fmt.Sprint(done) != want || brief(end) != "ack" {
		t.Errorf("did %v and ended with %s, want %s", done, brief(end), want)
	}
}

// TestRunEndsOnAnImpossibleResult: a broken shell does not loop.
func TestRunEndsOnAnImpossibleResult(t *testing.T) {
	end := repair.Run(repair.Wake{Message: 15}, func(repair.Action) repair.Event { return repair.Busy{} })
	if r, ok := end.(repair.Reject); !ok || r.Event != (repair.Busy{}) {
		t.Errorf("ended with %s", brief(end))
	}
}

// TestListingFindsRunsThatDoNotMove between two sweeps, and parks without a timer.
func TestListingFindsRunsThatDoNotMove(t *testing.T) {
	entry := func(id, to string, sequence uint64, change func(*harnessv1.Snapshot)) runlog.Entry {
		e := viewOf(to, change).Step
		e.Run.ID, e.Sequence = id, sequence
		return e
	}
	wakes := func(at time.Time) func(*harnessv1.Snapshot) {
		return func(s *harnessv1.Snapshot) { s.WakeAt = timestamppb.New(at) }
	}
	list := func(now time.Time, entries ...runlog.Entry) repair.Listing {
		var l repair.Listing
		for _, e := range entries {
			l.Add(e, now, time.Hour)
		}
		return l
	}
	describe := func(w repair.Work) string {
		var b strings.Builder
		for _, r := range w.Recoveries {
			fmt.Fprintf(&b, "recover %s at %d;", r.Run.ID, r.Step)
		}
		for _, e := range w.Overdue {
			fmt.Fprintf(&b, "timer of %s;", e.Run.ID)
		}
		for _, e := range w.Expired {
			fmt.Fprintf(&b, "erase %s;", e.Run.ID)
		}
		return b.String()
	}
	entries := []runlog.Entry{
		entry("stuck", "turn", 9, nil), entry("moving", "turn", 3, nil), entry("older", "repair", 2, nil),
		entry("parked", runlog.Park, 4, nil), entry("waits", runlog.Park, 5, wakes(noon)), entry("overdue", runlog.Park, 6, wakes(noon.Add(-2*time.Minute))),
		entry("young", runlog.End, 7, expired), entry("done", "turn", 8, nil), entry("done", runlog.End, 10, nil),
	}
	first := list(noon.Add(30*time.Second), entries...)
	if got := describe(first.Since(repair.Listing{})); got != "" {
		t.Errorf("the first sweep finds %s", got)
	}
	entries[1].Sequence = 11
	second := list(noon.Add(30*time.Second), entries...)
	if got, want := describe(second.Since(first)), "recover older at 2;recover stuck at 9;timer of overdue;"; got != want {
		t.Errorf("the second sweep finds %q, want %q", got, want)
	}
	later := list(noon.Add(2*time.Hour), entries...)
	if got, want := describe(later.Since(second)), "recover older at 2;recover stuck at 9;recover moving at 11;timer of overdue;erase young;"; got != want {
		t.Errorf("a later sweep finds %q, want %q", got, want)
	}
}
