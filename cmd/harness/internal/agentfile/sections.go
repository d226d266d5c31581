package agentfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// agent reads an agent file.
func (d *decoder) agent(file *File, root *yaml.Node) {
	d.mark("", root)
	d.mapping(root, "", func(key, value *yaml.Node) {
		for _, s := range sections {
			if s.name == key.Value {
				if value.ShortTag() == "!!null" {
					d.errorf(key, "%s: missing value", key.Value)
					return
				}
				before := len(d.report.problems)
				s.read(d, file, key, value)
				if len(d.report.problems) > before {
					file.broken = append(file.broken, s.paths...)
				}
				return
			}
		}
		if key.Value == "project" {
			d.errorf(key, "project: writing projects are not built: leave it out")
			return
		}
		text := ""
		if key.Value == "required_outputs" || key.Value == "requirements" {
			text = ": a contract belongs in a separate file, or below contract"
		}
		if key.Value == versionField {
			d.errorf(key, noVersion)
			return
		}
		if home := limits(key.Value); home != "" {
			d.errorf(key, "unknown field %q: write it below %s, as %s: {%s: …}", key.Value, home, home, key.Value)
			return
		}
		d.errorf(key, "unknown field %q%s%s", key.Value, text, hint(key.Value, sectionNames()))
	})
}

// limits returns the section of limits that has a field; empty if none has it.
func limits(field string) string {
	name := protoreflect.Name(field)
	switch {
	case (&harnessv1.StopConfig{}).ProtoReflect().Descriptor().Fields().ByName(name) != nil:
		return "stop"
	case (&harnessv1.Budgets{}).ProtoReflect().Descriptor().Fields().ByName(name) != nil:
		return "budgets"
	}
	return ""
}

// Fields that other programs' files have at their top, and users write from habit.
const (
	versionField = "version"
	noVersion    = "these files have no version: leave out version"
)

// section is a field of an agent file.
type section struct {
	name string
	// field is the proto field of the section.
	field protoreflect.FullName
	// paths are the spec fields that it sets.
	paths []string
	read  func(d *decoder, file *File, key, value *yaml.Node)
}

// sections are the fields of an agent file, in the order of docs/agent.md.
var sections []section

