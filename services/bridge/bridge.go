// Package bridge decides what becomes of the answer of an executor that is called
// over gRPC (harness.v1.ExecutorService) and that is not trusted with the log.
//
// Such an executor says what it has to say; the bridge keeps the books. An empty
// answer passes the step on as it came. What an executor may do besides:
//
//   - append guidance: messages that the model is told before its next turn;
//   - change the parts of the snapshot that steer the agent: see free. What the run has
//     to show for itself is not among them: work items, coverage, answers;
//   - behind the turn, say that the agent is done or is not; before it, report what
//     it has compacted; anywhere, end the turn with an error, which fails the run visibly;
//
// Whatever else differs from what it was given is refused with the field's name: the
// cursor of the inbox, the fence, budgets that were used up, what the run is made of.
// Everything here is pure.
package bridge

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

const (
	// MaxAppended bounds the messages of one answer.
	MaxAppended = 16
	// MaxText bounds their texts together, in bytes.
	MaxText = 64 << 10
	// guidanceKind is the kind of the guidance in guidance.injected.
	guidanceKind = "executor"
)

// CheckName says whether an executor can be called through a bridge. The error says
// what else to do.
func CheckName(name string) error {
	switch {
	case !runlog.Name.MatchString(name):
		return fmt.Errorf("%q is no name of an executor: want letters, digits, - and _, at most 64", name)
	case runlog.IsRest(name):
		return fmt.Errorf("%s is a place where runs rest, no executor", name)
	case name == workflow.Turn || name == workflow.Repair || name == workflow.StopDecision:
		return fmt.Errorf("%s keeps books that a bridge cannot check (the journal, the inbox, how a run ends): consume its subjects instead (examples/executor)", name)
	case workflow.IsRole(name) && name != workflow.Compaction:
		return fmt.Errorf("%s is a role, no executor: choose another name", name)
	}
	return nil
}

// free are the fields of the snapshot that an executor may change; compaction also
// weighs the window.
func free(name string) []protoreflect.Name {
	fields := []protoreflect.Name{"mode", "model", "fallback_models", "hooks"}
	if name == workflow.Compaction {
		fields = append(fields, "token_budget")
	}
	return fields
}

// PassOn is the outcome of a step whose executor has nothing to say.
func PassOn(name string, in *harnessv1.StepInput) *harnessv1.Outcome {
	s := runstate.Clone(in.GetStep().GetSnapshot())
	return &harnessv1.Outcome{Step: &harnessv1.Step{
		From: name, To: workflow.Next(s.GetWorkflow(), name), Snapshot: s, Message: in.GetStep().GetMessage(),
	}}
}

// Resolve is what is committed of what the executor name made of a step. It changes
// neither. Its error is one line that names what was refused.
func Resolve(name string, in *harnessv1.StepInput, out *harnessv1.StepOutput) (*harnessv1.Outcome, error) {
	if needs := out.GetNeeds(); needs != nil {
		return nil, fmt.Errorf("%s needs %s, and a bridge observes nothing: read it from the gateway or the tool host before the answer",
			name, strings.Join(needs.GetKeys(), ", "))
	}
	said := out.GetOutcome()
	if len(said.GetEvents()) > 0 {
		return nil, fmt.Errorf("%s answered with events: what watchers see is derived from the outcome; leave events out", name)
	}
	outcome := PassOn(name, in)
	step := outcome.GetStep()
	if err := takeMessage(name, in.GetStep(), said.GetStep(), step); err != nil {
		return nil, err
	}
	if s := said.GetStep().GetSnapshot(); s != nil {
		if err := checkSnapshot(name, in.GetStep().GetSnapshot(), s); err != nil {
			return nil, err
		}
		step.Snapshot = runstate.Clone(s)
	}
	if len(said.GetStep().GetPhaseChanges()) > 0 {
		return nil, fmt.Errorf("%s changed the phase: only stock executors do; leave phase_changes out", name)
	}
	if t := step.GetTurnComplete(); t != nil && step.GetSnapshot().GetTurn() != nil {
		step.Snapshot.Turn.AgentDone = t.GetAgentDone() // what a stop decision that is taken again goes by
	}
	if err := takeAppended(name, outcome, said.GetAppended()); err != nil {
		return nil, err
	}
	return outcome, nil
}

