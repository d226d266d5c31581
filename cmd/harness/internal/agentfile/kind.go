package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

// Kind is a kind of file.
type Kind string

// Kinds of the files of a run.
const (
	Agent    Kind = "agent"
	Contract Kind = "contract"
	Jit      Kind = "jit"
	Hooks    Kind = "hooks"
	Modes    Kind = "modes"
	Script   Kind = "script"
	Graph    Kind = "graph"
)

// Kinds returns all kinds of files.
func Kinds() []Kind { return []Kind{Agent, Contract, Jit, Hooks, Modes, Script, Graph} }

// Check reads the file at path as a file of a kind, with the files that it names; an
// empty kind is recognised by the fields of the file. The returned file has the agent,
// contract, list or graph, and is nil for a script. The error is Problems if the content is
// invalid.
func Check(path string, kind Kind) (Kind, *File, error) {
	data, err := Read(path)
	if err != nil {
		return kind, nil, err
	}
	return CheckText(path, data, kind, Read)
}

// CheckText does what Check does with the text of a file.
func CheckText(name string, data []byte, kind Kind, read Reader) (Kind, *File, error) {
	r, file := &report{}, New()
	d, root := open(name, data, read, r, file.places)
	if root == nil {
		return kind, nil, r.err()
	}
	if kind == "" {
		kind = kindOf(root)
	}
	switch kind {
	case Agent:
		d.agent(file, root)
	case Contract:
		// Another file enables the work items.
		enabled := true
		file.Config.WorkItems = &harnessv1.WorkItemConfig{Enabled: &enabled}
		d.inlineContract(file, root)
	case Jit, Hooks, Modes:
		d.listFile(file, string(kind), root)
	case Graph:
		d.graph(file, root)
		file.Agent.Agents = taskAgents(file.Graph)
	case Script:
		return kind, nil, d.script(data)
	default:
		return kind, nil, fmt.Errorf("%q is no kind of file", kind)
	}
	if kind != Agent && len(r.problems) > 0 {
		file.broken = append(file.broken, "spec.contract", "spec.agent.jit", "spec.agent.hooks", "spec.agent.modes", graphField)
	}
	d.check(file)
	if err := r.err(); err != nil {
		return kind, nil, err
	}
	return kind, file, nil
}

// listFile reads a file with a list of the agent.
func (d *decoder) listFile(file *File, name string, root *yaml.Node) {
	key := &yaml.Node{Kind: yaml.ScalarNode, Value: name, Line: root.Line, Column: root.Column}
	d.mark("spec.agent."+name, root)
	d.field(file.Agent.ProtoReflect(), key, root, "spec.agent."+name)
}

// script checks a scripted model, whose errors have only a line.
func (d *decoder) script(data []byte) error {
	_, err := script.Parse(data)
	if err == nil {
		return nil
	}
	var line int
	text := err.Error()
	if _, scan := fmt.Sscanf(text, "script:%d:", &line); scan == nil {
		_, text, _ = strings.Cut(strings.TrimPrefix(text, "script:"), ": ")
	}
	d.report.add(d.src, line, d.src.firstOf(line), "%s", text)
	return d.report.err()
}

// kindOf recognises the kind of a file by fields that only that kind has.
func kindOf(root *yaml.Node) Kind {
	if root.Kind == yaml.SequenceNode && len(root.Content) > 0 {
		names := keys(resolve(root.Content[0]))
		switch {
		case slices.Contains(names, "topic"):
			return Hooks
		case slices.Contains(names, "when"), slices.Contains(names, "text"):
			return Jit
		}
		return Modes
	}
	names := keys(root)
	switch {
	case slices.Contains(names, "turns"):
		return Script
	case slices.Contains(names, "tasks"):
		return Graph
	case slices.Contains(names, "required_outputs"), slices.Contains(names, "requirements"), slices.Contains(names, "goal"):
		return Contract
	}
	return Agent
}

func keys(n *yaml.Node) []string {
	var names []string
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			names = append(names, n.Content[i].Value)
		}
	}
	return names
}
