package turn_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// long is the refusal of a request that is too long, with the sizes that it names.
func long(prompt, window uint32) *model.Error {
	return &model.Error{ContextExceeded: true, RetryAfter: -1, Message: "too long", PromptTokens: prompt, WindowTokens: window}
}

var (
	away   = &model.Error{Retryable: true, RetryAfter: -1, Message: "away"}
	broken = &model.Error{RetryAfter: -1, Message: "broken"}
)

const (
	exhausted   = harnessv1.TurnErrorKind_TURN_ERROR_KIND_CONTEXT_EXHAUSTED
	unavailable = harnessv1.TurnErrorKind_TURN_ERROR_KIND_PROVIDER_UNAVAILABLE
)

// TestRequestsThatAreTooLong: which refusals lead to a compaction, and what the window holds
// then.
func TestRequestsThatAreTooLong(t *testing.T) {
	// Before: 700 tokens up to message 2 as the provider reported them, then 40 bytes, of
	// which a compaction has freed 30 tokens.
	before := func() *harnessv1.TokenBudget {
		return &harnessv1.TokenBudget{
			UsedTokens: 900, ReportedTokens: 700, ReportedMessages: 2, UnreportedBytes: 40, FreedTokens: 30, Factor: 1.5, FactorModel: "m", WindowTokens: 5000,
		}
	}
	with := func(change func(*harnessv1.TokenBudget)) *harnessv1.TokenBudget {
		b := before()
		change(b)
		return b
	}
	type budget = harnessv1.TokenBudget
	for _, c := range []struct {
		name     string
		settings func(*harnessv1.Snapshot)
		failures []*model.Error
		window   uint32 // of the fallback model
		want     *budget
		kind     harnessv1.TurnErrorKind
	}{
		{"with both sizes", nil, []*model.Error{long(1100, 1000)}, 0, with(func(b *budget) {
			b.Exceeded, b.Refusals = true, 1
			b.ReportedTokens, b.ReportedMessages, b.UnreportedBytes, b.FreedTokens, b.WindowTokens = 1100, 3, 0, 0, 1000
		}), exhausted},
		{"with the window", nil, []*model.Error{long(0, 1000)}, 0, with(func(b *budget) {
			b.Exceeded, b.Refusals, b.WindowTokens = true, 1, 1000
		}), exhausted},
		{"without sizes", nil, []*model.Error{long(0, 0)}, 0, with(func(b *budget) {
			b.Exceeded, b.Refusals = true, 1
		}), exhausted},
		{"without sizes, after another model's window", func(s *harnessv1.Snapshot) { s.TokenBudget.FactorModel = "f" }, []*model.Error{long(0, 0)}, 0, with(func(b *budget) {
			b.Exceeded, b.Refusals, b.FactorModel, b.WindowTokens = true, 1, "f", 0
		}), exhausted},
		{"for the second time", func(s *harnessv1.Snapshot) { s.TokenBudget.Refusals = 1 }, []*model.Error{long(0, 0)}, 0, with(func(b *budget) {
			b.Exceeded, b.Refusals = true, 2
		}), exhausted},
		{"with compaction switched off", func(s *harnessv1.Snapshot) { s.Config.Context.Compaction = proto.Bool(false) }, []*model.Error{long(1100, 1000)}, 0, before(), exhausted},
		{"without its executor", func(s *harnessv1.Snapshot) {
			s.Workflow = []string{workflow.Repair, workflow.Turn, workflow.StopDecision}
		}, []*model.Error{long(1100, 1000)}, 0, before(), exhausted},
		{"the fallback is smaller", fallback, []*model.Error{long(1100, 1000)}, 800, with(func(b *budget) {
			b.Exceeded, b.Refusals = true, 1
			b.ReportedTokens, b.ReportedMessages, b.UnreportedBytes, b.FreedTokens, b.WindowTokens = 1100, 3, 0, 0, 1000
		}), exhausted},
		{"only the fallback is smaller", fallback, []*model.Error{broken}, 800, with(func(b *budget) {
			b.Exceeded, b.Refusals, b.WindowTokens, b.FactorModel, b.Factor = true, 1, 800, "f", 0
		}), exhausted},
		{"only the fallback is smaller, the model is away", fallback, []*model.Error{away, away}, 800, with(func(b *budget) {
			b.Exceeded, b.Refusals, b.WindowTokens, b.FactorModel, b.Factor = true, 1, 800, "f", 0
		}), exhausted},
		{"the fallback is still too small, the model is away", func(s *harnessv1.Snapshot) {
			fallback(s)
			s.TokenBudget.Refusals = 1
		}, []*model.Error{away, away}, 800, with(func(b *budget) {
			b.Refusals = 1
		}), unavailable},
		{"the fallback is smaller, with compaction switched off", func(s *harnessv1.Snapshot) {
			fallback(s)
			s.Config.Context.Compaction = proto.Bool(false)
		}, []*model.Error{away, away}, 800, before(), unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := snapshot()
			s.Model, s.TokenBudget = "m", before()
			s.Config.Guidance.Enabled, s.Config.Model.MaxTries = proto.Bool(true), proto.Uint32(2)
			if c.settings != nil {
				c.settings(s)
			}
			w := newWorker(t, s)
			w.failures = c.failures
			w.state.Offer.Tokens = 77
			w.state.Window = func(string) uint32 { return c.window }
			outcome := w.mustEnd()
			step, after := outcome.GetStep(), outcome.GetStep().GetSnapshot()
			if c.want.GetExceeded() {
				c.want.ToolTokens = 77
			}
			if c.want.GetReportedMessages() == 2 {
				for _, m := range appendedBy(w.journal) {
					c.want.UnreportedBytes += runstate.MessageBytes(m)
				}
			}
			if !proto.Equal(after.GetTokenBudget(), c.want) {
				t.Errorf("the window holds\n%v, want\n%v", after.GetTokenBudget(), c.want)
			}
			if step.GetTurnComplete().GetError().GetKind() != c.kind || after.GetTurnCount() != 0 || after.GetSpent().GetTurns() != 0 || step.GetTo() != workflow.StopDecision {
				t.Errorf("to %s after %d turns: %v", step.GetTo(), after.GetTurnCount(), step.GetTurnComplete())
			}
			first := w.journal[1].GetJournal().GetModelRetried()
			if first.GetPromptTokens() != c.failures[0].PromptTokens || first.GetWindowTokens() != c.failures[0].WindowTokens {
				t.Errorf("the journal has %v", first)
			}
			if last := w.journal[len(w.journal)-1].GetJournal().GetModelRetried(); c.window > 0 && (last.GetModel() != "f" || last.GetWindowTokens() != c.window) {
				t.Errorf("the journal ends with %v", last)
			}
		})
	}
}

