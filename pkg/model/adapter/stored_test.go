package adapter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// hostileText has JSON texts that services refuse in requests; each replaces TEXT in an answer.
var hostileText = []string{
	`"plain"`, `""`, `" \n"`, `"\ud99c"`, `"\udc00\ud83d"`, `"a\u0000b"`, "\"\xff\xc3\"", `"\u2028\u0007\u001b[31m"`, `"\ud83d\ude00"`, `"` + strings.Repeat("x", 300) + `"`, `"a b/ü.\"c"`,
}

// hostileArguments has arguments as a model writes them.
var hostileArguments = []string{
	`{"path":"a"}`, `{"a":"\ud99c"}`, `{"\udc00":"\u0000"}`, `{"a":1,"a":{"b":1,"b":2}}`, `{"n":9007199254740993,"m":-123456789012345678901234567890}`, `{"n":1e999}`,
	strings.Repeat(`{"a":`, 125) + "1" + strings.Repeat("}", 125), strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), `{"a":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}", `{"a`, "\x00", "", "null", "[]", `"text"`, "{\"a\":\"\xff\"}", `{} {"path":"a"}`,
}

// hostileAnswers are answers with reasoning, text, and a call. ARGS is a JSON text, and RAW the same
// as an object where it is one.
var hostileAnswers = map[string]string{
	"chat": `{"choices":[{"message":{"content":TEXT,"reasoning_content":TEXT,"reasoning_details":[{"type":"reasoning.text","text":TEXT,"signature":TEXT}],` +
		`"tool_calls":[{"id":TEXT,"type":"function","extra_content":{"google":{"thought_signature":TEXT}},"function":{"name":TEXT,"arguments":ARGS}}]},"finish_reason":"tool_calls"}]}`,
	"responses": `{"status":"completed","output":[{"type":"reasoning","id":TEXT,"summary":[{"type":"summary_text","text":TEXT}],"encrypted_content":TEXT},` +
		`{"type":"message","content":[{"type":"output_text","text":TEXT}]},{"type":"function_call","id":TEXT,"call_id":TEXT,"name":TEXT,"arguments":ARGS,"status":"completed"}]}`,
	"messages": `{"type":"message","content":[{"type":"thinking","thinking":TEXT,"signature":TEXT},{"type":"redacted_thinking","data":TEXT},{"type":"text","text":TEXT},` +
		`{"type":"tool_use","id":TEXT,"name":TEXT,"input":RAW}],"stop_reason":"tool_use"}`,
}

// TestWhatAHostileProviderAnswersCanBeSent: after any answer, and any result, a strict server of the
// same wire and of the others takes the next request.
func TestWhatAHostileProviderAnswersCanBeSent(t *testing.T) {
	for wire, form := range hostileAnswers {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var answer, fault string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				if fault = strict(body); err != nil {
					fault = err.Error()
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			t.Cleanup(s.Close)
			ask := func(with, reply string) func(*testing.T, []*harnessv1.Message) (string, []*harnessv1.Message) {
				p := open(t, with, adapter.Endpoint{BaseURL: s.URL, APIKey: "k", HTTPClient: s.Client()})
				return func(t *testing.T, more []*harnessv1.Message) (string, []*harnessv1.Message) {
					req := modeltest.Conversation(false)
					req.Messages = append(req.Messages, more...)
					mu.Lock()
					answer, fault = reply, ""
					mu.Unlock()
					r, err := p.Complete(t.Context(), req, nil)
					if err != nil {
						return "error: " + err.Error(), nil
					}
					for i, c := range r.ToolCalls {
						if c.GetId() == "" { // the turn gives it one
							c.Id = fmt.Sprintf("call_1_%d", i)
						}
					}
					before := len(req.Messages)
					modeltest.Answer(req, r, func(c *harnessv1.ToolCall) string { return "\xff\x00" + c.GetName() })
					mu.Lock()
					defer mu.Unlock()
					return fault, req.Messages[before:]
				}
			}
			check := func(text, arguments string) {
				reply := strings.ReplaceAll(form, "TEXT", text)
				quoted, _ := json.Marshal(arguments)
				raw := arguments
				if !json.Valid([]byte(raw)) {
					raw = string(quoted)
				}
				reply = strings.ReplaceAll(strings.ReplaceAll(reply, "ARGS", string(quoted)), "RAW", raw)
				got, stored := ask(wire, reply)(t, nil)
				if strings.HasPrefix(got, "error") {
					return // the answer is refused, so nothing of it is stored
				}
				for with := range hostileAnswers {
					if got, _ := ask(with, answers[with])(t, stored); got != "" {
						t.Errorf("text %.40s, arguments %.40s: the request to %s: %.300s", text, arguments, with, got)
					}
				}
			}
			for _, text := range hostileText {
				check(text, `{"path":"a"}`)
			}
			for _, arguments := range hostileArguments {
				check(`"plain"`, arguments)
			}
		})
	}
}

