package render

import (
	"fmt"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// serverLines returns the lines of servers of tools; none for other events.
func (s Style) serverLines(e *harnessv1.Event) []string {
	switch v := e.GetEvent().(type) {
	case *harnessv1.Event_ServerState:
		state := v.ServerState
		line := fmt.Sprintf("server %s: %s", Clean(state.GetServer()), strings.ReplaceAll(Clean(state.GetState()), "_", " "))
		switch {
		case state.GetState() == "ready":
			line += fmt.Sprintf(", %d tools", state.GetTools())
		case state.GetMessage() != "":
			line += ": " + Clean(state.GetMessage())
		}
		if state.GetState() == "failed" || state.GetState() == "needs_sign_in" {
			line = s.bad(line)
		}
		lines := []string{line}
		for _, l := range state.GetLeftOut() {
			lines = append(lines, fmt.Sprintf("  without %s: %s", Clean(l.GetTool()), Clean(l.GetReason())))
		}
		return lines
	case *harnessv1.Event_ToolsChanged:
		c := v.ToolsChanged
		var parts []string
		for _, p := range []struct {
			what  string
			tools []string
		}{{"new", c.GetAdded()}, {"changed", c.GetChanged()}, {"gone", c.GetRemoved()}} {
			if len(p.tools) > 0 {
				parts = append(parts, p.what+" "+Clean(strings.Join(p.tools, ", ")))
			}
		}
		return []string{fmt.Sprintf("server %s: tools %s", Clean(c.GetServer()), strings.Join(parts, "; "))}
	}
	return nil
}
