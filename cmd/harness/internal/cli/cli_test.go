package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result *harnessv1.HarnessResult
		want   int
	}{
		"done":         {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true}, 0},
		"failed":       {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_FAILED}, 2},
		"stalled":      {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_STALLED}, 3},
		"parked":       {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_PARKED}, 4},
		"not accepted": {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_DONE}, 5},
		"cancelled":    {&harnessv1.HarnessResult{Status: harnessv1.RunStatus_RUN_STATUS_CANCELLED}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			f := harnesstest.ServeGateway(t)
			f.Started = func(r *harnesstest.Run) { r.Rest(proto.CloneOf(test.result)) }
			for _, output := range []string{"text", "json", "jsonl"} {
				if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--output", output, "go"); got.Code != test.want {
					t.Errorf("%s: exit code %d, want %d: %s", output, got.Code, test.want, got.Err)
				}
			}
			if got := harnesstest.Call(t, nil, "", "watch", "--server", f.Address, "r1"); got.Code != test.want {
				t.Errorf("watch: exit code %d, want %d: %s", got.Code, test.want, got.Err)
			}
		})
	}
}

func TestUsageErrorsAreOneLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte("name: x\nmodle: y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	denies := filepath.Join(dir, "denies.yaml")
	if err := os.WriteFile(denies, []byte("tools: [{name: run_command, policy: deny}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := []string{"--server", "127.0.0.1:1"}
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "expected"},
		{[]string{"fly"}, "fly"},
		{[]string{"run", "--no-such"}, "--no-such"},
		{[]string{"run"}, "GOAL"},
		{[]string{"run", "-"}, "GOAL"},
		{[]string{"run", "--max-turns", "x", "go"}, "--max-turns"},
		{[]string{"run", "--max-turns", "0", "--model", "openai:m", "go"}, "--max-turns"},
		{[]string{"run", "--max-turns=-1", "go"}, "--max-turns"},
		{[]string{"run", "--max-tool-calls", "0", "go"}, "--max-tool-calls"},
		{[]string{"run", "--timeout", "5", "go"}, "--timeout"},
		{[]string{"run", "--timeout", "-5s", "go"}, "--timeout"},
		{[]string{"run", "--effort", "huge", "go"}, `--effort: "huge": expected one of none, minimal, low, medium, high, xhigh, max`},
		{[]string{"run", "--continue", "r", "--effort", "low", "go"}, "--continue and --effort"},
		{[]string{"run", "--output", "xml", "go"}, "--output"},
		{[]string{"run", "--run-id", "a b", "go"}, "--run-id"},
		{[]string{"run", "--namespace", "a b", "go"}, "--namespace"},
		{[]string{"run", "--namespace", "*", "go"}, "--namespace"},
		{[]string{"run", "--server", "x:1", "--data", "d", "go"}, "--server and --data"},
		{[]string{"run", "--server", "nowhere", "go"}, "--server"},
		{[]string{"run", "--server", "ftp://x:1", "go"}, "--server"},
		{[]string{"run", "--token-file", "x", "go"}, "--token-file"},
		{append([]string{"run", "go", "--token-file", dir + "/none"}, server...), "--token-file"},
		{[]string{"run", "--server", "http://example.org:1", "--token-file", agent, "go"}, "clear text"},
		{[]string{"run", "--continue", "r", "--agent", agent, "go"}, "--continue and --agent"},
		{[]string{"run", "--continue", "r", "--max-turns", "3", "go"}, "--continue and --max-turns"},
		{[]string{"run", "--continue", "a b", "go"}, "--continue"},
		{[]string{"run", "--agent", agent, "go"}, agent + ":2:1: unknown field \"modle\""},
		{[]string{"run", "--agent", dir + "/none", "go"}, "--agent"},
		{[]string{"run", "--agent", denies, "--allow", "run_command", "go"}, "--allow"},
		{[]string{"run", "go"}, "OPENAI_API_KEY"},
		{[]string{"run", "go"}, "ANTHROPIC_API_KEY"},
		{[]string{"run", "--model", "anthropic:m", "go"}, "ANTHROPIC_API_KEY is not set"},
		{[]string{"run", "--model", "openai:m", "--catalogue", agent, "go"}, "--catalogue: " + agent + ":"},
		{[]string{"run", "--server", "127.0.0.1:1", "--catalogue", agent, "go"}, "--catalogue: not supported with --server"},
		{[]string{"serve", "--catalogue", dir + "/none"}, "--catalogue: " + dir + "/none does not exist"},
		{[]string{"run", "--model", "gpt", "go"}, "--model"},
		{[]string{"run", "--model", "nobody:x", "go"}, "nobody"},
		{[]string{"run", "--model", "script:" + dir + "/none", "go"}, "--model"},
		{[]string{"run", "--model", "script:" + agent, "go"}, "--model"},
		{[]string{"run", "--workspace", dir + "/none", "--model", "openai:m", "go"}, ""},
		{[]string{"serve", "--roles", "king"}, "--roles"},
		{[]string{"serve", "--peer-connections", "0"}, "--peer-connections: 0: expected at least 1"},
		{[]string{"serve", "--idle-timeout", "0s"}, "--idle-timeout"},
		{[]string{"serve", "--data", dir + "/data", "--metrics", "9464"}, "--metrics"},
		{[]string{"serve", "--sync", "never"}, "--sync"},
		{[]string{"serve", "--nats", "nats://x:1", "--sync", "always"}, "--sync"},
		{[]string{"provision", "--executor", "a b"}, "--executor"},
		{[]string{"list", "--status", "odd", "--server", "x:1"}, "--status"},
		{[]string{"show"}, "run"},
		{[]string{"show", "a b"}, "RUN"},
		{[]string{"watch", "r", "--from", "x"}, "--from"},
		{[]string{"approve", "r", "--always", "--deny"}, "--always and --deny"},
		{[]string{"approve", "r", "--reason", "x"}, "--reason"},
		{[]string{"answer", "r"}, "missing TEXT"},
		{[]string{"answer"}, "run"},
		{[]string{"answer", "r", "x", "--namespace", "*"}, "--namespace"},
		{[]string{"delete", "a b"}, "RUN"},
		{[]string{"delete"}, "RUN"},
		{append([]string{"show", "r"}, server...), "--server 127.0.0.1:1: no gateway answers there"},
		{[]string{"--log-level", "loud", "version"}, "--log-level"},
	} {
		got := harnesstest.Call(t, nil, "", test.args...)
		if got.Code != 1 || got.Out != "" || strings.Count(got.Err, "\n") != 1 || !strings.HasPrefix(got.Err, "harness: ") || !strings.Contains(got.Err, test.want) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want %q", test.args, got.Code, got.Out, got.Err, test.want)
		}
	}
}

