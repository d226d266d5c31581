package turn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/turn/judge"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

// maxCalls bounds the calls that are taken from one response; the rest are dropped.
const maxCalls = 64

// cutOffText follows a response whose calls are dropped.
const cutOffText = "Your response was cut off by the length limit, so its tool calls were dropped and nothing of it ran. " +
	"Answer again in smaller pieces: fewer calls, or less content in each."

// cutShortText follows a response that reached the length limit before any text or call.
const cutShortText = "Your response reached the length limit before any text or tool call. " +
	"Think less this time: decide on one next step and make its tool call."

// cutShortAgain returns the error of a turn whose response reached the length limit
// before any text or call, like the one before.
func (p *Progress) cutShortAgain(s *State) *harnessv1.TurnError {
	if !p.Response.GetCutShort() || !s.Snapshot.GetTurn().GetCutShort() {
		return nil
	}
	return &harnessv1.TurnError{
		Kind: harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_ERROR,
		Message: p.Response.GetModel() + ": two responses in a row reached the length limit before any text or tool call: " +
			"lower the reasoning effort, or use a model with a larger output",
	}
}

// respond returns the record of the model's answer. Whatever the model wrote is
// data: every call is run, awaited, answered by the harness, or answered with an
// error that names what is wrong. If calls have subscribers or read messages of the run,
// the calls are judged in a separate record.
func (p *Progress) respond(s *State) *runstate.Draft {
	a, r := p.execution.answer, p.execution.answer.response
	message := &harnessv1.Message{
		Role:    harnessv1.Role_ROLE_ASSISTANT,
		Content: content.Inline(strings.ToValidUTF8(r.Text, "\uFFFD")),
	}
	cut := r.FinishReason == "length"
	responded := &harnessv1.ModelResponded{
		Model: a.ref, Usage: r.Usage, FinishReason: r.FinishReason,
		Preparation: p.execution.preparation, Latency: a.latency,
	}
	if f := a.request; f != nil {
		responded.Weights, responded.CountedTokens, responded.ViewDigest, responded.Tools = f.Weights, f.Counted, f.ViewDigest, f.Tools
	}
	d := p.entry(s, &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: responded}})
	d.Append(message)
	if responded.CutShort = cut && strings.TrimSpace(r.Text) == "" && len(r.ToolCalls) == 0; responded.GetCutShort() {
		correct(d, "cut_short", cutShortText)
	}
	p.monitor(s, d, responded, message.GetContent().GetInline())
	if cut && len(r.ToolCalls) > 0 {
		correct(d, "cut_off", cutOffText)
		d.Emit(event.ModelResponse(a.ref, r.Usage, r.FinishReason, 0, a.latency))
		return d
	}
	message.ToolCalls = p.callsOf(s, p.offer(s))
	setParts(message, r)
	d.Emit(event.ModelResponse(a.ref, r.Usage, r.FinishReason, len(message.ToolCalls), a.latency))
	j := judge.New(p.callTurn(s), d)
	calls := make([]*harnessv1.PreparedCall, len(message.ToolCalls))
	for i, call := range message.ToolCalls {
		calls[i] = j.Prepare(call)
	}
	if d.Marks() && judge.Summary(message, calls) != nil {
		mark.Completion(message)
	}
	if responded.Unjudged = len(calls) > 0 && s.callsHooked() || slices.ContainsFunc(calls, judge.ReadsMessages); responded.GetUnjudged() {
		for i := range calls {
			calls[i] = undecided(calls[i])
		}
		responded.Calls = calls
	} else {
		for i, call := range message.ToolCalls {
			j.Decide(call, calls[i])
		}
		responded.Calls, responded.WorkItems, responded.Artifacts = j.Results()
	}
	if len(message.ToolCalls) < len(r.ToolCalls) {
		correct(d, "calls_dropped",
			fmt.Sprintf("Your response had %d tool calls; only the first %d were taken. Make the others in later responses.", len(r.ToolCalls), maxCalls))
	}
	return d
}

// correct appends a correction of the model's behaviour.
func correct(d *runstate.Draft, topic, text string) {
	m := runstate.GuidanceMessage(text)
	m.Topic = d.Topic(topic)
	d.Append(m)
}

// callsOf returns the calls of the answer as they are stored, with unique ids.
func (p *Progress) callsOf(s *State, o *offer.Offer) []*harnessv1.ToolCall {
	wrote := p.execution.answer.response.ToolCalls
	seen := map[string]bool{}
	taken := func(id string) bool { return seen[id] || p.execution.conversation.HasCall(id) }
	var calls []*harnessv1.ToolCall
	for i, c := range wrote[:min(len(wrote), maxCalls)] {
		call := &harnessv1.ToolCall{
			Id:        uniqueID(c.GetId(), madeID(s, p.Number, i), taken),
			Name:      usableName(c.GetName()),
			Arguments: content.Inline(strings.ToValidUTF8(c.GetArguments().GetInline(), "\uFFFD")),
		}
		o.Unwrap(call)
		seen[call.Id] = true
		calls = append(calls, call)
	}
	return calls
}

// undecided returns a call before it is judged.
func undecided(c *harnessv1.PreparedCall) *harnessv1.PreparedCall {
	return &harnessv1.PreparedCall{CallId: c.GetCallId(), Tool: c.GetTool()}
}

// maxName bounds the name of a tool that a model makes up, in bytes; unnamed
// replaces an empty one.
const (
	maxName = 128
	unnamed = "unnamed"
)

// usableName returns a tool's name as the model wrote it, as far as it can be
// stored and sent back.
func usableName(name string) string {
	if name = content.Cut(strings.TrimSpace(name), maxName); name == "" {
		return unnamed
	}
	return name
}

// maxID bounds a call id, in bytes.
const maxID = 64

// uniqueID returns the provider's id if it is usable, and a new one if it is
// missing, too long or taken.
func uniqueID(id, other string, taken func(string) bool) string {
	if usableID(id) && !taken(id) {
		return id
	}
	made := other
	for n := 0; taken(made); n++ {
		made = fmt.Sprintf("%s_%d", other, n)
	}
	return made
}

// madeID returns an id for a call without a usable one. After the log of the run has lost calls it
// is none that they can have.
func madeID(s *State, turn uint32, index int) string {
	if told := s.Snapshot.GetLedgers().GetTold(); told > 0 {
		return fmt.Sprintf("call_again%d_%d_%d", told, turn, index)
	}
	return fmt.Sprintf("call_%d_%d", turn, index)
}

// usableID reports whether an id can be stored, sent back and used as a key: up to
// maxID printable ASCII characters without space and slash.
func usableID(id string) bool {
	for _, r := range []byte(id) {
		if r <= ' ' || r > '~' || r == '/' {
			return false
		}
	}
	return id != "" && len(id) <= maxID && !runstate.IsReservedCallID(id)
}
