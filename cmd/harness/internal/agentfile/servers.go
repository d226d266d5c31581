package agentfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// texts reads a mapping of names to texts.
func (d *decoder) texts(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, path string) {
	values := m.Mutable(f).Map()
	d.mapping(n, string(f.Name()), func(key, value *yaml.Node) {
		d.mark(path+"."+key.Value, value)
		if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" {
			d.errorf(value, "%s: %s: expected a text", f.Name(), key.Value)
			return
		}
		values.Set(protoreflect.ValueOfString(key.Value).MapKey(), protoreflect.ValueOfString(value.Value))
	})
}

// servers reads the servers of tools: a list of them, a mapping of names to them, or the path of
// a file with the key mcpServers, as other programs have it.
func (d *decoder) servers(file *File, key, value *yaml.Node) {
	const path = "spec.agent.mcp"
	d.mark(path, value)
	switch value.Kind {
	case yaml.MappingNode:
		d.mapping(value, key.Value, func(name, server *yaml.Node) { d.server(file, name, server) })
	case yaml.SequenceNode:
		d.list(value, key.Value, func(_ int, item *yaml.Node) {
			if item.Kind == yaml.ScalarNode {
				d.serverFile(file, key, item)
				return
			}
			d.server(file, nil, item)
		})
	case yaml.ScalarNode:
		d.serverFile(file, key, value)
	default:
		d.errorf(value, "mcp: expected a list of servers, a mapping of names to servers, or the path of a file")
	}
}

// server reads a server. key has its name, unless it is nil.
func (d *decoder) server(file *File, key, n *yaml.Node) {
	s := &harnessv1.McpServer{}
	if key != nil {
		s.Name = key.Value
	}
	path := "spec.agent.mcp[" + strconv.Itoa(len(file.Agent.GetMcp())) + "]"
	d.message(s.ProtoReflect(), n, path, "mcp")
	file.Agent.Mcp = append(file.Agent.Mcp, s)
}

// serverFile reads the servers of a file of other programs.
func (d *decoder) serverFile(file *File, key, value *yaml.Node) {
	other, root := d.other(key, value)
	if root == nil {
		return
	}
	found := false
	other.mapping(root, "", func(key, servers *yaml.Node) {
		if key.Value != "mcpServers" {
			return // what other programs keep there
		}
		found = true
		other.mapping(servers, key.Value, func(name, server *yaml.Node) { other.foreignServer(file, name, server) })
	})
	if !found {
		other.errorf(root, "expected the key mcpServers with the servers by name")
	}
}

// foreignServer reads a server in the form of other programs, whose further keys do not matter.
func (d *decoder) foreignServer(file *File, name, n *yaml.Node) {
	s := &harnessv1.McpServer{Name: name.Value}
	path := "spec.agent.mcp[" + strconv.Itoa(len(file.Agent.GetMcp())) + "]"
	d.mark(path, n)
	disabled := false
	d.mapping(n, name.Value, func(key, value *yaml.Node) {
		switch key.Value {
		case "command", "args", "env", "url", "headers":
			d.field(s.ProtoReflect(), key, value, path+"."+key.Value)
		case "type", "transport":
			if value.Value == "sse" {
				d.errorf(value, "%s: servers over HTTP with SSE are not supported: use one over streamable HTTP", name.Value)
			}
		case "disabled":
			disabled = value.Value == "true"
		}
	})
	if !disabled {
		file.Agent.Mcp = append(file.Agent.Mcp, s)
	}
}

// LoadServers adds the servers of a file with the key mcpServers.
func (f *File) LoadServers(path string) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	r := &report{}
	d, root := open(path, data, nil, r, f.places)
	if root != nil {
		d.read = func(string) ([]byte, error) { return data, nil }
		name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: path}
		before := len(f.Agent.GetMcp())
		d.serverFile(f, &yaml.Node{Kind: yaml.ScalarNode, Value: "mcp"}, name)
		if len(r.problems) == 0 {
			for _, added := range f.Agent.GetMcp()[before:] {
				if slices.ContainsFunc(f.Agent.GetMcp()[:before], func(s *harnessv1.McpServer) bool { return s.GetName() == added.GetName() }) {
					return fmt.Errorf("%s: the agent file has a server %q too: leave out one of them", path, added.GetName())
				}
			}
			d.check(f)
		}
	}
	return r.err()
}

// Pin sets the only definitions that the servers' tools may have: those of a lock, by server and
// tool.
func (f *File) Pin(pins map[string]map[string]string) error {
	for server, tools := range pins {
		i := slices.IndexFunc(f.Agent.GetMcp(), func(s *harnessv1.McpServer) bool { return s.GetName() == server })
		if i < 0 {
			continue
		}
		for tool := range tools {
			if strings.TrimSpace(tool) == "" {
				return fmt.Errorf("a tool of the server %s has no name", server)
			}
		}
		f.Agent.Mcp[i].Pins = tools
	}
	return nil
}
