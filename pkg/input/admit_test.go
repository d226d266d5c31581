package input

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

func item(id, kind string) *harnessv1.InboxItem {
	i := &harnessv1.InboxItem{Id: id}
	switch kind {
	case "message":
		i.Input = &harnessv1.InboxItem_UserMessage{UserMessage: &harnessv1.UserMessage{}}
	case "interrupt":
		i.Input = &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{}}
	case "resume":
		i.Input = &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{}}
	case "cancel":
		i.Input = &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}
	case "mode":
		i.Input = &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "plan"}}
	case "replan":
		i.Input = &harnessv1.InboxItem_Replan{Replan: &harnessv1.ReplanRequest{}}
	case "timer":
		i.Input = &harnessv1.InboxItem_TimerFired{TimerFired: &harnessv1.TimerFired{}}
	default: // a call
		i.Input = &harnessv1.InboxItem_Approval{Approval: &harnessv1.Approval{CallId: kind}}
	}
	return i
}

// situations returns a run for each situation that the rules distinguish.
func situations() map[string]State {
	rest := func(to string, status harnessv1.RunStatus, pending ...*harnessv1.PendingCall) State {
		return State{Quiescent: true, Step: &harnessv1.Step{To: to, Snapshot: &harnessv1.Snapshot{Status: status, PendingToolCalls: pending}}}
	}
	with := func(s State, kinds ...string) State {
		for n, kind := range kinds {
			s.Waiting = append(s.Waiting, item(fmt.Sprint("w", n), kind))
		}
		return s
	}
	running := State{Step: &harnessv1.Step{To: "turn", Snapshot: &harnessv1.Snapshot{
		Status:        harnessv1.RunStatus_RUN_STATUS_RUNNING,
		DrainedItems:  []uint64{runlog.HashID("drained")},
		AnsweredCalls: []uint64{runlog.HashID("answered")},
	}}}
	woken := State{Step: &harnessv1.Step{To: "repair", Snapshot: &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_PARKED},
		Message: &harnessv1.Step_RepairTrigger{RepairTrigger: &harnessv1.RepairTrigger{Cause: harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE}}}}
	waiting := &harnessv1.PendingCall{CallId: "c1", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	question := &harnessv1.PendingCall{CallId: "q1", Kind: "question", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	unknown := &harnessv1.PendingCall{CallId: "u1", Kind: "approval", Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN}
	approval := rest("park", harnessv1.RunStatus_RUN_STATUS_PARKED, waiting, question, unknown)
	parked := rest("park", harnessv1.RunStatus_RUN_STATUS_PARKED)
	done := rest("end", harnessv1.RunStatus_RUN_STATUS_DONE)
	cancelled := rest("end", harnessv1.RunStatus_RUN_STATUS_CANCELLED)
	poison := rest("end", harnessv1.RunStatus_RUN_STATUS_FAILED)
	poison.Step.Snapshot.StopReason = &harnessv1.StopReason{Kind: "poison"}
	return map[string]State{
		"poison":               poison,
		"running":              running,
		"running, interrupt":   with(running, "interrupt"),
		"running, int+resume":  with(running, "interrupt", "resume"),
		"running, cancel":      with(running, "cancel"),
		"running, message":     with(running, "message"),
		"woken":                woken,
		"parked":               parked,
		"parked, resume":       with(parked, "resume"),
		"approval":             approval,
		"approval, answer":     with(approval, "c1"),
		"done":                 done,
		"done, message":        with(done, "message"),
		"stalled":              rest("end", harnessv1.RunStatus_RUN_STATUS_STALLED),
		"failed":               rest("end", harnessv1.RunStatus_RUN_STATUS_FAILED),
		"cancelled":            cancelled,
		"cancelled, resume":    with(cancelled, "resume"),
		"done, full of noise":  with(done, "cancel", "interrupt"),
		"running, full inbox":  {Step: running.Step, Waiting: make([]*harnessv1.InboxItem, MaxWaiting)},
		"approval, full inbox": {Step: approval.Step, Quiescent: true, Waiting: make([]*harnessv1.InboxItem, MaxWaiting)},
	}
}

// TestAdmit checks each kind of input in each situation.
func TestAdmit(t *testing.T) {
	const (
		st = "store"
		no = "unneeded"
		en = "RUN_ENDED"
		fu = "TOO_LARGE"
		np = "CALL_NOT_PENDING"
		an = "CALL_ANSWERED"
	)
	kinds := []string{"message", "interrupt", "resume", "cancel", "c1", "mode", "replan"}
	table := map[string][]string{
		"running":              {st, st, no, st, np, st, st},
		"running, interrupt":   {st, no, st, st, np, st, st},
		"running, int+resume":  {st, st, st, st, np, st, st},
		"running, cancel":      {st, st, st, no, np, st, st},
		"running, message":     {st, st, no, st, np, st, st},
		"woken":                {st, st, st, st, np, st, st},
		"parked":               {st, no, st, st, np, st, st},
		"parked, resume":       {st, st, st, st, np, st, st},
		"approval":             {st, st, st, st, st, st, st},
		"approval, answer":     {st, st, st, st, an, st, st},
		"done":                 {st, no, en, en, np, en, en},
		"done, message":        {st, st, no, st, np, st, st},
		"stalled":              {st, no, en, en, np, en, en},
		"failed":               {st, no, en, en, np, en, en},
		"poison":               {st, no, st, en, np, en, en},
		"cancelled":            {st, no, st, en, np, en, en},
		"cancelled, resume":    {st, st, st, st, np, st, st},
		"done, full of noise":  {st, no, en, en, np, en, en},
		"running, full inbox":  {fu, st, no, st, np, fu, fu},
		"approval, full inbox": {fu, st, fu, st, fu, fu, fu},
	}
	all := situations()
	if len(all) != len(table) {
		t.Fatalf("%d situations, %d rows", len(all), len(table))
	}
	for name, s := range all {
		for i, kind := range kinds {
			if got := verdict(Admit(s, item("new", kind))); got != table[name][i] {
				t.Errorf("%s × %s: got %s, want %s", name, kind, got, table[name][i])
			}
		}
		if got := verdict(Admit(s, item("new", "timer"))); got != "INVALID_FIELD" {
			t.Errorf("%s: a timer from outside: %s", name, got)
		}
	}
}

func verdict(a Admission, err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return fault.ReasonName(e.Reason)
	}
	return map[Admission]string{Store: "store", Existed: "existed", Unneeded: "unneeded"}[a]
}

