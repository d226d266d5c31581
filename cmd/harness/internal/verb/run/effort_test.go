package run_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestEffortOfARun(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	file := harnesstest.Write(t, filepath.Join(t.TempDir(), "a.yaml"), "reasoning: {effort: low, show: false}\n")
	for _, c := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{nil, nil, ""},
		{[]string{"--agent", file}, nil, "LOW false"},
		{[]string{"--agent", file, "--effort", "xhigh"}, nil, "XHIGH false"},
		{[]string{"--effort", "none"}, nil, "NONE default"},
		{nil, map[string]string{"HARNESS_EFFORT": "max"}, "MAX default"},
	} {
		if got := harnesstest.Call(t, c.env, "", append(append([]string{"run", "--server", f.Address}, c.args...), "go")...); got.Code != 0 {
			t.Errorf("%q: %+v", c.args, got)
		}
		got := ""
		if r := f.Starts[len(f.Starts)-1].GetSpec().GetAgent().GetReasoning(); r != nil {
			got = strings.TrimPrefix(r.GetEffort().String(), "EFFORT_") + " default"
			if r.Show != nil && !r.GetShow() {
				got = strings.TrimSuffix(got, "default") + "false"
			}
		}
		if got != c.want {
			t.Errorf("%q: reasoning is %q, want %q", c.args, got, c.want)
		}
	}
	spec := harnesstest.ASpec()
	spec.Agent.Reasoning = &harnessv1.ReasoningConfig{Effort: harnessv1.Effort_EFFORT_XHIGH}
	f.Add("a", "default", spec).Done()
	if got := harnesstest.Call(t, nil, "", "show", "a", "--server", f.Address); got.Code != 0 || !strings.Contains(got.Out, "\neffort      xhigh\n") {
		t.Errorf("%+v", got)
	}
}

func TestEffortThatTheModelDoesNotTake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{"OPENAI_API_KEY": "k"}
	file := harnesstest.Write(t, filepath.Join(dir, "a.yaml"), "model: openai:gpt-5\nreasoning:\n  effort: max\n")
	const takes = "model openai:gpt-5 takes the efforts minimal, low, medium, high; not max: choose one of them\n"
	for _, c := range []struct {
		args []string
		env  string
		want string
	}{
		{[]string{"--agent", file}, "", "--agent: " + file + ":3:11: reasoning.effort: " + takes},
		{[]string{"--agent", file, "--effort", "max"}, "", "--effort: " + takes},
		{[]string{"--model", "openai:gpt-5"}, "max", "environment HARNESS_EFFORT: --effort: " + takes},
	} {
		env["HARNESS_EFFORT"] = c.env
		got := harnesstest.Call(t, env, "", append(append([]string{"run", "--data", filepath.Join(dir, "data")}, c.args...), "go")...)
		if got.Code != 1 || got.Err != "harness: "+c.want {
			t.Errorf("%q: %+v, want %s", c.args, got, c.want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
		t.Errorf("something was stored before: %v", err)
	}
}
