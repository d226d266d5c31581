package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
)

// scripts permits one file.
func scripts(path string) (string, error) {
	if path == "/scripts/a.yaml" {
		return "a.yaml", nil
	}
	return "", errors.New("use --scripts")
}

// TestScriptedModelsAreWithinTheirFolder wherever a request names a model, over each way,
// with every right and with no tokens at all.
func TestScriptedModelsAreWithinTheirFolder(t *testing.T) {
	file, _, _ := tokens(t, forAll+"\n")
	for token, tokens := range map[string]*access.Tokens{forAll: file, "any": nil} {
		guard := access.NewGuard(tokens).Within(access.Limits{Scripts: scripts})
		for field, set := range map[string]func(*harnessv1.RunSpec, string){
			"spec.agent.model":                     func(s *harnessv1.RunSpec, m string) { s.Agent.Model = m },
			"spec.agent.fallback_models[1]":        func(s *harnessv1.RunSpec, m string) { s.Agent.FallbackModels = []string{"openai:x", m} },
			"spec.config.context.summarizer.model": func(s *harnessv1.RunSpec, m string) { s.Config.Context = summarized(m) },
			"spec.config.quality.model":            func(s *harnessv1.RunSpec, m string) { s.Config.Quality = &harnessv1.QualityConfig{Model: m} },
			"spec.agent.agents[1].agents[0].model": func(s *harnessv1.RunSpec, m string) {
				s.Agent.Agents = []*harnessv1.SubAgent{{Name: "a"}, {Name: "b", Agents: []*harnessv1.SubAgent{{Name: "c", Model: m}}}}
			},
		} {
			for model, refused := range map[string]bool{
				"script:/scripts/a.yaml": false, "script:/dev/zero": true, "replay:/etc/passwd": true, "script:": true, "openai:/dev/zero": false,
			} {
				r := &harnessv1.StartRunRequest{Spec: spec(func(s *harnessv1.RunSpec) { set(s, model) })}
				for way, err := range ways(t, guard, token, r) {
					got := fault.FieldOf(err)
					if refused && (status.Code(err) != codes.InvalidArgument || got == nil || got.Field != field || got.Message != "use --scripts") || !refused && got != nil {
						t.Errorf("%s = %s over %s: %v", field, model, way, err)
					}
				}
			}
		}
	}
}

func summarized(model string) *harnessv1.ContextConfig {
	return &harnessv1.ContextConfig{Summarizer: &harnessv1.SummarizerConfig{Model: model}}
}

// TestEveryModelOfARunIsChecked: this test knows the fields of a spec that name a model. A
// new one belongs into modelsOf, and here.
func TestEveryModelOfARunIsChecked(t *testing.T) {
	known := []string{".agent.model", ".agent.fallback_models", ".agent.agents.model", ".config.context.summarizer.model", ".config.quality.model"}
	var found []string
	models((&harnessv1.RunSpec{}).ProtoReflect().Descriptor(), "", map[protoreflect.FullName]bool{}, &found)
	if strings.Join(found, " ") != strings.Join(known, " ") {
		t.Errorf("a spec names models in %v, want %v", found, known)
	}
}

func models(m protoreflect.MessageDescriptor, path string, above map[protoreflect.FullName]bool, found *[]string) {
	if above[m.FullName()] {
		return
	}
	above[m.FullName()] = true
	defer delete(above, m.FullName())
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		at := path + "." + string(f.Name())
		switch {
		case f.Kind() == protoreflect.MessageKind && !f.IsMap():
			models(f.Message(), at, above, found)
		case f.Kind() == protoreflect.StringKind && strings.Contains(string(f.Name()), "model"):
			*found = append(*found, at)
		}
	}
}

// TestLimitsCheckLaterStarts: a start that is not the first message of a stream too.
func TestLimitsCheckLaterStarts(t *testing.T) {
	guard := access.NewGuard(nil).Within(access.Limits{Scripts: scripts})
	attach := &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Attach{Attach: &harnessv1.AttachRun{RunId: "r"}}}
	later := &harnessv1.RunRequest{Request: &harnessv1.RunRequest_Start{Start: &harnessv1.StartRunRequest{
		Spec: spec(func(s *harnessv1.RunSpec) { s.Agent.Model = "script:/dev/zero" }),
	}}}
	over := map[string]error{"gRPC": stream(t.Context(), dial(t, guard.ServerOptions()...), attach, later)}
	request := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/v1/runs", nil)
	guard.HTTP(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		over["HTTP"] = stream(in.Context(), guard.Confine(dial(t)), attach, later)
	}), nil).ServeHTTP(httptest.NewRecorder(), request)
	for way, err := range over {
		if got := fault.FieldOf(err); got == nil || got.Message != "use --scripts" {
			t.Errorf("over %s: %v", way, err)
		}
	}
}
