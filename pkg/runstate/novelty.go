package runstate

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Novelty is how new an outcome of a call is in its segment.
type Novelty int

const (
	// Known outcomes came about before, and the model is still shown that.
	Known Novelty = iota
	// Repeated outcomes came about before, and compaction has taken that away.
	Repeated
	// Fresh outcomes are the first of their kind.
	Fresh
)

// Outcomes judges how new the outcomes of the calls of one step are.
type Outcomes struct {
	conversation *conversation.Conversation
	shows        func(id uint64) bool
	first, limit uint64 // messages that count: those of the segment up to the step

	step map[uint64]bool // outcomes of the step itself
}

// NewOutcomes returns what judges the outcomes of a step. before is the snapshot of the step,
// and c the conversation of the run, which may have later messages. Nil: only the last calls
// are known. shows reports whether the view of the step shows a message unchanged.
func NewOutcomes(before *harnessv1.Snapshot, c *conversation.Conversation, shows func(id uint64) bool) *Outcomes {
	return &Outcomes{
		conversation: c, shows: shows, first: before.GetProgressTracker().GetFirstMessage(), limit: before.GetMessageCount() + 1,
		step: map[uint64]bool{},
	}
}

// Record records the result of a call of the step, by the signatures of the call. It changes
// s. An outcome that came about in the step before, or is among the last calls, is known.
func (o *Outcomes) Record(s *harnessv1.Snapshot, tool string, strict, loose uint64) {
	novelty := o.novelty(strict)
	if o.step[strict] || novelty == Fresh && slices.Contains(s.GetDoomLoop().GetStrict(), strict) {
		novelty = Known
	}
	o.step[strict] = true
	RecordOutcome(s, tool, strict, loose, novelty)
}

// novelty returns how new an outcome is after what came about before the step. What the view
// does not show in full counts as taken away.
func (o *Outcomes) novelty(signature uint64) Novelty {
	if o.conversation == nil {
		return Fresh
	}
	switch id := o.conversation.NewestOutcome(signature, o.first, o.limit); {
	case id == 0:
		return Fresh
	case o.shows(id):
		return Known
	}
	return Repeated
}
