package stopdecision

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/event"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// Keys of the observations about an attempt.
const (
	KeyOutput = "output"
	KeyQuotes = "quotes"
	// KeyCalibration is the profile of the run, with verdicts that users did not share.
	KeyCalibration = "calibration"
	// KeyProfile is the profile after the segment was counted.
	KeyProfile = "profile"
)

// exam is what judging an attempt has found.
type exam struct {
	kind     quality.Kind
	contract *harnessv1.QualityContract
	verdict  quality.Verdict
	verified bool // verifiers were called
	scores   []*harnessv1.QualityScored
	nothing  bool // neither output nor artifact
	goal     string
	attempt  *harnessv1.QualityAttempt
	issues   []string
	variety  *harnessv1.AnswerFigures
}

// qualityGate decides if the work is not good and another attempt may help, or if another
// iteration is due. Otherwise the best attempt is delivered.
func (d *decision) qualityGate() (decided bool, err error) {
	q := d.s.GetQuality()
	if q == nil {
		return false, nil
	}
	if q.GetVerdict() != nil { // a later gate has sent the work back, whose attempts may still be the best
		if len(d.s.GetWorkItemLedger().GetAttempts()) == 0 { // a program before schema 16 has dropped what they deliver
			q.Attempts = nil
		}
		q.Verdict = nil
	}
	x, err := d.examine(true)
	if err != nil {
		return false, err
	}
	d.judged = true
	d.report(x)
	d.keep(x)
	judged := d.attempt(x)
	next := quality.ShouldRetry(judged)
	if next.Retry {
		q.Attempt++
		d.Emit(event.QualityRetry(q.GetAttempt(), next.Reason, x.attempt.GetCombined()))
		d.startAttempt()
		healing := d.texts(x.kind).Of(quality.PromptHealing)
		return true, d.reject(rejectedQuality, quality.HealingPromptWith(healing, x.goal, q.GetAttempt(), judged.Max, x.contract, x.verdict), nil)
	}
	best := quality.Best(q.GetAttempts())
	degraded := next.Degraded && q.GetAcceptedIterations() == 0 && best.GetCombined() < judged.Good
	if x.attempt.GetAccepted() && !q.GetAccepted() {
		q.Accepted = true
		q.AcceptedIterations++
	}
	if again, err := d.iterate(best, degraded); again || err != nil {
		return again, err
	}
	if degraded {
		d.Emit(event.QualityDegraded(&harnessv1.QualityDegraded{
			AttemptsMade: uint32(len(q.GetAttempts())), BestScore: best.GetCombined(), WorkflowType: q.GetKind(), Issues: d.kept(best).GetIssues(), //nolint:gosec // few
		}))
	}
	d.deliver(x, best, degraded)
	return false, nil
}

// attempt returns an attempt that was examined, for the rules of retry and acceptance.
func (d *decision) attempt(x *exam) quality.Attempt {
	cfg := d.s.GetConfig().GetQuality()
	limit, good, low := quality.Limits(x.kind, cfg)
	return quality.Attempt{
		Number: d.s.GetQuality().GetAttempt(), Max: limit, Good: good, Low: low, ContractPassed: x.contract.GetPassed(), Score: x.verdict.Score,
		Error: x.nothing, Fallback: x.verdict.Fallback, RetryOnFallback: cfg.GetRetryOnFallback(), VerifierPassed: x.verdict.Passed,
		ShortAnswer: x.kind.BuiltIn && x.kind.GetName() == quality.Chat && quality.ShortOnly(x.contract),
	}
}

// acceptable reports whether the work is accepted with the attempt that is delivered. An attempt of an older
// program has only its figures.
func (d *decision) acceptable(a *harnessv1.QualityAttempt) bool {
	if a == nil || a.Accepted != nil {
		return a.GetAccepted()
	}
	kind := quality.KindOf(d.s.GetQuality().GetKind(), d.definition.Kinds, len(d.s.GetTask().GetSources()))
	_, _, low := quality.Limits(kind, d.s.GetConfig().GetQuality())
	return quality.Accepted(quality.Attempt{
		ContractPassed: a.GetContractPassed(), Score: a.GetScore(), Low: low, Fallback: a.GetFallback() || !a.GetVerified(),
	})
}

// texts returns the prompts that replace built-in ones for a kind of work.
func (d *decision) texts(kind quality.Kind) quality.Texts {
	return quality.TextsOf(kind, agent.Observation(d.in, KeyCalibration).GetProfile().GetPrompts())
}

