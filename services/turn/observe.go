package turn

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/readback"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/turn/toolcall"
)

// Observe adds the event that an action has led to, which Next returned for this
// progress, at the time now. The error is a *Rejected if the event does not follow
// from the action; then nothing has changed.
func (p *Progress) Observe(s *State, now time.Time, action Action, event Event) error {
	if !p.observe(s, now, action, event) {
		return &Rejected{Action: action, Event: event}
	}
	p.execution.now = now
	p.startJudgement(s)
	return nil
}

// observe adds an event, and reports whether it follows from the action.
func (p *Progress) observe(s *State, now time.Time, action Action, event Event) bool {
	if failed, ok := event.(Failed); ok {
		return p.failed(s, action, failed.Err)
	}
	switch a := action.(type) {
	case Append:
		_, ok := event.(Appended)
		return ok && p.appended(a, now)
	case Inspect:
		e, ok := event.(Inspected)
		return ok && p.inspectedAs(e)
	case FireHooks:
		e, ok := event.(HooksFired)
		return ok && p.fired(s, a, e.Result.Effects())
	case LoadConversation:
		e, ok := event.(ConversationLoaded)
		return ok && e.Conversation != nil && p.loaded(e)
	case PrepareRequest:
		e, ok := event.(RequestPrepared)
		return ok && p.requestPrepared(e, now)
	case AskModel:
		return p.asked(s, now, a, event)
	case Wait:
		_, ok := event.(Waited)
		return ok && p.waited()
	case ReadArguments:
		e, ok := event.(ArgumentsRead)
		return ok && p.argumentsRead(a, e)
	case ReadMessages:
		e, ok := event.(MessagesRead)
		return ok && p.messagesRead(e.Result)
	case ProposeCalls:
		e, ok := event.(Proposals)
		return ok && p.proposed(a, e)
	case CheckInbox:
		e, ok := event.(InboxChecked)
		return ok && p.inboxRead(a, e)
	case SendCall:
		_, ok := event.(CallSent)
		return ok && p.callSent(a.Call.ID)
	case AwaitCall:
		return p.awaited(event)
	case CancelCalls:
		return p.callsCancelled(a, event)
	case FindHost:
		e, ok := event.(HostFound)
		return ok && p.hostFound(a.Ledger, e.Ledger)
	case FetchResult:
		e, ok := event.(CallEnded)
		return ok && e.ID == a.Call.ID && e.Response != nil && p.fetched(a, e.Response)
	}
	return false // Return and Fail are terminal
}

// failed takes an action that could not be performed. A failed append ends all
// effects. What a stop has broken off is not a failure.
func (p *Progress) failed(s *State, action Action, err error) bool {
	e := &p.execution
	switch a := action.(type) {
	case nil, Return, Fail, SendCall, AwaitCall:
		return false
	case Append:
		e.fenced = true
	case ReadArguments:
		if len(e.ended) > 0 {
			e.ended = e.ended[1:] // its end stays with the tool host
		}
	case CheckInbox:
		if a.Newest { // it is read again before a call starts
			e.modeRead = true
			return true
		}
	case LoadConversation:
		if e.stop != nil && !a.Closing {
			return true
		}
		if ended := p.compares(); ended != nil { // its end stays with the tool host
			e.ended = slices.DeleteFunc(e.ended, func(of *endedCall) bool { return of == ended })
		}
	}
	if stage := p.Stage(s); e.stop != nil && !e.fenced && stage != Stopping && stage != Closing && stage != Claiming {
		return true
	}
	if e.failure == nil {
		e.failure = err
	}
	return true
}

// appended folds a draft that is stored.
func (p *Progress) appended(a Append, now time.Time) bool {
	e := &p.execution
	p.Fold(&harnessv1.Record{Appended: a.Draft.Appended, Body: &harnessv1.Record_Journal{Journal: a.Draft.Entry}})
	switch entry := a.Draft.Entry.GetEntry().(type) {
	case *harnessv1.Journal_TurnStarted:
		e.claimed, e.conversation = true, nil // it may have appended messages
	case *harnessv1.Journal_ModelRetried:
		p.retried(entry.ModelRetried, now)
	case *harnessv1.Journal_ModelResponded:
		e.answer = nil
	case *harnessv1.Journal_ToolsStarted:
		e.started(entry.ToolsStarted.GetCallIds())
	case *harnessv1.Journal_ToolFinished:
		if len(e.ended) > 0 && e.ended[0].call.ID == entry.ToolFinished.GetCallId() {
			e.ended = e.ended[1:]
		}
	}
	return true
}

