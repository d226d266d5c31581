package quality

import harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"

// Reasons of ShouldRetry.
const (
	ReasonSkipped    = "Verification skipped"
	ReasonMax        = "Max attempts reached"
	ReasonSufficient = "Quality sufficient"
	ReasonMarginal   = "Marginal gap — retry unlikely to help"
	ReasonSevere     = "Severe gap persists — source material may be insufficient"
	ReasonError      = "Hard error — retrying"
	ReasonContract   = "Contract failed — retrying with healing prompt"
	ReasonLow        = "Low quality — retrying"
)

const (
	marginalGap = 0.10 // below it, work that passed its contract is not tried again
	severeGap   = 0.40 // above it, work is not tried a third time
	severeFrom  = 2    // the attempt from which a severe gap ends the attempts
)

// Attempt is an attempt whose contract and verifier have been evaluated.
type Attempt struct {
	Number, Max     uint32  // Number is counted from 1
	Good, Low       float64 // limits of the kind: combined score that is enough, verifier's score that is too low
	ContractPassed  bool
	Score           float64 // the verifier's, 0 to 1; 0 after a fallback
	Error           bool    // neither output nor artifact
	Fallback        bool    // the verifier did not answer
	RetryOnFallback bool    // a fallback counts as the score 0
	VerifierPassed  bool    // the verifier passed the work
	ShortAnswer     bool    // in chat, the length of the output is the only requirement that is not met
}

// sufficesShort reports whether a short answer in chat is right in the verifier's judgement.
func (a Attempt) sufficesShort() bool {
	return a.ShortAnswer && a.VerifierPassed && a.Score >= a.Good
}

// Accepted reports whether the work is accepted if this attempt is delivered. Whether another
// attempt follows does not matter for it.
func Accepted(a Attempt) bool {
	if !a.ContractPassed {
		return a.sufficesShort()
	}
	return a.Fallback || a.VerifierPassed || a.Score >= a.Low
}

// Decision is what follows an attempt.
type Decision struct {
	Retry    bool
	Reason   string
	Degraded bool // attempts have ended with work that is not good enough
}

// ShouldRetry decides whether another attempt follows. The first rule that applies decides.
func ShouldRetry(a Attempt) Decision {
	combined := Combined(a.ContractPassed, a.Score)
	gap := a.Good - combined
	switch {
	case a.Fallback && a.ContractPassed && !a.RetryOnFallback:
		return Decision{Reason: ReasonSkipped}
	case a.sufficesShort():
		return Decision{Reason: ReasonSufficient}
	case a.Number >= a.Max:
		return Decision{Reason: ReasonMax, Degraded: combined < a.Good}
	case combined >= a.Good:
		return Decision{Reason: ReasonSufficient}
	case gap < marginalGap && a.ContractPassed:
		return Decision{Reason: ReasonMarginal}
	case gap > severeGap && a.Number >= severeFrom:
		return Decision{Reason: ReasonSevere, Degraded: true}
	case a.Error:
		return Decision{Retry: true, Reason: ReasonError}
	case !a.ContractPassed:
		return Decision{Retry: true, Reason: ReasonContract}
	case a.Score < a.Low:
		return Decision{Retry: true, Reason: ReasonLow}
	}
	return Decision{Reason: ReasonSufficient}
}

// Combined returns the mean of the contract, 1 if it passed and else 0, and the verifier's
// score.
func Combined(contractPassed bool, score float64) float64 {
	if contractPassed {
		return (1.0 + score) / 2.0
	}
	return (0.0 + score) / 2.0
}

// Best returns the attempt with the highest combined score, the later of equals, or nil
// without attempts.
func Best(attempts []*harnessv1.QualityAttempt) *harnessv1.QualityAttempt {
	var best *harnessv1.QualityAttempt
	for _, a := range attempts {
		if best == nil || a.GetCombined() >= best.GetCombined() {
			best = a
		}
	}
	return best
}
