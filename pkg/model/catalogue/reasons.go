package catalogue

// Reasons reports whether a model is known to reason before it answers, so that it can
// be silent for longer.
func (c *Catalogue) Reasons(ref string) bool {
	e := c.Lookup(ref)
	switch {
	case e.Efforts != nil && len(e.Efforts) == 0:
		return false
	case e.Thinking == ThinkingAdaptive, e.AlwaysOn, e.Wire == WireResponses, len(e.Efforts) > 0:
		return true
	}
	p, _ := c.ProviderOf(ref)
	return p != nil && !e.Known && (p.Reasoning.Field != "" || p.Reasoning.Chunks)
}
