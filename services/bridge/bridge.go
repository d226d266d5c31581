// Package bridge decides what is committed of the answer of a custom executor that is
// called over gRPC (harness.v1.ExecutorService) and has no access to the run log.
//
// An empty answer passes the step on unchanged. An executor may also:
//
//   - append guidance: messages that the model reads before its next turn;
//   - change the fields of the snapshot that steer the agent (writableFields). The
//     record of the work, such as work items, coverage and answers, is not among them;
//   - after the turn, set whether the agent is done; before it, report a compaction;
//     at any place, end the turn with an error, which fails the run.
//
// Any other difference from its input is rejected with the name of the field: the inbox
// cursor, the fence, spent budgets, the definition of the run. The package is pure.
package bridge

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

const (
	// maxAppended bounds the messages of one answer.
	maxAppended = 16
	// maxText bounds the texts of these messages in total, in bytes.
	maxText = 64 << 10
	// guidanceKind is the kind of the guidance in guidance.injected.
	guidanceKind = "executor"
)

// CheckName returns an error if an executor cannot be called through a bridge. The
// error names the alternative.
func CheckName(name string) error {
	switch {
	case !runlog.Name.MatchString(name):
		return fmt.Errorf("invalid executor name %q: expected 1 to 64 letters, digits, - or _", name)
	case runlog.IsRest(name):
		return fmt.Errorf("%q is reserved for runs that are parked or ended; choose another name", name)
	case name == workflow.Turn || name == workflow.Repair || name == workflow.StopDecision:
		return fmt.Errorf("%s cannot be bridged, because a bridge cannot check the journal, the inbox or the end of a run: consume its subjects instead (examples/executor)", name)
	case workflow.IsRole(name) && name != workflow.Compaction:
		return fmt.Errorf("%q is a role, not an executor; choose another name", name)
	}
	return nil
}

// writableFields are the fields of the snapshot that the executor name may change.
// Compaction may also change the token budget and its plan.
func writableFields(name string) []protoreflect.Name {
	fields := []protoreflect.Name{"mode", "model", "fallback_models", "hooks"}
	if name == workflow.Compaction {
		fields = append(fields, "token_budget", "compaction_plan")
	}
	return fields
}

// maxWatermarks bounds the watermarks of a plan.
const maxWatermarks = 16

// checkPlan returns an error for a plan of compaction that no view can be made of. Summaries
// and their jobs are in blobs, which a bridge cannot store.
func checkPlan(name string, before, after *harnessv1.Snapshot) error {
	plan := after.GetCompactionPlan()
	if proto.Equal(plan, before.GetCompactionPlan()) {
		return nil
	}
	if r := plan.GetRenderer(); plan != nil && (r == 0 || r > view.Renderer) {
		return fmt.Errorf("%s set compaction_plan.renderer to %d: expected 1 to %d", name, r, view.Renderer)
	}
	if n := len(plan.GetWatermarks()); n > maxWatermarks {
		return fmt.Errorf("%s set %d watermarks, which exceeds the limit of %d", name, n, maxWatermarks)
	}
	for _, w := range plan.GetWatermarks() {
		if through, n := w.GetThroughMessage(), before.GetMessageCount(); through > n {
			return fmt.Errorf("%s set a watermark at message %d: the run has %d messages", name, through, n)
		}
	}
	had := before.GetCompactionPlan()
	if !proto.Equal(plan.GetSummary(), had.GetSummary()) || !proto.Equal(plan.GetReady(), had.GetReady()) ||
		!slices.EqualFunc(plan.GetJobs(), had.GetJobs(), func(a, b *harnessv1.SummaryJob) bool { return proto.Equal(a, b) }) {
		return fmt.Errorf("%s changed a summary or a job in compaction_plan: change only its watermarks and counts", name)
	}
	return nil
}

// PassOn returns the outcome of a step that its executor leaves unchanged.
func PassOn(name string, in *harnessv1.StepInput) *harnessv1.Outcome {
	return draft(name, in).Outcome()
}

// draft is the step passed on to the next executor.
func draft(name string, in *harnessv1.StepInput) *runstate.Draft {
	s := runstate.Clone(in.GetStep().GetSnapshot())
	d := runstate.NewStep(name, s, 0)
	d.Step.To, d.Step.Message = workflow.Next(s.GetWorkflow(), name), in.GetStep().GetMessage()
	return d
}

// Resolve returns the outcome to commit for the answer out of the executor name to a step.
// It changes neither in nor out. Its error is one line that names what is rejected.
func Resolve(name string, in *harnessv1.StepInput, out *harnessv1.StepOutput) (*harnessv1.Outcome, error) {
	if needs := out.GetNeeds(); needs != nil {
		return nil, fmt.Errorf("%s needs %s, but a bridge makes no observations: read it from the gateway or the tool host before answering",
			name, strings.Join(needs.GetKeys(), ", "))
	}
	if out.GetWait() != nil {
		return nil, fmt.Errorf("%s waits, but a bridge keeps no waits: return UNAVAILABLE to be called again after a second", name)
	}
	answer := out.GetOutcome()
	if len(answer.GetEvents()) > 0 {
		return nil, fmt.Errorf("%s returned events, which are derived from the outcome: leave events empty", name)
	}
	d := draft(name, in)
	if err := applyMessage(name, in.GetStep(), answer.GetStep(), d.Step); err != nil {
		return nil, err
	}
	if s := answer.GetStep().GetSnapshot(); s != nil {
		if err := checkSnapshot(name, in.GetStep().GetSnapshot(), s); err != nil {
			return nil, err
		}
		step := d.Step
		d = runstate.NewStep(name, runstate.Clone(s), 0)
		d.Step.To, d.Step.Message = step.GetTo(), step.GetMessage()
	}
	if len(answer.GetStep().GetPhaseChanges()) > 0 {
		return nil, fmt.Errorf("%s changed the phase, which only stock executors do: leave phase_changes empty", name)
	}
	if t := d.Step.GetTurnComplete(); t != nil {
		runstate.RecordDone(d.Step.GetSnapshot(), t.GetAgentDone())
	}
	if err := appendGuidance(name, d, answer.GetAppended()); err != nil {
		return nil, err
	}
	return d.Outcome(), nil
}