// takeMessage settles whom the step goes to and with what.
func takeMessage(name string, in, said, step *harnessv1.Step) error {
	if from := said.GetFrom(); from != "" && from != name {
		return fmt.Errorf("%s answered in the name of %s: leave from empty", name, from)
	}
	if failure := said.GetTurnComplete().GetError(); failure != nil {
		if to := said.GetTo(); to != "" && to != workflow.StopDecision {
			return fmt.Errorf("%s sent an error to %s: it goes to %s", name, to, workflow.StopDecision)
		}
		// Other kinds mean that somebody cancelled, or that a provider is away.
		step.To, step.Message = workflow.StopDecision, &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
			TurnNumber: turnNumber(in),
			Error: &harnessv1.TurnError{
				Kind:    harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED,
				Message: name + ": " + content.Cut(failure.GetMessage(), content.MaxPreview),
			},
		}}
		return nil
	}
	if to, want := said.GetTo(), step.GetTo(); to != "" && to != want {
		return fmt.Errorf("%s sent the step to %s: the workflow goes on with %s; leave to empty", name, to, want)
	}
	if said.GetMessage() == nil {
		return nil
	}
	if got := kind(said); got != kind(in) && (kind(in) != "repair_complete" || got != "compaction_complete") {
		return fmt.Errorf("%s made a %s out of a %s, which %s does not take: leave message empty to pass it on", name, got, kind(in), step.GetTo())
	}
	step.Message = said.GetMessage()
	return checkTurn(name, in.GetTurnComplete(), step.GetTurnComplete())
}

// turnNumber is the turn that a step belongs to.
func turnNumber(in *harnessv1.Step) uint32 {
	if t := in.GetTurnComplete(); t != nil {
		return t.GetTurnNumber()
	}
	return in.GetSnapshot().GetTurnCount()
}

// checkTurn refuses to have a turn told otherwise than it went.
func checkTurn(name string, before, after *harnessv1.TurnComplete) error {
	if before == nil || after == nil {
		return nil
	}
	told := proto.CloneOf(after)
	told.AgentDone = before.GetAgentDone()
	if !proto.Equal(told, before) {
		return fmt.Errorf("%s changed turn_complete: only agent_done is its to change", name)
	}
	return nil
}

// kind is the name of the message in a step; empty without one.
func kind(step *harnessv1.Step) protoreflect.Name {
	m := step.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("message")); f != nil {
		return f.Name()
	}
	return ""
}

// checkSnapshot refuses changes that are not the executor's to make.
func checkSnapshot(name string, before, after *harnessv1.Snapshot) error {
	b, a := before.ProtoReflect(), after.ProtoReflect()
	fields := b.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if slices.Contains(free(name), f.Name()) || b.Has(f) == a.Has(f) && b.Get(f).Equal(a.Get(f)) {
			continue
		}
		return fmt.Errorf("%s changed snapshot.%s, which is not its to change: send the snapshot back as it came but for %s, or leave it out",
			name, f.Name(), list(free(name)))
	}
	if len(a.GetUnknown()) != len(b.GetUnknown()) {
		return fmt.Errorf("%s lost fields of the snapshot that its protos do not know: generate its stubs from this version's protos, or leave the snapshot out", name)
	}
	return nil
}

func list(names []protoreflect.Name) string {
	words := make([]string, len(names))
	for i, n := range names {
		words[i] = string(n)
	}
	return strings.Join(words, ", ")
}

// takeAppended adds guidance to the outcome, with its ids, its turn and its events.
func takeAppended(name string, outcome *harnessv1.Outcome, said []*harnessv1.Message) error {
	if len(said) > MaxAppended {
		return fmt.Errorf("%s appended %d messages, the limit is %d", name, len(said), MaxAppended)
	}
	s, size := outcome.GetStep().GetSnapshot(), 0
	for i, m := range said {
		text := m.GetContent().GetInline()
		size += len(text)
		switch {
		case text == "":
			return fmt.Errorf("%s: appended[%d] has no inline text", name, i)
		case m.GetRole() != harnessv1.Role_ROLE_UNSPECIFIED && m.GetRole() != harnessv1.Role_ROLE_USER,
			m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED && m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
			len(m.GetToolCalls()) > 0 || m.GetToolCallId() != "":
			return fmt.Errorf("%s: appended[%d] is not guidance: want role USER and kind GUIDANCE, or neither, and text only", name, i)
		case size > MaxText:
			return fmt.Errorf("%s appended more than %d bytes of text", name, MaxText)
		}
		turn := s.GetTurn().GetNumber()
		outcome.Appended = append(outcome.Appended, runstate.AppendMessages(s, turn, &harnessv1.Message{
			Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: proto.CloneOf(m.GetContent()), Kept: m.GetKept(),
		})...)
		outcome.Events = append(outcome.Events, runstate.Event(s, turn, &harnessv1.Event{
			Event: &harnessv1.Event_GuidanceInjected{GuidanceInjected: &harnessv1.GuidanceInjected{
				Kind: guidanceKind, RuleId: name, Text: content.Cut(text, content.MaxPreview),
			}},
		}))
	}
	return nil
}
