package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestContractAndModeOfARun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	dir := t.TempDir()
	agent := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), "mode: plan\nmodes: [{name: look}]\ncontract: {goal: theirs, requirements: [a]}\n")
	contract := harnesstest.Write(t, filepath.Join(dir, "c.yaml"), "goal: ours\nrequirements: [b, c]\n")
	bad := harnesstest.Write(t, filepath.Join(dir, "bad.yaml"), "required_outputs: [{id: a}, {id: a}]\n")

	run := func(args ...string) harnesstest.Outcome {
		return harnesstest.Call(t, nil, "", append([]string{"run", "--server", f.Address}, args...)...)
	}
	for i, test := range []struct {
		args               []string
		mode, goal, output string
	}{
		{[]string{"--agent", agent, "go"}, "plan", "theirs", "a"},
		{[]string{"--agent", agent, "--mode", "look", "--contract", contract, "go"}, "look", "ours", "b c"},
		{[]string{"--mode", "plan", "--contract", contract, "go"}, "plan", "ours", "b c"},
		{[]string{"go"}, "", "", ""},
	} {
		if got := run(test.args...); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		spec := f.Starts[i].GetSpec()
		if spec.GetAgent().GetMode() != test.mode || spec.GetContract().GetGoal() != test.goal || strings.Join(spec.GetContract().GetRequirements(), " ") != test.output {
			t.Errorf("%v: %v", test.args, spec)
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--mode", "dance", "go"}, `harness: --mode: unknown mode "dance": must be one of plan, execute` + "\n"},
		{[]string{"--agent", agent, "--mode", "dance", "go"}, `must be one of plan, execute, look` + "\n"},
		{[]string{"--contract", bad, "go"}, "harness: --contract: " + bad + ":1:34: contract.required_outputs[1].id: "},
		{[]string{"--contract", dir + "/none.yaml", "go"}, "--contract: " + dir + "/none.yaml does not exist"},
		{[]string{"--contract", dir, "go"}, "--contract: " + dir + " is a directory: name a file"},
		{[]string{"--continue", "r", "--mode", "plan", "go"}, "--continue and --mode"},
		{[]string{"--continue", "r", "--contract", contract, "go"}, "--continue and --contract"},
	} {
		if got := run(test.args...); got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, test.want) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
}

// TestQualityOfARun is turned on by the flag, whatever the agent file says.
func TestQualityOfARun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	agent := harnesstest.Write(t, filepath.Join(t.TempDir(), "a.yaml"), "quality: {enabled: false, iterations: 2}\n")
	for i, c := range []struct {
		args       []string
		enabled    bool
		iterations uint32
	}{
		{[]string{"go"}, false, 0}, {[]string{"--quality", "go"}, true, 0}, {[]string{"--agent", agent, "go"}, false, 2},
		{[]string{"--agent", agent, "--quality", "go"}, true, 2},
	} {
		if got := harnesstest.Call(t, nil, "", append([]string{"run", "--server", f.Address}, c.args...)...); got.Code != 0 {
			t.Fatalf("%+v", got)
		}
		if q := f.Starts[i].GetSpec().GetConfig().GetQuality(); q.GetEnabled() != c.enabled || q.GetIterations() != c.iterations {
			t.Errorf("%v: %v", c.args, q)
		}
	}
	if got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--continue", "r", "--quality", "go"); got.Code != 1 || !strings.Contains(got.Err, "--continue and --quality") {
		t.Errorf("%+v", got)
	}
}

func TestAModelThatCannotBeUsedIsNamedWithItsPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{
		"name: a\nmodel: script:none.yaml\n": ":2:8: model: ",
		"model: openai:m\n":                  ":1:8: model: ",
		"model: nobody:m\n":                  ":1:8: model: ",
		"fallback_models: [script:none.yaml]\nmodel: script:s.yaml\n":                ":1:19: fallback_models[0]: ",
		"context: {summarizer: {model: nobody:m}}\nmodel: script:s.yaml\n":           ":1:31: context.summarizer.model: ",
		"context: {summarizer: {model: 'script:none.yaml'}}\nmodel: script:s.yaml\n": ":1:31: context.summarizer.model: ",
	} {
		harnesstest.Write(t, filepath.Join(dir, "s.yaml"), "turns: []\n")
		agent := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), text)
		if got := harnesstest.Call(t, nil, "", "run", "--agent", agent, "--data", dir+"/data", "go"); got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.HasPrefix(got.Err, "harness: --agent: "+agent+want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	agent := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), "model: script:none.yaml\n")
	if got := harnesstest.Call(t, nil, "", "run", "--agent", agent, "--model", "nobody:x", "--data", dir+"/data", "go"); got.Code != 1 || !strings.HasPrefix(got.Err, "harness: --model: ") {
		t.Errorf("a flag is blamed on the file: %+v", got)
	}
}
