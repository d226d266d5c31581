package repair_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestDrain checks what each input does to each kind of run.
func TestDrain(t *testing.T) {
	type items = []*harnessv1.InboxItem
	five := uint32(5)
	for _, c := range []struct {
		name   string
		from   *harnessv1.Snapshot
		items  items
		want   string
		events string
	}{
		{"running: nothing", running(), nil, "compaction", ""},
		{"running: a message", running(), items{userMessage("x")}, "compaction", "input.accepted"},
		{"running: an interrupt", running(), items{interrupt()}, "park interrupted", "input.accepted run.interrupted session.pause"},
		{"running: an interrupt and a resume", running(), items{interrupt(), resume(nil)}, "compaction", "input.accepted input.accepted"},
		{"running: an interrupt and a message", running(), items{interrupt(), userMessage("x")}, "compaction", "input.accepted input.accepted"},
		{"running: a resume and an interrupt", running(), items{resume(nil), interrupt()}, "park interrupted", "input.accepted input.accepted run.interrupted session.pause"},
		{"running: a cancel", running(), items{cancel()}, "stopdecision", "input.accepted"},
		{"running: an interrupt before a cancel", running(), items{interrupt(), cancel()}, "stopdecision", "input.accepted input.accepted"},
		{"running: a timer", running(), items{timer(40)}, "compaction", "input.rejected"},
		{"running: an approval", running(), items{approve("a", once)}, "compaction", "input.rejected"},
		{"running: something from the future", running(), items{{}}, "compaction", "input.rejected"},

		{"interrupted: a resume", parked("interrupted"), items{resume(nil)}, "compaction", "input.accepted session.resume"},
		{"interrupted: a message", parked("interrupted"), items{userMessage("x")}, "compaction", "input.accepted session.resume"},
		{"interrupted: an interrupt", parked("interrupted"), items{interrupt()}, "park interrupted", "input.rejected"},
		{"interrupted: a message and an interrupt", parked("interrupted"), items{userMessage("x"), interrupt()}, "park interrupted", "input.accepted input.accepted run.interrupted"},
		{"interrupted: a cancel", parked("interrupted"), items{cancel()}, "stopdecision", "input.accepted"},
		{"in an outage: its timer", parked("provider_unavailable"), items{timer(40)}, "compaction", "input.accepted session.resume"},
		{"in an outage: another timer", parked("provider_unavailable"), items{timer(39)}, "park provider_unavailable", "input.rejected"},
		{"in an outage: a resume", parked("provider_unavailable"), items{resume(nil)}, "compaction", "input.accepted session.resume"},
		{"in an outage: an interrupt", parked("provider_unavailable"), items{interrupt()}, "park provider_unavailable", "input.rejected"},

		{"out of calls: a message", parked("budget_exceeded:tool_calls"), items{userMessage("x")}, "compaction", "session.complete session.start plan.draft plan.commit input.accepted"},
		{"out of turns: two messages", parked("budget_exceeded:turns"), items{userMessage("x"), userMessage("y")}, "compaction",
			"session.complete session.start plan.draft plan.commit input.accepted input.accepted"},
		{"out of calls: a resume and a message", parked("budget_exceeded:tool_calls"), items{resume(nil), userMessage("x")}, "compaction", "input.accepted input.accepted session.resume"},
		{"out of tokens: a message", parked("budget_exceeded:tokens"), items{userMessage("x")}, "compaction", "input.accepted session.resume"},

		{"waiting: one of two answers", waiting(), items{approve("a", once)}, "park approval", "approval.answered input.accepted"},
		{"waiting: both answers", waiting(), items{approve("a", once), approve("b", deny)}, "compaction",
			"approval.answered input.accepted approval.answered tool.denied input.accepted"},
		{"waiting: two refusals", waiting(), items{approve("a", deny), approve("b", deny)}, "stopdecision",
			"approval.answered tool.denied input.accepted approval.answered tool.denied input.accepted step.start step.end"},
		{"waiting: yes for the run", waiting(), items{approve("b", all)}, "compaction", "approval.answered approval.answered input.accepted"},
		{"waiting: two answers to one call", waiting(), items{approve("a", once), approve("a", deny)}, "park approval", "approval.answered input.accepted input.rejected"},
		{"waiting: an answer to no call", waiting(), items{approve("z", once)}, "park approval", "input.rejected"},
		{"waiting: an answer that says nothing", waiting(), items{approve("a", 0)}, "park approval", "input.rejected"},
		{"waiting: an answer from the future", waiting(), items{approve("a", 99)}, "park approval", "input.rejected"},
		{"waiting: a message", waiting(), items{userMessage("x")}, "park approval", "input.accepted"},
		{"waiting: a resume", waiting(), items{resume(nil)}, "park approval", "input.accepted"},
		{"waiting: an interrupt", waiting(), items{interrupt()}, "park interrupted", "input.accepted repair repair run.interrupted session.pause"},
		{"waiting: an interrupt and a resume", waiting(), items{interrupt(), resume(nil)}, "park approval", "input.accepted input.accepted"},
		{"waiting: an approval and an interrupt", waiting(), items{approve("a", once), interrupt()}, "park interrupted",
			"approval.answered input.accepted input.accepted repair repair run.interrupted session.pause"},
		{"waiting: a cancel", waiting(), items{cancel()}, "stopdecision", "input.accepted repair repair"},

		{"ended: a message", finished(), items{userMessage("x")}, "compaction", "session.start plan.draft plan.commit input.accepted"},
		{"ended: two messages", finished(), items{userMessage("x"), userMessage("y")}, "compaction", "session.start plan.draft plan.commit input.accepted input.accepted"},
		{"ended: a message and an interrupt", finished(), items{userMessage("x"), interrupt()}, "park interrupted",
			"session.start plan.draft plan.commit input.accepted input.accepted run.interrupted session.pause"},
		{"ended: a message and a cancel", finished(), items{userMessage("x"), cancel()}, "stopdecision", "session.start plan.draft plan.commit input.accepted input.accepted"},
		{"ended: everything else", finished(), items{interrupt(), resume(&harnessv1.Budgets{ToolCalls: &five}), cancel(), timer(40), approve("a", once), {}}, "end DONE",
			"input.rejected input.rejected input.rejected input.rejected input.rejected input.rejected"},
		{"ended: nothing", finished(), nil, "end DONE", ""},
		{"cancelled: a resume", cancelled(), items{resume(nil)}, "compaction", "session.start plan.draft plan.commit input.accepted"},
		{"cancelled: a message", cancelled(), items{userMessage("x")}, "compaction", "session.start plan.draft plan.commit input.accepted"},
		{"cancelled: another cancel", cancelled(), items{cancel()}, "end CANCELLED", "input.rejected"},
		{"poison: a resume", poison(), items{resume(nil)}, "compaction", "session.start plan.draft plan.commit input.accepted"},
		{"running: another model", running(), items{newModel("x:y")}, "compaction", "model.changed input.accepted"},
		{"running: the same model", running(), items{newModel(running().GetModel())}, "compaction", "input.accepted"},
		{"interrupted: another model", parked("interrupted"), items{newModel("x:y")}, "park interrupted", "model.changed input.accepted"},
		{"interrupted: a resume with a model", parked("interrupted"), items{resumeWith("x:y")}, "compaction", "model.changed input.accepted session.resume"},
		{"ended: another model and a message", finished(), items{newModel("x:y"), userMessage("x")}, "compaction", "model.changed input.accepted session.start plan.draft plan.commit input.accepted"},
		{"ended: a resume with a model", finished(), items{resumeWith("x:y")}, "end DONE", "input.rejected"},
		{"refused by its model: a resume", failedWith("provider_error"), items{resume(nil)}, "end FAILED", "input.rejected"},
		{"refused by its model: a resume with a model", failedWith("provider_error"), items{resumeWith("x:y")}, "compaction", "model.changed session.start plan.draft plan.commit input.accepted"},
		{"too long for its model: a resume with a model", failedWith("context_exhausted"), items{resumeWith("x:y")}, "compaction", "model.changed session.start plan.draft plan.commit input.accepted"},
		{"failed: a resume", ended(harnessv1.RunStatus_RUN_STATUS_FAILED), items{resume(nil)}, "end FAILED", "input.rejected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := drain(t, c.from, c.items...)
			if got := verdict(o); got != c.want {
				t.Errorf("goes to %s, want %s", got, c.want)
			}
			if got := events(o); got != c.events {
				t.Errorf("events %s\nwant   %s", got, c.events)
			}
			s := o.GetStep().GetSnapshot()
			if want := c.from.GetInboxCursor() + uint64(len(c.items)); s.GetInboxCursor() != want {
				t.Errorf("the cursor is at %d, want %d", s.GetInboxCursor(), want)
			}
			if parked := runlog.IsRest(o.GetStep().GetTo()); parked != (s.GetRunningSince() == nil) && o.GetStep().GetTo() != "stopdecision" {
				t.Errorf("parked or ended %v, and its clock runs since %v", parked, s.GetRunningSince())
			}
		})
	}
}