// An item whose id was accepted before is not accepted again.
func TestAdmitTwice(t *testing.T) {
	for name, s := range situations() {
		for _, kind := range []string{"message", "interrupt", "resume", "cancel", "c1", "mode", "replan"} {
			s := s
			s.Waiting = append(s.Waiting[:len(s.Waiting):len(s.Waiting)], item("again", kind))
			want := "existed"
			if kind == "c1" && name == "approval, answer" {
				want = "CALL_ANSWERED" // it follows another answer
			}
			if got := verdict(Admit(s, item("again", kind))); got != want {
				t.Errorf("%s × %s: %s, want %s", name, kind, got, want)
			}
		}
	}
	// After both are drained, the first existed and the second is refused.
	answered := State{Step: &harnessv1.Step{Snapshot: &harnessv1.Snapshot{DrainedItems: []uint64{runlog.HashID("first"), runlog.HashID("second")}}}}
	runstate.RecordAnswer(answered.Step.GetSnapshot(), "c1", "first")
	for id, want := range map[string]string{"first": "existed", "second": "CALL_ANSWERED"} {
		if got := verdict(Admit(answered, item(id, "c1"))); got != want {
			t.Errorf("%s answer, drained: %s", id, got)
		}
	}
	running := situations()["running"]
	if got := verdict(Admit(running, item("drained", "message"))); got != "existed" {
		t.Errorf("a drained item: %s", got)
	}
	if got := verdict(Admit(running, item("new", "answered"))); got != "CALL_ANSWERED" {
		t.Errorf("an answered call: %s", got)
	}
	for _, call := range []string{"q1", "u1"} {
		if got := verdict(Admit(situations()["approval"], item("new", call))); got != "CALL_NOT_PENDING" {
			t.Errorf("call %s, which waits for no approval: %s", call, got)
		}
	}
	var e *fault.Error
	if _, err := Admit(running, item("new", "c1")); !errors.As(err, &e) || e.Code != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}
}

