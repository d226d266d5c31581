package turn_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// answers lists the events that answer each action.
var answers = map[string][]string{
	"Return":           {},
	"Fail":             {},
	"Append":           {"Appended", "Failed"},
	"Inspect":          {"Inspected", "Failed"},
	"FireHooks":        {"HooksFired", "Failed"},
	"LoadConversation": {"ConversationLoaded", "Failed"},
	"PrepareRequest":   {"RequestPrepared", "Failed"},
	"AskModel":         {"ModelAnswered", "ModelFailed", "ModelUnusable", "Failed"},
	"Wait":             {"Waited", "Failed"},
	"ReadArguments":    {"ArgumentsRead", "Failed"},
	"ReadMessages":     {"MessagesRead", "Failed"},
	"CheckInbox":       {"InboxChecked", "Failed"},
	"SendCall":         {"CallSent"},
	"AwaitCall":        {"CallEnded", "CallMoved", "CallBroken"},
	"CancelCalls":      {"CallsCancelled", "HostAway", "Failed"},
	"FindHost":         {"HostFound", "Failed"},
	"FetchResult":      {"CallEnded", "Failed"},
}

var errBroken = errors.New("broken")

// path is a way through the machine: the choices between the events that answer each
// action.
type path []choice

// choice is an event, and how the turn was stopped before it: by an interrupt, by the
// loss of the step, or not.
type choice struct {
	stop  stopKind
	event turn.Event
}

type stopKind string

const (
	noStop      stopKind = ""
	interrupted stopKind = "interrupted"
	lost        stopKind = "lost"
)

// place is where a path leads.
type place struct {
	state   *turn.State
	p       *turn.Progress
	action  turn.Action
	stage   turn.Stage
	journal []*harnessv1.Record
	flying  []string // calls that are on a tool host
	stopped stopKind
	killed  bool   // CancelCalls has succeeded
	fenced  bool   // an append has failed
	asked   int    // models
	said    string // by hooks, since the last record
	mode    string // that the inbox asks for
}

// scenario is a turn that is walked.
type scenario struct {
	name     string
	state    func(testing.TB) *turn.State
	response *model.Response
	verdicts []hook.Result // of every firing
	models   bool          // tries at models may fail
	modes    bool          // the mode of work may change before any call
	stops    bool          // the turn may be stopped before any event
}

// follow goes a path from its start.
func (sc *scenario) follow(t testing.TB, state *turn.State, choices path) *place {
	t.Helper()
	at := &place{state: state, p: turn.New(state, noon)}
	for i := 0; ; i++ {
		at.action = turn.Next(state, at.p)
		if i == len(choices) {
			at.stage = at.p.Stage(state)
			return at
		}
		c := choices[i]
		if c.stop != noStop {
			at.p.Stop(errBroken, c.stop == interrupted)
			if at.stopped == noStop {
				at.stopped = c.stop
			}
		}
		if err := at.p.Observe(state, noon, at.action, c.event); err != nil {
			t.Fatalf("%v: %v", choices, err)
		}
		at.take(c.event)
	}
}

// take keeps what the test has to know of an event.
func (at *place) take(event turn.Event) {
	switch a := at.action.(type) {
	case turn.Append:
		if _, failed := event.(turn.Failed); failed {
			at.fenced = true
			return
		}
		at.said = ""
		at.journal = append(at.journal, &harnessv1.Record{Appended: a.Draft.Appended, Body: &harnessv1.Record_Journal{Journal: a.Draft.Entry}})
	case turn.FireHooks:
		if fired, ok := event.(turn.HooksFired); ok {
			at.said += fmt.Sprint(fired.Result.Action, fired.Result.Skip, fired.Result.Pause, ";")
		}
	case turn.AskModel:
		at.asked++
	case turn.CheckInbox:
		if checked, ok := event.(turn.InboxChecked); ok {
			at.mode = ""
			if checked.Offer != nil {
				at.mode = checked.Offer.Mode
			}
		}
	case turn.SendCall:
		at.flying = append(at.flying, a.Call.ID)
	case turn.AwaitCall:
		at.flying = slices.DeleteFunc(at.flying, func(id string) bool { return id == idOf(event) })
	case turn.CancelCalls:
		_, away := event.(turn.HostAway)
		at.killed = at.killed || !away
	}
}

