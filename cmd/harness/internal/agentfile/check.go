package agentfile

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// check reports sections whose fields are valid each and invalid together: one problem for
// each section, so that one run of it finds as much as possible.
func (d *decoder) check(file *File) {
	spec := proto.CloneOf(file.spec())
	for _, field := range file.broken {
		drop(spec, field)
	}
	refuse := func(err error) (field string) {
		field, message, line, column := describe(err)
		at, ok := file.places.find(field)
		if !ok {
			at, ok = file.places.find("")
		}
		if !ok {
			d.report.add(d.src, 1, 1, "%s", message)
			return field
		}
		if line > 0 {
			line, column = at.src.within(at.node, line, column)
		} else {
			line, column = at.node.Line, at.node.Column
		}
		d.report.add(at.src, line, column, "%s", message)
		return field
	}
	for _, look := range looks {
		if err := look(spec); err != nil {
			drop(spec, refuse(err))
		}
	}
	// The gateway checks the rest. Each section that it refuses is removed and the check
	// repeated.
	for range len(sections) + 1 {
		err := gateway.CheckStart(&harnessv1.StartRunRequest{Spec: spec})
		if err == nil || !drop(spec, refuse(err)) {
			return
		}
	}
}

// spec returns the spec of a run of the file, with placeholders for goal and workspace,
// which no file has.
func (f *File) spec() *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Goal:      &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: "goal"}},
		Workspace: "/", Agent: f.Agent, Config: f.Config, ClientTools: f.ClientTools, Contract: f.Contract, OutputSchema: f.OutputSchema, Task: f.Task, Graph: f.Graph,
	}
}

// drop removes the section of a field from the spec, with what depends on it; false if
// the field belongs to none.
func drop(spec *harnessv1.RunSpec, field string) bool {
	path, _, _ := strings.Cut(field, "[")
	names := strings.Split(path, ".")
	if len(names) < 2 || names[0] != "spec" {
		return false
	}
	m := spec.ProtoReflect()
	depth := 1
	if names[1] == "agent" || names[1] == "config" {
		if len(names) < 3 {
			return false
		}
		depth = 2
	}
	for _, name := range names[1:depth] {
		m = m.Mutable(m.Descriptor().Fields().ByName(protoreflect.Name(name))).Message()
	}
	f := m.Descriptor().Fields().ByName(protoreflect.Name(names[depth]))
	if f == nil || !m.Has(f) {
		return false
	}
	m.Clear(f)
	switch f.FullName() {
	case "harness.v1.AgentSpec.modes":
		spec.Agent.Mode = ""
	case "harness.v1.LoopConfig.work_items":
		spec.Agent.WorkItemTemplates = nil
	}
	return true
}