// iterate begins another iteration if one is due.
func (d *decision) iterate(best *harnessv1.QualityAttempt, degraded bool) (again bool, err error) {
	q, limit := d.s.GetQuality(), d.iterations()
	if q.GetIteration() > 1 && best.GetCombined() <= q.GetBestIteration() {
		q.Unbeaten++
	} else {
		q.Unbeaten = 0
	}
	q.BestIteration = best.GetCombined()
	if q.GetIteration() >= limit || q.GetUnbeaten() >= maxUnbeaten {
		return false, nil
	}
	q.Iteration++
	q.Attempt, q.Accepted = 1, false
	d.startAttempt()
	found := "The work is accepted, and may be made better"
	if degraded || !d.acceptable(best) {
		found = "No attempt was good enough yet"
	}
	return true, d.reject(rejectedQuality, fmt.Sprintf(
		"%s: this is pass %d of %d. Improve on it where it matters most, "+
			"then deliver the whole again. What is delivered in the end is the best of all passes.",
		found, q.GetIteration(), limit), nil)
}

// iterations returns how many passes the work has at most.
func (d *decision) iterations() uint32 { return max(d.s.GetConfig().GetQuality().GetIterations(), 1) }

// reportIterations reports the iterations of a segment that ends.
func (d *decision) reportIterations() {
	q := d.s.GetQuality()
	best := quality.Best(q.GetAttempts())
	if d.iterations() == 1 || best == nil {
		return
	}
	now := d.in.GetNow().AsTime()
	d.Emit(event.QualityIterated(&harnessv1.QualityIterated{
		Iterations: q.GetIteration(), BestScore: best.GetCombined(), AcceptedCount: q.GetAcceptedIterations(),
		TotalDurationMs:  uint64(max(now.Sub(q.GetStartTime().AsTime()), 0) / time.Millisecond),
		EstimatedCostUsd: float64(int64(d.s.GetSpent().GetUsage().GetCostMicroUsd())-q.GetCostBeforeMicroUsd()) / 1e6, //nolint:gosec // far below
	}))
}

// maxUnbeaten is how many iterations in a row that do not beat the best end the iterations.
const maxUnbeaten = 2

// startAttempt starts another attempt with the next message.
func (d *decision) startAttempt() {
	q := d.s.GetQuality()
	q.AttemptFirstMessage, q.AttemptChars, q.Marked = d.s.GetMessageCount()+1, 0, false
}

// examine judges the attempt. Its error requests observations, or time.
func (d *decision) examine(verify bool) (*exam, error) {
	q, saved := d.s.GetQuality(), d.s.GetWorkItemLedger().GetArtifacts()
	task := d.s.GetTask()
	x := &exam{kind: quality.KindOf(q.GetKind(), d.definition.Kinds, len(task.GetSources()))}
	seen, quotes := agent.Observation(d.in, KeyOutput), agent.Observation(d.in, KeyQuotes)
	needed := &agent.NeedsError{}
	if seen == nil {
		needed.Keys = append(needed.Keys, KeyOutput)
	}
	if readsSources(d.s) && quotes == nil {
		needed.Keys = append(needed.Keys, KeyQuotes)
	}
	if verify && agent.Observation(d.in, KeyCalibration) == nil {
		needed.Keys, needed.Profile = append(needed.Keys, KeyCalibration), &harnessv1.ProfileChange{Profile: q.GetProfile(), Tier: d.s.GetTier()}
	}
	if len(needed.Keys) > 0 {
		return nil, needed
	}
	out := seen.GetOutput()
	x.goal, x.nothing = out.GetGoal(), out.GetChars() == 0 && len(quality.Current(saved)) == 0
	x.contract = quality.Evaluate(x.kind, q.GetExpected(), q.GetMultiplier(), quality.Produced{
		Chars: out.GetChars(), Marked: out.GetMarked(), Artifacts: saved,
	})
	number := uint32(len(q.GetAttempts())) + 1 //nolint:gosec // few
	x.contract.Attempt = number
	var score *float64
	if verify {
		if err := d.verify(x, out, number); err != nil {
			return nil, err
		}
		if !x.verdict.Fallback {
			score = &x.verdict.Score
		}
	}
	x.scores = quality.Scores(quality.Scored{
		Kind: x.kind, Expected: q.GetExpected(), Multiplier: q.GetMultiplier(), Artifacts: saved, Sources: task.GetSources(),
		Quotes: quotes.GetQuotes(), Verifier: score,
		Document: out.GetDocument(), Chars: out.GetChars(), Marked: out.GetMarked(),
	})
	for _, s := range x.scores {
		s.Attempt = number
	}
	x.attempt = &harnessv1.QualityAttempt{
		Number: number, Combined: quality.Combined(x.contract.GetPassed(), x.verdict.Score), Score: x.verdict.Score, ContractPassed: x.contract.GetPassed(),
		Fallback: x.verdict.Fallback, Verified: x.verified,
	}
	judged := d.attempt(x)
	judged.Fallback = judged.Fallback || !x.verified // without a verifier there is no verdict either
	x.attempt.Accepted = proto.Bool(quality.Accepted(judged))
	x.issues = firstIssues(append(slices.Clone(x.contract.GetIssues()), x.verdict.Issues...))
	x.variety = out.GetAnswer()
	return x, nil
}