func (p *Progress) inspectedAs(e Inspected) bool {
	p.execution.inspected, p.execution.workspace = true, e.Response
	return true
}

// fired applies the effects of the subscribers of a point. An answer after the turn
// was stopped does not count: the stop may have cut them off.
func (p *Progress) fired(s *State, a FireHooks, said hook.Effects) bool {
	e := &p.execution
	if e.stop != nil {
		return true
	}
	switch stage := p.Stage(s); {
	case stage == Admitting:
		e.admission = &said
	case stage == Judging && e.judgement != nil:
		e.judgement.Resume(said)
	case stage == Running && len(e.ended) > 0:
		e.ended[0].fired(a.Point.Topic, said)
	case stage == Closing:
		e.afterStep = &said
	default:
		return false
	}
	return true
}

func (p *Progress) loaded(e ConversationLoaded) bool {
	p.execution.conversation, p.execution.prepareSince = e.Conversation, p.execution.now
	p.compare()
	return true
}

func (p *Progress) requestPrepared(prepared RequestPrepared, now time.Time) bool {
	e := &p.execution
	e.written = prepared.Written
	e.preparation, e.askSince = durationpb.New(now.Sub(e.prepareSince)), now
	return true
}

// asked takes how a try at a model went. A try that the stop has broken off is
// not a failure of the model.
func (p *Progress) asked(s *State, now time.Time, a AskModel, event Event) bool {
	e := &p.execution
	switch got := event.(type) {
	case ModelAnswered:
		if got.Response == nil {
			return false
		}
		if got.Response.FinishReason == refusal {
			p.refuseAnswer(a.Ref, got.Response)
			return true
		}
		e.answer = &answer{ref: a.Ref, response: got.Response, request: got.Request, latency: durationpb.New(now.Sub(e.askSince))}
	case ModelFailed:
		if e.stop == nil {
			p.failTry(s, a.Ref, got)
		}
	case ModelUnusable:
		if got.Err == nil {
			return false
		}
		e.unusable[a.Ref] = got.Err
	default:
		return false
	}
	return true
}

func (p *Progress) waited() bool {
	p.execution.wait = nil
	return true
}

func (p *Progress) argumentsRead(a ReadArguments, e ArgumentsRead) bool {
	for id := range a.Arguments {
		if _, ok := e.Texts[id]; !ok {
			return false
		}
	}
	for id := range a.Arguments {
		p.execution.texts[id] = e.Texts[id]
	}
	return true
}

// messagesRead takes the result of a call that reads messages.
func (p *Progress) messagesRead(result readback.Result) bool {
	p.execution.judgement.Read(result)
	return true
}

func (p *Progress) inboxRead(a CheckInbox, read InboxChecked) bool {
	e := &p.execution
	if a.Newest {
		e.modeRead = true
	} else {
		e.inboxChecked = true
	}
	e.recent = true
	e.offer = read.Offer
	return true
}

func (p *Progress) callSent(id string) bool {
	e := &p.execution
	e.sent[id], e.inFlight[id], e.recent = true, true, false
	return true
}

// awaited takes the end of a call that was sent.
func (p *Progress) awaited(event Event) bool {
	e := &p.execution
	switch got := event.(type) {
	case CallEnded:
		if !e.inFlight[got.ID] || got.Response == nil {
			return false
		}
		delete(e.inFlight, got.ID)
		p.end(got.ID, got.Response)
		p.compare()
	case CallMoved:
		if !e.inFlight[got.ID] {
			return false
		}
		delete(e.inFlight, got.ID)
		if e.failure == nil {
			e.moved = append(e.moved, got)
		}
	case CallBroken:
		if !e.inFlight[got.ID] || got.Err == nil {
			return false
		}
		delete(e.inFlight, got.ID)
		e.broken = e.broken || e.stop != nil
		if e.stop == nil && e.failure == nil {
			e.failure = got.Err
		}
	default:
		return false
	}
	return true
}

// callsCancelled takes how calls were killed.
func (p *Progress) callsCancelled(a CancelCalls, event Event) bool {
	switch got := event.(type) {
	case CallsCancelled:
		p.cancelled(a.Ledger, got, nil)
	case HostAway:
		if got.Err == nil {
			return false
		}
		p.cancelled(a.Ledger, CallsCancelled{}, got.Err)
	default:
		return false
	}
	return true
}

func (p *Progress) fetched(a FetchResult, response *harnessv1.ExecuteToolResponse) bool {
	p.execution.cancels[a.Ledger].results[a.Call.ID] = toolcall.CheckResponse(a.Call, response)
	return true
}
