// Package agentfile reads an agent file: the persona and the limits that a run
// is started with, in YAML whose keys are the fields of the protos. What the
// file says that no field knows, or with a value that does not fit, is an error
// that names file, line and column; nothing is guessed and nothing is left out.
//
// The package is pure but for Load, which reads the one file.
package agentfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxSize is the largest file that is read.
const maxSize = 1 << 20

// File is what an agent file says.
type File struct {
	// Agent is the persona.
	Agent *harnessv1.AgentSpec
	// Config has what the file sets of the loop's numbers, and no more.
	Config *harnessv1.LoopConfig
	// ClientTools are the tools that the client of the run runs itself.
	ClientTools []*harnessv1.ToolSpec
}

// Load reads the file at path.
func Load(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, maxSize)
	}
	return Parse(path, data)
}

// Parse reads the text of a file; name stands in the errors.
func Parse(name string, data []byte) (*File, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, syntaxError(name, err)
	}
	file := &File{Agent: &harnessv1.AgentSpec{}, Config: &harnessv1.LoopConfig{}}
	if len(doc.Content) == 0 {
		return nil, fmt.Errorf("%s:1: the file is empty", name)
	}
	d := decoder{file: name}
	err := d.mapping(doc.Content[0], func(key, value *yaml.Node) (err error) {
		agent, config := file.Agent.ProtoReflect(), file.Config.ProtoReflect()
		switch key.Value {
		case "name", "instructions", "model", "fallback_models", "tools", "autonomous":
			return d.field(agent, key, value)
		case "budgets", "context", "stop", "continuation":
			return d.field(config, key, value)
		case "approval_timeout", "answer_timeout":
			if file.Config.Tools == nil {
				file.Config.Tools = &harnessv1.ToolConfig{}
			}
			return d.field(file.Config.GetTools().ProtoReflect(), key, value)
		case "client_tools":
			file.ClientTools, err = d.clientTools(value)
			return err
		}
		return d.errorf(key, "unknown field %q", key.Value)
	})
	if err != nil {
		return nil, err
	}
	return file, d.check(doc.Content[0], file)
}

// check refuses what fits its field and still makes no sense.
func (d decoder) check(root *yaml.Node, file *File) error {
	tools := child(root, "tools")
	for i, rule := range file.Agent.GetTools() {
		at := tools.Content[i]
		switch {
		case !toolName.MatchString(rule.GetName()):
			return d.errorf(at, "tools: name %q: want the name of a tool, or *", rule.GetName())
		case rule.GetPolicy() == harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED:
			return d.errorf(at, "tools: %s: policy is missing: want allow, ask or deny", rule.GetName())
		}
	}
	if window := file.Config.GetContext(); window != nil {
		at := child(root, "context")
		if v := window.SoftThreshold; v != nil && !isShare(*v) {
			return d.errorf(child(at, "soft_threshold"), "context: soft_threshold %v: want a share above 0 and up to 1", *v)
		}
		if v := window.BlockingThreshold; v != nil && !isShare(*v) {
			return d.errorf(child(at, "blocking_threshold"), "context: blocking_threshold %v: want a share above 0 and up to 1", *v)
		}
	}
	if stop := file.Config.GetStop(); stop != nil && stop.MaxTurns != nil && stop.GetMaxTurns() == 0 {
		return d.errorf(child(child(root, "stop"), "max_turns"), "stop: max_turns 0: want at least 1")
	}
	return nil
}

func isShare(v float64) bool { return v > 0 && v <= 1 }

var toolName = regexp.MustCompile(`^(\*|[A-Za-z0-9_-]{1,64})$`)

var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// syntaxError brings the parser's errors into the form of ours.
func syntaxError(name string, err error) error {
	var typed *yaml.TypeError
	if errors.As(err, &typed) && len(typed.Errors) > 0 {
		return fmt.Errorf("%s:1: %s", name, typed.Errors[0])
	}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		return fmt.Errorf("%s:%d: %s", name, line, m[2])
	}
	return fmt.Errorf("%s:1: %w", name, err)
}