func newModel(ref string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_ModelChange{ModelChange: &harnessv1.ModelChange{Model: ref}}}
}

func resumeWith(model string) *harnessv1.InboxItem {
	return &harnessv1.InboxItem{Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Model: model}}}
}

func failedWith(kind string) *harnessv1.Snapshot {
	s := ended(harnessv1.RunStatus_RUN_STATUS_FAILED)
	s.StopReason = &harnessv1.StopReason{Kind: kind}
	return s
}

// TestAnotherModelHasItsWindow: the figures of the former model are reset.
func TestAnotherModelHasItsWindow(t *testing.T) {
	s := running()
	s.TokenBudget = &harnessv1.TokenBudget{Factor: 2, FactorModel: s.GetModel(), WindowTokens: 4000, Exceeded: true, Refusals: 1, UsedTokens: 3000}
	item := newModel("x:y")
	item.MaxInputTokens = 7000
	got := drain(t, s, item).GetStep().GetSnapshot()
	b := got.GetTokenBudget()
	if got.GetModel() != "x:y" || got.GetConfig().GetContext().GetMaxInputTokens() != 7000 || b.GetFactorModel() == s.GetModel() || b.GetWindowTokens() != 0 || b.GetExceeded() || b.GetUsedTokens() != 3000 {
		t.Errorf("model %s, window %d, budget %v", got.GetModel(), got.GetConfig().GetContext().GetMaxInputTokens(), b)
	}
	if kept := drain(t, s, newModel("x:y")).GetStep().GetSnapshot().GetConfig().GetContext().GetMaxInputTokens(); kept != s.GetConfig().GetContext().GetMaxInputTokens() {
		t.Errorf("without a window the run's becomes %d", kept)
	}
}

