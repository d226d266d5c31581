package mesh

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// TestSystemNoCallIsSentAgainAfterItsEffect: each victim dies between the effect of a call and its answer. The line is
// there once. After the death of a turn worker the next one reads the result; after that of the
// server or of the tool host the call is unknown. The next call of the same tool runs.
func TestSystemNoCallIsSentAgainAfterItsEffect(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Takeover: time.Second})
	for _, victim := range victims {
		tool := "near"
		if victim == "far" {
			tool = victim
		}
		script := fmt.Sprintf("turns:\n  - {calls: [{name: mcp__%[1]s__append, arguments: {line: first}}]}\n  - {delay: %[2]s, calls: [{name: mcp__%[1]s__append, arguments: {line: second}}]}\n"+
			"  - {calls: [{name: work_complete, arguments: {summary: done}}]}\n", tool, restartPause)
		var gate, workspace string
		var far servertest.Process
		var ids []string
		killed := false
		s := scenario{name: "gated-" + victim, script: script, lines: 2, edit: func(s *harnessv1.RunSpec) {
			workspace = s.GetWorkspace()
			gate = filepath.Join(workspace, "gate")
			env := []string{servertest.Lines + "=" + filepath.Join(workspace, "out"), servertest.Gate + "=" + gate}
			if victim == "far" {
				far = servertest.Start(t, env...)
				s.Agent.Mcp = []*harnessv1.McpServer{{Name: "far", Url: far.URL()}}
				return
			}
			s.Agent.Mcp = []*harnessv1.McpServer{servertest.Server("near", env...)}
		}, drive: func(d *driver, e *harnessv1.Event) {
			call := e.GetToolCall()
			if call == nil || !strings.HasSuffix(call.GetTool(), "__append") {
				return
			}
			if !slices.Contains(ids, call.GetCallId()) {
				ids = append(ids, call.GetCallId())
			}
			if killed {
				return
			}
			killed = true
			waittest.Eventually(t, "the effect is there", func() bool { return len(d.lines()) > 0 })
			switch victim {
			case "near":
				for _, pid := range serving(workspace) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			case "far":
				far.Restart()
			default:
				m.Process(victim).Kill()
				m.Start(victim)
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Error(err)
			}
		}}
		d, entries := s.through(t.Context(), t, m, s.name)
		if got := d.lines(); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("%s: lines %q", victim, got)
		}
		want := harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN
		if victim == "turn" {
			want = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE
		}
		outcomes := meshtest.Outcomes(entries)
		read := texts(entries, "mcp__"+tool+"__append")
		if len(read) != 2 || len(ids) != 2 {
			t.Fatalf("%s: calls %v, the model reads %q", victim, ids, read)
		}
		if got := outcomes[ids[0]]; got != want || (want == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN) != strings.Contains(read[0], "effect is unknown") {
			t.Errorf("%s: the call ended %v, want %v, and the model reads %q", victim, got, want, read[0])
		}
		if !strings.HasSuffix(read[1], "appended second") {
			t.Errorf("%s: the next call returned %q", victim, read[1])
		}
	}
}

// serving returns the processes of servers over stdio that have a text in their environment.
func serving(text string) (pids []int) {
	for _, file := range holding(text) {
		data, err := os.ReadFile(file)
		if err != nil || bytes.Contains(data, []byte(servertest.Listen+"=")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
