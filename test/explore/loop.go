package explore

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

// Turn is what the model does in a turn.
type Turn struct {
	// Waiting are calls that wait for somebody.
	Waiting []Call
	// Works: it makes a call that the tool host runs, and the run goes on.
	Works bool
	// Outage is the version of the log up to which no provider can be reached.
	Outage uint8
}

// Call is one that somebody outside has to answer.
type Call struct {
	ID          string
	Disposition harnessv1.CallDisposition
	// Client says that a client has the tool: once allowed, the call waits for it.
	Client bool
}

// loopActions appends what the rest of the loop may do: a turn, which may see what is
// in the inbox, and the stop decision. Each is done by one worker to whom nothing
// happens, in one action, but that a turn whose calls wait for somebody announces
// them in a record before the one that ends it.
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

// stopAsked says whether an interrupt or a cancel is in the inbox: the look of
// turnserver.
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

// turn carries a turn out, or what is left of it, behind the newest record n.
func (m *Model) turn(s *state, n seq, interrupted bool) decision {
	at, version := m.stepAt(s, n), s.at(n).version+1
	step := m.all[s.at(at).body].step
	t := &turning{s: step.GetSnapshot(), p: turn.Begin(step)}
	end := turn.Ending{Now: s.now(), Interrupted: interrupted}
	plan := m.Turns[t.p.Number]
	switch {
	case n != at: // it has announced its calls
		t.p.Fold(m.all[s.at(n).body].journal)
		t.before = m.all[s.at(n).body].journal.GetAppended()
	case t.p.Resumed || interrupted:
	case version <= plan.Outage:
		end.Error = &harnessv1.TurnError{Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE, Message: "away"}
	case len(plan.Waiting) > 0:
		return decision{body: m.journalled(respond(t.p.Number, plan))}
	default:
		t.fold(respond(t.p.Number, plan))
	}
	if !interrupted {
		for _, group := range t.p.Unfinished() {
			for _, call := range group {
				entry, appended, events := turn.Finish(t.s, t.p, call, &harnessv1.ExecuteToolResponse{
					Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "done",
				})
				t.fold(&harnessv1.Record{Appended: appended, Events: events, Body: &harnessv1.Record_Journal{Journal: entry}})
			}
		}
	}
	snapshot := proto.CloneOf(t.s)
	for _, message := range append(t.before, t.appended...) {
		runstate.AppendMessages(snapshot, t.p.Number, proto.CloneOf(message))
	}
	o, err := turn.Complete(snapshot, t.p, end)
	if err != nil {
		return decision{err: fmt.Errorf("turn %d failed: %w", t.p.Number, err)}
	}
	o.Appended, o.Events = append(t.appended, o.GetAppended()...), append(t.events, o.GetEvents()...)
	if o.GetStep().GetTo() == "" {
		return decision{err: errors.New("a turn ended and is addressed to nobody")}
	}
	return m.outcome(o, version)
}

// turning is a turn whose journal is part of the record that ends it.
type turning struct {
	s        *harnessv1.Snapshot
	p        *turn.Progress
	before   []*harnessv1.Message // of the journal that is stored
	appended []*harnessv1.Message
	events   []*harnessv1.Event
}

func (t *turning) fold(rec *harnessv1.Record) {
	t.p.Fold(rec)
	t.appended, t.events = append(t.appended, rec.GetAppended()...), append(t.events, rec.GetEvents()...)
}

// respond is the record of the model's answer.
func respond(number uint32, plan Turn) *harnessv1.Record {
	message := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: number}
	response := &harnessv1.ModelResponded{FinishReason: "tool_calls"}
	call := func(tool, arguments string, c Call) {
		message.ToolCalls = append(message.ToolCalls, &harnessv1.ToolCall{Id: c.ID, Name: tool, Arguments: content.Inline(arguments)})
		p := &harnessv1.PreparedCall{CallId: c.ID, Tool: tool, Disposition: c.Disposition}
		if c.Client {
			p.Origin = harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT
		}
		response.Calls = append(response.Calls, p)
	}
	switch {
	case len(plan.Waiting) > 0:
		for _, c := range plan.Waiting {
			call("run_command", "{}", c)
		}
	case plan.Works:
		call("read_file", "{}", Call{ID: fmt.Sprintf("work%d", number), Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_RUN})
	default:
		call(harnesstool.WorkComplete, `{"summary":"done"}`, Call{ID: fmt.Sprintf("end%d", number), Disposition: harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS})
	}
	rec := &harnessv1.Record{
		Appended: []*harnessv1.Message{message},
		Body:     &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: response}}},
	}
	return rec
}
