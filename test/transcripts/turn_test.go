package transcripts

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// turnWorker is one worker at one turn.
type turnWorker struct {
	d     *driver
	state *turn.State
	p     *turn.Progress
	sent  []turn.SendCall
}

// turn performs a turn, or what a worker that died has left of it.
func (d *driver) turn(step *harnessv1.Step, version uint64) (*harnessv1.Outcome, error) {
	d.t.Helper()
	definition, err := agent.FromStep(step)
	if err != nil {
		d.t.Fatal(err)
	}
	offer, err := offer.New(step.GetSnapshot(), d.host, nil, nil, definition)
	if err != nil {
		d.t.Fatal(err)
	}
	offer.Tokens = 100
	state := &turn.State{
		Snapshot: step.GetSnapshot(), Definition: definition, Ledger: d.ledger,
		Offer: offer,
	}
	w := &turnWorker{d: d, state: state, p: turn.New(state, d.now(), d.log[version:]...)}
	for {
		action := turn.Next(state, w.p)
		switch a := action.(type) {
		case turn.Return:
			return a.Outcome, nil
		case turn.AskModel:
			if failure := d.nextFailure(); failure != nil {
				return w.fail(version, failure)
			}
		}
		event := w.perform(action)
		if failed, ok := event.(turn.Failed); ok {
			return nil, failed.Err
		}
		if err := w.p.Observe(state, d.now(), action, event); err != nil {
			d.t.Fatal(err)
		}
	}
}

// nextFailure returns the failure that the next request to the model leads to; nil
// if it is answered.
func (d *driver) nextFailure() *harnessv1.TurnError {
	if len(d.answers) == 0 {
		d.t.Fatal("the script has no more answers")
	}
	failure := d.answers[0].failure
	if failure != nil {
		d.answers = d.answers[1:]
	}
	return failure
}

// fail ends the turn with an error of the model, without a record of its tries.
func (w *turnWorker) fail(version uint64, failure *harnessv1.TurnError) (*harnessv1.Outcome, error) {
	s := proto.CloneOf(w.state.Snapshot)
	for _, rec := range w.d.log[version:] {
		for _, m := range rec.GetAppended() {
			if s.TokenBudget == nil {
				s.TokenBudget = &harnessv1.TokenBudget{}
			}
			s.MessageCount++
			s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
		}
	}
	return turn.Complete(s, w.p, turn.End{Error: failure, ToolTokens: 100, Now: w.d.now()})
}

func (w *turnWorker) perform(action turn.Action) turn.Event {
	d := w.d
	d.t.Helper()
	switch a := action.(type) {
	case turn.Append:
		return w.append(a)
	case turn.Inspect:
		return turn.Inspected{Response: &harnessv1.InspectWorkspaceResponse{Background: d.background}}
	case turn.FireHooks:
		return turn.HooksFired{Result: w.fire(a)}
	case turn.LoadConversation:
		c := &conversation.Conversation{}
		for _, rec := range d.log {
			c.Fold(rec)
		}
		return turn.ConversationLoaded{Conversation: c}
	case turn.PrepareRequest:
		request := &harnessv1.ModelRequest{
			Model: w.state.Snapshot.GetModel(), Messages: conversation.View(a.Conversation.Messages), Tools: w.state.Offer.Specs(),
		}
		checkView(d.t, request.GetMessages())
		d.requests = append(d.requests, request)
		var written strings.Builder
		for _, c := range turn.Written(w.state.Snapshot, a.Conversation) {
			written.WriteString(content.Text(c))
		}
		return turn.RequestPrepared{Written: written.String()}
	case turn.AskModel:
		next := d.answers[0]
		d.answers = d.answers[1:]
		if d.input != nil {
			next.response.Usage = &harnessv1.Usage{InputTokens: d.input(w.state.Snapshot), OutputTokens: 10}
		}
		return turn.ModelAnswered{Response: &next.response}
	case turn.ReadMessages:
		reader := readback.Reader{
			Text:   func(_ context.Context, c *harnessv1.Content) (string, error) { return c.GetInline(), nil },
			Count:  func(text string) int { return len(text) / 4 },
			Tokens: int(runstate.ShownTokens(w.state.Snapshot.GetConfig())),
		}
		result, err := reader.Read(d.t.Context(), a.Messages, a.Request)
		if err != nil {
			d.t.Fatal(err)
		}
		return turn.MessagesRead{Result: result}
	case turn.ProposeCalls:
		return turn.Proposals{}
	case turn.CheckInbox:
		if d.interrupted(w.state.Snapshot) {
			w.p.Stop(errInterrupted, true)
		}
		return turn.InboxChecked{}
	case turn.SendCall:
		w.sent = append(w.sent, a)
		return turn.CallSent{}
	case turn.AwaitCall:
		first := w.sent[0]
		w.sent = w.sent[1:]
		return turn.CallEnded{ID: first.Call.ID, Response: d.result(first.Call, first.Ledger)}
	}
	d.t.Fatalf("a story has no %T", action)
	return nil
}

