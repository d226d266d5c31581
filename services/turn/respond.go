package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool"
)

// Answered is everything that follows from a model's answer before any tool
// runs: the entry, what it adds to the conversation and what observers see.
type Answered struct {
	Entry    *harnessv1.Journal
	Appended []*harnessv1.Message
	Events   []*harnessv1.Event
}

// Surroundings are what an answer is judged by.
type Surroundings struct {
	// Tools that were offered, the harness's own included.
	Tools *tool.Set
	// Known says whether a call id is in the conversation already.
	Known func(id string) bool
	// Model is PROVIDER:NAME of the one that answered.
	Model string
	// Preparation of the request, and latency of the answer.
	Preparation, Latency *durationpb.Duration
}

// maxCalls bounds the calls that are taken from one response.
const maxCalls = 64

const (
	cutOff = "Your response was cut off by the length limit, so its tool calls were dropped and nothing of it ran. " +
		"Answer again in smaller pieces: fewer calls, or less content in each."
	duplicateComplete = "Recorded."
)

// Answer judges a model's answer: every call is run, asked for, answered by the
// harness, or answered with an error that says what is wrong. Whatever the
// model wrote is data; nothing here fails.
func Answer(s *harnessv1.Snapshot, p *Progress, r *model.Response, in Surroundings) Answered {
	message := &harnessv1.Message{
		Role:       harnessv1.Role_ROLE_ASSISTANT,
		Content:    runlog.Inline(strings.ToValidUTF8(r.Text, "\uFFFD")),
		TurnNumber: p.Number,
	}
	responded := &harnessv1.ModelResponded{
		Model: in.Model, Usage: r.Usage, FinishReason: r.FinishReason,
		Preparation: in.Preparation, Latency: in.Latency,
	}
	a := Answered{
		Entry:    &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: responded}},
		Appended: []*harnessv1.Message{message},
	}
	var after []*harnessv1.Event
	dropped := r.FinishReason == "length" && len(r.ToolCalls) > 0
	if dropped {
		a.Appended = append(a.Appended, &harnessv1.Message{
			Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
			Content: runlog.Inline(cutOff), TurnNumber: p.Number,
		})
	} else {
		seen := map[string]bool{}
		waiting := len(s.GetPendingToolCalls())
		taken := r.ToolCalls[:min(len(r.ToolCalls), maxCalls)]
		for i, c := range taken {
			call := &harnessv1.ToolCall{
				Id:        uniqueID(c.GetId(), p.Number, i, func(id string) bool { return seen[id] || in.Known(id) }),
				Name:      usableName(c.GetName()),
				Arguments: runlog.Inline(strings.ToValidUTF8(c.GetArguments().GetInline(), "\uFFFD")),
			}
			seen[call.Id] = true
			message.ToolCalls = append(message.ToolCalls, call)
			prepared := prepare(s, call, in.Tools)
			if runstate.KindOf(prepared.GetDisposition()) != "" {
				if waiting++; waiting > runstate.MaxPending {
					prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_INVALID
					prepared.Message = fmt.Sprintf("At most %d calls can wait at once; this one was not taken.", runstate.MaxPending)
				}
			}
			responded.Calls = append(responded.Calls, prepared)
			results, events := settle(s, p, call, prepared)
			prepared.Message = runlog.Cut(prepared.GetMessage(), runlog.MaxPreview) // whole in the result
			a.Appended = append(a.Appended, results...)
			after = append(after, events...)
		}
		if len(taken) < len(r.ToolCalls) {
			a.Appended = append(a.Appended, &harnessv1.Message{
				Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, TurnNumber: p.Number,
				Content: runlog.Inline(fmt.Sprintf("Your response had %d tool calls; only the first %d were taken. Make the others in later responses.", len(r.ToolCalls), maxCalls)),
			})
		}
	}
	a.Events = append(a.Events, event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{
		Model: in.Model, Usage: r.Usage, FinishReason: r.FinishReason,
		ToolCalls: uint32(len(message.ToolCalls)), //nolint:gosec // bounded by a response
		Latency:   in.Latency,
	}}}))
	a.Events = append(a.Events, after...)
	return a
}

