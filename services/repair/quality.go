package repair

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// workPlan has the complexity, kind and plan of a segment's work before it begins.
type workPlan struct {
	state      *harnessv1.QualityState
	complexity *harnessv1.QualityComplexity
	kind       quality.Kind
	plan       *harnessv1.PlanCandidate // nil unless the work is complex
	score      quality.PlanScore
	candidates int
	planReason string // why no model made the plan
	usage      []*harnessv1.Usage
	problem    string // why the profile could not be read
	texts      quality.Texts
}

// classify finds out what kind of work a goal is, how complex it is, and, for complex work, how to
// do it. It returns nil if the work is not judged. Its error asks for observations, or for time.
func (d *decision) classify(goal string, segment uint32, own []*harnessv1.WorkKind) (*workPlan, error) {
	s := d.s
	if !s.GetConfig().GetQuality().GetEnabled() {
		return nil, nil //nolint:nilnil // nothing is judged
	}
	task := s.GetTask()
	sources := len(task.GetSources())
	requests := []*harnessv1.JobRequest{quality.ClassifyJob(goal, task.GetSources())}
	requests[0].Purpose = quality.PurposeClassify
	if task.GetKind() == "" {
		intent := quality.IntentJob(goal, own, sources)
		intent.Purpose = quality.PurposeIntent
		requests = append(requests, intent)
	}
	w := &workPlan{}
	key, profile, err := d.profile()
	if err != nil {
		return nil, err
	}
	w.problem, w.texts = profile.GetProblem(), profile.GetPrompts()
	states, err := d.ask(w, segment, requests)
	if err != nil {
		return nil, err
	}
	w.complexity, err = quality.ParseComplexity(states[0].GetText(), sources)
	if why := firstOf(states[0].GetError(), err); why != "" {
		w.complexity = quality.FallbackComplexity(goal, sources, why)
	}
	name, confidence := task.GetKind(), 1.0
	if name == "" {
		name, confidence, err = quality.ParseIntent(states[1].GetText(), quality.Names(own))
		if why := firstOf(states[1].GetError(), err); why != "" {
			w.complexity.KindReason = quality.FallbackReason(why)
		}
	}
	w.kind = quality.KindOf(name, own, sources)
	w.texts = quality.TextsOf(w.kind, w.texts)
	w.complexity.WorkflowType, w.complexity.Confidence = w.kind.GetName(), confidence
	if w.complexity.GetLevel() == quality.Complex {
		if err := d.choosePlan(w, goal, segment); err != nil {
			return nil, err
		}
	}
	w.state = &harnessv1.QualityState{
		Kind: w.kind.GetName(), Level: w.complexity.GetLevel(), Expected: w.complexity.GetExpected(),
		Multiplier: quality.Multiplier(profile), Attempt: 1, Iteration: 1, StartTime: timestamppb.New(d.now), Profile: key,
	}
	return w, nil
}

// choosePlan asks for plans and chooses one of them.
func (d *decision) choosePlan(w *workPlan, goal string, segment uint32) error {
	request := quality.PlanJob(goal, w.kind, w.complexity, d.s.GetTask().GetSources())
	request.Purpose = quality.PurposePlan
	states, err := d.ask(w, segment, []*harnessv1.JobRequest{request})
	if err != nil {
		return err
	}
	plans := quality.ParsePlans(states[0].GetText())
	switch {
	case states[0].GetError() != "":
		w.planReason = quality.FallbackReason(states[0].GetError())
	case len(plans) == 0:
		w.planReason = quality.FallbackReason("the answer has no plan")
	}
	insights := 0
	for _, a := range d.s.GetWorkItemLedger().GetArtifacts() {
		if a.GetKind() == quality.Insight {
			insights++
		}
	}
	w.plan, w.score = quality.ChoosePlan(plans, quality.Ground{
		Kind: w.kind.GetName(), OwnKind: !w.kind.BuiltIn, Sources: len(d.s.GetTask().GetSources()), Insights: insights, Query: goal,
	})
	w.candidates = max(len(plans), 1)
	return nil
}

