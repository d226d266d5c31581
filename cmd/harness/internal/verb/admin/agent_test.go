package admin_test

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

func TestAgentInitAndCheck(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"coding", "research", "data"} {
		dir := filepath.Join(t.TempDir(), "mine")
		got := harnesstest.Call(t, nil, "", "agent", "init", "--example", example, dir)
		agent, contract := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "contract.yaml")
		if got.Code != 0 || strings.TrimSuffix(got.Out, filepath.Join(dir, "test.sh")+"\n") != agent+"\n"+contract+"\n" || !strings.Contains(got.Err, "harness agent check "+agent+" "+contract+"\n") {
			t.Fatalf("%+v", got)
		}
		if got := harnesstest.Call(t, nil, "", "agent", "init", dir); got.Code != 1 || !strings.Contains(got.Err, "is not overwritten") || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%+v", got)
		}
		if got := harnesstest.Call(t, nil, "", "agent", "check", agent, contract); got.Code != 0 || got.Out != agent+": OK (agent)\n"+contract+": OK (contract)\n" || got.Err != "" {
			t.Errorf("%+v", got)
		}
	}
}

func TestAgentCheckListsWhatItFinds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), "nme: x\nmode: dance\ncontract: c.yaml\n")
	contract := harnesstest.Write(t, filepath.Join(dir, "c.yaml"), "required_outputs:\n- {id: a, predicate: {type: FILE_EXISTS, path: ../a}}\n")
	rules := harnesstest.Write(t, filepath.Join(dir, "r.yaml"), "- {id: a, when: turn > 1, text: b}\n")
	got := harnesstest.Call(t, nil, "", "agent", "check", agent, rules, dir+"/none.yaml")
	lines := strings.Split(got.Out, "\n")
	want := []string{agent + ":1:1: unknown field", agent + ":2:7: mode: ", contract + ":2:48: contract.required_outputs[0].predicate.path: ", rules + ": OK (jit)", "open " + dir + "/none.yaml"}
	if got.Code != 1 || got.Err != "" || len(lines) != len(want)+1 {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("got %s, want %s", lines[i], want[i])
		}
	}
	if got := harnesstest.Call(t, nil, "", "agent", "check", "--kind", "hooks", rules); got.Code != 1 || !strings.HasPrefix(got.Out, rules+":1:11: unknown field \"when\"") {
		t.Errorf("%+v", got)
	}
}

func TestAgentSchemaPrintsASchema(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"agent", "contract", "jit", "hooks", "modes", "script"} {
		got := harnesstest.Call(t, nil, "", "agent", "schema", "--kind", kind)
		var schema struct {
			Schema string `json:"$schema"`
		}
		if err := json.Unmarshal([]byte(got.Out), &schema); got.Code != 0 || err != nil || schema.Schema != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: %v, %+v", kind, err, got)
		}
	}
	if got := harnesstest.Call(t, nil, "", "agent", "schema", "--kind", "dance"); got.Code != 1 || got.Out != "" {
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
	t.Parallel()
	dir, address := t.TempDir(), unreachable(t)
	closed := harnesstest.Write(t, filepath.Join(dir, "closed.yaml"), "hooks:\n- {topic: before_tool_call, grpc: '"+address+"'}\n")
	open := harnesstest.Write(t, filepath.Join(dir, "open.yaml"), "hooks:\n- {topic: before_step, grpc: '"+address+"'}\n")

	if got := harnesstest.Call(t, nil, "", "agent", "check", closed); got.Code != 0 {
		t.Errorf("called at unasked: %+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "agent", "check", "--reach", closed); got.Code != 1 || !strings.HasPrefix(got.Out, closed+":2:35: hooks[0].grpc: ") {
		t.Errorf("%+v", got)
	}
	if got := harnesstest.Call(t, nil, "", "agent", "check", "--reach", open); got.Code != 0 || !strings.Contains(got.Err, "hooks[0].grpc: ") || !strings.Contains(got.Out, "OK") {
		t.Errorf("%+v", got)
	}
	script := harnesstest.Write(t, filepath.Join(dir, "script.yaml"), "turns: []\n")
	got := harnesstest.Call(t, nil, "", "run", "--data", filepath.Join(dir, "data"), "--model", "script:"+script, "--agent", closed, "go")
	if got.Code != 1 || strings.Count(got.Err, "\n") != 1 || !strings.HasPrefix(got.Err, "harness: --agent: "+closed+":2:35: hooks[0].grpc: ") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("something was stored before: %v", err)
	}
}