func TestAnUnknownModeIsRefusedWithTheKnownOnes(t *testing.T) {
	s := situations()["running"]
	s.Modes = []*harnessv1.ModeSpec{{Name: "careful"}}
	change := func(name string) error {
		_, err := Admit(s, &harnessv1.InboxItem{Id: "new", Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: name}}})
		return err
	}
	for _, name := range []string{"plan", "execute", "careful"} {
		if err := change(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	var e *fault.Error
	if err := change("hasty"); !errors.As(err, &e) || e.Code != codes.InvalidArgument ||
		e.Message != `mode_change.mode: unknown mode "hasty": must be one of plan, execute, careful` {
		t.Errorf("got %v", err)
	}
	ended := situations()["done"]
	if _, err := Admit(ended, &harnessv1.InboxItem{Id: "new", Input: &harnessv1.InboxItem_ModeChange{ModeChange: &harnessv1.ModeChange{Mode: "hasty"}}}); verdict(0, err) != "INVALID_FIELD" {
		t.Errorf("an unknown mode for an ended run: %v", err)
	}
}

// A call that waits for a review accepts one answer: an approval of this call, or an
// answer with is_error.
func TestReviews(t *testing.T) {
	call := &harnessv1.PendingCall{CallId: "v1", Kind: runstate.KindReview, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	parked := State{Quiescent: true, Step: &harnessv1.Step{To: "park", Snapshot: &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, PendingToolCalls: []*harnessv1.PendingCall{call}}}}
	announced := State{Step: &harnessv1.Step{To: "turn"}, Announced: []*harnessv1.PreparedCall{
		{CallId: "v1", Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN, Review: true}}}
	approval := func(d harnessv1.ApprovalDecision) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Id: "new", Input: &harnessv1.InboxItem_Approval{Approval: &harnessv1.Approval{CallId: "v1", Decision: d}}}
	}
	answer := func(failed bool) *harnessv1.InboxItem {
		return &harnessv1.InboxItem{Id: "new", Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{CallId: "v1", IsError: failed}}}
	}
	once, deny := approval(harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE), approval(harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY)
	for name, s := range map[string]State{"parked": parked, "announced": announced} {
		for what, c := range map[string]struct {
			item *harnessv1.InboxItem
			want string
		}{
			"yes": {once, "store"}, "no": {deny, "store"}, "it failed": {answer(true), "store"},
			"yes to all": {approval(harnessv1.ApprovalDecision_APPROVAL_DECISION_RUN), "INVALID_FIELD"},
			"a result":   {answer(false), "INVALID_FIELD"},
		} {
			if got := verdict(Admit(s, c.item)); got != c.want {
				t.Errorf("%s, %s: got %s, want %s", name, what, got, c.want)
			}
		}
		for _, first := range []*harnessv1.InboxItem{once, deny, answer(true)} {
			for _, second := range []*harnessv1.InboxItem{once, deny, answer(true)} {
				s := s
				first, second := proto.CloneOf(first), proto.CloneOf(second)
				first.Id, second.Id = "first", "second"
				s.Waiting = []*harnessv1.InboxItem{first}
				if got := verdict(Admit(s, second)); got != "CALL_ANSWERED" {
					t.Errorf("%s: %v after %v: %s", name, second, first, got)
				}
			}
		}
	}
	if got := verdict(Admit(parked, item("new", "resume"))); got != "store" {
		t.Errorf("a resume: %s", got)
	}
}