func init() {
	own := func(name string, field protoreflect.FullName, read func(*decoder, *File, *yaml.Node, *yaml.Node), paths ...string) section {
		return section{name, "harness.v1." + field, paths, read}
	}
	inAgent := func(name string) section {
		path := "spec.agent." + name
		return own(name, protoreflect.FullName("AgentSpec."+name), func(d *decoder, f *File, key, value *yaml.Node) {
			d.field(f.Agent.ProtoReflect(), key, value, path)
		}, path)
	}
	inConfig := func(name string) section {
		path := "spec.config." + name
		return own(name, protoreflect.FullName("LoopConfig."+name), func(d *decoder, f *File, key, value *yaml.Node) {
			d.field(f.Config.ProtoReflect(), key, value, path)
		}, path)
	}
	inTools := func(name string) section {
		path := "spec.config.tools." + name
		return own(name, protoreflect.FullName("ToolConfig."+name), func(d *decoder, f *File, key, value *yaml.Node) {
			if f.Config.Tools == nil {
				f.Config.Tools = &harnessv1.ToolConfig{}
			}
			d.field(f.Config.Tools.ProtoReflect(), key, value, path)
		}, path)
	}
	listOrFile := func(name string) section {
		return own(name, protoreflect.FullName("AgentSpec."+name), (*decoder).listOrFile, "spec.agent."+name)
	}
	sections = []section{
		inAgent("name"), inAgent("instructions"), inAgent("model"), inAgent("fallback_models"), inAgent("reasoning"), inAgent("tools"),
		own("client_tools", "ClientTools.tools", (*decoder).clientTools, "spec.client_tools"),
		inAgent("autonomous"), inTools("approval_timeout"), inTools("answer_timeout"),
		own("contract", "RunSpec.contract", (*decoder).contract, "spec.contract"),
		own("output_schema", "RunSpec.output_schema", (*decoder).outputSchema, "spec.output_schema"),
		own("work_items", "LoopConfig.work_items", (*decoder).workItems, "spec.config.work_items", "spec.agent.work_item_templates"),
		listOrFile("jit"), listOrFile("hooks"), inAgent("mode"), listOrFile("modes"), inAgent("context_providers"),
		inAgent("agents"), inAgent("only_tools"), inAgent("read_only"), inAgent("max_answer_words"), inAgent("kinds"), inAgent("swarm"),
		own("skills", "AgentSpec.skills", (*decoder).skills, "spec.agent.skills"),
		inAgent("web"),
		own("mcp", "AgentSpec.mcp", (*decoder).servers, "spec.agent.mcp"),
		own("tool_services", "AgentSpec.mcp", (*decoder).services, "spec.agent.mcp"),
		inConfig("budgets"), inConfig("stop"), inConfig("continuation"),
		inConfig("stall"), inConfig("doom_loop"), inConfig("guidance"), inConfig("prompt"), inConfig("context"), inConfig("quality"),
		own("task", "RunSpec.task", (*decoder).task, "spec.task"),
		own("sandbox", "LoopConfig.sandbox", (*decoder).sandbox, "spec.config.sandbox"),
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

// listOrFile reads a list of the agent, inline or from a file.
func (d *decoder) listOrFile(file *File, key, value *yaml.Node) {
	path := "spec.agent." + key.Value
	d.mark(path, value)
	if value.Kind == yaml.ScalarNode {
		if other, root := d.other(key, value); root != nil {
			other.field(file.Agent.ProtoReflect(), key, root, path)
		}
		return
	}
	if value.Kind != yaml.SequenceNode {
		d.errorf(value, "%s: expected a list, or the path of a file that holds it", key.Value)
		return
	}
	d.field(file.Agent.ProtoReflect(), key, value, path)
}

// contract reads the contract, inline or from a file.
func (d *decoder) contract(file *File, key, value *yaml.Node) {
	d.mark("spec.contract", value)
	switch value.Kind {
	case yaml.MappingNode:
		d.inlineContract(file, value)
	case yaml.ScalarNode:
		if other, root := d.other(key, value); root != nil {
			other.inlineContract(file, root)
		}
	default:
		d.errorf(value, "contract: expected the path of a contract file, or its fields")
	}
}

func (d *decoder) inlineContract(file *File, root *yaml.Node) {
	file.Contract = &harnessv1.TaskContract{}
	d.message(file.Contract.ProtoReflect(), root, "spec.contract", "contract")
}

// other opens a file that this one names; root is nil if that fails.
func (d *decoder) other(key, value *yaml.Node) (other *decoder, root *yaml.Node) {
	path, data := d.readOther(key, value)
	if data == nil {
		return nil, nil
	}
	other = &decoder{src: newSource(path, data), report: d.report, places: d.places, dir: filepath.Dir(path)}
	return other, other.parse(data)
}

// readOther reads a file that this one names; data is nil if that fails.
func (d *decoder) readOther(key, value *yaml.Node) (path string, data []byte) {
	if value.ShortTag() != "!!str" || strings.TrimSpace(value.Value) == "" {
		d.errorf(value, "%s: %q: expected the path of a file", key.Value, clip(value.Value))
		return "", nil
	}
	path = value.Value
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.dir, path)
	}
	if d.read == nil {
		d.errorf(value, "%s: a file cannot be named here: write the fields inline", key.Value)
		return "", nil
	}
	data, err := d.read(path)
	if err != nil {
		var cause *os.PathError
		if errors.As(err, &cause) {
			err = fmt.Errorf("%s: %w", path, cause.Err)
		}
		d.errorf(value, "%s: the file cannot be read: %v", key.Value, err)
		return "", nil
	}
	if data == nil {
		data = []byte{}
	}
	return path, data
}

// workItems reads whether work items are enabled, and the initial ones.
func (d *decoder) workItems(file *File, key, value *yaml.Node) {
	config := &harnessv1.WorkItemConfig{}
	file.Config.WorkItems = config
	d.mark("spec.config.work_items", value)
	d.mapping(value, key.Value, func(key, value *yaml.Node) {
		switch key.Value {
		case "enabled":
			d.field(config.ProtoReflect(), key, value, "spec.config.work_items.enabled")
		case "templates":
			name := *key
			name.Value = "work_item_templates"
			d.field(file.Agent.ProtoReflect(), &name, value, "spec.agent.work_item_templates")
		default:
			d.errorf(key, "unknown field %q in work_items%s", key.Value, hint(key.Value, []string{"enabled", "templates"}))
		}
	})
}

// clientTools reads the tools that the client of the run runs.
func (d *decoder) clientTools(file *File, key, value *yaml.Node) {
	tools := &harnessv1.ClientTools{}
	name := *key
	name.Value = "tools"
	if value.Kind != yaml.SequenceNode {
		d.errorf(value, "client_tools: expected a list")
		return
	}
	d.field(tools.ProtoReflect(), &name, value, "spec.client_tools")
	file.ClientTools = tools.GetTools()
	for _, spec := range file.ClientTools {
		if spec.GetParametersSchema() == "" {
			spec.ParametersSchema = anyArguments
		}
	}
}

// anyArguments is the default schema of a tool.
const anyArguments = `{"type":"object"}`

// Field is a field of an agent file.
type Field struct {
	// Name is its key.
	Name string
	// Proto is its proto field.
	Proto protoreflect.FullName
}

// Fields returns the fields of an agent file, in the order of docs/agent.md.
func Fields() []Field {
	var fields []Field
	for _, s := range sections {
		fields = append(fields, Field{s.name, s.field})
	}
	return fields
}

// Writable reports whether a file may set a field of a message.
func Writable(f protoreflect.FieldDescriptor) bool {
	return writable(f.ContainingMessage(), string(f.Name()))
}
