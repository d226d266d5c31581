package provider_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
)

// TestARefusedToolIsLeftOut: a service of each wire refuses the definition of one tool in its words.
// The error names the tool, and the request with the adjustment is sent without it alone.
func TestARefusedToolIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name, model, addressVariable, keyVariable, body string
		wire                                            harnessv1.Adjustment
	}{
		{"chat", "openai:m", "OPENAI_BASE_URL", "OPENAI_API_KEY", `{"error":{"message":"Invalid schema for function 'mcp__s__odd': In context=(), object schema missing properties.","type":"invalid_request_error","param":"tools[1].function.parameters","code":"invalid_function_parameters"}}`, harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT},
		{"chat, by place", "openai:m", "OPENAI_BASE_URL", "OPENAI_API_KEY", `{"error":{"message":"Invalid schema.","type":"invalid_request_error","param":"tools[1].function.parameters"}}`, harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT},
		{"deepseek", "deepseek:m", "DEEPSEEK_BASE_URL", "DEEPSEEK_API_KEY", `{"error":{"message":"Invalid schema for function 'mcp__s__odd': schema must be a JSON Schema of 'type: \"object\"', got 'type: null'.","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, 0},
		{"google", "google:m", "GOOGLE_BASE_URL", "GEMINI_API_KEY", `[{"error":{"code":400,"message":"* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties: should be non-empty for OBJECT type\n","status":"INVALID_ARGUMENT"}}]`, 0},
		{"responses", "xai:m", "XAI_BASE_URL", "XAI_API_KEY", `{"error":{"message":"Invalid schema for function 'mcp__s__odd': In context=(), 'required' is required to be supplied.","type":"invalid_request_error","param":"tools[1].parameters","code":"invalid_function_parameters"}}`, 0},
		{"messages", "anthropic:m", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", `{"type":"error","error":{"type":"invalid_request_error","message":"tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12."}}`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var names []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				data, _ := io.ReadAll(r.Body)
				var request struct {
					Tools []struct {
						Name     string
						Function struct{ Name string }
					}
				}
				if json.Unmarshal(data, &request) != nil {
					return
				}
				names = nil
				for _, tool := range request.Tools {
					names = append(names, tool.Name+tool.Function.Name)
				}
				w.Header().Set("Content-Type", "application/json")
				if slices.Contains(names, "mcp__s__odd") {
					w.WriteHeader(http.StatusBadRequest)
					_, _ = io.WriteString(w, c.body)
					return
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer s.Close()
			p, name, err := provider.Open(c.model, environment(c.addressVariable, s.URL, c.keyVariable, "sk-1"))
			if err != nil {
				t.Fatal(err)
			}
			tool := func(name string) *harnessv1.ToolSpec {
				return &harnessv1.ToolSpec{Name: name, Description: "d", ParametersSchema: `{"type":"object","properties":{"a":{"type":"string"}}}`}
			}
			req := conversation(name)
			req.Tools = []*harnessv1.ToolSpec{tool("read_file"), tool("mcp__s__odd"), tool("mcp__s__even")}
			if c.wire != 0 {
				req.Adjustments = append(req.Adjustments, &harnessv1.ModelAdjustment{Model: c.model, Adjustment: c.wire})
			}
			_, err = p.Complete(t.Context(), req, func(model.Delta) {})
			if e := model.AsError(err); e.Adjustment != harnessv1.Adjustment_ADJUSTMENT_NO_TOOL || e.Tool != "mcp__s__odd" {
				t.Fatalf("%v: %v, tool %q", err, e.Adjustment, e.Tool)
			}
			req.Adjustments = append(req.Adjustments, &harnessv1.ModelAdjustment{Model: c.model, Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_TOOL, Tool: "mcp__s__odd"})
			if _, err = p.Complete(t.Context(), req, func(model.Delta) {}); err == nil || strings.Join(names, " ") != "read_file mcp__s__even" {
				t.Errorf("%v: the tools are %v", err, names)
			}
			if len(req.Tools) != 3 {
				t.Error("the request of the caller was changed")
			}
			if err := p.(interface{ Close() error }).Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
