package anthropic

import (
	"slices"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// ThinkingMode is the way in which a model is configured to think.
type ThinkingMode string

const (
	// ThinkingNone is a model that does not think, or that is not known: requests
	// configure nothing.
	ThinkingNone ThinkingMode = "none"
	// ThinkingAdaptive is a model that decides how much it thinks and takes an effort:
	// Claude 4.6 and later.
	ThinkingAdaptive ThinkingMode = "adaptive"
	// ThinkingBudget is a model that thinks up to a number of tokens: Claude 4.5 and
	// earlier. It thinks only in requests with an effort.
	ThinkingBudget ThinkingMode = "budget"
)

// Thinking describes how a model thinks. The zero value is a model that does not.
type Thinking struct {
	// Mode of the model; empty means ThinkingNone.
	Mode ThinkingMode
	// Efforts that the model takes, in any order; empty means each one.
	Efforts []harnessv1.Effort
	// AlwaysOn marks an adaptive model whose thinking cannot be disabled: the effort none
	// becomes the lowest of Efforts, or the model's default if they are empty.
	AlwaysOn bool
}

const (
	// minBudget is the lowest budget that the service accepts, in tokens.
	minBudget = 1024
	// minAnswer is what a budget leaves of max_tokens for the answer.
	minAnswer = 1024
)

// thinkingConfig is the member thinking of a request.
type thinkingConfig struct {
	Type    string `json:"type"`
	Budget  uint32 `json:"budget_tokens,omitempty"`
	Display string `json:"display,omitempty"`
}

// outputConfig is the member output_config of a request.
type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

// configure sets the members of r that configure the thinking. The messages of r
// are complete.
func (t Thinking) configure(r *messagesRequest, req *model.Request) {
	switch t.Mode {
	case ThinkingAdaptive:
		t.adaptive(r, req)
	case ThinkingBudget:
		t.budget(r, req.Effort)
	case ThinkingNone:
	}
}

func (t Thinking) adaptive(r *messagesRequest, req *model.Request) {
	if req.Effort == harnessv1.Effort_EFFORT_NONE && !t.AlwaysOn {
		r.Thinking = &thinkingConfig{Type: "disabled"}
		return
	}
	r.Thinking = &thinkingConfig{Type: "adaptive"}
	if req.ShowReasoning {
		r.Thinking.Display = "summarized"
	}
	if effort := effortNames[model.NearestEffort(t.Efforts, req.Effort)]; effort != "" {
		r.OutputConfig = &outputConfig{Effort: effort}
	}
}

// budget enables thinking up to a number of tokens that leaves room for the answer. It
// does not where max_tokens is too small, nor where the open turn has an answer without
// thinking at its start, which the service refuses.
func (t Thinking) budget(r *messagesRequest, effort harnessv1.Effort) {
	if effort == harnessv1.Effort_EFFORT_NONE {
		return
	}
	budget := budgets[model.NearestEffort(t.Efforts, effort)]
	if budget == 0 || r.MaxTokens < minAnswer+minBudget || !r.turnBeginsWithThinking() {
		return
	}
	r.Thinking = &thinkingConfig{Type: "enabled", Budget: min(budget, r.MaxTokens-minAnswer)}
}

// effortNames are the efforts in the words of the wire, which has no minimal.
var effortNames = map[harnessv1.Effort]string{
	harnessv1.Effort_EFFORT_MINIMAL: "low", harnessv1.Effort_EFFORT_LOW: "low", harnessv1.Effort_EFFORT_MEDIUM: "medium",
	harnessv1.Effort_EFFORT_HIGH: "high", harnessv1.Effort_EFFORT_XHIGH: "xhigh", harnessv1.Effort_EFFORT_MAX: "max",
}

// budgets are the efforts in tokens of thinking. The highest is limited by max_tokens
// alone.
var budgets = map[harnessv1.Effort]uint32{
	harnessv1.Effort_EFFORT_MINIMAL: minBudget, harnessv1.Effort_EFFORT_LOW: 2048, harnessv1.Effort_EFFORT_MEDIUM: 8192,
	harnessv1.Effort_EFFORT_HIGH: 16384, harnessv1.Effort_EFFORT_XHIGH: 32768, harnessv1.Effort_EFFORT_MAX: 1 << 31,
}

// turnBeginsWithThinking reports whether the open turn begins with thinking, or has no
// answer yet. A turn, as the service counts it, begins after the newest message of the
// user that has more than results.
func (r *messagesRequest) turnBeginsWithThinking() bool {
	first := -1
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == assistant {
			first = i
			continue
		}
		if slices.ContainsFunc(m.Content, func(b block) bool { return !b.isResult() }) {
			break
		}
	}
	return first < 0 || r.Messages[first].Content[0].isThinking()
}