// prepare decides what becomes of a call.
func prepare(s *harnessv1.Snapshot, call *harnessv1.ToolCall, tools *tool.Set) *harnessv1.PreparedCall {
	name := call.GetName()
	if name == taskComplete {
		name = WorkComplete
	}
	prepared := &harnessv1.PreparedCall{CallId: call.GetId(), Tool: call.GetName()}
	refuse := func(as harnessv1.CallDisposition, message string) *harnessv1.PreparedCall {
		prepared.Disposition, prepared.Message = as, message
		return prepared
	}
	spec := tools.Lookup(name)
	if spec == nil {
		message := fmt.Sprintf("There is no tool %q.", runlog.Cut(name, 64))
		if near := tools.Near(name); len(near) > 0 {
			message += " Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			message += " Use one of the tools that you are offered."
		}
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, message)
	}
	if err := tools.Validate(name, call.GetArguments().GetInline()); err != nil {
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_INVALID, err.Error())
	}
	prepared.Origin = spec.GetOrigin()
	switch {
	case name == AskUser && spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_QUESTION
		prepared.Message = question(call.GetArguments().GetInline())
		return prepared
	case spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		prepared.Disposition = harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS
		return prepared
	}
	prepared.ParallelSafe = spec.GetAnnotations().GetParallelSafe()
	prepared.Idempotent = spec.GetAnnotations().GetIdempotent()
	allowed := harnessv1.CallDisposition_CALL_DISPOSITION_RUN
	if spec.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT {
		allowed = harnessv1.CallDisposition_CALL_DISPOSITION_CLIENT
	}
	decision, why := tool.Decide(s.GetToolRules(), spec, s.GetGrantedTools(), s.GetConfig().GetTools().GetYolo())
	switch decision {
	case harnessv1.ToolDecision_TOOL_DECISION_DENY:
		return refuse(harnessv1.CallDisposition_CALL_DISPOSITION_DENIED, "This call is not allowed: "+why)
	case harnessv1.ToolDecision_TOOL_DECISION_ASK:
		prepared.Disposition, prepared.Message = harnessv1.CallDisposition_CALL_DISPOSITION_ASK, why
	default:
		prepared.Disposition = allowed
	}
	return prepared
}

// settle answers at once what needs no tool: refused calls and the harness's own.
func settle(s *harnessv1.Snapshot, p *Progress, call *harnessv1.ToolCall, prepared *harnessv1.PreparedCall) ([]*harnessv1.Message, []*harnessv1.Event) {
	id, name := call.GetId(), call.GetName()
	switch prepared.GetDisposition() {
	case harnessv1.CallDisposition_CALL_DISPOSITION_DENIED:
		return []*harnessv1.Message{result(p.Number, id, name, prepared.GetMessage(), true)},
			[]*harnessv1.Event{event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ToolDenied{ToolDenied: &harnessv1.ToolDenied{
				CallId: id, Tool: name, Reason: prepared.GetMessage(),
			}}})}
	case harnessv1.CallDisposition_CALL_DISPOSITION_INVALID:
		return []*harnessv1.Message{result(p.Number, id, name, prepared.GetMessage(), true)},
			[]*harnessv1.Event{called(s, p, id, name, call.GetArguments()), ended(s, p, id, name, true, nil)}
	case harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS:
		return []*harnessv1.Message{result(p.Number, id, name, duplicateComplete, false)},
			[]*harnessv1.Event{called(s, p, id, name, call.GetArguments()), ended(s, p, id, name, false, nil)}
	}
	if kind := runstate.KindOf(prepared.GetDisposition()); kind != "" {
		announced := called(s, p, id, name, call.GetArguments())
		announced.GetToolCall().Awaits = kind
		return nil, []*harnessv1.Event{announced}
	}
	return nil, nil
}

// maxName bounds the name of a tool that a model makes up; unnamed stands for none.
const (
	maxName = 128
	unnamed = "unnamed"
)

// usableName keeps a tool's name as the model wrote it, as far as it can be
// stored and sent back.
func usableName(name string) string {
	if name = runlog.Cut(strings.TrimSpace(name), maxName); name == "" {
		return unnamed
	}
	return name
}

// maxID bounds a call id.
const maxID = 64

// uniqueID keeps the provider's id where it is usable, and makes one where it
// is missing, too long or taken.
func uniqueID(id string, turn uint32, index int, taken func(string) bool) string {
	if usableID(id) && !taken(id) {
		return id
	}
	made := fmt.Sprintf("call_%d_%d", turn, index)
	for n := 0; taken(made); n++ {
		made = fmt.Sprintf("call_%d_%d_%d", turn, index, n)
	}
	return made
}

// usableID says whether an id can be stored, sent back and used as a key: up to
// maxID printable ASCII characters without space and slash.
func usableID(id string) bool {
	for _, r := range []byte(id) {
		if r <= ' ' || r > '~' || r == '/' {
			return false
		}
	}
	return id != "" && len(id) <= maxID
}

// summaryOf is what a response gave to work_complete; nil when it did not call it.
func summaryOf(m *harnessv1.Message, r *harnessv1.ModelResponded) *harnessv1.Content {
	for i, c := range r.GetCalls() {
		if c.GetDisposition() != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS || i >= len(m.GetToolCalls()) {
			continue
		}
		if c.GetTool() != WorkComplete && c.GetTool() != taskComplete {
			continue
		}
		var arguments struct {
			Summary string `json:"summary"`
		}
		if content := m.GetToolCalls()[i].GetArguments(); content.GetBlob() != nil {
			return proto.CloneOf(content) // the arguments as they are; the text is in them
		} else if json.Unmarshal([]byte(content.GetInline()), &arguments) != nil {
			return &harnessv1.Content{}
		}
		return runlog.Inline(arguments.Summary)
	}
	return nil
}
