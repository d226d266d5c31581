package judgement

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/live"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// startPrinting starts a run whose command prints one line, and a second one when the file go
// exists in the workspace.
func startPrinting(t *testing.T) *live.Run {
	t.Helper()
	return live.Start(t, func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 0 {
			return live.Calls(live.Call("run_command", live.Args{"command": "echo first; until [ -e go ]; do sleep 0.05; done; echo second"}))
		}
		return live.Calls(live.Call("work_complete", live.Args{"summary": "done"}))
	})
}

// The output of a command reaches a watcher while the command runs: it only ends after the
// watcher has seen it. It is stored nowhere.
func TestOutputOfARunningCommandOverGRPC(t *testing.T) {
	r := startPrinting(t)
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	stream, err := live.Gateway(t).WatchRun(ctx, &harnessv1.WatchRunRequest{RunId: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	called := ""
	for {
		m, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if e := m.GetUpdate().GetEvent(); e.GetToolCall() != nil {
			called = e.GetToolCall().GetCallId()
		} else if e.GetToolResult() != nil || e.GetToolError() != nil {
			t.Fatalf("the call has ended: %v", e)
		}
		if out := m.GetUpdate().GetDelta().GetToolOutput(); out != nil {
			if out.GetCallId() != called || out.GetOffset() != 0 || out.GetText() != "first\n" {
				t.Fatalf("%v, after the call %q", out, called)
			}
			break
		}
	}
	cancel()
	r.Write("go", "")
	s := r.Wait()
	s.Want("DONE agent_done accepted")
	for _, e := range s.Events {
		if e.GetToolResult().GetTool() == "run_command" {
			if got := e.GetToolResult().GetResult().GetInline(); !strings.HasPrefix(got, "first\nsecond\n") {
				t.Errorf("%q", got)
			}
		}
	}
}

func TestOutputOfARunningCommandOverHTTP(t *testing.T) {
	r := startPrinting(t)
	ctx, cancel := context.WithTimeout(t.Context(), live.Limit)
	defer cancel()
	open := func(query string) *bufio.Scanner {
		return bufio.NewScanner(live.Open(ctx, t, "/v1/runs/"+r.ID+"/events"+query, ""))
	}
	without := open("?no_deltas=true")
	with := open("")
	found := false
	for name := ""; !found && with.Scan(); {
		if rest, ok := strings.CutPrefix(with.Text(), "event: "); ok {
			name = rest
		}
		data, ok := strings.CutPrefix(with.Text(), "data: ")
		if found = ok && name == "tool.output"; !found {
			continue
		}
		var line struct {
			Type   string  `json:"type"`
			Turn   int     `json:"turn_number"`
			CallID string  `json:"call_id"`
			Offset *uint64 `json:"offset"`
			Text   string  `json:"text"`
		}
		if err := json.Unmarshal([]byte(data), &line); err != nil || line.Type != name || line.Turn != 1 || line.CallID == "" || line.Offset == nil || *line.Offset != 0 || line.Text != "first\n" {
			t.Errorf("%v: %s", err, data)
		}
	}
	if !found {
		t.Fatalf("the stream has ended: %v", with.Err())
	}
	if err := os.WriteFile(filepath.Join(r.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for without.Scan() {
		if strings.Contains(without.Text(), "tool.output") {
			t.Error(without.Text())
		}
	}
	r.Wait().Want("DONE agent_done accepted")
}
