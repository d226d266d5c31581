// Package repair decides what repair does with a RepairTrigger: initialise the
// run once, take in the run's inbox, answer calls that got no result, and hand
// the run on, park it or fail it. It also holds the machines that wake parked
// runs (Wake), turn fired timers into inbox items (Timer) and recover steps that
// were lost (Sweep).
//
// # Invariants
//
//   - Only repair takes items out of the inbox, in order. The cursor moves past
//     every item that the decision read, refused ones included, in the same
//     record as their effects.
//   - An item or an answer has one effect, however often it is sent.
//   - Repairing a repaired run changes nothing.
//
// Decide is a pure function of the step, the definition of the run, its conversation and
// the observations. It asks for NeedInbox, for the first trigger also for NeedEnvironment
// and for NeedContext of each context provider, for the verdicts of hooks, after a
// compaction for NeedConversation if there are answers, for runstate.KeyBackground if it
// parks a run that has background commands, and for what calls wait for (waitKey). An observation that is missing is
// requested, not an error.
package repair

import (
	"errors"
	"slices"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Repair

// Keys of the observations that Decide may ask for.
const (
	NeedInbox       = "inbox"
	NeedEnvironment = "environment"
	// NeedFolder is the environment with nothing but the folder, when a message comes to the run.
	NeedFolder  = "folder"
	NeedContext = "context:" // followed by the name of a context provider
	NeedText    = "text:"    // followed by the digest of a blob of the run
	// NeedConversation is the conversation of the run, which is passed to DecideWith.
	NeedConversation = "conversation"
	// NeedParent is the parent of a child that starts.
	NeedParent = "parent"
	// NeedProfile is the profile of a segment that starts and is judged.
	NeedProfile = "profile"
	// NeedFeedback is followed by the id of an inbox item: its feedback is stored in the profile.
	NeedFeedback = "feedback:"
	// NeedMcp are the servers of the run and their tools, before each turn of a run with servers.
	NeedMcp = "mcp"
	// NeedWorktree is the worktree of a child that starts in one.
	NeedWorktree = "worktree"
)

// decision is one call of DecideWith. Its draft becomes the outcome.
type decision struct {
	*runstate.Draft
	in      *harnessv1.StepInput
	made    *agent.Definition
	now     time.Time
	trigger *harnessv1.RepairTrigger
	s       *harnessv1.Snapshot // of the draft's step

	item   string // id of the inbox item that is applied
	caller string // the sender of the item, or the starter of the run
	// noApprovals: the sender may not approve calls.
	noApprovals bool
	interrupt   *harnessv1.Interrupt // taken in, and no later input has cleared it
	cancel      *harnessv1.Cancel
	// interrupter and canceller have sent interrupt and cancel.
	interrupter, canceller string
	// halted: the parent wants the run idle.
	halted bool
	// ordered: resumed is by an order of the parent.
	ordered bool
	// refused: the parent gives no further runs, and calls for which none is left get an error.
	refused bool

	resumed string // the cause that resumes a parked run; empty while it stays parked
	applied uint32 // items that had an effect
	repairs uint32 // calls that repair answered
	// released are the keys of calls that have an error as their result, and are in flight at tool
	// hosts, which have to cancel them.
	released []string

	outcomes *runstate.Outcomes   // judges answers from outside
	notes    []hook.Note          // what hooks tell the model
	verdicts int                  // events of hooks so far
	failure  *harnessv1.TurnError // why the run cannot continue

	questionAnswered bool      // the user answered a question of the contract
	drafts           int       // of the plan that is being made
	goal             string    // of the segment, up to maxPlan bytes
	work             *workPlan // of the segment; nil if it is not judged
	sawServers       bool      // how the servers are was taken in
	serverTools      uint32    // tokens of all their tools, at the start
}

// Decide is DecideWith for a step that carries the definition of its run.
func Decide(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
	made, err := agent.FromStep(in.GetStep())
	if err != nil {
		return nil, err
	}
	return DecideWith(in, made, nil)
}

// DecideWith maps a step with a RepairTrigger to its outcome, or to the
// observations that it needs first. made is the definition of the run. c is its
// conversation up to the step, nil if it was not read; without it an answer from outside is
// compared with the last calls only. An error means that the input is not one that repair
// can receive.
func DecideWith(in *harnessv1.StepInput, made *agent.Definition, c *conversation.Conversation) (*harnessv1.StepOutput, error) {
	trigger, before := in.GetStep().GetRepairTrigger(), in.GetStep().GetSnapshot()
	if trigger == nil {
		return nil, errors.New("repair: step.repair_trigger is missing")
	}
	if before == nil {
		return nil, errors.New("repair: step.snapshot is missing")
	}
	if needed := missing(in, trigger); len(needed.Keys) > 0 {
		return needed.Output(), nil
	}
	s := runstate.Clone(before)
	d := &decision{
		Draft:   runstate.NewStep(Name, s, presentTurn(s)),
		in:      in,
		made:    made,
		now:     in.GetNow().AsTime(),
		trigger: trigger,
		s:       s,

		outcomes: runstate.NewOutcomes(before, c, view.Shows(c, before.GetCompactionPlan())),
	}
	d.Step.Observed = in.GetObserved()
	if err := d.decide(); err != nil {
		if out := output(err); out != nil {
			return out, nil
		}
		return nil, err
	}
	return d.Output(), nil
}

// missing returns the observations without which nothing can be decided.
func missing(in *harnessv1.StepInput, trigger *harnessv1.RepairTrigger) *agent.NeedsError {
	keys := []string{NeedInbox}
	if starts(trigger) {
		keys = append(keys, NeedEnvironment)
		for _, p := range trigger.GetSpec().GetAgent().GetContextProviders() {
			if p.GetGrpc() != "" {
				keys = append(keys, NeedContext+p.GetName())
			}
		}
	}
	if starts(trigger) && trigger.GetParent() != nil {
		keys = append(keys, NeedParent)
	}
	if starts(trigger) && len(trigger.GetSpec().GetAgent().GetMcp()) > 0 {
		keys = append(keys, NeedMcp)
	}
	if starts(trigger) && trigger.GetParent().GetWorktree() {
		keys = append(keys, NeedWorktree)
	}
	if comparesAnswers(in) {
		keys = append(keys, NeedConversation)
	}
	needed := &agent.NeedsError{}
	for _, key := range keys {
		if agent.Observation(in, key) == nil {
			needed.Keys = append(needed.Keys, key)
		}
	}
	return needed
}

// comparesAnswers reports whether the inbox has answers that may repeat a result which
// compaction has taken out of the view: only the conversation shows that.
func comparesAnswers(in *harnessv1.StepInput) bool {
	s := in.GetStep().GetSnapshot()
	if !s.GetConfig().GetStall().GetEnabled() || !view.Changes(s.GetCompactionPlan()) {
		return false
	}
	return slices.ContainsFunc(agent.Observation(in, NeedInbox).GetInbox().GetItems(), func(i *harnessv1.InboxItem) bool {
		return i.GetToolAnswer() != nil || i.GetApproval() != nil
	})
}

// starts reports whether a trigger is the first of a run.
func starts(t *harnessv1.RepairTrigger) bool {
	return t.GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_START
}

// presentTurn returns the open turn of s, or the one that ended last.
func presentTurn(s *harnessv1.Snapshot) uint32 {
	if s.GetTurn().GetOpen() {
		return s.GetTurn().GetNumber()
	}
	return s.GetTurnCount()
}

func (d *decision) decide() error {
	tree.Sent(d.s) // with the step, before it is decided
	if starts(d.trigger) {
		if err := d.initialise(agent.Observation(d.in, NeedEnvironment).GetEnvironment()); err != nil {
			return err
		}
	}
	if starts(d.trigger) {
		d.seeParent(agent.Observation(d.in, NeedParent).GetParent())
	}
	if err := d.drain(agent.Observation(d.in, NeedInbox).GetInbox()); err != nil {
		return err
	}
	tree.Inherit(d.s)
	if err := d.seeFolder(); err != nil {
		return err
	}
	if d.resumed == causeMessage && d.interrupt == nil && d.cancel == nil {
		if err := d.endWaits(); err != nil {
			return err
		}
	}
	if err := d.route(); err != nil {
		return err
	}
	d.GuideNotes(d.notes) // the last messages of the record
	return nil
}

// fail hands the run to the stop decision, which alone ends runs. The first
// reason counts.
func (d *decision) fail(kind harnessv1.TurnErrorKind, message string) {
	if d.failure == nil {
		d.failure = &harnessv1.TurnError{Kind: kind, Message: message}
	}
}
