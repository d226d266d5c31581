package show

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

// EnvTraceURL is the address of a trace viewer, with {trace_id} instead of the id.
const EnvTraceURL = "HARNESS_TRACE_URL"

// traceText returns a line for each trace of a run, as a link if EnvTraceURL is set. A
// run of more than 100 turns has several traces.
func traceText(ids []string, template string) string {
	var text strings.Builder
	for i, id := range ids {
		where := id
		if strings.Contains(template, "{trace_id}") {
			where = strings.ReplaceAll(template, "{trace_id}", id)
		}
		fmt.Fprintf(&text, "%-11s %s", "trace", render.Clean(where))
		if len(ids) > 1 {
			fmt.Fprintf(&text, "  (turns from %d)", i*runtrace.ChapterTurns+1)
		}
		text.WriteByte('\n')
	}
	return text.String()
}
