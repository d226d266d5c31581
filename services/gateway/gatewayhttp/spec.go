package gatewayhttp

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// startBody is the body of a request to start a run: the fields of a RunSpec, and ids.
// Its agent may have all sections of an agent file, some of which belong next to the
// agent in a spec.
type startBody struct {
	request *harnessv1.StartRunRequest
	// moved maps paths in the spec to their paths in the body: sections of the agent
	// that belong next to it.
	moved map[string]string
}

// anyArguments is the default schema of a client's tool.
const anyArguments = `{"type":"object"}`

// startOf reads the body of a request to start a run in a namespace.
func startOf(body json.RawMessage, namespace string) (*startBody, error) {
	s := &startBody{
		request: &harnessv1.StartRunRequest{Namespace: namespace, Spec: &harnessv1.RunSpec{}},
		moved:   map[string]string{},
	}
	spec := s.request.GetSpec().ProtoReflect()
	ids := s.request.ProtoReflect()
	var agent json.RawMessage
	err := object(body, "", func(name string, value json.RawMessage) (err error) {
		switch {
		case name == "agent" && kindOf(value) != 'n':
			agent = value
			return nil
		case name == "namespace":
			s.request.Namespace, err = namespaceOf(value, namespace)
			return err
		case name == "run_id", name == "request_id":
			return fillField(ids, fieldOf(ids.Descriptor(), name), value, name, false)
		}
		if f := fieldOf(spec.Descriptor(), name); f != nil {
			return fillField(spec, f, value, name, false)
		}
		return unknownField(clip(name), name, append(jsonNames(spec.Descriptor()), "namespace", "run_id", "request_id"))
	})
	if err == nil && agent != nil {
		err = s.agent(agent)
	}
	for _, tool := range s.request.GetSpec().GetClientTools() {
		if tool.GetParametersSchema() == "" {
			tool.ParametersSchema = anyArguments
		}
	}
	return s, err
}

// namespaceOf returns the namespace of a request that may also name it in its body.
func namespaceOf(value json.RawMessage, inQuery string) (string, error) {
	if kindOf(value) == 'n' {
		return inQuery, nil
	}
	name, err := text(value, "namespace")
	if err == nil && name != "" && inQuery != "" && name != inQuery {
		return "", fault.Invalid("namespace", "%q differs from the namespace of the address, which is %q: set one of them", clip(name), inQuery)
	}
	return cmp.Or(name, inQuery), err
}

// inConfig and inTools are sections of an agent file that are fields of the config, and
// of its tools.
var (
	inConfig = []string{"budgets", "stop", "continuation", "stall", "doom_loop", "guidance", "context", "sandbox"}
	inTools  = []string{"approval_timeout", "answer_timeout"}
)

// agent reads an agent with the sections of an agent file.
func (s *startBody) agent(value json.RawMessage) error {
	spec := s.request.GetSpec()
	spec.Agent = &harnessv1.AgentSpec{}
	own := spec.GetAgent().ProtoReflect()
	sections := append(jsonNames(own.Descriptor()), "client_tools", "contract", "work_items")
	sections = append(append(sections, inConfig...), inTools...)
	return object(value, "agent", func(name string, value json.RawMessage) error {
		path := join("agent", name)
		if kindOf(value) == 'n' {
			return nil
		}
		if f := fieldOf(own.Descriptor(), name); f != nil {
			return s.section(own, name, value, path, "agent."+name)
		}
		switch base := strings.TrimSuffix(name, milliseconds); {
		case name == "client_tools", name == "contract":
			return s.section(spec.ProtoReflect(), name, value, path, name)
		case name == "work_items":
			return s.workItems(value, path)
		case slices.Contains(inConfig, name):
			return s.section(s.config().ProtoReflect(), name, value, path, "config."+name)
		case slices.Contains(inTools, base):
			if s.config().GetTools() == nil {
				s.config().Tools = &harnessv1.ToolConfig{}
			}
			return s.section(s.config().GetTools().ProtoReflect(), name, value, path, "config.tools."+base)
		}
		return unknownField(path, name, sections)
	})
}

func (s *startBody) config() *harnessv1.LoopConfig {
	spec := s.request.GetSpec()
	if spec.Config == nil {
		spec.Config = &harnessv1.LoopConfig{}
	}
	return spec.GetConfig()
}

// section sets a field of the spec at its path there, from its path in the body.
func (s *startBody) section(m protoreflect.Message, name string, value json.RawMessage, written, belongs string) error {
	f := fieldOf(m.Descriptor(), name)
	if m.Has(f) {
		return fault.Invalid(written, "also set in %s: set one of them", belongs)
	}
	if written != belongs {
		s.moved["spec."+belongs] = written
	}
	return fillField(m, f, value, written, name != string(f.Name()))
}

// workItems reads whether work items are enabled, and the initial ones.
func (s *startBody) workItems(value json.RawMessage, path string) error {
	if s.config().GetWorkItems() != nil {
		return fault.Invalid(path, "also set in config.work_items: set one of them")
	}
	items := &harnessv1.WorkItemConfig{}
	s.config().WorkItems = items
	return object(value, path, func(name string, value json.RawMessage) error {
		switch at := join(path, name); name {
		case "enabled":
			return s.section(items.ProtoReflect(), name, value, at, "config.work_items.enabled")
		case "templates":
			return s.section(s.request.GetSpec().GetAgent().ProtoReflect(), "work_item_templates", value, at, "agent.work_item_templates")
		default:
			return unknownField(at, name, []string{"enabled", "templates"})
		}
	})
}

// written returns err with the path of its field in the body.
func (s *startBody) written(err error) error {
	p, _ := problemOf(err)
	st, _ := fault.Status(err)
	wrong := fault.FieldOf(err)
	if wrong == nil {
		return err
	}
	for belongs, at := range s.moved {
		rest, found := strings.CutPrefix(wrong.Field, belongs)
		if !found || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		message := strings.TrimPrefix(p.Message, p.Field)
		if message == p.Message {
			return err
		}
		reason := harnessv1.ErrorReason_value["ERROR_REASON_"+p.Reason]
		return fault.New(st.Code(), harnessv1.ErrorReason(reason), at+rest+message, "field", at+rest)
	}
	return err
}