// ask returns how jobs ended. No job is created while an interrupt or a cancel waits, or
// when a budget is used up: the decision then has its fallbacks.
func (d *decision) ask(w *workPlan, segment uint32, requests []*harnessv1.JobRequest) ([]*harnessv1.JobState, error) {
	if why := d.asksNothing(); why != "" {
		states := make([]*harnessv1.JobState, len(requests))
		for i := range states {
			states[i] = &harnessv1.JobState{Ended: true, Error: why}
		}
		return states, nil
	}
	for _, r := range requests {
		w.texts.Use(r)
		quality.Configure(r, d.s.GetConfig().GetQuality())
		r.Key = quality.JobKey(d.s.GetFirstSequence(), segment, 0, r.GetPurpose(), r)
	}
	states, err := agent.Jobs(d.in, requests)
	for _, state := range states {
		w.usage = append(w.usage, state.GetUsage())
	}
	return states, err
}

// asksNothing returns why no model is called; empty if one may be.
func (d *decision) asksNothing() string {
	for _, item := range agent.Observation(d.in, NeedInbox).GetInbox().GetItems() {
		if item.GetInterrupt() != nil || item.GetCancel() != nil {
			return "the run was stopped before it was classified"
		}
	}
	if runstate.ExceededBudget(d.s, d.now) != nil {
		return "a budget of the run is used up"
	}
	return ""
}

// firstOf returns the first reason that is not empty.
func firstOf(why string, err error) string {
	if why == "" && err != nil {
		return err.Error()
	}
	return why
}

// recordWork stores the complexity, kind and plan of the segment's work, and reports them.
func (d *decision) recordWork(w *workPlan) {
	if saved := d.s.GetWorkItemLedger(); len(saved.GetAttempts()) > 0 { // of the segment before
		runstate.OwnLedger(d.s).Attempts = nil
	}
	if w == nil {
		d.s.Quality = nil
		return
	}
	w.state.AttemptFirstMessage = d.s.GetMessageCount() + 1
	w.state.CostBeforeMicroUsd = int64(d.s.GetSpent().GetUsage().GetCostMicroUsd()) //nolint:gosec // far below
	w.state.Usage = &harnessv1.Usage{}
	for _, u := range w.usage {
		runstate.AddTokens(d.s, u)
		runstate.SumUsage(w.state.Usage, u)
	}
	d.s.Quality = w.state
	if len(d.s.GetWorkItemLedger().GetArtifacts()) > 0 {
		for _, a := range runstate.OwnLedger(d.s).GetArtifacts() {
			a.Earlier = true
		}
	}
	if w.problem != "" {
		profile := quality.ProfileOf(nil)
		profile.Problem = w.problem
		d.Emit(event.QualityProfile(profile))
	}
	d.Emit(event.QualityComplexity(w.complexity))
	if w.plan == nil {
		return
	}
	breakdown, err := structpb.NewStruct(map[string]any{
		"coverage": w.score.Coverage, "feasibility": w.score.Feasibility, "efficiency": w.score.Efficiency, "alignment": w.score.Alignment,
	})
	if err != nil {
		breakdown = nil
	}
	d.Emit(event.QualityPlanSelected(&harnessv1.QualityPlanSelected{
		Plan: w.plan.GetDescription(), Score: w.score.Total, Subtasks: w.plan.GetSubtasks(), Breakdown: breakdown,
		CandidatesCount: uint32(w.candidates), Reason: w.planReason, //nolint:gosec // at most 3
	}))
}

// planText returns the chosen plan as the agent reads it; empty if there is none.
func (w *workPlan) planText() string {
	if w == nil || w.plan == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(w.plan.GetDescription())
	if m := w.plan.GetPromptModifier(); m != "" {
		b.WriteString("\n" + m)
	}
	for i, t := range w.plan.GetSubtasks() {
		fmt.Fprintf(&b, "\n%d. %s", i+1, t)
	}
	return b.String()
}

// preamble describes the requirements of the work's kind; empty if it is not judged.
func (w *workPlan) preamble() string {
	if w == nil {
		return ""
	}
	return quality.PreambleWith(w.texts.Of(quality.PromptPreamble), w.kind, w.complexity, w.state.GetMultiplier())
}

// output returns a decision that ended without an outcome as its output; nil if err is another
// error.
func output(err error) *harnessv1.StepOutput {
	if needed := new(agent.NeedsError); errors.As(err, &needed) {
		return needed.Output()
	}
	if wait := new(agent.WaitError); errors.As(err, &wait) {
		return wait.Output()
	}
	return nil
}

// kinds returns the agent's own kinds of work.
func (d *decision) kinds() []*harnessv1.WorkKind {
	if spec := d.trigger.GetSpec(); spec != nil {
		return spec.GetAgent().GetKinds()
	}
	return d.made.Kinds
}
