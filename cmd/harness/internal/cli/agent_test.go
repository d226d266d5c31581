package cli

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAgentInitAndCheck(t *testing.T) {
	for _, example := range []string{"coding", "research", "data"} {
		dir := filepath.Join(t.TempDir(), "mine")
		got := call(t, nil, "", "agent", "init", "--example", example, dir)
		agent, contract := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "contract.yaml")
		if got.code != 0 || strings.TrimSuffix(got.out, filepath.Join(dir, "test.sh")+"\n") != agent+"\n"+contract+"\n" || !strings.Contains(got.err, "harness agent check "+agent+" "+contract+"\n") {
			t.Fatalf("%+v", got)
		}
		if got := call(t, nil, "", "agent", "init", dir); got.code != 1 || !strings.Contains(got.err, "is not overwritten") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%+v", got)
		}
		if got := call(t, nil, "", "agent", "check", agent, contract); got.code != 0 || got.out != agent+": OK (agent)\n"+contract+": OK (contract)\n" || got.err != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestAgentCheckListsWhatItFinds(t *testing.T) {
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "a.yaml"), "nme: x\nmode: dance\ncontract: c.yaml\n")
	contract := write(t, filepath.Join(dir, "c.yaml"), "required_outputs:\n- {id: a, predicate: {type: FILE_EXISTS, path: ../a}}\n")
	rules := write(t, filepath.Join(dir, "r.yaml"), "- {id: a, when: turn > 1, text: b}\n")
	got := call(t, nil, "", "agent", "check", agent, rules, dir+"/none.yaml")
	lines := strings.Split(got.out, "\n")
	want := []string{agent + ":1:1: unknown field", agent + ":2:7: mode: ", contract + ":2:48: contract.required_outputs[0].predicate.path: ", rules + ": OK (jit)", "open " + dir + "/none.yaml"}
	if got.code != 1 || got.err != "" || len(lines) != len(want)+1 {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("got %s, want %s", lines[i], want[i])
		}
	}
	if got := call(t, nil, "", "agent", "check", "--kind", "hooks", rules); got.code != 1 || !strings.HasPrefix(got.out, rules+":1:11: unknown field \"when\"") {
		t.Errorf("%+v", got)
	}
}

func TestAgentSchemaPrintsASchema(t *testing.T) {
	for _, kind := range []string{"agent", "contract", "jit", "hooks", "modes", "script"} {
		got := call(t, nil, "", "agent", "schema", "--kind", kind)
		var schema struct {
			Schema string `json:"$schema"`
		}
		if err := json.Unmarshal([]byte(got.out), &schema); got.code != 0 || err != nil || schema.Schema != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: %v, %+v", kind, err, got)
		}
	}
	if got := call(t, nil, "", "agent", "schema", "--kind", "dance"); got.code != 1 || got.out != "" {
		t.Errorf("%+v", got)
	}
}

// unreachable returns an address on which no process listens.
func unreachable(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func TestAHookThatCannotBeReached(t *testing.T) {
	dir, address := t.TempDir(), unreachable(t)
	closed := write(t, filepath.Join(dir, "closed.yaml"), "hooks:\n- {topic: before_tool_call, grpc: '"+address+"'}\n")
	open := write(t, filepath.Join(dir, "open.yaml"), "hooks:\n- {topic: before_step, grpc: '"+address+"'}\n")

	if got := call(t, nil, "", "agent", "check", closed); got.code != 0 {
		t.Errorf("called at unasked: %+v", got)
	}
	if got := call(t, nil, "", "agent", "check", "--reach", closed); got.code != 1 || !strings.HasPrefix(got.out, closed+":2:35: hooks[0].grpc: ") {
		t.Errorf("%+v", got)
	}
	if got := call(t, nil, "", "agent", "check", "--reach", open); got.code != 0 || !strings.Contains(got.err, "hooks[0].grpc: ") || !strings.Contains(got.out, "OK") {
		t.Errorf("%+v", got)
	}
	script := write(t, filepath.Join(dir, "script.yaml"), "turns: []\n")
	got := call(t, nil, "", "run", "--data", filepath.Join(dir, "data"), "--model", "script:"+script, "--agent", closed, "go")
	if got.code != 1 || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "harness: --agent: "+closed+":2:35: hooks[0].grpc: ") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("something was stored before: %v", err)
	}
}

func TestContractAndModeOfARun(t *testing.T) {
	f := serveFake(t)
	dir := t.TempDir()
	agent := write(t, filepath.Join(dir, "a.yaml"), "mode: plan\nmodes: [{name: look}]\ncontract: {goal: theirs, requirements: [a]}\n")
	contract := write(t, filepath.Join(dir, "c.yaml"), "goal: ours\nrequirements: [b, c]\n")
	bad := write(t, filepath.Join(dir, "bad.yaml"), "required_outputs: [{id: a}, {id: a}]\n")

	run := func(args ...string) saidByProgram {
		return call(t, nil, "", append([]string{"run", "--server", f.address}, args...)...)
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
		if got := run(test.args...); got.code != 0 {
			t.Fatalf("%+v", got)
		}
		spec := f.starts[i].GetSpec()
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
		{[]string{"--contract", dir + "/none.yaml", "go"}, "--contract: open " + dir + "/none.yaml"},
		{[]string{"--contract", dir, "go"}, "--contract: " + dir + ": is a directory"},
		{[]string{"--continue", "r", "--mode", "plan", "go"}, "--continue and --mode"},
		{[]string{"--continue", "r", "--contract", contract, "go"}, "--continue and --contract"},
	} {
		if got := run(test.args...); got.code != 1 || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, test.want) {
			t.Errorf("%v: %+v", test.args, got)
		}
	}
}

func TestAModelThatCannotBeUsedIsNamedWithItsPlace(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"name: a\nmodel: script:none.yaml\n": ":2:8: model: ",
		"model: openai:m\n":                  ":1:8: model: ",
		"model: nobody:m\n":                  ":1:8: model: ",
		"fallback_models: [script:none.yaml]\nmodel: script:s.yaml\n":                ":1:19: fallback_models[0]: ",
		"context: {summarizer: {model: nobody:m}}\nmodel: script:s.yaml\n":           ":1:31: context.summarizer.model: ",
		"context: {summarizer: {model: 'script:none.yaml'}}\nmodel: script:s.yaml\n": ":1:31: context.summarizer.model: ",
	} {
		write(t, filepath.Join(dir, "s.yaml"), "turns: []\n")
		agent := write(t, filepath.Join(dir, "a.yaml"), text)
		if got := call(t, nil, "", "run", "--agent", agent, "--data", dir+"/data", "go"); got.code != 1 || strings.Count(got.err, "\n") != 1 || !strings.HasPrefix(got.err, "harness: --agent: "+agent+want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	agent := write(t, filepath.Join(dir, "a.yaml"), "model: script:none.yaml\n")
	if got := call(t, nil, "", "run", "--agent", agent, "--model", "nobody:x", "--data", dir+"/data", "go"); got.code != 1 || !strings.HasPrefix(got.err, "harness: --model: ") {
		t.Errorf("a flag is blamed on the file: %+v", got)
	}
}
