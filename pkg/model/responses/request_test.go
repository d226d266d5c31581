package responses_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const tools = `[{"type":"function","name":"read_file","description":"Reads a file.","parameters":` +
	`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]},"strict":false},` +
	`{"type":"function","name":"noop","parameters":{"type":"object","properties":{}},"strict":false}]`

// send returns the body and the headers of the only request of a conversation.
func send(t *testing.T, cfg responses.Config, req *model.Request) modeltest.ReceivedRequest {
	t.Helper()
	s := modeltest.NewServer(t, modeltest.Reply{Text: "ok"})
	if _, err := configured(t, s, cfg).Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	return s.Requests()[0]
}

// conversation is the small request of the kit with more messages.
func conversation(more ...*harnessv1.Message) *model.Request {
	req := modeltest.Conversation(true)
	req.Tools = []*harnessv1.ToolSpec{req.Tools[0], {Name: "noop"}}
	for _, m := range more {
		m.Id = uint64(len(req.Messages) + 1)
		req.Messages = append(req.Messages, m)
	}
	return req
}

func message(role harnessv1.Role, text string, parts ...*harnessv1.Part) *harnessv1.Message {
	return &harnessv1.Message{Role: role, Content: content.Inline(text), Parts: parts}
}

func image(data string) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Data: []byte(data)}}}
}

func document(name, data string) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "application/pdf", Name: name, Data: []byte(data)}}}
}

func TestRequestBytes(t *testing.T) {
	long, longest := strings.Repeat("ä", 65), strings.Repeat("ä", 64)
	req := conversation(
		message(harnessv1.Role_ROLE_USER, "See <&>.", image("i"), document("a.pdf", "d"), document("", "e")),
		message(harnessv1.Role_ROLE_USER, "", image("i")),
		&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Looking."), ToolCalls: []*harnessv1.ToolCall{
			{Id: "c1", Name: "read_file", Arguments: content.Inline(`{"path": `)}, {Id: long, Name: "read file"}, {Id: longest, Name: "f"},
		}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c1", Content: content.Inline("A picture."), Parts: []*harnessv1.Part{image("i")}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: long},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: longest},
		message(harnessv1.Role_ROLE_ASSISTANT, " \n"),
		message(harnessv1.Role_ROLE_SYSTEM, "Later."),
	)
	req.CacheKey, req.ShowReasoning, req.Effort = "run-1", true, harnessv1.Effort_EFFORT_XHIGH
	head := `{"model":"test-model","instructions":"You are tested.","tools":` + tools + `,"store":false,"include":["reasoning.encrypted_content"],` +
		`"reasoning":{"effort":"xhigh","summary":"auto"},"prompt_cache_key":"run-1",`
	input := `"input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"Read a and b."}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"See <&>."},{"type":"input_image","image_url":"data:image/png;base64,aQ=="},` +
		`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,ZA=="},` +
		`{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,ZQ=="}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,aQ=="}]},` +
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking."}]},` +
		`{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{\"not_a_json_object\":\"{\\\"path\\\": \"}"},` +
		`{"type":"function_call","call_id":"call_38c6dffdb7e86338b8fa91b014c24cea","name":"read_file","arguments":"{}"},` +
		`{"type":"function_call","call_id":"` + longest + `","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"A picture."},{"type":"input_image","image_url":"data:image/png;base64,aQ=="}]},` +
		`{"type":"function_call_output","call_id":"call_38c6dffdb7e86338b8fa91b014c24cea","output":""},` +
		`{"type":"function_call_output","call_id":"` + longest + `","output":""},` +
		`{"type":"message","role":"system","content":[{"type":"input_text","text":"Later."}]}]}`
	if got := string(send(t, responses.Config{Endpoint: adapter.Endpoint{Takes: everything}}, req).Body); got != head+`"stream":true,`+input {
		t.Errorf("the request is\n%s\nwant\n%s", got, head+`"stream":true,`+input)
	}
	req.Streaming = false
	cfg := responses.Config{Endpoint: adapter.Endpoint{Takes: everything, Body: map[string]json.RawMessage{"text": json.RawMessage(`{"verbosity": "low"}`), "metadata": json.RawMessage(`{}`)}}}
	if got, want := string(send(t, cfg, req).Body), head+`"metadata":{},"text":{"verbosity": "low"},`+input; got != want {
		t.Errorf("the plain request with additional members is\n%s\nwant\n%s", got, want)
	}
}

func TestLimitOfTheOutput(t *testing.T) {
	for limit, want := range map[uint32]string{0: "", 4: `,"max_output_tokens":16,`, 4000: `,"max_output_tokens":4000,`} {
		req := conversation()
		req.MaxOutputTokens = limit
		if body := string(send(t, responses.Config{}, req).Body); strings.Contains(body, "max_output_tokens") != (want != "") || !strings.Contains(body, want) {
			t.Errorf("limit %d: %s", limit, body)
		}
	}
}

func everything(string) media.Takes { return media.Takes{Images: true, Documents: true} }