func TestHelpIsNoError(t *testing.T) {
	t.Parallel()
	if got := harnesstest.Call(t, nil, "", "run", "--help"); got.Code != 0 || !strings.Contains(got.Out, "--max-turns") || got.Err != "" {
		t.Errorf("%+v", got)
	}
}

func TestFlagsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	env := map[string]string{
		"HARNESS_SERVER": f.Address, "HARNESS_MAX_TURNS": "7", "HARNESS_YOLO": "true", "HARNESS_ALLOW": "a,b",
		"HARNESS_OUTPUT": "json", "HARNESS_TIMEOUT": "90s", "HARNESS_MODEL": "openai:env",
	}
	got := harnesstest.Call(t, env, "", "run", "--model", "openai:flag", "go")
	if got.Code != 0 || !json.Valid([]byte(got.Out)) {
		t.Fatalf("%+v", got)
	}
	spec := f.Starts[0].GetSpec()
	switch {
	case spec.GetConfig().GetStop().GetMaxTurns() != 7, !spec.GetConfig().GetTools().GetYolo(),
		len(spec.GetAgent().GetTools()) != 2, spec.GetConfig().GetBudgets().GetWallClock().GetSeconds() != 90,
		spec.GetAgent().GetModel() != "openai:flag":
		t.Errorf("%v", spec)
	}
	if got := harnesstest.Call(t, map[string]string{"HARNESS_MAX_TURNS": "x"}, "", "run", "go"); got.Code != 1 || !strings.Contains(got.Err, "--max-turns") {
		t.Errorf("%+v", got)
	}
	// A flag beats the environment without a contradiction.
	if got := harnesstest.Call(t, map[string]string{"HARNESS_DATA": t.TempDir()}, "", "list", "--server", f.Address); got.Code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestTheSameRunIDIsTheSameRequest(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	for range 2 {
		if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--run-id", "mine", "go"); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--run-id", "mine", "elsewhere"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if len(f.Runs) != 1 || f.Starts[0].GetRequestId() != f.Starts[1].GetRequestId() || f.Starts[0].GetRequestId() == f.Starts[2].GetRequestId() {
		t.Errorf("%d runs, %v", len(f.Runs), f.Starts)
	}
}

func TestGoalFromStdin(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	if got := harnesstest.Call(t, nil, "do\nthis\n", "run", "--server", f.Address, "-"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	if goal := f.Starts[0].GetSpec().GetGoal().GetInline(); goal != "do\nthis" {
		t.Errorf("%q", goal)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if got := harnesstest.Call(t, nil, "", "version"); got.Code != 0 || !strings.Contains(got.Out, "schema") {
		t.Errorf("%+v", got)
	}
}
