package explore

import (
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// Turn is what the model does in a turn.
type Turn struct {
	// Waiting are calls that wait for an answer from outside.
	Waiting []Call
	// Works is true if the model makes a call that the tool host runs.
	Works bool
	// Outage is the version of the log up to which no provider can be reached.
	Outage uint8
}

// Call is a call that waits for an answer from outside.
type Call struct {
	ID string
	// Asks is true if a person has to allow the call.
	Asks bool
	// Client is true if a client has the tool: once allowed, the call waits for it.
	Client bool
}

// loopActions appends what the rest of the loop may do: a turn, which may see what is
// in the inbox, and the stop decision. One worker without faults does
// each in one action, except that a turn whose calls wait for an answer announces them
// in a record before the step.
func (m *Model) loopActions(s *state, into []action) []action {
	n := s.record(s.newest())
	b := m.all[s.at(n).body]
	switch {
	case b.journal != nil, b.step.GetTo() == turn.Name:
		into = append(into, action{do: loopTurn, arg: answered})
		if m.stopAsked(s) {
			into = append(into, action{do: loopTurn, arg: broken})
		}
	case b.step.GetTo() == stopdecision.Name:
		into = append(into, action{do: loopStop})
	}
	return into
}

// stopAsked reports whether an interrupt or a cancel is in the inbox.
func (m *Model) stopAsked(s *state) bool {
	step := m.all[s.at(m.stepAt(s, s.newest())).body]
	for n := step.cursor + 1; n <= s.newest(); n++ {
		if s.at(n).item == noItem {
			continue
		}
		item := m.items[s.at(n).item]
		if (item.GetInterrupt() != nil || item.GetCancel() != nil) && !runstate.Drained(step.step.GetSnapshot(), item.GetId()) {
			return true
		}
	}
	return false
}

func (m *Model) loop(s *state, a action) error {
	n := s.record(s.newest())
	var d decision
	if a.do == loopStop {
		d = m.remembered(fmt.Sprintf("stop %d %d %d", s.at(n).body, s.at(n).version, s.clock), func() decision {
			return m.decide(stopdecision.Decide, s, n, nil)
		})
	} else {
		d = m.remembered(fmt.Sprintf("turn %d %d %d %d %d", s.at(m.stepAt(s, n)).body, s.at(n).body, s.at(n).version, a.arg, s.clock), func() decision {
			return m.turn(s, n, a.arg == broken)
		})
	}
	if d.err != nil {
		return d.err
	}
	f := flight{item: noItem, body: d.body, fence: n, version: s.at(n).version + 1}
	if m.setsTimer(f.body, f.version) {
		m.setTimer(s, f.body)
	}
	return m.take(s, f)
}

func (m *Model) remembered(key string, decide func() decision) decision {
	if d, known := m.made[key]; known {
		return d
	}
	d := decide()
	m.made[key] = d
	return d
}

// errStopped is why a turn is stopped that has seen an interrupt or a cancel.
var errStopped = errors.New("the inbox has an interrupt or a cancel")

// turn drives the turn machine through the turn that follows the newest record n, or
// what is left of it. A turn whose calls wait for an answer is two records: the one
// that announces the calls, and the step. All other records are part of the step.
func (m *Model) turn(s *state, n seq, interrupted bool) decision {
	at, version := m.stepAt(s, n), s.at(n).version+1
	step := m.all[s.at(at).body].step
	plan := m.Turns[step.GetSnapshot().GetTurnCount()+1]
	state, err := turnState(step, plan)
	if err != nil {
		return decision{err: err}
	}
	var journal []*harnessv1.Record
	if n != at {
		journal = append(journal, m.all[s.at(n).body].journal)
	}
	p := turn.New(state, s.now(), journal...)
	if interrupted {
		p.Stop(errStopped, true)
	}
	w := &turnWorker{number: p.Number, plan: plan, away: version <= plan.Outage}
	for {
		action := turn.Next(state, p)
		switch a := action.(type) {
		case turn.Return:
			o := a.Outcome
			o.Appended, o.Events = append(w.appended, o.GetAppended()...), append(w.events, o.GetEvents()...)
			return m.outcome(o, version)
		case turn.Fail:
			return decision{err: fmt.Errorf("turn %d failed: %w", p.Number, a.Err)}
		case turn.Append:
			if a.Draft.Entry.GetModelResponded() != nil && len(plan.Waiting) > 0 {
				return decision{body: m.journalled(&harnessv1.Record{
					Appended: a.Draft.Appended, Events: a.Draft.Events, Body: &harnessv1.Record_Journal{Journal: a.Draft.Entry},
				})}
			}
		}
		if err := p.Observe(state, s.now(), action, w.perform(action)); err != nil {
			return decision{err: err}
		}
	}
}

// turnWorker performs the actions of a turn.
type turnWorker struct {
	number   uint32
	plan     Turn
	away     bool // no provider can be reached
	sent     []string
	appended []*harnessv1.Message
	events   []*harnessv1.Event
}

func (w *turnWorker) perform(action turn.Action) turn.Event {
	switch a := action.(type) {
	case turn.Append:
		w.appended, w.events = append(w.appended, a.Draft.Appended...), append(w.events, a.Draft.Events...)
		return turn.Appended{}
	case turn.Inspect:
		return turn.Inspected{}
	case turn.LoadConversation:
		return turn.ConversationLoaded{Conversation: &conversation.Conversation{}}
	case turn.PrepareRequest:
		return turn.RequestPrepared{}
	case turn.AskModel:
		if w.away {
			return turn.ModelFailed{Err: &model.Error{Retryable: true, Message: "away"}}
		}
		return turn.ModelAnswered{Response: w.respond()}
	case turn.Wait:
		return turn.Waited{}
	case turn.ProposeCalls:
		return turn.Proposals{}
	case turn.CheckInbox:
		return turn.InboxChecked{}
	case turn.SendCall:
		w.sent = append(w.sent, a.Call.ID)
		return turn.CallSent{}
	case turn.AwaitCall:
		first := w.sent[0]
		w.sent = w.sent[1:]
		return turn.CallEnded{ID: first, Response: &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "done"}}
	}
	return turn.Failed{Err: fmt.Errorf("the model has no %T", action)}
}