func idOf(event turn.Event) string {
	return reflect.ValueOf(event).FieldByName("ID").String()
}

// check checks the invariants of the next action.
func (at *place) check(t testing.TB) {
	t.Helper()
	names := entryNames(at.journal)
	count := func(name string) (n int) {
		for _, have := range names {
			if have == name {
				n++
			}
		}
		return n
	}
	bad := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("%s after %v (stopped: %q, fenced: %t): "+format, append([]any{nameOf(at.action), names, at.stopped, at.fenced}, args...)...)
	}
	for _, once := range []string{"turn_started", "turn_admitted", "model_responded", "calls_judged"} {
		if count(once) > 1 {
			bad("%s is stored twice", once)
		}
	}
	if again := turn.Next(at.state, at.p); nameOf(again) != nameOf(at.action) || describe(again) != describe(at.action) {
		bad("the same progress leads to %s the second time", nameOf(again))
	}
	switch a := at.action.(type) {
	case turn.AskModel:
		if count("model_responded") > 0 {
			bad("a model is asked after a response is stored")
		}
		if at.stopped != noStop {
			bad("a model is asked after the turn was stopped")
		}
	case turn.FireHooks:
		if at.stopped != noStop {
			bad("hooks are fired after the turn was stopped")
		}
	case turn.SendCall:
		if ledger, ok := startedUnder(at.journal, a.Call.ID); !ok || ledger != a.Ledger {
			bad("call %s is sent under %q, and the journal says %q", a.Call.ID, a.Ledger, ledger)
		}
		if at.stopped != noStop {
			bad("a call is sent after the turn was stopped")
		}
		if finished(at.journal, a.Call.ID) || slices.Contains(at.flying, a.Call.ID) {
			bad("call %s is sent again", a.Call.ID)
		}
		if at.mode == "plan" && a.Call.Tool == "write_file" {
			bad("call %s is sent in plan mode", a.Call.ID)
		}
		for _, id := range at.flying {
			if !parallel(at.p, id) || !a.Call.ParallelSafe {
				bad("call %s runs at the same time as %s", a.Call.ID, id)
			}
		}
	case turn.CancelCalls:
		if at.stopped != interrupted || len(at.flying) > 0 {
			bad("calls %v are killed", a.IDs)
		}
	case turn.Append:
		if f := a.Draft.Entry.GetToolFinished(); f != nil && finished(at.journal, f.GetCallId()) {
			bad("the end of call %s is stored twice", f.GetCallId())
		}
		if at.fenced {
			bad("a record is stored after an append failed")
		}
	case turn.Return:
		at.checkOutcome(bad, a)
	case turn.Fail:
		if len(at.flying) > 0 {
			bad("calls %v are left on the tool host", at.flying)
		}
		if a.Err == nil {
			bad("no error")
		}
	}
	if _, waits := at.action.(turn.AwaitCall); at.fenced && !waits && nameOf(at.action) != "Fail" {
		bad("an effect after an append failed")
	}
}

// checkOutcome checks the end of a turn: every call of the response has one result, or
// waits.
func (at *place) checkOutcome(bad func(string, ...any), a turn.Return) {
	if len(at.flying) > 0 {
		bad("calls %v are left on the tool host", at.flying)
	}
	if at.stopped == noStop && a.Stopped {
		bad("the turn was not stopped")
	}
	step := a.Outcome.GetStep()
	if step.GetTo() == "" || step.GetTurnComplete() == nil {
		bad("the outcome is %v", step)
	}
	messages := append(appendedBy(at.journal), a.Outcome.GetAppended()...)
	results := map[string]int{}
	for _, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			results[m.GetToolCallId()]++
		}
	}
	for _, m := range messages {
		for _, c := range m.GetToolCalls() {
			if want := 1 - waits(step.GetSnapshot(), c.GetId()); results[c.GetId()] != want {
				bad("call %s has %d results, want %d", c.GetId(), results[c.GetId()], want)
			}
		}
	}
}

