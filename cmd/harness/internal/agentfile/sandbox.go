package agentfile

import "go.yaml.in/yaml/v3"

// sandbox reads the sandbox. Its network may be written as none, all, a list of hosts, or allow with such a list, and
// its level as auto, which is the default.
func (d *decoder) sandbox(file *File, key, value *yaml.Node) {
	d.mark("spec.config.sandbox", value)
	if value.Kind == yaml.MappingNode {
		plain := *value
		plain.Content = nil
		for i := 0; i+1 < len(value.Content); i += 2 {
			name, content := value.Content[i], value.Content[i+1]
			switch name.Value {
			case "network":
				content = network(content)
			case "level":
				if content.Value == "auto" {
					continue
				}
			case "unconfined":
				d.errorf(name, "unconfined: only a person can let commands leave the sandbox, with --unconfined")
				return
			case "least":
				d.errorf(name, "least: only the gateway sets it; write level, the level below which nothing runs")
				return
			}
			plain.Content = append(plain.Content, name, content)
		}
		value = &plain
	}
	d.field(file.Config.ProtoReflect(), key, value, "spec.config.sandbox")
}

// network returns the mapping that a short form of the network means.
func network(n *yaml.Node) *yaml.Node {
	at := func(kind yaml.Kind, tag, value string, content ...*yaml.Node) *yaml.Node {
		return &yaml.Node{Kind: kind, Tag: tag, Value: value, Content: content, Line: n.Line, Column: n.Column}
	}
	text := func(value string) *yaml.Node { return at(yaml.ScalarNode, "!!str", value) }
	switch n.Kind {
	case yaml.ScalarNode:
		return at(yaml.MappingNode, "!!map", "", text("mode"), text(n.Value))
	case yaml.SequenceNode:
		return at(yaml.MappingNode, "!!map", "", text("mode"), text("hosts"), text("hosts"), n)
	case yaml.MappingNode:
		if len(n.Content) == 2 && n.Content[0].Value == "allow" && resolve(n.Content[1]).Kind == yaml.SequenceNode {
			return network(resolve(n.Content[1]))
		}
		return n
	default:
		return n
	}
}