// TestResumeNeedsTheRightToApprove while a call waits for a review: it approves the call.
func TestResumeNeedsTheRightToApprove(t *testing.T) {
	call := &harnessv1.PendingCall{CallId: "v1", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL}
	parked := State{Quiescent: true, Step: &harnessv1.Step{To: "park", Snapshot: &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_PARKED, PendingToolCalls: []*harnessv1.PendingCall{call}}}}
	for kind, want := range map[string]codes.Code{runstate.KindReview: codes.PermissionDenied, runstate.KindApproval: codes.OK} {
		call.Kind = kind
		for _, barred := range []bool{true, false} {
			_, err := Admit(parked, &harnessv1.InboxItem{Id: "new", NoApprovals: barred, Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{}}})
			st, _ := fault.Status(err)
			if barred && st.Code() != want || !barred && err != nil {
				t.Errorf("%s, without the right %v: %v", kind, barred, err)
			}
		}
	}
}

// TestQuestionsOfServers: an answer that does not fit is refused with its field, one for another
// question with CALL_CHANGED, and the question of a later round takes one although the call had
// answers before.
func TestQuestionsOfServers(t *testing.T) {
	q := &harnessv1.ServerQuestion{Server: "notes", Round: 2, Requests: []*harnessv1.ServerRequest{{
		Id: "sure", Message: content.Inline("Sure?"), Schema: content.Inline(`{"type":"object","properties":{"yes":{"type":"boolean"}},"required":["yes"]}`),
	}}}
	call := &harnessv1.PendingCall{CallId: "s", Kind: runstate.KindQuestion, Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, Question: q}
	snapshot := &harnessv1.Snapshot{Status: harnessv1.RunStatus_RUN_STATUS_PARKED, PendingToolCalls: []*harnessv1.PendingCall{call}, DrainedItems: []uint64{runlog.HashID("old")}}
	runstate.RecordAnswer(snapshot, "round:1:s", "old")
	runstate.RecordAnswer(snapshot, "s", "old")
	parked := State{Quiescent: true, Step: &harnessv1.Step{To: "park", Snapshot: snapshot}, Question: q}
	answer := func(id string, a *harnessv1.ToolAnswer) *harnessv1.InboxItem {
		a.CallId = "s"
		return &harnessv1.InboxItem{Id: id, Input: &harnessv1.InboxItem_ToolAnswer{ToolAnswer: a}}
	}
	yes := func() *harnessv1.ToolAnswer { return &harnessv1.ToolAnswer{Result: content.Inline("yes"), Round: 2} }
	for name, c := range map[string]struct {
		item *harnessv1.InboxItem
		want string
	}{
		"a value":            {answer("new", yes()), "store"},
		"declined":           {answer("new", &harnessv1.ToolAnswer{Action: harnessv1.AnswerAction_ANSWER_ACTION_DECLINE}), "store"},
		"another value":      {answer("new", &harnessv1.ToolAnswer{Result: content.Inline("maybe")}), "INVALID_FIELD"},
		"the round before":   {answer("new", &harnessv1.ToolAnswer{Result: content.Inline("yes"), Round: 1}), "CALL_CHANGED"},
		"the answer to that": {answer("old", &harnessv1.ToolAnswer{Result: content.Inline("yes"), Round: 1}), "existed"},
	} {
		if got := verdict(Admit(parked, c.item)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	runstate.RecordAnswer(snapshot, "round:2:s", "new")
	call.Class = harnessv1.PendingClass_PENDING_CLASS_APPROVED
	running := State{Step: &harnessv1.Step{To: "turn", Snapshot: snapshot}}
	if got := verdict(Admit(running, answer("second", yes()))); got != "CALL_ANSWERED" {
		t.Errorf("while the call continues: %s", got)
	}
	call.Class, call.Question = harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL, nil
	asked := State{Quiescent: true, Step: &harnessv1.Step{To: "park", Snapshot: &harnessv1.Snapshot{PendingToolCalls: []*harnessv1.PendingCall{call}}}}
	if got := verdict(Admit(asked, answer("new", &harnessv1.ToolAnswer{Action: harnessv1.AnswerAction_ANSWER_ACTION_DECLINE}))); got != "INVALID_FIELD" {
		t.Errorf("an action for a question of the agent: %s", got)
	}
}
