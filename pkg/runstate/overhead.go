package runstate

import (
	"fmt"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// CheckOverhead returns an error that names the sizes if the system prompt and the tools of
// a run do not leave room for a conversation in the window of its model. c is resolved.
func CheckOverhead(model string, c *harnessv1.ContextConfig, prompt string, tools []*harnessv1.ToolSpec) error {
	window, buffer := uint64(c.GetMaxInputTokens()), uint64(c.GetSafetyBuffer())
	bytes := uint64(len(prompt))
	for _, t := range tools {
		bytes += uint64(len(t.GetName()) + len(t.GetDescription()) + len(t.GetParametersSchema()) + tokens.MessageOverhead)
	}
	if window == 0 || bytes+tokens.MessageOverhead+buffer < window {
		return nil // a token has at least one byte, so nothing has to be counted
	}
	count := func(text string) uint64 { return uint64(tokens.Count(model, text)) } //nolint:gosec // not negative
	prompted, listed := tokens.MessageOverhead+count(prompt), uint64(0)
	for _, t := range tools {
		listed += tokens.MessageOverhead + count(t.GetName()) + count(t.GetDescription()) + count(t.GetParametersSchema())
	}
	if prompted+listed+buffer < window {
		return nil
	}
	return fmt.Errorf("the system prompt has %d tokens, the %d tools have %d, and %d are kept free, but the window has only %d: "+
		"use a model with a larger window, shorter instructions, or fewer tools", prompted, len(tools), listed, buffer, window)
}

// ToolTokens returns the tokens of the specs of tools in a window: their names,
// descriptions and schemas, counted with o200k.
func ToolTokens(tools []*harnessv1.ToolSpec) uint32 {
	n := 0
	for _, t := range tools {
		n += tokens.Count("", t.GetName()) + tokens.Count("", t.GetDescription()) + tokens.Count("", t.GetParametersSchema())
	}
	return uint32(n)
}
