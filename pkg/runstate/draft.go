package runstate

import (
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Draft is the record that a decision wants stored: exactly one of Step and
// Entry, with the messages that it adds to the conversation and the events that
// observers see. NewStep and NewEntry make one; a decision fills it through its
// methods and sets the addressee and the message of the step itself.
type Draft struct {
	// Step is the hand-off to the next executor; nil in a draft of an entry.
	Step *harnessv1.Step
	// Entry is the journal entry; nil in a draft of a step.
	Entry *harnessv1.Journal
	// Appended are the messages, in order.
	Appended []*harnessv1.Message
	// Events are the events, in order.
	Events []*harnessv1.Event
	// Turn is the turn that events and messages belong to; 0 before the first.
	Turn uint32

	state *harnessv1.Snapshot
}

// NewStep returns the draft of a step that the executor from hands on. s becomes
// the snapshot of the step; the draft changes it.
func NewStep(from string, s *harnessv1.Snapshot, turn uint32) *Draft {
	return &Draft{Step: &harnessv1.Step{From: from, Snapshot: s}, Turn: turn, state: s}
}

// NewEntry returns the draft of a journal entry. s is the snapshot of the step
// that the entry follows; the draft does not change it.
func NewEntry(entry *harnessv1.Journal, s *harnessv1.Snapshot, turn uint32) *Draft {
	return &Draft{Entry: entry, Turn: turn, state: s}
}

// Emit adds events of the draft's turn. It changes them.
func (d *Draft) Emit(events ...*harnessv1.Event) {
	for _, e := range events {
		d.Events = append(d.Events, Event(d.state, d.Turn, e))
	}
}

// Append adds messages of the draft's turn to the conversation. It changes them.
func (d *Draft) Append(messages ...*harnessv1.Message) { d.AppendTo(d.Turn, messages...) }

// AppendTo adds messages of another turn than the draft's, such as the result of
// an earlier call. In a step they are numbered and counted against the window;
// those of an entry are numbered when it is stored.
func (d *Draft) AppendTo(turn uint32, messages ...*harnessv1.Message) {
	if d.Step != nil {
		AppendMessages(d.state, turn, messages...)
	}
	for _, m := range messages {
		m.TurnNumber = turn
	}
	d.Appended = append(d.Appended, messages...)
}

// Guide appends guidance in the user's place, and emits the event that reports it.
// rule is the rule, hook or executor that text comes from, else empty.
func (d *Draft) Guide(kind, rule, text string) { d.GuideOn("", kind, rule, text) }

// GuideOn is Guide with a topic, on which later guidance replaces this one. It returns the
// message.
func (d *Draft) GuideOn(topic, kind, rule, text string) *harnessv1.Message {
	m := GuidanceMessage(text)
	m.Topic = d.Topic(topic)
	d.Append(m)
	d.Emit(event.GuidanceInjected(kind, rule, text))
	return m
}

// Marks reports whether messages of the run are marked for compaction.
func (d *Draft) Marks() bool { return mark.On(d.state.GetConfig()) }

// Topic returns the topic that a message gets: none in a run without compaction.
func (d *Draft) Topic(topic string) string {
	if !d.Marks() {
		return ""
	}
	return topic
}

// GuideNotes appends what hooks tell the model as guidance.
func (d *Draft) GuideNotes(notes []hook.Note) {
	for _, n := range notes {
		d.Guide("hook", n.HookID, n.Text)
	}
}

// Apply adds what hooks did: their events, and then their notes. In a step it
// also records what they want of the rest of the loop; the caller of a draft of
// an entry stores e.Wants in the entry.
func (d *Draft) Apply(e hook.Effects) {
	d.Emit(e.Events...)
	if d.Step != nil {
		RecordWants(d.state, e.Wants())
	}
	d.GuideNotes(e.Notes)
}

// Enter changes the phase of a step. Its error is an *IllegalTransition.
func (d *Draft) Enter(input harnessv1.PhaseInput) error { return ChangePhase(d.Step, d.state, input) }

// Outcome returns the draft of a step as an executor returns it.
func (d *Draft) Outcome() *harnessv1.Outcome {
	return &harnessv1.Outcome{Step: d.Step, Appended: d.Appended, Events: d.Events}
}

// Output returns the draft of a step as a decision returns it.
func (d *Draft) Output() *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: d.Outcome()}}
}