func startedUnder(journal []*harnessv1.Record, id string) (ledger string, ok bool) {
	for _, rec := range journal {
		if s := rec.GetJournal().GetToolsStarted(); slices.Contains(s.GetCallIds(), id) {
			ledger, ok = s.GetLedgerId(), true
		}
	}
	return ledger, ok
}

func finished(journal []*harnessv1.Record, id string) bool {
	return slices.ContainsFunc(journal, func(rec *harnessv1.Record) bool {
		f := rec.GetJournal().GetToolFinished()
		return f != nil && f.GetCallId() == id
	})
}

func parallel(p *turn.Progress, id string) bool {
	return slices.ContainsFunc(p.Calls, func(c toolcall.Call) bool { return c.ID == id && c.ParallelSafe })
}

func nameOf(v any) string { return reflect.TypeOf(v).Name() }

// describe returns an action as text. Actions with messages are described by those.
func describe(action turn.Action) string {
	switch a := action.(type) {
	case turn.Append:
		return a.Draft.Entry.String() + a.Before + a.After
	case turn.Return:
		return fmt.Sprint(a.Outcome.GetStep().GetTurnComplete(), a.Stopped)
	case turn.PrepareRequest:
		return fmt.Sprint(a.Conversation.Messages)
	case turn.FireHooks:
		return a.Point.Topic.String() + a.Point.Key
	case turn.SendCall:
		return a.Call.ID + a.Ledger + fmt.Sprint(a.Fresh)
	case turn.FetchResult:
		return a.Call.ID + a.Ledger
	case turn.ReadMessages:
		return fmt.Sprint(a.Request, len(a.Messages))
	}
	return fmt.Sprintf("%+v", action)
}

// key identifies a place: two places with the same key have the same future.
func (at *place) key() string {
	names := make([]string, 0, len(at.journal))
	for _, rec := range at.journal {
		data, err := proto.MarshalOptions{Deterministic: true}.Marshal(rec.GetJournal())
		names = append(names, fmt.Sprintf("%q %v", data, err))
	}
	return strings.Join([]string{
		fmt.Sprint(at.stage), nameOf(at.action), describe(at.action), strings.Join(names, "\n"), string(at.stopped), fmt.Sprint(at.flying, at.killed, at.fenced, at.asked), at.said, at.mode,
	}, "|")
}