// TestCancelLeavesLaterItems: it is for the run that has ended, and wakes it.
func TestCancelLeavesLaterItems(t *testing.T) {
	for name, behind := range map[string]*harnessv1.InboxItem{"a message": userMessage("x"), "a resume": resume(nil), "an answer": approve("a", once)} {
		o := drain(t, waiting(), cancel(), behind)
		if s := o.GetStep().GetSnapshot(); verdict(o) != "stopdecision" || s.GetInboxCursor() != waiting().GetInboxCursor()+1 || events(o) != "input.accepted repair repair" {
			t.Errorf("%s: %s, %s, the cursor is at %d", name, verdict(o), events(o), s.GetInboxCursor())
		}
	}
	// In the drain that reopens a run too.
	if o := drain(t, finished(), userMessage("x"), cancel(), userMessage("y")); verdict(o) != "stopdecision" || o.GetStep().GetSnapshot().GetInboxCursor() != finished().GetInboxCursor()+2 {
		t.Errorf("reopened and cancelled: %s", verdict(o))
	}
}

// TestDrainedTwice: the same items again have no second effect, in the same
// drain or in a later one; only the cursor moves.
func TestDrainedTwice(t *testing.T) {
	for name, c := range map[string]struct {
		from  *harnessv1.Snapshot
		items []*harnessv1.InboxItem
	}{
		"message":  {running(), []*harnessv1.InboxItem{userMessage("x")}},
		"answer":   {waiting(), []*harnessv1.InboxItem{approve("a", once)}},
		"reopened": {finished(), []*harnessv1.InboxItem{userMessage("x")}},
		"refused":  {finished(), []*harnessv1.InboxItem{interrupt()}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, item := range c.items {
				item.Id = "same"
			}
			first := drain(t, c.from, c.items...)
			double := drain(t, c.from, append(c.items, c.items...)...)
			if events(double) != events(first) || len(double.GetAppended()) != len(first.GetAppended()) {
				t.Errorf("in one drain: %s, alone %s", events(double), events(first))
			}
			s := first.GetStep().GetSnapshot()
			later := drain(t, s, c.items...)
			if events(later) != "" || len(later.GetAppended()) > 0 || later.GetStep().GetSnapshot().GetInboxCursor() != s.GetInboxCursor()+uint64(len(c.items)) {
				t.Errorf("later: %s, %v", events(later), later.GetAppended())
			}
		})
	}
}

