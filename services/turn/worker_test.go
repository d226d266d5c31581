package turn_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

var errInterrupted = errors.New("interrupted")

// fataler is a *testing.T or a *rapid.T.
type fataler interface{ Fatal(...any) }

// newState returns the state of a turn with the tools of the tests.
func newState(t fataler, s *harnessv1.Snapshot) *turn.State {
	definition, err := agent.FromStep(&harnessv1.Step{Snapshot: s})
	if err != nil {
		t.Fatal(err)
	}
	return &turn.State{Snapshot: s, Definition: definition, Offer: &offer.Offer{Set: tools(t)}, Ledger: "ledger"}
}

// worker performs a turn on a journal that may have records of a former worker. It
// records every effect that it has.
type worker struct {
	t       fataler
	state   *turn.State
	journal []*harnessv1.Record
	p       *turn.Progress

	response  *model.Response
	facts     *turn.RequestFacts   // of its request
	responses []*model.Response    // before it
	failures  []*model.Error       // of the first tries at a model
	unusable  map[string]bool      // models without a provider
	known     []string             // ids of calls in the conversation
	last      []*harnessv1.Message // of the conversation
	unknown   map[string]bool      // calls that the tool host has no record of

	responsesTo map[string]*harnessv1.ExecuteToolResponse // of the tool host; nil: a result
	cancelled   turn.CallsCancelled
	hook        func(hook.Point) hook.Result
	inbox       func(turn.CheckInbox) turn.Event // nil: it is empty
	dies        int                              // records after which it dies; negative for never
	stops       func(turn.Action) bool           // reports whether the turn is interrupted while an action is performed

	effects []string
	actions []turn.Action
	sent    []string
}

func newWorker(t fataler, s *harnessv1.Snapshot, calls ...*harnessv1.ToolCall) *worker {
	return &worker{t: t, state: newState(t, s), response: response(calls...), dies: -1}
}

var errDied = errors.New("died")

// work performs the turn until it ends or the worker dies.
func (w *worker) work() (*harnessv1.Outcome, error) {
	w.p = turn.New(w.state, noon, w.journal...)
	w.sent = nil
	for range 10_000 {
		action := turn.Next(w.state, w.p)
		w.actions = append(w.actions, action)
		switch a := action.(type) {
		case turn.Return:
			return a.Outcome, nil
		case turn.Fail:
			return nil, a.Err
		}
		if w.stops != nil && w.stops(action) {
			w.p.Stop(errInterrupted, true)
		}
		event := w.perform(action)
		if failed, ok := event.(turn.Failed); ok && errors.Is(failed.Err, errDied) {
			return nil, errDied
		}
		if err := w.p.Observe(w.state, noon, action, event); err != nil {
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("the turn does not end")
	return nil, nil
}

// mustEnd performs the turn to its end.
func (w *worker) mustEnd() *harnessv1.Outcome {
	outcome, err := w.work()
	if err != nil {
		w.t.Fatal(err)
	}
	return outcome
}

func (w *worker) effect(format string, args ...any) {
	w.effects = append(w.effects, fmt.Sprintf(format, args...))
}

func (w *worker) perform(action turn.Action) turn.Event {
	switch a := action.(type) {
	case turn.Append:
		if w.dies == 0 {
			return turn.Failed{Err: errDied}
		}
		w.dies--
		w.store(a.Draft)
		return turn.Appended{}
	case turn.Inspect:
		return turn.Inspected{}
	case turn.FireHooks:
		w.effect("hooks %s", a.Point.Topic)
		if w.hook == nil {
			return turn.HooksFired{}
		}
		return turn.HooksFired{Result: w.hook(a.Point)}
	case turn.LoadConversation:
		return turn.ConversationLoaded{Conversation: w.conversation()}
	case turn.PrepareRequest:
		var written string
		for _, c := range turn.Written(w.state.Snapshot, a.Conversation) {
			written += content.Text(c)
		}
		return turn.RequestPrepared{Written: written}
	case turn.AskModel:
		return w.ask(a)
	case turn.Wait:
		w.effect("wait %v", a.For)
		return turn.Waited{}
	case turn.ReadArguments:
		texts := map[string]string{}
		for id := range a.Arguments {
			texts[id] = `{"path":"from a blob"}`
		}
		return turn.ArgumentsRead{Texts: texts}
	case turn.ReadMessages:
		w.effect("read %s of %d", a.Request.Ref, len(a.Messages))
		return turn.MessagesRead{Result: readback.Result{Text: "text of " + a.Request.Ref, Failed: a.Request.Ref == "m0"}}
	case turn.CheckInbox:
		if w.inbox != nil {
			return w.inbox(a)
		}
		return turn.InboxChecked{}
	case turn.SendCall:
		w.effect("run %s", a.Call.ID)
		w.sent = append(w.sent, a.Call.ID)
		return turn.CallSent{}
	case turn.AwaitCall:
		id := w.sent[0]
		w.sent = w.sent[1:]
		if w.stops != nil && w.stops(action) {
			return turn.CallBroken{ID: id, Err: errInterrupted}
		}
		return turn.CallEnded{ID: id, Response: w.result(id)}
	case turn.CancelCalls:
		w.effect("kill %v", a.IDs)
		return w.cancelled
	case turn.FindHost:
		return turn.HostFound{}
	case turn.FetchResult:
		w.effect("fetch %s", a.Call.ID)
		return turn.CallEnded{ID: a.Call.ID, Response: w.result(a.Call.ID)}
	}
	w.t.Fatal("unexpected action", action)
	return nil
}

func (w *worker) ask(a turn.AskModel) turn.Event {
	if w.unusable[a.Ref] {
		return turn.ModelUnusable{Err: errors.New("no such provider")}
	}
	w.effect("model %s", a.Ref)
	if len(w.failures) > 0 {
		failure := w.failures[0]
		w.failures = w.failures[1:]
		return turn.ModelFailed{Err: failure}
	}
	if len(w.responses) > 0 {
		r := w.responses[0]
		w.responses = w.responses[1:]
		return turn.ModelAnswered{Response: r}
	}
	return turn.ModelAnswered{Response: w.response, Request: w.facts}
}

func (w *worker) result(id string) *harnessv1.ExecuteToolResponse {
	if w.unknown[id] {
		return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}
	}
	if r := w.responsesTo[id]; r != nil {
		return r
	}
	return &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "result of " + id}
}

