package turn

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
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
	// Blocked says whether a tool is there and the mode of work does not offer it;
	// nil: none is.
	Blocked func(name string) bool
	// Made is the definition of the run; nil: the state's own rules count.
	Made *agent.Definition
	// Deferred says that subscribers have to be asked before calls are judged.
	Deferred bool
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
		Content:    content.Inline(strings.ToValidUTF8(r.Text, "\uFFFD")),
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
	j := NewJudging(s, p, in)
	dropped := r.FinishReason == "length" && len(r.ToolCalls) > 0
	if dropped {
		a.Appended = append(a.Appended, guidance(p.Number, cutOff))
	} else {
		seen := map[string]bool{}
		taken := r.ToolCalls[:min(len(r.ToolCalls), maxCalls)]
		for i, c := range taken {
			call := &harnessv1.ToolCall{
				Id:        uniqueID(c.GetId(), p.Number, i, func(id string) bool { return seen[id] || in.Known(id) }),
				Name:      usableName(c.GetName()),
				Arguments: content.Inline(strings.ToValidUTF8(c.GetArguments().GetInline(), "\uFFFD")),
			}
			seen[call.Id] = true
			message.ToolCalls = append(message.ToolCalls, call)
			prepared := j.Prepare(call)
			if in.Deferred {
				responded.Calls = append(responded.Calls, bare(prepared))
			} else {
				j.Judge(call, prepared, hook.Result{})
			}
		}
		responded.Unjudged = in.Deferred && len(taken) > 0
		if !in.Deferred {
			responded.Calls, responded.WorkItems = j.calls, j.items
		}
		a.Appended = append(a.Appended, j.appended...)
		if len(taken) < len(r.ToolCalls) {
			a.Appended = append(a.Appended, guidance(p.Number,
				fmt.Sprintf("Your response had %d tool calls; only the first %d were taken. Make the others in later responses.", len(r.ToolCalls), maxCalls)))
		}
	}
	a.Events = append(a.Events, event(s, p, &harnessv1.Event{Event: &harnessv1.Event_ModelResponse{ModelResponse: &harnessv1.ModelResponse{
		Model: in.Model, Usage: r.Usage, FinishReason: r.FinishReason,
		ToolCalls: uint32(len(message.ToolCalls)), //nolint:gosec // bounded by a response
		Latency:   in.Latency,
	}}}))
	a.Events = append(a.Events, j.events...)
	return a
}

// bare is a call that nothing was decided of.
func bare(c *harnessv1.PreparedCall) *harnessv1.PreparedCall {
	return &harnessv1.PreparedCall{CallId: c.GetCallId(), Tool: c.GetTool()}
}

// maxName bounds the name of a tool that a model makes up; unnamed stands for none.
const (
	maxName = 128
	unnamed = "unnamed"
)

// usableName keeps a tool's name as the model wrote it, as far as it can be
// stored and sent back.
func usableName(name string) string {
	if name = content.Cut(strings.TrimSpace(name), maxName); name == "" {
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
	return id != "" && len(id) <= maxID && !runstate.IsReservedCallID(id)
}

// summaryOf is what a response gave to work_complete; nil when it did not call it.
func summaryOf(m *harnessv1.Message, calls []*harnessv1.PreparedCall) *harnessv1.Content {
	for i, c := range calls {
		if c.GetDisposition() != harnessv1.CallDisposition_CALL_DISPOSITION_HARNESS || i >= len(m.GetToolCalls()) {
			continue
		}
		if c.GetTool() != WorkComplete && c.GetTool() != taskComplete {
			continue
		}
		var arguments struct {
			Summary string `json:"summary"`
		}
		given := m.GetToolCalls()[i].GetArguments()
		if c.GetArguments() != nil {
			given = c.GetArguments()
		}
		if given.GetBlob() != nil {
			return proto.CloneOf(given) // the arguments as they are; the text is in them
		} else if json.Unmarshal([]byte(given.GetInline()), &arguments) != nil {
			return &harnessv1.Content{}
		}
		return content.Inline(arguments.Summary)
	}
	return nil
}