// applyMessage sets the addressee and the message of step from those of the answer.
func applyMessage(name string, in, answer, step *harnessv1.Step) error {
	if from := answer.GetFrom(); from != "" && from != name {
		return fmt.Errorf("%s answered in the name of %s: leave from empty", name, from)
	}
	if failure := answer.GetTurnComplete().GetError(); failure != nil {
		if to := answer.GetTo(); to != "" && to != workflow.StopDecision {
			return fmt.Errorf("%s sent an error to %s, expected %s: leave to empty", name, to, workflow.StopDecision)
		}
		// Other kinds of errors mean a cancelled run or an unavailable provider.
		step.To, step.Message = workflow.StopDecision, &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{
			TurnNumber: turnNumber(in),
			Error: &harnessv1.TurnError{
				Kind:    harnessv1.TurnErrorKind_TURN_ERROR_KIND_FAILED,
				Message: name + ": " + content.Line(failure.GetMessage(), content.MaxPreview),
			},
		}}
		return nil
	}
	if to, want := answer.GetTo(), step.GetTo(); to != "" && to != want {
		return fmt.Errorf("%s sent the step to %s, but %s follows it in the workflow: leave to empty", name, to, want)
	}
	if answer.GetMessage() == nil {
		return nil
	}
	if got := kind(answer); got != kind(in) && (kind(in) != "repair_complete" || got != "compaction_complete") {
		return fmt.Errorf("%s answered a %s with a %s, which %s does not accept: leave message empty to pass it on", name, kind(in), got, step.GetTo())
	}
	step.Message = answer.GetMessage()
	return checkTurn(name, in.GetTurnComplete(), step.GetTurnComplete())
}

// turnNumber returns the turn that a step belongs to.
func turnNumber(in *harnessv1.Step) uint32 {
	if t := in.GetTurnComplete(); t != nil {
		return t.GetTurnNumber()
	}
	return in.GetSnapshot().GetTurnCount()
}

// checkTurn returns an error if the answer changes how the turn ended.
func checkTurn(name string, before, after *harnessv1.TurnComplete) error {
	if before == nil || after == nil {
		return nil
	}
	allowed := proto.CloneOf(after)
	allowed.AgentDone = before.GetAgentDone()
	if !proto.Equal(allowed, before) {
		return fmt.Errorf("%s changed turn_complete: only agent_done may change", name)
	}
	return nil
}

// kind returns the name of the message in a step; empty without one.
func kind(step *harnessv1.Step) protoreflect.Name {
	m := step.ProtoReflect()
	if f := m.WhichOneof(m.Descriptor().Oneofs().ByName("message")); f != nil {
		return f.Name()
	}
	return ""
}

// checkSnapshot returns an error if the executor changed a field that it may not change.
func checkSnapshot(name string, before, after *harnessv1.Snapshot) error {
	b, a := before.ProtoReflect(), after.ProtoReflect()
	fields := b.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if slices.Contains(writableFields(name), f.Name()) || b.Has(f) == a.Has(f) && b.Get(f).Equal(a.Get(f)) {
			continue
		}
		return fmt.Errorf("%s changed snapshot.%s: only %s may change; return the other fields as received, or leave the snapshot out",
			name, f.Name(), list(writableFields(name)))
	}
	if err := checkPlan(name, before, after); err != nil {
		return err
	}
	if len(a.GetUnknown()) != len(b.GetUnknown()) {
		return fmt.Errorf("%s lost fields of the snapshot that its protos do not know: generate its stubs from the protos of this version, or leave the snapshot out", name)
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

// appendGuidance appends the messages of the answer, with their events.
func appendGuidance(name string, d *runstate.Draft, messages []*harnessv1.Message) error {
	if len(messages) > maxAppended {
		return fmt.Errorf("%s appended %d messages, which exceeds the limit of %d", name, len(messages), maxAppended)
	}
	d.Turn = d.Step.GetSnapshot().GetTurn().GetNumber()
	size := 0
	for i, m := range messages {
		text := m.GetContent().GetInline()
		size += len(text)
		switch {
		case text == "":
			return fmt.Errorf("%s: appended[%d] has no inline text", name, i)
		case m.GetRole() != harnessv1.Role_ROLE_UNSPECIFIED && m.GetRole() != harnessv1.Role_ROLE_USER,
			m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_UNSPECIFIED && m.GetKind() != harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE,
			len(m.GetToolCalls()) > 0 || m.GetToolCallId() != "":
			return fmt.Errorf("%s: appended[%d] is not guidance: expected text only, with role USER and kind GUIDANCE or neither", name, i)
		case size > maxText:
			return fmt.Errorf("%s appended more than %d bytes of text", name, maxText)
		}
		d.Append(&harnessv1.Message{
			Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: proto.CloneOf(m.GetContent()), Kept: m.GetKept(),
		})
		d.Emit(event.GuidanceInjected(guidanceKind, name, text))
	}
	return nil
}