// TestRepairingTwiceChangesNothing: a run that was repaired is as it should be.
func TestRepairingTwiceChangesNothing(t *testing.T) {
	unknown := running()
	unknown.PendingToolCalls = []*harnessv1.PendingCall{{
		CallId: "u", Tool: "write_file", TurnNumber: 2, Class: harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN,
	}}
	first := drain(t, unknown)
	if first.GetStep().GetRepairComplete().GetRepairsMade() != 1 || len(first.GetAppended()) != 1 {
		t.Fatalf("repaired %v", first)
	}
	m, e := first.GetAppended()[0], first.GetEvents()[0].GetRepair()
	if m.GetToolCallId() != "u" || !m.GetIsError() || m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_REPAIR || m.GetTurnNumber() != 2 ||
		e.GetCallId() != "u" || e.GetTool() != "write_file" || e.GetTurn() != 2 {
		t.Errorf("repaired with %v, %v", m, e)
	}
	for name, s := range map[string]*harnessv1.Snapshot{
		"unknown effect": first.GetStep().GetSnapshot(), "running": drain(t, running()).GetStep().GetSnapshot(),
		"waiting": drain(t, waiting()).GetStep().GetSnapshot(), "interrupted": drain(t, waiting(), interrupt()).GetStep().GetSnapshot(),
		"finished": drain(t, finished()).GetStep().GetSnapshot(),
	} {
		o := drain(t, s)
		if len(o.GetAppended()) > 0 || len(o.GetEvents()) > 0 || len(o.GetStep().GetPhaseChanges()) > 0 || !proto.Equal(o.GetStep().GetSnapshot(), s) {
			t.Errorf("%s: repaired again: %v", name, o)
		}
	}
}

// TestParkedAgainIsTheSamePark: reason and version stay, so that its timer finds it.
func TestParkedAgainIsTheSamePark(t *testing.T) {
	for _, s := range []*harnessv1.Snapshot{parked("provider_unavailable"), parked("budget_exceeded:turns"), waiting()} {
		got := drain(t, s, timer(3)).GetStep()
		if got.GetSnapshot().GetStopReason().GetKind() != s.GetStopReason().GetKind() || got.GetSnapshot().GetParkVersion() != s.GetParkVersion() ||
			!proto.Equal(got.GetParked().GetReason(), got.GetSnapshot().GetStopReason()) || len(got.GetParked().GetPending()) != len(s.GetPendingToolCalls()) {
			t.Errorf("%s parks again as %v", s.GetStopReason().GetKind(), got)
		}
	}
	if got := drain(t, waiting(), interrupt()).GetStep().GetSnapshot(); got.GetParkVersion() != 0 {
		t.Error("another park keeps the version of the one before")
	}
}

// TestBudgets: used up, the run parks; a resume extends it, replaced field by
// field; without that it parks again immediately.
func TestBudgets(t *testing.T) {
	used := func() *harnessv1.Snapshot {
		s := parked("budget_exceeded:tool_calls")
		s.Spent.ToolCalls = 300
		return s
	}
	more, turns := uint32(301), uint32(9)
	if got := drain(t, used(), resume(nil)); verdict(got) != "park budget_exceeded:tool_calls" || events(got) != "input.accepted session.resume budget.warn session.pause" {
		t.Errorf("%s: %s", verdict(got), events(got))
	}
	got := drain(t, used(), resume(&harnessv1.Budgets{ToolCalls: &more}), resume(&harnessv1.Budgets{Turns: &turns}))
	if b := got.GetStep().GetSnapshot().GetConfig().GetBudgets(); verdict(got) != "compaction" || b.GetToolCalls() != 301 || b.GetTurns() != 9 {
		t.Errorf("%s with %v", verdict(got), b)
	}
	// A resume that is refused extends nothing.
	if b := drain(t, finished(), resume(&harnessv1.Budgets{ToolCalls: &more})).GetStep().GetSnapshot().GetConfig().GetBudgets(); b.GetToolCalls() != 300 {
		t.Errorf("a refused resume has set %v", b)
	}
	// A turn that waits is not stopped by what it has used; the next one is.
	s := waiting()
	s.Spent.ToolCalls = 300
	if got := verdict(drain(t, s, approve("a", all))); got != "compaction" {
		t.Errorf("an approved call of a run out of budget goes to %s", got)
	}
}

