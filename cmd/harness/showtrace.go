package main

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

// envTraceURL is where traces can be looked at, with {trace_id} in the place of the id.
const envTraceURL = "HARNESS_TRACE_URL"

// traceText is a line for each trace of a run, as a link where it is known where traces
// are. A run of more than 100 turns has several.
func traceText(ids []string, template string) string {
	var text strings.Builder
	for i, id := range ids {
		where := id
		if strings.Contains(template, "{trace_id}") {
			where = strings.ReplaceAll(template, "{trace_id}", id)
		}
		fmt.Fprintf(&text, "%-11s %s", "trace", where)
		if len(ids) > 1 {
			fmt.Fprintf(&text, "  (turns from %d)", i*runtrace.ChapterTurns+1)
		}
		text.WriteByte('\n')
	}
	return text.String()
}