// maxIssues bounds the issues of an attempt that are kept.
const maxIssues = 20

func firstIssues(issues []string) []string { return issues[:min(len(issues), maxIssues)] }

// readsSources reports whether quotes of artifacts may be looked up in files.
func readsSources(s *harnessv1.Snapshot) bool {
	if s.GetWorkspace() == "" {
		return false
	}
	cited := map[string]bool{}
	for _, a := range quality.Current(s.GetWorkItemLedger().GetArtifacts()) {
		for _, c := range a.GetCitations() {
			cited[c.GetSource()] = cited[c.GetSource()] || c.GetQuote() != ""
		}
	}
	return slices.ContainsFunc(s.GetTask().GetSources(), func(src *harnessv1.Source) bool { return src.GetPath() != "" && cited[src.GetId()] })
}

// verify has verifiers judge the attempt.
func (d *decision) verify(x *exam, out *harnessv1.OutputSeen, attempt uint32) error {
	q := d.s.GetQuality()
	x.verified = true
	if runstate.ExceededBudget(d.s, d.in.GetNow().AsTime()) != nil {
		x.verdict = quality.FallbackVerdict("a budget of the run is used up")
		return nil
	}
	perspectives := []string{""}
	if contrastive := x.kind.GetPerspectives(); q.GetLevel() == quality.Complex && len(contrastive) > 0 {
		perspectives = contrastive
	}
	artifacts := quality.ArtifactSummary(quality.Current(d.s.GetWorkItemLedger().GetArtifacts()))
	calibration := quality.Calibration(agent.Observation(d.in, KeyCalibration).GetProfile().GetMismatches())
	var requests []*harnessv1.JobRequest
	for _, p := range perspectives {
		r := quality.VerifyJob(x.goal, out.GetText(), artifacts, p, calibration)
		d.texts(x.kind).Use(r)
		r.Purpose = quality.PurposeVerify
		quality.Configure(r, d.s.GetConfig().GetQuality())
		r.Key = quality.JobKey(d.s.GetFirstSequence(), d.s.GetSegment(), attempt, r.GetPurpose(), r)
		requests = append(requests, r)
	}
	states, err := agent.Jobs(d.in, requests)
	if err != nil {
		return err
	}
	verdicts, errs := make([]quality.Verdict, len(states)), make([]error, len(states))
	for i, s := range states {
		d.used = append(d.used, s.GetUsage())
		if s.GetError() != "" {
			errs[i] = fmt.Errorf("%s", s.GetError())
			continue
		}
		verdicts[i], errs[i] = quality.ParseVerdict(s.GetText())
	}
	switch {
	case len(perspectives) > 1:
		x.verdict = quality.Combine(perspectives, verdicts, errs)
	case errs[0] != nil:
		x.verdict = quality.FallbackVerdict(errs[0].Error())
	default:
		x.verdict = verdicts[0]
	}
	return nil
}

// report emits what judging the attempt has found, and counts what it used.
func (d *decision) report(x *exam) {
	q := d.s.GetQuality()
	if q.Usage == nil {
		q.Usage = &harnessv1.Usage{}
	}
	for _, u := range d.used {
		runstate.AddTokens(d.s, u)
		runstate.SumUsage(q.Usage, u)
	}
	d.used = nil
	d.Emit(event.QualityContract(x.contract))
	if x.verified {
		d.Emit(event.QualityVerified(&harnessv1.QualityVerified{
			Passed: x.verdict.Passed, Score: x.verdict.Score, Issues: x.verdict.Issues, Feedback: x.verdict.Feedback, Reasoning: x.verdict.Reasoning,
			Contrastive: x.verdict.Contrastive, Attempt: x.attempt.GetNumber(),
		}))
	}
	for _, s := range x.scores {
		d.Emit(event.QualityScored(s))
	}
}