// store adds a draft to the journal, with its messages numbered.
func (w *worker) store(d *runstate.Draft) {
	next := w.state.Snapshot.GetMessageCount() + uint64(len(appendedBy(w.journal)))
	for i, m := range d.Appended {
		m.Id = next + uint64(i) + 1
	}
	w.journal = append(w.journal, &harnessv1.Record{
		Appended: d.Appended, Events: d.Events, Body: &harnessv1.Record_Journal{Journal: d.Entry},
		Writer: &harnessv1.Writer{Instance: fmt.Sprintf("w%d", len(w.journal))},
	})
}

// conversation returns a conversation with the calls that are known.
func (w *worker) conversation() *conversation.Conversation {
	c := &conversation.Conversation{}
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
	for _, id := range w.known {
		m.ToolCalls = append(m.ToolCalls, call(id, "read_file", "{}"))
	}
	c.Fold(&harnessv1.Record{Appended: append([]*harnessv1.Message{m}, w.last...)})
	return c
}

func respond(t fataler, s *harnessv1.Snapshot, r *model.Response, known ...string) *harnessv1.Record {
	w := newWorker(t, s)
	w.response, w.known, w.dies = r, known, 2
	if _, err := w.work(); err == nil && len(w.journal) < 2 {
		t.Fatal("no response was stored")
	}
	return w.journal[1]
}

// responded returns a worker whose model gave r and whose calls have not run.
func responded(t fataler, s *harnessv1.Snapshot, r *model.Response) *worker {
	w := newWorker(t, s)
	w.response, w.dies = r, 2
	_, _ = w.work()
	return w
}

// folded returns a worker with a journal and no execution.
func (w *worker) folded() *worker {
	w.p = turn.New(w.state, noon, w.journal...)
	return w
}

// storeRecord adds a record to the journal that no execution has stored.
func (w *worker) storeRecord(entry *harnessv1.Journal, appended []*harnessv1.Message, events []*harnessv1.Event) {
	w.store(&runstate.Draft{Entry: entry, Appended: appended, Events: events})
	w.p.Fold(w.journal[len(w.journal)-1])
}

// run stores how the unfinished calls ended.
func (w *worker) run(outcome harnessv1.ToolOutcome) *worker {
	for _, c := range slices.Concat(w.p.Unfinished()...) {
		w.storeRecord(turn.Finish(w.state.Snapshot, w.p, c, &harnessv1.ExecuteToolResponse{Outcome: outcome}))
	}
	return w
}

// complete ends the turn twice and checks that both ends are equal and legal.
func (w *worker) complete(end turn.End) *harnessv1.Outcome {
	outcomes := make([]*harnessv1.Outcome, 2)
	for i := range outcomes {
		s := proto.CloneOf(w.state.Snapshot)
		if s.TokenBudget == nil {
			s.TokenBudget = &harnessv1.TokenBudget{}
		}
		for _, m := range appendedBy(w.journal) {
			s.MessageCount++
			s.TokenBudget.UnreportedBytes += runstate.MessageBytes(m)
		}
		var err error
		if outcomes[i], err = turn.Complete(s, w.p, end); err != nil {
			w.t.Fatal(err)
		}
	}
	if !bytes.Equal(encode(w.t, outcomes[0]), encode(w.t, outcomes[1])) {
		w.t.Fatal("completed otherwise the second time")
	}
	if err := runstate.CheckPhases(w.state.Snapshot, outcomes[0].GetStep()); err != nil {
		w.t.Fatal(err)
	}
	return outcomes[0]
}

func appendedBy(journal []*harnessv1.Record) []*harnessv1.Message {
	var all []*harnessv1.Message
	for _, rec := range journal {
		all = append(all, rec.GetAppended()...)
	}
	return all
}

func encode(t fataler, m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// entryNames returns the names of the entries of a journal.
func entryNames(journal []*harnessv1.Record) []string {
	var names []string
	for _, rec := range journal {
		r := rec.GetJournal().ProtoReflect()
		names = append(names, string(r.WhichOneof(r.Descriptor().Oneofs().ByName("entry")).Name()))
	}
	return names
}

func call(id, name, arguments string) *harnessv1.ToolCall {
	return &harnessv1.ToolCall{Id: id, Name: name, Arguments: content.Inline(arguments)}
}

var _ testing.TB