// events returns the events that may answer the action of a place.
func (sc *scenario) events(at *place) []turn.Event {
	response := func(o harnessv1.ToolOutcome, failed bool) *harnessv1.ExecuteToolResponse {
		return &harnessv1.ExecuteToolResponse{Outcome: o, Result: "result", IsError: failed}
	}
	failed := turn.Failed{Err: errBroken}
	switch a := at.action.(type) {
	case turn.Append:
		return []turn.Event{turn.Appended{}, failed}
	case turn.Inspect:
		return []turn.Event{turn.Inspected{}, turn.Inspected{Response: &harnessv1.InspectWorkspaceResponse{}}}
	case turn.FireHooks:
		var all []turn.Event
		for _, v := range sc.verdicts {
			all = append(all, turn.HooksFired{Result: v})
		}
		return all
	case turn.LoadConversation:
		return []turn.Event{turn.ConversationLoaded{Conversation: &conversation.Conversation{}}, failed}
	case turn.PrepareRequest:
		return []turn.Event{turn.RequestPrepared{}, failed}
	case turn.AskModel:
		if !sc.models {
			return []turn.Event{turn.ModelAnswered{Response: copyOf(sc.response)}}
		}
		return []turn.Event{
			turn.ModelAnswered{Response: copyOf(sc.response)}, turn.ModelFailed{Err: &model.Error{Message: "no"}},
			turn.ModelFailed{Err: &model.Error{Retryable: true, RetryAfter: 1, Message: "later"}}, turn.ModelUnusable{Err: errBroken},
		}
	case turn.Wait:
		return []turn.Event{turn.Waited{}}
	case turn.ReadArguments:
		texts := map[string]string{}
		for id := range a.Arguments {
			texts[id] = `{"path":"a"}`
		}
		return []turn.Event{turn.ArgumentsRead{Texts: texts}, failed}
	case turn.ReadMessages:
		return []turn.Event{turn.MessagesRead{Result: readback.Result{Text: "text"}}, turn.MessagesRead{Result: readback.Result{Failed: true}}, failed}
	case turn.CheckInbox:
		if sc.modes {
			return []turn.Event{turn.InboxChecked{}, planned(at.state)}
		}
		return []turn.Event{turn.InboxChecked{}, failed}
	case turn.SendCall:
		return []turn.Event{turn.CallSent{}}
	case turn.AwaitCall:
		var all []turn.Event
		for _, id := range at.flying {
			all = append(all, turn.CallEnded{ID: id, Response: response(harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, id == "a")},
				turn.CallEnded{ID: id, Response: response(harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN, false)}, turn.CallBroken{ID: id, Err: errBroken})
			if ledger, _ := startedUnder(at.journal, id); ledger == "ledger" {
				all = append(all, turn.CallMoved{ID: id, Ledger: "other"})
			}
		}
		return all
	case turn.CancelCalls:
		return []turn.Event{
			turn.CallsCancelled{}, turn.CallsCancelled{Finished: a.IDs}, turn.CallsCancelled{Unknown: a.IDs[:1]}, turn.HostAway{Err: errBroken},
		}
	case turn.FindHost:
		return []turn.Event{turn.HostFound{}, turn.HostFound{Ledger: "other"}}
	case turn.FetchResult:
		return []turn.Event{turn.CallEnded{ID: a.Call.ID, Response: response(harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, false)}, failed}
	}
	return nil
}

// copyOf returns a copy of a response: the machine keeps what it is given.
func copyOf(r *model.Response) *model.Response {
	clone := *r
	clone.Usage = proto.CloneOf(r.Usage)
	return &clone
}

// walk visits every place that can be reached, the nearest first.
func (sc *scenario) walk(t testing.TB, visit func(at *place, choices path)) {
	t.Helper()
	state := sc.state(t)
	seen := map[string]bool{}
	queue := []path{nil}
	for len(queue) > 0 {
		choices := queue[0]
		queue = queue[1:]
		at := sc.follow(t, state, choices)
		if key := at.key(); seen[key] {
			continue
		} else {
			seen[key] = true
		}
		if len(choices) > 80 {
			t.Fatalf("the turn does not end: %v", choices)
		}
		at.check(t)
		visit(at, choices)
		for _, event := range sc.events(at) {
			queue = append(queue, append(choices[:len(choices):len(choices)], choice{event: event}))
			if sc.stops && at.stopped == noStop {
				queue = append(queue,
					append(choices[:len(choices):len(choices)], choice{stop: interrupted, event: event}),
					append(choices[:len(choices):len(choices)], choice{stop: lost, event: event}))
			}
		}
	}
	t.Logf("%s: %d places", sc.name, len(seen))
}

