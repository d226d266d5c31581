package runstate

import (
	"slices"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
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

// Outcome is what came of a call.
type Outcome struct {
	// Tool that was called.
	Tool string
	// Arguments as the model wrote them.
	Arguments *harnessv1.Content
	// Result that the model gets.
	Result *harnessv1.Content
	// Basis is what distinguishes the outcome from others of the tool.
	Basis progress.Basis
}

// Record records the outcome of a call of the step. It changes s. An outcome that came about
// in the step before, or is among the last calls, is known.
func (o *Outcomes) Record(s *harnessv1.Snapshot, e Outcome) {
	arguments, digest := content.Key(e.Arguments), content.DigestOf(e.Result)
	strict, loose := progress.Signature(e.Tool, arguments, digest)
	outcome := progress.SignOutcome(e.Tool, arguments, digest, content.Text(e.Result))[e.Basis]
	novelty := o.novelty(outcome)
	if o.step[outcome] || novelty == Fresh && slices.Contains(s.GetDoomLoop().GetStrict(), strict) {
		novelty = Known
	}
	o.step[outcome] = true
	RecordOutcome(s, e.Tool, strict, loose, novelty)
}

// BasisOf returns what distinguishes the outcomes of a call of a tool, by what its run knows
// of the call. Where that is nothing, the arguments do.
func BasisOf(tool string, call interface {
	GetOrigin() harnessv1.ToolOrigin
	GetReads() bool
	GetWrites() bool
	GetExplores() bool
	GetSandboxLevel() harnessv1.SandboxLevel
},
) progress.Basis {
	switch {
	case call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS:
		if t := harnesstool.Find(tool); t != nil && (t.Product || t.Question != nil) {
			return progress.ByArguments
		}
		return progress.ByResult
	case call.GetSandboxLevel() != harnessv1.SandboxLevel_SANDBOX_LEVEL_UNSPECIFIED:
		return progress.ByPlace
	case call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_AGENT: // the same answer to another prompt is nothing new
		return progress.ByPlace
	case (call.GetReads() || call.GetExplores()) && !call.GetWrites():
		return progress.ByPlace
	}
	return progress.ByArguments
}

// novelty returns how new an outcome is after what came about before the step. A result that the view
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
