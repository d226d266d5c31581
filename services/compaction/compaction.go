// Package compaction decides before a turn how full the model's window is, and which messages the
// view of the conversation leaves out to make room.
//
// # Estimate
//
// The window holds the tokens that the provider reported for the last request, plus those appended
// since, less those that a change of the plan has taken away since. A text has at most one token
// a byte, so the decision reads the index of the conversation only if the bytes could reach
// the soft threshold, and asks for exact weights only of messages that have none.
//
// # Passes
//
// A pass changes the plan (ladder.go): it clears, externalizes, summarizes and drops, in
// this order and oldest first, until the target is reached. Each pass breaks the provider's
// cached prefix, so at soft pressure it happens only if it is worth it. The recent part is
// left alone (recent.go). At blocking pressure the run waits for a summary (summary.go);
// if that does not help, results are cleared directly, those of the recent part included,
// and at last the results of the last turn are shortened (direct.go). If nothing is left
// to free the turn ends with the error context_exhausted.
//
// # Summaries
//
// A summary is a job of an inference worker. Its key names the run, the span, the summary
// that it merges and the summarizer, so a result can never be used for another span. The
// decision creates and reads jobs through observations.
//
// The package is pure: the same step, index and observations give the same output.
package compaction

import (
	"errors"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// Name of the executor.
const Name = workflow.Compaction

// Keys of observations.
const (
	// KeyTokens is the exact number of tokens of the messages after
	// token_budget.reported_messages. Only runs without compaction need it.
	KeyTokens = "tokens"
	// KeyConversation is the index of the conversation, which is passed to Decide.
	KeyConversation = "conversation"
	// KeyWeights are the weights of all messages that have none.
	KeyWeights = "weights"
	// KeyInference is whether a worker makes summaries.
	KeyInference = "inference"
	// KeyArrived is whether the inbox has items that were not drained.
	KeyArrived = "arrived"
	// KeySummary precedes the key of a job: how far its summary is.
	KeySummary = "summary:"
	// KeyRequest precedes a request for a summary, as MarshalRequest writes it: its job
	// was created.
	KeyRequest = "request:"
)

// decision is the state of one decision.
type decision struct {
	*runstate.Draft
	in       *harnessv1.StepInput
	s        *harnessv1.Snapshot
	b        *harnessv1.TokenBudget
	cfg      *harnessv1.ContextConfig
	x        *view.Index
	repaired *harnessv1.RepairComplete

	level   harnessv1.PressureLevel
	changes []*harnessv1.CompactionChange
	urgent  bool   // without a summary the turn fails
	problem string // why a summary could not be made or used, until an event has said it
}

// needsError asks for observations.
type needsError struct{ keys []string }

// Error names the keys.
func (e *needsError) Error() string { return "needs " + strings.Join(e.keys, ", ") }

func needs(keys ...string) error { return &needsError{keys} }

// waitError asks to decide again later.
type waitError struct{ wait *harnessv1.Wait }

// Error names what is waited for.
func (e *waitError) Error() string { return "waits for " + strings.Join(e.wait.GetKeys(), ", ") }

// Decide returns the outcome of a step with a RepairComplete, what it needs to know
// first, or what it waits for. x is the index of the conversation of the step, nil if it
// was not read; the observed weights are added to it.
func Decide(in *harnessv1.StepInput, x *view.Index) (*harnessv1.StepOutput, error) {
	repaired := in.GetStep().GetRepairComplete()
	if repaired == nil {
		return nil, errors.New("compaction: the step has no repair_complete")
	}
	if in.GetStep().GetSnapshot() == nil {
		return nil, errors.New("compaction: the step has no snapshot")
	}
	s := runstate.Clone(in.GetStep().GetSnapshot())
	d := &decision{
		Draft: runstate.NewStep(Name, s, s.GetTurnCount()), in: in, s: s, b: runstate.OwnBudget(s), cfg: s.GetConfig().GetContext(), x: x, repaired: repaired,
	}
	d.Step.To, d.Step.Observed = workflow.Next(s.GetWorkflow(), Name), in.GetObserved()
	d.Step.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{Repair: repaired}}
	err := d.decide()
	var lacking *needsError
	var waiting *waitError
	switch {
	case errors.As(err, &lacking):
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: lacking.keys}}}, nil
	case errors.As(err, &waiting):
		return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Wait{Wait: waiting.wait}}, nil
	case err != nil:
		return nil, err
	}
	return d.Output(), nil
}