func TestHeaders(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org")
	bearer := send(t, responses.Config{Endpoint: adapter.Endpoint{APIKey: "k"}}, modeltest.Conversation(true)).Header
	if bearer.Get("Authorization") != "Bearer k" || bearer.Get("Openai-Organization") != "" {
		t.Errorf("headers %v, want the key as a bearer token and nothing of the environment", bearer)
	}
	own := send(t, responses.Config{Endpoint: adapter.Endpoint{APIKey: "k", KeyHeader: "api-key", Header: http.Header{"x-more": {"1", "2"}}}}, modeltest.Conversation(true)).Header
	if own.Get("Api-Key") != "k" || own.Get("Authorization") != "" || !slices.Equal(own.Values("X-More"), []string{"1", "2"}) {
		t.Errorf("headers %v, want the key in api-key, and both values of x-more", own)
	}
	if h := send(t, responses.Config{}, modeltest.Conversation(true)).Header; h.Get("Authorization") != "" {
		t.Errorf("headers %v, want none for a key that is not set", h)
	}
}

func TestReasoningMembers(t *testing.T) {
	const (
		none, low, high = harnessv1.Effort_EFFORT_NONE, harnessv1.Effort_EFFORT_LOW, harnessv1.Effort_EFFORT_HIGH
		encrypted       = `["reasoning.encrypted_content"]`
	)
	for name, c := range map[string]struct {
		effort            harnessv1.Effort
		hide, dumb        bool
		adjusted          harnessv1.Adjustment
		include, reasoned string
	}{
		"summary":           {include: encrypted, reasoned: `{"summary":"auto"}`},
		"effort":            {effort: low, include: encrypted, reasoned: `{"effort":"low","summary":"auto"}`},
		"effort, no text":   {effort: low, hide: true, include: encrypted, reasoned: `{"effort":"low"}`},
		"nearest effort":    {effort: high, include: encrypted, reasoned: `{"effort":"low","summary":"auto"}`},
		"no effort":         {effort: none, include: encrypted, reasoned: `{"effort":"none"}`},
		"nothing":           {hide: true, include: encrypted},
		"does not reason":   {effort: low, dumb: true},
		"no summary":        {adjusted: harnessv1.Adjustment_ADJUSTMENT_NO_SUMMARY, include: encrypted},
		"nothing encrypted": {adjusted: harnessv1.Adjustment_ADJUSTMENT_NO_ENCRYPTED, reasoned: `{"summary":"auto"}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := modeltest.Conversation(true)
			req.Effort, req.ShowReasoning = c.effort, !c.hide
			if c.adjusted != 0 {
				req.Adjustments = []*harnessv1.ModelAdjustment{{Adjustment: c.adjusted}}
			}
			sent := send(t, responses.Config{
				Efforts: func(model string) []harnessv1.Effort {
					return map[string][]harnessv1.Effort{"test-model": {none, low}}[model]
				},
				Reasons: func(model string) bool { return model == "test-model" && !c.dumb },
			}, req)
			var r struct{ Include, Reasoning json.RawMessage }
			if err := json.Unmarshal(sent.Body, &r); err != nil {
				t.Fatal(err)
			}
			if string(r.Include) != c.include || string(r.Reasoning) != c.reasoned {
				t.Errorf("include %s and reasoning %s, want %s and %s", r.Include, r.Reasoning, c.include, c.reasoned)
			}
		})
	}
}

// made is an answer of the endpoint at base, so that its opaque parts go back there.
func made(base, text string, calls []*harnessv1.ToolCall, parts ...*harnessv1.Part) *harnessv1.Message {
	return &harnessv1.Message{
		Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(text), ToolCalls: calls, Parts: parts,
		Origin: &harnessv1.Origin{Wire: responses.Wire, Endpoint: "openai " + base + "/responses", Model: "test-model"},
	}
}

func part(kind any, opaque string) *harnessv1.Part {
	p := &harnessv1.Part{}
	switch kind := kind.(type) {
	case int:
		p.Kind = &harnessv1.Part_Text{Text: uint64(kind)}
	case uint32:
		p.Kind = &harnessv1.Part_Call{Call: kind}
	default:
		p.Kind = &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("for people")}}
	}
	if opaque != "" {
		p.Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(opaque)}}
	}
	return p
}

// TestPartsGoBackInTheirOrder sends answers with parts. The server takes anything, so
// that the items need not be its own.
func TestPartsGoBackInTheirOrder(t *testing.T) {
	const (
		rs     = "{ \"type\":\"reasoning\",\n\"id\":\"rs_1\",\"summary\":[],\"encrypted_content\":\"<\u2028>\" }"
		call   = `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`
		second = `{"type":"function_call","call_id":"d","name":"f","arguments":"{}"}`
	)
	text := func(text, phase string) string {
		return `{"type":"message","role":"assistant",` + phase + `"content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	for name, c := range map[string]struct {
		text  string
		parts []*harnessv1.Part
		want  []string
	}{
		"order":                         {"a.b", []*harnessv1.Part{part(nil, rs), part(uint32(1), ""), part(2, `{"phase":"commentary"}`), part(uint32(0), ""), part(1, "")}, []string{rs, second, text("a.", `"phase":"commentary",`), call, text("b", "")}},
		"nothing after the reasoning":   {"a", []*harnessv1.Part{part(1, ""), part(uint32(0), ""), part(uint32(1), ""), part(nil, rs)}, []string{text("a", ""), call, second}},
		"a blank text after it":         {"a\n", []*harnessv1.Part{part(1, ""), part(uint32(0), ""), part(uint32(1), ""), part(nil, rs), part(nil, rs), part(1, `{"phase":"commentary"}`)}, []string{text("a", ""), call, second}},
		"reasoning without what goes":   {"", []*harnessv1.Part{part(nil, ""), part(uint32(0), ""), part(uint32(1), "")}, []string{call, second}},
		"a phase that is none":          {"a", []*harnessv1.Part{part(1, `{"phase":7}`), part(uint32(0), ""), part(uint32(1), "")}, []string{text("a", ""), call, second}},
		"parts that leave something":    {"ab", []*harnessv1.Part{part(nil, rs), part(1, "")}, []string{rs, text("a", ""), text("b", ""), call, second}},
		"parts that are out of bounds":  {"ab", []*harnessv1.Part{part(nil, rs), part(9, ""), part(uint32(7), ""), part(3, "")}, []string{rs, text("ab", ""), call, second}},
		"calls that are named twice":    {"", []*harnessv1.Part{part(nil, rs), part(uint32(1), ""), part(uint32(1), "")}, []string{rs, second, call}},
		"media, which no answer has":    {"a", []*harnessv1.Part{image("i"), part(1, "")}, []string{text("a", ""), call, second}},
		"opaque bytes of a call or so":  {"", []*harnessv1.Part{part(uint32(0), `{"a":1}`), part(nil, rs), part(uint32(1), "")}, []string{call, rs, second}},
		"only reasoning and blank text": {" ", []*harnessv1.Part{part(uint32(0), ""), part(uint32(1), ""), part(nil, rs), part(1, "")}, []string{call, second}},
	} {
		t.Run(name, func(t *testing.T) {
			var body []byte
			base, p := lenient(t, &body)
			calls := []*harnessv1.ToolCall{{Id: "c", Name: "f"}, {Id: "d", Name: "f"}}
			req := conversation(made(base, c.text, calls, c.parts...))
			if _, err := p.Complete(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, raw := range input(t, body)[1:] {
				got = append(got, string(raw))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("items\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestRequestsThatCannotBeSent(t *testing.T) {
	for name, change := range map[string]func(*model.Request){
		"role":         func(r *model.Request) { r.Messages[1].Role = 0 },
		"blob":         func(r *model.Request) { r.Messages[1].Content = blob() },
		"instructions": func(r *model.Request) { r.Messages[0].Content = blob() },
		"arguments": func(r *model.Request) {
			r.Messages[1] = &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: "a", Name: "f", Arguments: blob()}}}
		},
		"schema":        func(r *model.Request) { r.Tools[0].ParametersSchema = "{" },
		"empty media":   func(r *model.Request) { r.Messages[1].Parts = []*harnessv1.Part{image("")} },
		"type of media": func(r *model.Request) { r.Messages[1].Parts = []*harnessv1.Part{video()} },
		"media, results": func(r *model.Request) {
			r.Messages[1].Role, r.Messages[1].Parts = harnessv1.Role_ROLE_TOOL, []*harnessv1.Part{video()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t)
			req := modeltest.Conversation(true)
			change(req)
			resp, err := configured(t, s, responses.Config{Endpoint: adapter.Endpoint{Takes: everything}}).Complete(t.Context(), req, nil)
			modeltest.CheckError(t, resp, err, model.Error{RetryAfter: -1})
			if len(s.Requests()) != 0 {
				t.Errorf("the request was sent")
			}
		})
	}
}

func blob() *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{}}}
}

func video() *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "video/mp4", Data: []byte("v")}}}
}

func TestNewRejectsInvalidSettings(t *testing.T) {
	for _, base := range []string{"localhost:8000/v1", "ftp://x/v1", "http://", "://", "/v1"} {
		if _, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err == nil {
			t.Errorf("the address %q was accepted", base)
		}
	}
	for name, value := range map[string]string{"input": "[]", "store": "true", "reasoning": "{}", "custom": "{"} {
		_, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{Body: map[string]json.RawMessage{name: json.RawMessage(value)}}})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the additional member %s: error %v, want one that names it", name, err)
		}
	}
	for _, base := range []string{"", "http://127.0.0.1:1/v1", "https://x/v1/"} {
		if _, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: base}}); err != nil {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestModelFromTheList(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{}, modeltest.Reply{})
	s.Models, s.OnlyListed = []string{"first"}, true
	req := modeltest.Conversation(true)
	req.Model = ""
	p := provider(t, s)
	for range 2 {
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil || resp.Model != "first" {
			t.Errorf("%v and %v, want an answer of the only model", resp, err)
		}
	}
}
