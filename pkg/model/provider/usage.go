package provider

import (
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// estimate counts what a response used where the provider has reported none, so that budgets of tokens and
// cost hold with every service: local servers and proxies often leave the usage out, or send one of
// zero. A figure that was reported stays.
func estimate(req *model.Request, r *model.Response) {
	if r.Usage == nil {
		r.Usage = &harnessv1.Usage{}
	}
	u := r.Usage
	if u.GetInputTokens() == 0 {
		n := 0
		for _, m := range req.Messages {
			n += tokens.Message(req.Model, m)
		}
		for _, t := range req.Tools {
			n += tokens.Tool(req.Model, t)
		}
		u.InputTokens, u.Estimated = uint64(n), true
	}
	if u.GetOutputTokens() == 0 {
		n := tokens.Count(req.Model, r.Text)
		for _, part := range r.Parts {
			n += tokens.Count(req.Model, part.GetReasoning().GetText().GetInline())
		}
		for _, c := range r.ToolCalls {
			n += tokens.Count(req.Model, c.GetName()) + tokens.Count(req.Model, c.GetArguments().GetInline())
		}
		if n > 0 {
			u.OutputTokens, u.Estimated = uint64(n), true
		}
	}
}
