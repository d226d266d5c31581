package access_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// target permits one service.
func target(t string) error {
	if t == "hooks.example:7700" {
		return nil
	}
	return errors.New("use --allow-target")
}

// TestServicesAreThoseOfTheOperator wherever a request names one, over each way: for every
// token, and where no token is required. The key is its user's, and names any.
func TestServicesAreThoseOfTheOperator(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n")
	for name, tokens := range map[string]*access.Tokens{"a token": file, "no token": nil, "the key": access.Key(forAll, "")} {
		guard := access.NewGuard(tokens).Within(access.Limits{Target: target})
		for field, set := range map[string]func(*harnessv1.RunSpec, string){
			"spec.agent.hooks[1].grpc": func(s *harnessv1.RunSpec, t string) { s.Agent.Hooks = []*harnessv1.Hook{{Cel: "true"}, {Grpc: t}} },
			"spec.agent.context_providers[0].grpc": func(s *harnessv1.RunSpec, t string) {
				s.Agent.ContextProviders = []*harnessv1.ContextProvider{{Name: "x", Grpc: t}}
			},
			"spec.agent.mcp[1].grpc": func(s *harnessv1.RunSpec, t string) {
				s.Agent.Mcp = []*harnessv1.McpServer{{Name: "own", Host: true}, {Name: "x", Grpc: t}}
			},
			"spec.contract.required_outputs[1].predicate.grpc": func(s *harnessv1.RunSpec, t string) { output(&harnessv1.Predicate{Grpc: t})(s) },
			"spec.agent.agents[0].contract.required_outputs[0].predicate.grpc": func(s *harnessv1.RunSpec, t string) {
				s.Agent.Agents = []*harnessv1.SubAgent{{Name: "a", Contract: &harnessv1.TaskContract{RequiredOutputs: []*harnessv1.RequiredOutput{{Predicate: &harnessv1.Predicate{Grpc: t}}}}}}
			},
			"spec.config.context.summarizer.model": func(s *harnessv1.RunSpec, t string) { s.Config.Context = summarized("grpc:" + t) },
			"spec.agent.model":                     func(s *harnessv1.RunSpec, t string) { s.Agent.Model = "grpc:" + t },
		} {
			for service, allowed := range map[string]bool{"hooks.example:7700": true, "127.0.0.1:22": false, "169.254.169.254:80": false} {
				r := &harnessv1.StartRunRequest{Spec: spec(func(s *harnessv1.RunSpec) { set(s, service) })}
				for way, err := range ways(t, guard, forAll, r) {
					got := fault.FieldOf(err)
					refused := got != nil && status.Code(err) == codes.InvalidArgument && got.Field == field && got.Message == "use --allow-target"
					if refused == (allowed || name == "the key") || got != nil && !refused {
						t.Errorf("%s = %s with %s over %s: %v", field, service, name, way, err)
					}
				}
			}
		}
	}
}

// TestEveryServiceOfARunIsChecked: this test knows the fields of a spec that name a service.
// A new one belongs into targetsOf, and here. The url of a server of tools is dialled by the tool
// host, which checks its addresses (TestServerOverHTTP there), and so is that of a search backend.
func TestEveryServiceOfARunIsChecked(t *testing.T) {
	var found []string
	services((&harnessv1.RunSpec{}).ProtoReflect().Descriptor(), "", map[protoreflect.FullName]bool{}, &found)
	slices.Sort(found)
	if got := strings.Join(found, " "); got != ".agent.agents.contract.required_outputs.predicate.grpc .agent.context_providers.grpc .agent.hooks.grpc .agent.mcp.grpc .agent.mcp.url .agent.web.search.url .contract.required_outputs.predicate.grpc" {
		t.Errorf("a spec names services in %s", got)
	}
}

func services(m protoreflect.MessageDescriptor, path string, above map[protoreflect.FullName]bool, found *[]string) {
	if above[m.FullName()] {
		return
	}
	above[m.FullName()] = true
	defer delete(above, m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		at := path + "." + string(f.Name())
		switch name := string(f.Name()); {
		case f.Kind() == protoreflect.MessageKind && !f.IsMap():
			services(f.Message(), at, above, found)
		case f.Kind() != protoreflect.StringKind:
		case strings.Contains(name, "grpc"), strings.Contains(name, "url"), strings.Contains(name, "target"), strings.Contains(name, "address"), strings.Contains(name, "endpoint"):
			*found = append(*found, at)
		}
	}
}