// scenarios are the turns that are walked: one with every hook, one whose models fail,
// and one with calls that run at the same time.
func scenarios() []*scenario {
	calls := func(n int) []*harnessv1.ToolCall {
		return []*harnessv1.ToolCall{
			call("a", "read_file", `{"path":"1"}`), call("b", "read_file", `{"path":"2"}`), call("c", "write_file", `{"path":"3"}`),
		}[:n]
	}
	hooked := func(t testing.TB) *turn.State {
		s := snapshot()
		s.Model, s.TurnCount, s.Workspace = "m", 4, "/w"
		s.Config.Hooks = &harnessv1.HookConfig{Enabled: proto.Bool(true)}
		s.Definition = &harnessv1.Definition{}
		for _, topic := range []harnessv1.HookTopic{
			harnessv1.HookTopic_HOOK_TOPIC_BEFORE_STEP, harnessv1.HookTopic_HOOK_TOPIC_AFTER_STEP, harnessv1.HookTopic_HOOK_TOPIC_BEFORE_TOOL_CALL,
			harnessv1.HookTopic_HOOK_TOPIC_AFTER_TOOL_CALL, harnessv1.HookTopic_HOOK_TOPIC_ON_ERROR,
		} {
			s.Definition.Hooks = append(s.Definition.Hooks, &harnessv1.Hook{
				Id: strings.ToLower(topic.String()), Topic: topic, Cel: "true", Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE,
			})
		}
		return newState(t, s)
	}
	plain := func(t testing.TB) *turn.State {
		s := snapshot()
		s.Model, s.FallbackModels = "m", []string{"fallback"}
		s.Config.Model = &harnessv1.ModelConfig{MaxTries: proto.Uint32(2)}
		return newState(t, s)
	}
	return []*scenario{
		{name: "hooks", state: hooked, response: response(calls(1)...), stops: true, verdicts: []hook.Result{
			{}, {Action: harnessv1.HookAction_HOOK_ACTION_ABORT, HookID: "h", Reason: "no"}, {Skip: "skip"}, {Pause: "pause"},
		}},
		{name: "blob", state: hooked, response: response(call("a", "read_file", ""), calls(2)[1]), verdicts: []hook.Result{{}}},
		{name: "models", state: plain, response: response(calls(1)...), models: true, stops: true},
		{name: "calls", state: plain, response: response(calls(3)...), stops: true},
		{name: "modes", state: plain, response: response(calls(3)[0], calls(3)[2], call("d", "write_file", `{"path":"4"}`)), modes: true},
		{name: "read", state: plain, response: response(call("r", "read_artifact", `{"ref":"m1"}`), calls(1)[0], call("s", "read_artifact", `{"ref":"m2"}`)), stops: true},
		{name: "read with hooks", state: hooked, response: response(call("r", "read_artifact", `{"ref":"m1"}`)), verdicts: []hook.Result{
			{}, {Action: harnessv1.HookAction_HOOK_ACTION_DENY, HookID: "h", Reason: "no"},
		}},
	}
}

// TestWalkKeepsInvariants visits every place of the machine within its scenarios. The
// invariants are those of place.check.
func TestWalkKeepsInvariants(t *testing.T) {
	stages, actions := map[turn.Stage]int{}, map[string]int{}
	for _, sc := range scenarios() {
		sc.walk(t, func(at *place, _ path) {
			stages[at.stage]++
			actions[nameOf(at.action)]++
		})
	}
	for stage := turn.Failing; stage <= turn.Closing; stage++ {
		if stages[stage] == 0 {
			t.Errorf("stage %d is not reached", stage)
		}
	}
	for action := range answers {
		if actions[action] == 0 && action != "ReadArguments" {
			t.Errorf("action %s is not reached", action)
		}
	}
}

