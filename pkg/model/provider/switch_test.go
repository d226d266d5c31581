package provider_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	toChat      = harnessv1.Adjustment_ADJUSTMENT_WIRE_CHAT
	toResponses = harnessv1.Adjustment_ADJUSTMENT_WIRE_RESPONSES
	unchanged   = harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED
)

// denyingServer is a server in front of a modeltest.Server that refuses some paths.
type denyingServer struct {
	*httptest.Server
	inspect func(body []byte) // may be nil

	mu    sync.Mutex
	paths []string
}

func restrict(t *testing.T, refuse map[string]modeltest.Reply) *denyingServer {
	s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
	out := &denyingServer{}
	g := newGateway(t, s, "/v1", false)
	out.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out.mu.Lock()
		out.paths = append(out.paths, r.URL.Path)
		out.mu.Unlock()
		if out.inspect != nil {
			body, _ := io.ReadAll(r.Body)
			out.inspect(body)
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		if reply, ok := refuse[r.URL.Path]; ok {
			w.WriteHeader(reply.Status)
			_, _ = io.WriteString(w, reply.Body)
			return
		}
		g.server.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(out.Close)
	return out
}

func (r *denyingServer) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.paths)
}

// turn makes tries as a turn does: it repeats a request with the adjustment that a
// refusal asks for.
func turn(t *testing.T, p model.Provider, name string, before ...harnessv1.Adjustment) (*model.Response, *model.Error, []harnessv1.Adjustment) {
	t.Helper()
	req := modeltest.Conversation(true)
	req.Model = name
	for _, a := range before {
		req.Adjustments = append(req.Adjustments, &harnessv1.ModelAdjustment{Adjustment: a})
	}
	made := []harnessv1.Adjustment{}
	for {
		resp, err := p.Complete(t.Context(), req, nil)
		if err == nil {
			return resp, nil, made
		}
		failed := model.AsError(err)
		if failed.Adjustment == unchanged {
			return nil, failed, made
		}
		if made = append(made, failed.Adjustment); len(made) > 3 {
			t.Fatalf("the adjustments do not end: %v", made)
		}
		req.Adjustments = append(req.Adjustments, &harnessv1.ModelAdjustment{Adjustment: failed.Adjustment})
	}
}

func refusal(message string) modeltest.Reply {
	body, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error", "param": "reasoning_effort"}})
	return modeltest.Reply{Status: http.StatusBadRequest, Body: string(body)}
}

var (
	namesResponses = refusal("Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.")
	noPath         = modeltest.Reply{Status: http.StatusNotFound, Body: `{"error":{"message":"not found"}}`}
	noMethod       = modeltest.Reply{Status: http.StatusMethodNotAllowed, Body: `{"error":{"message":"method not allowed"}}`}
)

func TestWire(t *testing.T) {
	const chat, responses = "/v1/chat/completions", "/v1/responses"
	for _, c := range []struct {
		name   string
		ref    string
		refuse map[string]modeltest.Reply
		before []harnessv1.Adjustment
		paths  []string
		made   []harnessv1.Adjustment
		fails  string
	}{
		{"the provider's first", "openai:local", nil, nil, []string{chat}, nil, ""},
		{"the entry's", "openai:gpt-5.4", nil, nil, []string{responses}, nil, ""},
		{"the entry's, dated", "openai:gpt-5-2025-08-07", nil, nil, []string{responses}, nil, ""},
		{"xai", "xai:grok-4.5", nil, nil, []string{responses}, nil, ""},
		{"an adjustment", "openai:local", nil, []harnessv1.Adjustment{toResponses}, []string{responses}, nil, ""},
		{"the other adjustment", "openai:gpt-5.4", nil, []harnessv1.Adjustment{toChat}, []string{chat}, nil, ""},
		{"the last adjustment", "openai:gpt-5.4", nil, []harnessv1.Adjustment{toChat, toResponses}, []string{responses}, nil, ""},
		{"other adjustments", "openai:gpt-5.4", nil, []harnessv1.Adjustment{harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY}, []string{responses}, nil, ""},
		{"a server of chat alone", "openai:gpt-5.4", map[string]modeltest.Reply{responses: noPath}, nil, []string{responses, chat}, []harnessv1.Adjustment{toChat}, ""},
		{"a server without the method", "openai:gpt-5.4", map[string]modeltest.Reply{responses: noMethod}, nil, []string{responses, chat}, []harnessv1.Adjustment{toChat}, ""},
		{"a refusal that names responses", "openai:unknown", map[string]modeltest.Reply{chat: namesResponses}, nil, []string{chat, responses}, []harnessv1.Adjustment{toResponses}, ""},
		{"both refuse", "openai:unknown", map[string]modeltest.Reply{chat: namesResponses, responses: noPath}, nil, []string{chat, responses}, []harnessv1.Adjustment{toResponses}, "404"},
		{"both refuse the entry's", "openai:gpt-5.4", map[string]modeltest.Reply{chat: namesResponses, responses: noPath}, nil, []string{responses, chat}, []harnessv1.Adjustment{toChat}, "use /v1/responses"},
		{"proposed before", "openai:unknown", map[string]modeltest.Reply{chat: namesResponses}, []harnessv1.Adjustment{toChat}, []string{chat}, nil, "use /v1/responses"},
		{"a provider without the other wire", "groq:unknown", map[string]modeltest.Reply{chat: namesResponses}, nil, []string{chat}, nil, "use /v1/responses"},
		{"an adjustment to a wire that is not there", "groq:unknown", nil, []harnessv1.Adjustment{toResponses}, []string{chat}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := restrict(t, c.refuse)
			base := s.URL + "/v1"
			p, name, err := provider.Open(c.ref, environment("OPENAI_BASE_URL", base, "GROQ_BASE_URL", base, "XAI_BASE_URL", base))
			if err != nil {
				t.Fatal(err)
			}
			resp, failed, made := turn(t, p, name, c.before...)
			if !slices.Equal(s.seen(), c.paths) || !slices.Equal(made, c.made) {
				t.Errorf("requests to %v after the adjustments %v, want %v and %v", s.seen(), made, c.paths, c.made)
			}
			if c.fails == "" && (failed != nil || resp.Text != "hello") || c.fails != "" && (failed == nil || !strings.Contains(failed.Message, c.fails)) {
				t.Errorf("answered %v, %v, want an error with %q", resp, failed, c.fails)
			}
		})
	}
}

// TestWireOfOwnAddress: the provider's own address has all wires, so that a path that it
// does not know is an error.
func TestWireOfOwnAddress(t *testing.T) {
	const file = "providers: [{name: own, wire: [responses, chat], address: '%s/v1'}]"
	s := restrict(t, map[string]modeltest.Reply{"/v1/responses": noPath})
	c, err := catalogue.Default().Extend("own.yaml", []byte(strings.ReplaceAll(file, "%s", s.URL)))
	if err != nil {
		t.Fatal(err)
	}
	p, name, err := provider.OpenWith(c, "own:m", environment())
	if err != nil {
		t.Fatal(err)
	}
	if _, failed, made := turn(t, p, name); len(made) > 0 || failed == nil || failed.Status != http.StatusNotFound {
		t.Errorf("the wire was switched: %v, %v", made, failed)
	}
}