// TestGrants: yes for the run holds for the tool from then on; once does not.
func TestGrants(t *testing.T) {
	if got := drain(t, waiting(), approve("a", once), approve("b", once)).GetStep().GetSnapshot(); len(got.GetGrantedTools()) > 0 || len(runstate.ApprovedCalls(got)) != 2 {
		t.Errorf("granted %v, approved %v", got.GetGrantedTools(), runstate.ApprovedCalls(got))
	}
	s := waiting()
	s.PendingToolCalls[1].Tool = "deploy"
	got := drain(t, s, approve("a", all)).GetStep().GetSnapshot()
	if len(got.GetGrantedTools()) != 1 || got.GetGrantedTools()[0] != "run_command" || len(runstate.AwaitedCalls(got)) != 1 {
		t.Errorf("granted %v, waiting %v", got.GetGrantedTools(), runstate.AwaitedCalls(got))
	}
}

// TestAnApprovalOfWhatWasShown: an answer that names a digest is one for the call with this
// digest, also if the gateway could not check it.
func TestAnApprovalOfWhatWasShown(t *testing.T) {
	for digest, want := range map[string]string{"": "approval.answered input.accepted", "d1": "approval.answered input.accepted", "d2": "input.rejected"} {
		s := waiting()
		s.PendingToolCalls[0].Preview = &harnessv1.CallPreview{Digest: "d1"}
		item := approve("a", once)
		item.GetApproval().Digest = digest
		o := drain(t, s, item)
		if got := events(o); got != want {
			t.Errorf("digest %q: %s, want %s", digest, got, want)
		}
		for _, e := range o.GetEvents() {
			if a := e.GetApprovalAnswered(); a.GetDigest() != "" && a.GetDigest() != digest {
				t.Errorf("digest %q: the event has %q", digest, a.GetDigest())
			}
		}
	}
}

// TestMessageToADoneAgent: the agent reads a message that the user sends while the turn is
// open, even if it had called work_complete in that turn.
func TestMessageToADoneAgent(t *testing.T) {
	s := waiting()
	s.Turn.AgentDone, s.Turn.CalledWorkComplete, s.Summary = true, true, content.Inline("done")
	both := []*harnessv1.InboxItem{approve("a", deny), approve("b", deny)}
	if c := drain(t, s, both...).GetStep().GetTurnComplete(); !c.GetAgentDone() || !c.GetCalledWorkComplete() {
		t.Errorf("without a message the turn ends as %v", c)
	}
	o := drain(t, s, append(both, userMessage("also this"))...)
	if c := o.GetStep().GetTurnComplete(); c.GetAgentDone() || c.GetCalledWorkComplete() || o.GetStep().GetSnapshot().GetSummary() != nil {
		t.Errorf("with a message the turn ends as %v", c)
	}
}

// TestAnswersStayInTheirTurn, and refusals carry their reason to the model.
func TestAnswersStayInTheirTurn(t *testing.T) {
	refused := approve("a", deny)
	refused.GetApproval().Reason = "too dangerous"
	o := drain(t, waiting(), refused)
	m := o.GetAppended()[0]
	if m.GetTurnNumber() != 3 || m.GetToolCallId() != "a" || m.GetToolName() != "run_command" || !m.GetIsError() ||
		m.GetContent().GetInline() != "A person refused this call. Their reason: too dangerous" {
		t.Errorf("the message is %v", m)
	}
	if got := runstate.AwaitedCalls(o.GetStep().GetSnapshot()); len(got) != 1 || got[0].GetCallId() != "b" {
		t.Errorf("still waiting: %v", got)
	}
}

// TestResumeWithoutTheRightApprovesNoCall that waits for a review, also if the run was not
// parked when the gateway took it in.
func TestResumeWithoutTheRightApprovesNoCall(t *testing.T) {
	for barred, want := range map[bool]string{true: "input.rejected", false: "input.accepted session.resume"} {
		s := waiting()
		for _, call := range s.GetPendingToolCalls() {
			call.Kind = runstate.KindReview
		}
		s.Phase, s.PausedPhase = harnessv1.Phase_PHASE_IDLE, awaiting
		item := resume(nil)
		item.NoApprovals = barred
		o := drain(t, s, item)
		if got := events(o); got != want || len(runstate.ApprovedCalls(o.GetStep().GetSnapshot())) > 0 == barred {
			t.Errorf("without the right %v: %s, want %s", barred, got, want)
		}
	}
}
