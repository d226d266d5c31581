package gateway

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
)

// Submission brings an input to a run: it reads the run, admits the input, appends
// it to the inbox, and refuses an answer if another one came first. Repair
// re-validates every stored input, so that one that was admitted on a stale read
// does no harm. A refusal is final: before it is given, the leader confirms that
// nothing newer is stored.
//
// Start and Next are pure. A shell carries out the action that they return and
// feeds its result to Next, until the action is a Reply. Next is total: a result
// that cannot follow the pending action leads to a Reject.
type Submission struct {
	State SubmissionState
	// Item is the input. It is well-formed.
	Item *harnessv1.InboxItem
	// RunState is the state of the run that admitted the input, from SubmissionStoring on.
	RunState input.State

	sequence uint64 // of the stored item
	reply    Reply  // the reply, once confirmed or compared with earlier answers
}

// SubmissionState is the pending action of a Submission.
type SubmissionState uint8

// States of a Submission. SubmissionDone is final.
const (
	SubmissionReading    SubmissionState = iota // ReadRun
	SubmissionConfirming                        // Confirm
	SubmissionStoring                           // AppendInput
	SubmissionComparing                         // ReadInputs
	SubmissionDone
)

// SubmissionAction is the next action of a Submission.
type SubmissionAction interface{ submissionAction() }

// Actions of a Submission.
type (
	// ReadRun reads the run. RunRead or SubmissionFailed.
	ReadRun struct{}
	// Confirm asks the leader whether anything is stored that the last RunRead does
	// not show, and reads that. RunConfirmed, RunRead or SubmissionFailed.
	Confirm struct{}
	// AppendInput appends the input to the inbox, unless one with its id follows
	// After. InputStored or SubmissionFailed.
	AppendInput struct{ After uint64 }
	// ReadInputs reads the inbox in (After, UpTo]. InputsRead or SubmissionFailed.
	ReadInputs struct{ After, UpTo uint64 }
	// Reply ends the submission: with what became of the input, or why it is refused.
	Reply struct {
		Admission input.Admission
		Err       error
	}
	// Reject answers a result that cannot follow the pending action.
	Reject struct{ Result SubmissionResult }
)

func (ReadRun) submissionAction()     {}
func (Confirm) submissionAction()     {}
func (AppendInput) submissionAction() {}
func (ReadInputs) submissionAction()  {}
func (Reply) submissionAction()       {}
func (Reject) submissionAction()      {}

// SubmissionResult is the result of an action.
type SubmissionResult interface{ submissionResult() }

// Results of actions.
type (
	RunRead struct{ RunState input.State }
	// RunConfirmed: nothing newer is stored.
	RunConfirmed struct{}
	// InputStored: the input is in the inbox. Existed is true if it was there before.
	InputStored struct {
		Sequence uint64
		Existed  bool
	}
	// InputsRead are the items that were read, in order.
	InputsRead struct{ Items []*harnessv1.InboxItem }
	// SubmissionFailed: the action failed, or its result is unknown.
	SubmissionFailed struct{ Err error }
)

func (RunRead) submissionResult()          {}
func (RunConfirmed) submissionResult()     {}
func (InputStored) submissionResult()      {}
func (InputsRead) submissionResult()       {}
func (SubmissionFailed) submissionResult() {}

// Start returns the first action.
func (s Submission) Start() (Submission, SubmissionAction) {
	s.State = SubmissionReading
	return s, ReadRun{}
}

// Next returns the submission after the result of its pending action, and the next
// action.
func (s Submission) Next(r SubmissionResult) (Submission, SubmissionAction) {
	if s.State == SubmissionDone {
		return s, Reject{Result: r}
	}
	if failed, ok := r.(SubmissionFailed); ok {
		return s.end(Reply{Err: failed.Err})
	}
	switch s.State {
	case SubmissionReading, SubmissionConfirming:
		switch r := r.(type) {
		case RunRead:
			return s.admit(r.RunState)
		case RunConfirmed:
			if s.State == SubmissionConfirming {
				return s.end(s.reply)
			}
		}
	case SubmissionStoring:
		if r, ok := r.(InputStored); ok {
			return s.stored(r)
		}
	case SubmissionComparing:
		if r, ok := r.(InputsRead); ok {
			return s.compare(r.Items)
		}
	default: // done: every result is rejected
	}
	return s, Reject{Result: r}
}

func (s Submission) end(r Reply) (Submission, SubmissionAction) {
	return Submission{State: SubmissionDone, Item: s.Item}, r
}

func (s Submission) admit(state input.State) (Submission, SubmissionAction) {
	admission, err := input.Admit(state, s.Item)
	switch {
	case err != nil || admission == input.Unneeded:
		s.State, s.reply = SubmissionConfirming, Reply{Admission: admission, Err: err}
		return s, Confirm{}
	case admission == input.Store:
		s.State, s.RunState = SubmissionStoring, state
		return s, AppendInput{After: state.Step.GetSnapshot().GetInboxCursor()}
	}
	return s.end(Reply{Admission: admission})
}

// stored replies to the sender of an input, or compares an answer with those that
// other senders gave at the same time: the first in the inbox counts.
func (s Submission) stored(r InputStored) (Submission, SubmissionAction) {
	reply := Reply{Admission: input.Store}
	if r.Existed {
		reply.Admission = input.Existed
	}
	if call, _ := input.Answers(s.Item); call == "" {
		return s.end(reply)
	}
	s.State, s.sequence, s.reply = SubmissionComparing, r.Sequence, reply
	return s, ReadInputs{After: s.RunState.Step.GetSnapshot().GetInboxCursor(), UpTo: r.Sequence}
}

func (s Submission) compare(items []*harnessv1.InboxItem) (Submission, SubmissionAction) {
	call, approval := input.Answers(s.Item)
	earlier := slices.DeleteFunc(slices.Clone(items), func(i *harnessv1.InboxItem) bool { return i.GetSequence() >= s.sequence })
	if s.RunState.AnsweredBy(earlier, call, approval) {
		return s.end(Reply{Err: input.Answered(call)})
	}
	return s.end(s.reply)
}