// keep keeps the attempt. What it delivers is kept until a later attempt is as good: the ledger is
// stored in a blob when it is large, so answers and issues do not fill the snapshot.
func (d *decision) keep(x *exam) {
	q := d.s.GetQuality()
	q.Attempts = append(q.Attempts, x.attempt)
	if quality.Best(q.GetAttempts()) != x.attempt {
		return
	}
	for _, a := range q.GetAttempts() { // as a program before schema 16 kept it
		a.Answer, a.Summary, a.Issues, a.Scores = nil, nil, nil, nil
	}
	ledger := runstate.OwnLedger(d.s)
	best := &harnessv1.AttemptArtifacts{
		Attempt: x.attempt.GetNumber(), Answer: proto.CloneOf(d.s.GetAnswer()), Summary: proto.CloneOf(d.s.GetSummary()), Issues: x.issues, Scores: x.scores,
		Variety: proto.CloneOf(x.variety),
	}
	if x.verified && x.verdict.Fallback {
		best.FallbackFeedback = x.verdict.Feedback
	}
	for _, a := range ledger.GetArtifacts() {
		best.Artifacts = append(best.Artifacts, proto.CloneOf(a))
	}
	ledger.Attempts = []*harnessv1.AttemptArtifacts{best}
}

// kept returns what an attempt delivers.
func (d *decision) kept(a *harnessv1.QualityAttempt) *harnessv1.AttemptArtifacts {
	kept := &harnessv1.AttemptArtifacts{Attempt: a.GetNumber()}
	for _, k := range d.s.GetWorkItemLedger().GetAttempts() {
		if k.GetAttempt() == a.GetNumber() {
			kept = proto.CloneOf(k)
		}
	}
	if kept.GetAnswer() == nil && kept.GetSummary() == nil && kept.GetIssues() == nil && kept.GetScores() == nil { // as before schema 16
		kept.Answer, kept.Summary, kept.Issues, kept.Scores = proto.CloneOf(a.GetAnswer()), proto.CloneOf(a.GetSummary()), a.GetIssues(), a.GetScores()
	}
	return kept
}

// deliver makes the best attempt the result of the run. It stays kept until the next segment
// begins: a later gate may send the work back, and a run that has ended may be resumed.
func (d *decision) deliver(x *exam, best *harnessv1.QualityAttempt, degraded bool) {
	q, kept := d.s.GetQuality(), d.kept(best)
	if best.GetNumber() != x.attempt.GetNumber() {
		d.s.Answer, d.s.Summary = kept.GetAnswer(), kept.GetSummary()
		runstate.OwnLedger(d.s).Artifacts = kept.GetArtifacts()
	}
	v := &harnessv1.QualityVerdict{
		Kind: q.GetKind(), Level: q.GetLevel(), Attempts: uint32(len(q.GetAttempts())), Delivered: best.GetNumber(), Combined: best.GetCombined(), //nolint:gosec // few
		ContractPassed: best.GetContractPassed(), Degraded: degraded, Scores: kept.GetScores(), Usage: proto.CloneOf(q.GetUsage()), Iterations: q.GetIteration(),
		Variety: kept.GetVariety(), Repetitive: quality.Repetitive(kept.GetVariety()), FallbackFeedback: kept.GetFallbackFeedback(),
		Duration: durationpb.New(max(d.in.GetNow().AsTime().Sub(q.GetStartTime().AsTime()), 0)),
	}
	if best.GetVerified() && !best.GetFallback() {
		v.VerifierScore = proto.Float64(best.GetScore())
	}
	q.Verdict = v
}

// closeQuality judges work that ends without its gates, and reports the results of the
// segment's tools.
func (d *decision) closeQuality() error {
	q := d.s.GetQuality()
	if q == nil {
		return nil
	}
	judged := d.judged || q.GetVerdict() != nil && d.turn.GetFinish() != nil // else turns followed the verdict
	if !judged && d.s.GetAnswer() != nil && !d.stopRequested() {
		x, err := d.examine(false)
		if err != nil {
			return err
		}
		d.report(x)
		d.keep(x)
		d.deliver(x, quality.Best(q.GetAttempts()), false)
	}
	d.reportIterations()
	if err := d.countSegment(); err != nil {
		return err
	}
	if v := q.GetVerdict(); v != nil {
		v.CostShare = costShare(d.s)
	}
	d.Emit(event.ContextMetrics(quality.ContextMetrics(q.GetResults())))
	return nil
}

// costShare returns the share of judging in the cost of the segment, in hundredths; nil if no
// price is known.
func costShare(s *harnessv1.Snapshot) *uint32 {
	spent := s.GetSpent()
	all := spent.GetUsage().GetCostMicroUsd() - min(spent.GetUsageBeforeSegment().GetCostMicroUsd(), spent.GetUsage().GetCostMicroUsd())
	if all == 0 {
		return nil
	}
	return proto.Uint32(uint32(min((200*s.GetQuality().GetUsage().GetCostMicroUsd()+all)/(2*all), 100)))
}