// fallback gives the run a second model.
func fallback(s *harnessv1.Snapshot) { s.FallbackModels = []string{"f"} }

// TestAnAnswerEndsRefusals: the next refusal leads to a compaction again, and the window
// that was named is kept.
func TestAnAnswerEndsRefusals(t *testing.T) {
	s := snapshot()
	s.TokenBudget = &harnessv1.TokenBudget{Exceeded: true, Refusals: 1, WindowTokens: 1000, FactorModel: "m"}
	b := newWorker(t, s).mustEnd().GetStep().GetSnapshot().GetTokenBudget()
	if b.GetExceeded() || b.GetRefusals() != 0 || b.GetWindowTokens() != 1000 {
		t.Errorf("the window holds %v", b)
	}
}

// TestALargerFallbackAnswers a request that is too long for the model.
func TestALargerFallbackAnswers(t *testing.T) {
	s := snapshot()
	s.Model = "m"
	fallback(s)
	w := newWorker(t, s)
	w.failures = []*model.Error{long(1100, 1000)}
	w.state.Window = func(string) uint32 { return 2000 }
	outcome := w.mustEnd()
	if b := outcome.GetStep().GetSnapshot().GetTokenBudget(); outcome.GetStep().GetTurnComplete().GetError() != nil || b.GetExceeded() || b.GetRefusals() != 0 {
		t.Errorf("%v, the window holds %v", outcome.GetStep().GetTurnComplete(), b)
	}
}