// respond returns the model's answer.
func (w *turnWorker) respond() *model.Response {
	call := func(id, tool, arguments string) *harnessv1.ToolCall {
		return &harnessv1.ToolCall{Id: id, Name: tool, Arguments: content.Inline(arguments)}
	}
	r := &model.Response{FinishReason: "tool_calls", Usage: &harnessv1.Usage{}}
	for _, c := range w.plan.Waiting {
		r.ToolCalls = append(r.ToolCalls, call(c.ID, "act", "{}"))
	}
	switch {
	case len(w.plan.Waiting) > 0:
	case w.plan.Works:
		r.ToolCalls = append(r.ToolCalls, call(fmt.Sprintf("work%d", w.number), "read", "{}"))
	default:
		r.ToolCalls = append(r.ToolCalls, call(fmt.Sprintf("end%d", w.number), "work_complete", `{"summary":"done"}`))
	}
	return r
}

// turnState is the state of the turn machine for a step, with a tool whose calls
// run and one whose calls wait as the plan has it.
func turnState(step *harnessv1.Step, plan Turn) (*turn.State, error) {
	definition, err := agent.FromStep(step)
	if err != nil {
		return nil, err
	}
	act := &harnessv1.ToolSpec{Name: "act", ParametersSchema: `{"type":"object"}`, Annotations: &harnessv1.ToolAnnotations{}}
	for _, c := range plan.Waiting {
		act.Annotations.Executes = c.Asks
		if c.Client {
			act.Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
		}
	}
	read := &harnessv1.ToolSpec{Name: "read", ParametersSchema: `{"type":"object"}`, Annotations: &harnessv1.ToolAnnotations{Reads: true}}
	offer, err := offer.New(step.GetSnapshot(), []*harnessv1.ToolSpec{act, read}, nil, nil, definition)
	if err != nil {
		return nil, err
	}
	return &turn.State{Snapshot: step.GetSnapshot(), Definition: definition, Ledger: "ledger", Offer: offer}, nil
}