// result returns how the tool host ends a call. A host that has lost its ledger has
// no record of a call that was started on the former one.
func (d *driver) result(call toolcall.Call, ledger string) *harnessv1.ExecuteToolResponse {
	if ledger != d.ledger && !call.Idempotent {
		return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	}
	r := result{text: "ok"}
	if queued := d.results[call.Tool]; len(queued) > 0 {
		r, d.results[call.Tool] = queued[0], queued[1:]
	}
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: r.text, IsError: r.failed, Duration: durationpb.New(0), Background: d.startInBackground(call, ledger),
	}
}

// interrupted reports whether the inbox has an interrupt or a cancel past the cursor.
func (d *driver) interrupted(s *harnessv1.Snapshot) bool {
	for _, item := range d.inbox {
		if item.GetSequence() > s.GetInboxCursor() && (item.GetInterrupt() != nil || item.GetCancel() != nil) {
			return true
		}
	}
	return false
}

// append stores a record of the turn. The worker dies after the record that the
// story names.
func (w *turnWorker) append(a turn.Append) turn.Event {
	d := w.d
	w.dropDurations(a)
	for i, m := range a.Draft.Appended {
		m.Id = uint64(len(d.conversation.Messages) + i + 1)
	}
	d.append(turn.Name, &harnessv1.Record{Appended: a.Draft.Appended, Events: a.Draft.Events, Body: &harnessv1.Record_Journal{Journal: a.Draft.Entry}})
	if d.crash != "" && d.crash == recordNames[a.After] {
		d.crash = ""
		if d.forget {
			d.forget, d.ledger = false, d.ledger+"+"
		}
		return turn.Failed{Err: errDied}
	}
	if a.After == "claimed" {
		for _, f := range d.onTurn[w.p.Number] {
			f(d)
		}
		delete(d.onTurn, w.p.Number)
	}
	return turn.Appended{}
}

// dropDurations leaves out how long the model took: the clock of a story moves only
// with its records.
func (w *turnWorker) dropDurations(a turn.Append) {
	if r := a.Draft.Entry.GetModelResponded(); r != nil {
		r.Preparation, r.Latency = nil, nil
		for _, e := range a.Draft.Events {
			if e.GetModelResponse() != nil {
				e.GetModelResponse().Latency = nil
			}
		}
	}
}

// recordNames are the names that stories have for records of a turn, by the fault
// points after them.
var recordNames = map[string]string{
	"claimed": "started", "admitted": "admitted", "responded": "responded", "judged": "judged", "tools_started": "tools", "tool_finished": "finished",
}

// fire lets the subscribers of a story decide. They are all expressions.
func (w *turnWorker) fire(a turn.FireHooks) hook.Result {
	w.d.t.Helper()
	a.Point.Namespace, a.Point.RunID = "default", "story"
	r, need := w.state.Definition.Hooks.Fire(a.Point, func(string) *harnessv1.HookOutcome { return nil })
	if need != nil {
		w.d.t.Fatalf("a story has no subscriber that is called: %v", need)
	}
	return r
}

// checkView is written without a look at the view's own code: each call is
// answered exactly once directly behind the message that holds it, in order,
// nothing else is an answer, and no message is blank.
func checkView(t fatal, messages []*harnessv1.Message) {
	t.Helper()
	var waiting []string
	for i, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			if len(waiting) == 0 || waiting[0] != m.GetToolCallId() {
				t.Fatal(fmt.Sprintf("message %d answers %q, waiting: %q", i, m.GetToolCallId(), waiting))
			}
			waiting = waiting[1:]
		} else if len(waiting) > 0 {
			t.Fatal(fmt.Sprintf("message %d stands before the answers to %q", i, waiting))
		}
		if content.Text(m.GetContent()) == "" && len(m.GetToolCalls()) == 0 {
			t.Fatal(fmt.Sprintf("message %d is empty", i))
		}
		for _, c := range m.GetToolCalls() {
			waiting = append(waiting, c.GetId())
		}
	}
	if len(waiting) > 0 {
		t.Fatal(fmt.Sprintf("no answer to %q", waiting))
	}
}
