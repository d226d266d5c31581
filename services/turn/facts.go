package turn

import "github.com/harnessmesh/harnessmesh/pkg/tokens"

// addRequest adds the facts of the request to the record of the response.
func (c *completion) addRequest() {
	r, b := c.p.Response, c.s.GetTokenBudget()
	if w := r.GetWeights(); len(w.GetTokens()) > 0 {
		b.WeighedMessages = w.GetFirstMessage() + uint64(len(w.GetTokens())) - 1
	}
	if r.GetTools() != nil {
		c.s.ToolsDigest = r.GetTools().GetDigest()
	}
	reported, counted := r.GetUsage().GetInputTokens(), r.GetCountedTokens()
	if reported == 0 || counted == 0 || r.GetModel() != c.s.GetModel() || tokens.Known(r.GetModel()) {
		return
	}
	if b.GetFactorModel() != r.GetModel() {
		b.FactorModel, b.WindowTokens = r.GetModel(), 0
	}
	b.Factor = min(max(float64(reported)/float64(counted), tokens.MinFactor), tokens.MaxFactor)
}
