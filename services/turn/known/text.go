package known

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxName bounds the name of a tool in a text.
const maxName = 128

// Text is the message for the model about calls whose results the conversation does not have.
func Text(lost []*harnessv1.LedgerCall) string {
	var b strings.Builder
	b.WriteString("The newest part of this conversation was lost. In it you had made these calls. They have been carried out, so do not make them again:")
	for i, c := range lost {
		fmt.Fprintf(&b, "\n\n%d. %s %s\n%s", i+1, content.Clip(c.GetTool(), maxName), c.GetArguments(), end(c))
	}
	b.WriteString("\n\nCalls that you have made since without this message did not run. Check what is done before you continue. " +
		"A person is asked before your next change or command.")
	return b.String()
}

func end(c *harnessv1.LedgerCall) string {
	switch {
	case c.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		return "It was killed; what it had done until then stays."
	case c.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		return "It was started, and its effect is unknown: check."
	case c.GetResult() == "":
		return "It is done. Its result is not known any more."
	case c.GetIsError():
		return "It failed: " + c.GetResult()
	}
	return "It is done: " + c.GetResult()
}
