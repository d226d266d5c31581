package dialect_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/pkg/tool/dialect"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// maxRequestTools is how many tools a request has: services refuse more than 128.
const maxRequestTools = 128

// realTools returns the tools of testdata as a model is shown them.
func realTools(t *testing.T) (tools []*harnessv1.ToolSpec) {
	t.Helper()
	file, err := os.Open("testdata/schemas.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Server, Name string
			Schema       json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		converted, err := dialect.Convert(string(line.Schema))
		if err != nil {
			t.Errorf("left out: %s %s: %v", line.Server, line.Name, err)
			continue
		}
		tools = append(tools, &harnessv1.ToolSpec{
			Name: dialect.Name("mcp__"+line.Server+"__", line.Name), Description: "A tool of a server.", ParametersSchema: converted.Schema,
		})
	}
	if err := lines.Err(); err != nil || len(tools) < 300 {
		t.Fatalf("%d tools, %v: want at least 300", len(tools), err)
	}
	return tools
}

// TestRealSchemasAreTakenOverEveryWire sends the tools of real servers to the strict servers of all
// three wires, through the providers that runs use.
func TestRealSchemasAreTakenOverEveryWire(t *testing.T) {
	t.Parallel()
	tools := realTools(t)
	for wire, provider := range map[string]func(*modeltest.Server) (model.Provider, error){
		"chat": func(s *modeltest.Server) (model.Provider, error) {
			return openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
		},
		"responses": func(s *modeltest.Server) (model.Provider, error) {
			return responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
		},
		"messages": func(s *modeltest.Server) (model.Provider, error) {
			return anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()}})
		},
	} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
				return modeltest.Reply{Text: fmt.Sprint(len(r.Tools), " tools")}
			})
			p, err := provider(s)
			if err != nil {
				t.Fatal(err)
			}
			for part := range slices.Chunk(tools, maxRequestTools) {
				req := modeltest.Conversation(true)
				req.Tools = part
				resp, err := p.Complete(t.Context(), req, nil)
				if err != nil {
					t.Errorf("a request with the tools %s to %s: %v", part[0].GetName(), part[len(part)-1].GetName(), err)
				} else if want := fmt.Sprint(len(part), " tools"); resp.Text != want {
					t.Errorf("the server received %s, want %s", resp.Text, want)
				}
			}
		})
	}
}