// TestEveryEventAtEveryPlace observes every event after every action that the walks
// reach: it is accepted if it follows from the action, or else rejected without a
// change.
func TestEveryEventAtEveryPlace(t *testing.T) {
	events := []turn.Event{
		turn.Failed{Err: errBroken}, turn.Appended{}, turn.Inspected{}, turn.HooksFired{},
		turn.ConversationLoaded{Conversation: &conversation.Conversation{}}, turn.RequestPrepared{}, turn.ModelAnswered{Response: response()},
		turn.ModelFailed{}, turn.ModelUnusable{Err: errBroken}, turn.Waited{}, turn.ArgumentsRead{}, turn.MessagesRead{}, turn.InboxChecked{}, turn.CallSent{},
		turn.CallEnded{}, turn.CallMoved{}, turn.CallBroken{}, turn.CallsCancelled{}, turn.HostAway{Err: errBroken}, turn.HostFound{},
	}
	cells := map[string]bool{}
	for _, sc := range scenarios() {
		sc.walk(t, func(at *place, choices path) {
			for _, event := range events {
				event = fit(at, event)
				cell := fmt.Sprint(at.stage, nameOf(at.action), nameOf(event))
				if cells[cell] {
					continue
				}
				cells[cell] = true
				there := sc.follow(t, at.state, choices)
				before := there.key()
				err := there.p.Observe(at.state, noon, there.action, event)
				if want := slices.Contains(answers[nameOf(at.action)], nameOf(event)); (err == nil) != want {
					t.Errorf("stage %d: %s answers %s: %v, want %t", at.stage, nameOf(event), nameOf(at.action), err, want)
				}
				there.stage, there.action = there.p.Stage(at.state), turn.Next(at.state, there.p)
				if err != nil && there.key() != before {
					t.Errorf("stage %d: a rejected %s changes what follows %s", at.stage, nameOf(event), nameOf(at.action))
				}
				var rejected *turn.Rejected
				if err != nil && (!errors.As(err, &rejected) || rejected.Error() == "") {
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
	t.Logf("%d cells", len(cells))
}

// fit gives an event the call of the action that it is to answer.
func fit(at *place, event turn.Event) turn.Event {
	id := "a"
	if len(at.flying) > 0 {
		id = at.flying[0]
	}
	if a, ok := at.action.(turn.FetchResult); ok {
		id = a.Call.ID
	}
	switch event.(type) {
	case turn.CallEnded:
		return turn.CallEnded{ID: id, Response: &harnessv1.ExecuteToolResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE}}
	case turn.CallMoved:
		return turn.CallMoved{ID: id, Ledger: "other"}
	case turn.CallBroken:
		return turn.CallBroken{ID: id, Err: errBroken}
	}
	return event
}

// TestEventWithoutItsValueIsRejected: an event that lacks what it reports is no answer.
func TestEventWithoutItsValueIsRejected(t *testing.T) {
	incomplete := map[string][]turn.Event{
		"LoadConversation": {turn.ConversationLoaded{}},
		"AskModel":         {turn.ModelAnswered{}, turn.ModelUnusable{}},
		"AwaitCall":        {turn.CallEnded{ID: "a"}, turn.CallEnded{ID: "x", Response: &harnessv1.ExecuteToolResponse{}}, turn.CallBroken{ID: "a"}, turn.CallMoved{ID: "x"}},
		"CancelCalls":      {turn.HostAway{}},
		"FetchResult":      {turn.CallEnded{ID: "x", Response: &harnessv1.ExecuteToolResponse{}}},
	}
	sc := scenarios()[3]
	sc.walk(t, func(at *place, choices path) {
		for _, event := range append(incomplete[nameOf(at.action)], nil) {
			if sc.follow(t, at.state, choices).p.Observe(at.state, noon, at.action, event) == nil {
				t.Errorf("%#v answers %s", event, nameOf(at.action))
			}
		}
		delete(incomplete, nameOf(at.action))
	})
	if len(incomplete) > 0 {
		t.Errorf("not reached: %v", incomplete)
	}
}

// TestArgumentsInBlobsAreRead: the subscribers of a call see its arguments also if they
// are stored as a blob.
func TestArgumentsInBlobsAreRead(t *testing.T) {
	sc := scenarios()[1]
	w := &worker{t: t, state: sc.state(t), response: response(call("a", "read_file", `{"path":"1"}`)), dies: 3}
	if _, err := w.work(); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	blob := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: "d", Size: 9}}}
	message := w.journal[2].GetAppended()[0]
	message.ToolCalls[0].Arguments = blob
	var seen []string
	w.hook = func(p hook.Point) hook.Result {
		if arguments, ok := p.Payload["arguments"].(map[string]any); ok {
			seen = append(seen, fmt.Sprint(arguments["path"]))
		}
		return hook.Result{Payload: p.Payload}
	}
	w.dies = -1
	w.mustEnd()
	if want := []string{"from a blob", "from a blob"}; !slices.Equal(seen, want) {
		t.Errorf("the subscribers see %q, want %q", seen, want)
	}
	if content.Text(message.GetToolCalls()[0].GetArguments()) == "from a blob" {
		t.Error("the stored message was changed")
	}
}
