package agentfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

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

// command reads the program of a server, or a list of it and its arguments.
func (d *decoder) command(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, path string) {
	program := n
	if n.Kind == yaml.SequenceNode {
		if len(n.Content) == 0 {
			d.errorf(n, "command: expected a program, or a list of it and its arguments")
			return
		}
		rest := *n
		program, rest.Content = resolve(n.Content[0]), n.Content[1:]
		if len(rest.Content) > 0 {
			d.field(m, &yaml.Node{Kind: yaml.ScalarNode, Value: "args", Line: n.Line, Column: n.Column}, &rest, path+".args")
		}
	}
	if v, ok := d.value(f, nil, program, path); ok {
		m.Set(f, v)
	}
}

// network reads the network of a server, which may be written as that of the sandbox.
func (d *decoder) network(m protoreflect.Message, f protoreflect.FieldDescriptor, n *yaml.Node, path string) {
	d.message(m.Mutable(f).Message(), network(n), path, string(f.Name()))
}

// servers reads the servers of tools: a list of them, a mapping of names to them, or the path of
// a file with the key mcpServers, as other programs have it.
func (d *decoder) servers(file *File, key, value *yaml.Node) {
	const path = "spec.agent.mcp"
	d.mark(path, value)
	switch value.Kind {
	case yaml.MappingNode:
		d.mapping(value, key.Value, func(name, server *yaml.Node) { d.program(file, name, server) })
	case yaml.SequenceNode:
		d.list(value, key.Value, func(_ int, item *yaml.Node) {
			if item.Kind == yaml.ScalarNode {
				d.serverFile(file, key, item)
				return
			}
			d.program(file, nil, item)
		})
	case yaml.ScalarNode:
		d.serverFile(file, key, value)
	default:
		d.errorf(value, "mcp: expected a list of servers, a mapping of names to servers, or the path of a file")
	}
}

// services reads tool services: a list of them, or a mapping of names to them or to their addresses.
func (d *decoder) services(file *File, key, value *yaml.Node) {
	const path = "spec.agent.mcp"
	d.mark(path, value)
	switch value.Kind {
	case yaml.MappingNode:
		d.mapping(value, key.Value, func(name, service *yaml.Node) { d.service(file, name, service) })
	case yaml.SequenceNode:
		d.list(value, key.Value, func(_ int, item *yaml.Node) { d.service(file, nil, item) })
	default:
		d.errorf(value, "tool_services: expected a list of services, or a mapping of names to services")
	}
}

// service reads a tool service.
func (d *decoder) service(file *File, key, n *yaml.Node) {
	if key != nil && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" {
		path := serverPath(file)
		d.mark(path, key)
		d.mark(path+".name", key)
		d.mark(path+".grpc", n)
		file.Agent.Mcp = append(file.Agent.Mcp, &harnessv1.McpServer{Name: key.Value, Grpc: n.Value})
		return
	}
	before := len(d.report.problems)
	if s := d.server(file, key, n, "tool_services"); s.GetGrpc() == "" && len(d.report.problems) == before {
		d.errorf(n, "tool_services: missing grpc: expected the address of the service, HOST:PORT")
	}
}

// server reads a server. key has its name, unless it is nil; section is where it is.
func (d *decoder) server(file *File, key, n *yaml.Node, section string) *harnessv1.McpServer {
	s := &harnessv1.McpServer{}
	if key != nil {
		s.Name = key.Value
	}
	if command, args := value(n, "command"), value(n, "args"); args != nil && command != nil && command.Kind == yaml.SequenceNode {
		d.errorf(args, "args: the list command has the arguments: leave out args")
	}
	d.message(s.ProtoReflect(), n, serverPath(file), section)
	file.Agent.Mcp = append(file.Agent.Mcp, s)
	return s
}

// serverPath returns the path of the next server of the agent.
func serverPath(file *File) string {
	return "spec.agent.mcp[" + strconv.Itoa(len(file.Agent.GetMcp())) + "]"
}

// program reads a server of the Model Context Protocol.
func (d *decoder) program(file *File, key, n *yaml.Node) {
	if s := d.server(file, key, n, "mcp"); s.GetGrpc() != "" {
		d.errorf(n, "mcp: grpc is the address of a tool service: write it below tool_services")
	}
}

// value returns the value of a field of a mapping; nil if there is none.
func value(n *yaml.Node, name string) *yaml.Node {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

// serverFile reads the servers of a file of other programs.
func (d *decoder) serverFile(file *File, key, value *yaml.Node) {
	path, data := d.readOther(key, value)
	if data == nil {
		return
	}
	other := &decoder{src: newSource(path, data), report: d.report, places: d.places, dir: filepath.Dir(path)}
	root := other.parse(withoutComments(data))
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
	path := serverPath(file)
	d.mark(path, n)
	disabled := false
	d.mapping(n, name.Value, func(key, value *yaml.Node) {
		switch key.Value {
		case "command", "args", "env", "url", "headers":
			d.field(s.ProtoReflect(), key, value, path+"."+key.Value)
		case "oauth": // other programs write clientId and have keys that do not matter
			d.foreignOAuth(s, value)
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

// foreignOAuth reads the client and the scopes of a sign-in.
func (d *decoder) foreignOAuth(s *harnessv1.McpServer, n *yaml.Node) {
	s.Oauth = &harnessv1.McpOAuth{}
	d.mapping(n, "oauth", func(key, value *yaml.Node) {
		switch key.Value {
		case "client_id", "clientId":
			s.Oauth.ClientId = value.Value
		case "client_secret", "clientSecret":
			s.Oauth.ClientSecret = value.Value
		case "scopes":
			d.list(value, "scopes", func(_ int, item *yaml.Node) { s.Oauth.Scopes = append(s.Oauth.Scopes, item.Value) })
		}
	})
}

// LoadServers adds the servers of a file with the key mcpServers.
func (f *File) LoadServers(path string) error {
	data, err := f.read(path)
	if err != nil {
		return err
	}
	r := &report{}
	data = withoutComments(data)
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

// LockPath returns the path of the file with the pins of an agent file.
func LockPath(agent string) string { return agent + ".mcp.lock" }

// LoadLock takes the pins of an agent file, if there are any: the only definitions that tools of
// servers may have.
func (f *File) LoadLock(agent string) error {
	path := LockPath(agent)
	data, err := f.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var pins map[string]map[string]string
	if err == nil {
		err = json.Unmarshal(data, &pins)
	}
	if err != nil {
		return fmt.Errorf("%s: %w: remove it, or make it again with harness mcp lock --agent %s", path, err, agent)
	}
	for _, s := range f.Agent.GetMcp() {
		if tools, ok := pins[s.GetName()]; ok && len(tools) > 0 {
			s.Pins = tools
		}
	}
	return nil
}
