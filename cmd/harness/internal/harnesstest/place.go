package harnesstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Place is a data directory with a workspace and a script.
type Place struct {
	Data, Workspace, Script string
}

func NewPlace(t *testing.T, script string) Place {
	t.Helper()
	dir := t.TempDir()
	p := Place{filepath.Join(dir, "data"), filepath.Join(dir, "ws"), filepath.Join(dir, "script.yaml")}
	if err := os.Mkdir(p.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.Script, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p Place) Run(args ...string) []string {
	return append([]string{"run", "--data", p.Data, "--workspace", p.Workspace, "--model", "script:" + p.Script}, args...)
}

// Asking lets commands have network, so that they ask at every level of confinement.
const Asking = "sandbox: {network: all}\n"

// RunAsking is run for an agent whose commands ask.
func (p Place) RunAsking(t *testing.T, args ...string) []string {
	t.Helper()
	return p.Run(append(p.Agent(t, Asking), args...)...)
}

const (
	Finishes = `turns:
  - {text: Looking., calls: [{name: list_directory, arguments: {}}]}
  - {text: All seen., calls: [{name: work_complete, arguments: {summary: Nothing to do.}}]}
  - {text: Again., calls: [{name: work_complete, arguments: {summary: Still nothing.}}]}
`
	Asks = `turns:
  - {text: I have to run it., calls: [{name: run_command, arguments: {command: echo hello > hello.txt}}]}
  - {calls: [{name: work_complete, arguments: {summary: It ran.}}]}
`
	Thinks = `turns:
  - {text: Looking., calls: [{name: list_directory, arguments: {}}]}
  - {delay: 30s, text: Slow., calls: [{name: work_complete, arguments: {summary: Done.}}]}
`
)

// Agent writes an agent file and returns its flag.
func (p Place) Agent(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(filepath.Dir(p.Script), "agent.yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"--agent", file}
}

// Tree writes an agent file with sub-agents by their scripts. Each path has names from the root
// down.
func (p Place) Tree(t *testing.T, scripts map[string]string, paths ...string) string {
	t.Helper()
	dir := filepath.Dir(p.Script)
	var text strings.Builder
	fmt.Fprintf(&text, "model: script:%s\n%stools: [{name: run_command, policy: ask}]\n", p.Script, Asking)
	for _, path := range paths {
		indent := ""
		for name := range strings.SplitSeq(path, "/") {
			file := filepath.Join(dir, name+".yaml")
			if err := os.WriteFile(file, []byte(scripts[name]), 0o644); err != nil {
				t.Fatal(err)
			}
			if indent != "" || !strings.Contains(text.String(), "\nagents:") {
				fmt.Fprintf(&text, "%sagents:\n", indent)
			}
			fmt.Fprintf(&text, "%s  - name: %s\n%s    description: Helps.\n%s    instructions: Help.\n%s    read_only: %v\n%s    model: script:%s\n",
				indent, name, indent, indent, indent, !strings.Contains(scripts[name], "run_command") && !strings.Contains(path, "/"), indent, file)
			indent += "    "
		}
	}
	agent := filepath.Join(dir, "agent.yaml")
	if err := os.WriteFile(agent, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return agent
}

func (p Place) RunTree(agent string, args ...string) []string {
	return append([]string{"run", "--data", p.Data, "--workspace", p.Workspace, "--agent", agent}, args...)
}