// decide estimates how full the window is and makes room where that is due.
func (d *decision) decide() error {
	before := d.b.GetUsedTokens()
	d.setThresholds()
	if !d.cfg.GetCompaction() {
		return d.estimateOnly(before)
	}
	if err := d.readJobs(); err != nil {
		return err
	}
	if err := d.estimate(); err != nil {
		return err
	}
	d.level = d.pressure()
	if d.level == none {
		d.s.CompactionPlan = withoutWait(d.s.GetCompactionPlan())
	}
	if d.b.GetUsedTokens() != before {
		d.emitUsage()
	}
	if d.level != none {
		d.Emit(event.ContextPressure(levelName(d.level), d.b.GetUsedTokens(), d.b.GetMaxInputTokens()))
		if err := d.makeRoom(); err != nil {
			return err
		}
	}
	d.emitProblem()
	if c := d.Step.GetCompactionComplete(); c != nil {
		c.Pressure, c.Changes = d.pressureNow(), d.changes
		for _, change := range d.changes {
			c.FreedTokens += change.GetFreedTokens()
		}
	}
	if len(d.changes) > 0 {
		d.emitUsage()
	}
	return nil
}

// estimateOnly is the decision of a run without compaction.
func (d *decision) estimateOnly(before uint32) error {
	used, ok := roughEstimate(d.s, observedTokens(d.in.GetObserved()))
	if !ok {
		return needs(KeyTokens)
	}
	d.b.UsedTokens = used
	if used != before {
		d.emitUsage()
	}
	d.level = d.pressureNow()
	if d.level != none {
		d.Emit(event.ContextPressure(levelName(d.level), used, d.b.GetMaxInputTokens()))
	}
	d.Step.GetCompactionComplete().Pressure = d.level
	return nil
}

// Short names of the levels.
const (
	none     = harnessv1.PressureLevel_PRESSURE_LEVEL_UNSPECIFIED
	soft     = harnessv1.PressureLevel_PRESSURE_LEVEL_SOFT
	blocking = harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING
)

// levelName is the name of a level in events.
func levelName(l harnessv1.PressureLevel) string {
	if l == blocking {
		return "blocking"
	}
	return "soft"
}

// setThresholds sets the thresholds in tokens: ⌊share · budget⌋. The window that a refusal of
// the model in use has named bounds them, and that of a fallback model if the request has
// just been too long for it.
func (d *decision) setThresholds() {
	limit := d.cfg.GetMaxInputTokens()
	if w := d.b.GetWindowTokens(); w > 0 && (d.b.GetExceeded() || d.b.GetFactorModel() == d.s.GetModel()) {
		limit = min(limit, w)
	}
	d.b.MaxInputTokens = limit
	budget := float64(d.budget())
	d.b.SoftTokens = uint32(d.cfg.GetSoftThreshold() * budget)
	d.b.BlockingTokens = uint32(d.cfg.GetBlockingThreshold() * budget)
}

// reserveShare is the share of the window that the rehydration reserve takes at most, as a divisor: the default is meant
// for windows of models.
const reserveShare = 4

// budget returns the tokens of the window that the shares of it are taken of. While externalised content exists, room is
// kept to read some of it back.
func (d *decision) budget() uint32 {
	limit := d.b.GetMaxInputTokens()
	if d.s.GetCompactionPlan().GetExternalized() == 0 {
		return limit
	}
	return limit - min(d.cfg.GetRehydrationReserve(), limit/reserveShare)
}

// pressure returns the threshold that the window has reached. A request that was refused as
// too long is at blocking pressure, and so are more images and documents than a request has
// room for.
func (d *decision) pressure() harnessv1.PressureLevel {
	if d.b.GetExceeded() {
		return blocking
	}
	if d.x != nil && shownMedia(d.x, view.NewRules(d.s.GetCompactionPlan(), d.x)).Exceeds(media.RequestRoom) {
		return blocking
	}
	return d.pressureNow()
}

// pressureNow returns the threshold that the estimate has reached.
func (d *decision) pressureNow() harnessv1.PressureLevel {
	switch {
	case d.b.GetUsedTokens() >= d.b.GetBlockingTokens():
		return blocking
	case d.b.GetUsedTokens() >= d.b.GetSoftTokens():
		return soft
	}
	return none
}

// emitUsage reports how full the window is.
func (d *decision) emitUsage() {
	plan := d.s.GetCompactionPlan()
	d.Emit(event.ContextUsage(&harnessv1.ContextUsage{
		UsedTokens: d.b.GetUsedTokens(), MaxInputTokens: d.b.GetMaxInputTokens(),
		Cleared: plan.GetCleared(), Externalized: plan.GetExternalized(), Summarized: plan.GetSummarized(), Dropped: plan.GetDropped(),
	}))
}

// count counts the messages that a plan does something to.
func count(plan *harnessv1.CompactionPlan, x *view.Index) {
	rules := view.NewRules(plan, x)
	plan.Cleared, plan.Externalized, plan.Summarized, plan.Dropped = 0, 0, 0, 0
	for i := range x.Entries {
		switch action, _ := rules.Action(&x.Entries[i]); action {
		case clearing:
			plan.Cleared++
		case externalize, shorten:
			plan.Externalized++
		case summarize:
			plan.Summarized++
		case drop:
			plan.Dropped++
		default: // it is shown
		}
	}
}

// observed returns the observation with a key; nil if there is none.
func (d *decision) observed(key string) *harnessv1.Observation {
	for _, o := range d.in.GetObserved() {
		if o.GetKey() == key {
			return o
		}
	}
	return nil
}
