package agentfile

import (
	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
)

const graphField = "spec.graph"

// LoadGraph sets the graph of f to that of the file at path.
func (f *File) LoadGraph(path string) error {
	data, err := f.read(path)
	if err != nil {
		return err
	}
	return f.ParseGraph(path, data)
}

// ParseGraph does what LoadGraph does with the text of a file.
func (f *File) ParseGraph(name string, data []byte) error {
	f.Forget(graphField)
	f.Graph = nil
	r := &report{}
	d, root := open(name, data, nil, r, f.places)
	if root != nil {
		d.graph(f, root)
		if len(r.problems) > 0 {
			f.broken = append(f.broken, graphField)
		}
		d.check(f)
	}
	return r.err()
}

// graph reads a file with the tasks of a graph.
func (d *decoder) graph(file *File, root *yaml.Node) {
	d.mark(graphField, root)
	before := len(d.report.problems)
	d.mapping(root, "", func(key, value *yaml.Node) {
		if key.Value != "tasks" {
			d.errorf(key, "unknown field %q: expected tasks, a list of the tasks%s", key.Value, hint(key.Value, []string{"tasks"}))
			return
		}
		tasks := &harnessv1.Delegation{}
		d.field(tasks.ProtoReflect(), key, value, graphField)
		file.Graph = tasks.GetTasks()
	})
	if len(file.Graph) == 0 && len(d.report.problems) == before {
		d.errorf(root, "tasks: expected at least one task, such as {id: find, agent: explore, prompt: Find the callers.}")
	}
}

// taskAgents returns sub-agents for the tasks of a graph, for the check of a graph file alone: another file has their definitions.
func taskAgents(tasks []*harnessv1.GraphTask) []*harnessv1.SubAgent {
	var agents []*harnessv1.SubAgent
	for _, t := range tasks {
		a := &harnessv1.SubAgent{Name: t.GetAgent(), Description: "Works.", Instructions: "Work."}
		if tree.Lookup(agents, a.GetName()) == nil && tree.Check("agents", []*harnessv1.SubAgent{a}, nil) == nil {
			agents = append(agents, a)
		}
	}
	return agents
}