// sendable is the form of names that all services take; Anthropic takes ids of it of any length.
var sendable, sendableID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`), regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// strict returns the fault for which a strict server refuses a request; empty if there is none.
func strict(body []byte) string {
	if fault := strictJSON(body); fault != "" {
		return fault
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if fault := strictValue(d, 0); fault != "" {
		return fault
	}
	var calls, results []string
	var request any
	_ = json.Unmarshal(body, &request)
	var walk func(v any) string
	walk = func(v any) string {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				if fault := walk(e); fault != "" {
					return fault
				}
			}
		case map[string]any:
			kind, _ := v["type"].(string)
			id, _ := v["id"].(string)
			name, _ := v["name"].(string)
			callID, _ := v["call_id"].(string)
			switch kind {
			case "function":
				if f, ok := v["function"].(map[string]any); ok && f["arguments"] != nil {
					name, _ = f["name"].(string)
					calls = append(calls, id)
					if !sendable.MatchString(name) || id == "" {
						return fmt.Sprintf("a call %q with id %q", name, id)
					}
				}
			case "tool_use":
				calls = append(calls, id)
				if _, object := v["input"].(map[string]any); !object || !sendable.MatchString(name) || !sendableID.MatchString(id) {
					return fmt.Sprintf("a tool_use %q with id %q", name, id)
				}
				return ""
			case "function_call":
				calls = append(calls, callID)
				if !sendable.MatchString(name) || callID == "" || len(callID) > 64 {
					return fmt.Sprintf("a function_call %q with id %q", name, callID)
				}
			case "tool_result":
				id, _ = v["tool_use_id"].(string)
				results = append(results, id)
			case "function_call_output":
				results = append(results, callID)
			case "text":
				if text, _ := v["text"].(string); strings.TrimSpace(text) == "" {
					return "an empty text"
				}
			}
			if v["role"] == "tool" {
				id, _ = v["tool_call_id"].(string)
				results = append(results, id)
			}
			for _, e := range v {
				if fault := walk(e); fault != "" {
					return fault
				}
			}
		}
		return ""
	}
	if fault := walk(request); fault != "" {
		return fault
	}
	slices.Sort(calls)
	slices.Sort(results)
	if !slices.Equal(calls, results) {
		return fmt.Sprintf("calls %q with results of %q", calls, results)
	}
	return ""
}

// maxDepth is the depth to which decoders read by default: Rust's serde_json stops after 127, Python
// at about 1,000.
const maxDepth = 127

// strictValue returns the fault of a value: too deep, a member twice, or a number that is infinite.
func strictValue(d *json.Decoder, depth int) string {
	token, err := d.Token()
	if err != nil {
		return err.Error()
	}
	if n, ok := token.(json.Number); ok {
		if _, err := n.Float64(); err != nil {
			return "the number " + n.String()
		}
	}
	open, ok := token.(json.Delim)
	if !ok {
		return ""
	}
	if depth++; depth > maxDepth {
		return "too deep"
	}
	members := map[string]bool{}
	for d.More() {
		if open == '{' {
			key, _ := d.Token()
			name := fmt.Sprint(key)
			if members[name] {
				return fmt.Sprintf("the member %q twice", name)
			}
			members[name] = true
		}
		if fault := strictValue(d, depth); fault != "" {
			return fault
		}
	}
	_, _ = d.Token()
	return ""
}

// strictJSON returns the fault for which a strict decoder refuses JSON; empty if there is none.
func strictJSON(body []byte) string {
	switch {
	case !utf8.Valid(body):
		return "invalid UTF-8"
	case !json.Valid(body):
		return "invalid JSON"
	case bytes.Contains(bytes.ReplaceAll(body, []byte(`\\`), nil), []byte(`\u0000`)):
		return "NUL"
	case halfPair.Match(wholePair.ReplaceAll(bytes.ReplaceAll(body, []byte(`\\`), nil), nil)):
		return "half of a surrogate pair"
	}
	return ""
}

// wholePair is the escape of a character beyond U+FFFF; another escape of a surrogate is half of one.
var wholePair = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}`)

var halfPair = regexp.MustCompile(`\\u[dD][89abcdefABCDEF][0-9a-fA-F]{2}`)
