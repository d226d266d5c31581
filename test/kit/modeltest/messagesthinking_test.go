package modeltest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// dialogue is a conversation over the Messages protocol, as a client keeps it.
type dialogue struct {
	t        *testing.T
	server   *modeltest.Server
	System   string            `json:"system,omitempty"`
	Model    string            `json:"model"`
	Limit    int               `json:"max_tokens"`
	Thinking json.RawMessage   `json:"thinking,omitempty"`
	Messages []dialogueMessage `json:"messages"`
}

type dialogueMessage struct {
	Role    string            `json:"role"`
	Content []json.RawMessage `json:"content"`
}

// newDialogue returns a conversation of two answers, one with three parts.
func newDialogue(t *testing.T, replies ...modeltest.Reply) *dialogue {
	t.Helper()
	d := &dialogue{t: t, Model: "m", Limit: 9000, System: "You are tested."}
	replies = append([]modeltest.Reply{
		{Parts: []modeltest.ReplyPart{
			{Thinking: &modeltest.Thinking{Text: "first <&>"}}, {Text: "Looking."}, {Thinking: &modeltest.Thinking{Redacted: true}},
			{Call: &modeltest.Call{ID: "a", Name: "f", Arguments: `{}`}},
		}},
		{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Size: 5000}}, {Call: &modeltest.Call{ID: "b", Name: "f", Arguments: `{}`}}}},
	}, replies...)
	d.server = modeltest.NewServer(t, replies...)
	d.user(`{"type":"text","text":"Go."}`)
	d.next()
	d.user(`{"type":"tool_result","tool_use_id":"a","content":"1"}`)
	d.next()
	d.user(`{"type":"tool_result","tool_use_id":"b","content":"2"}`)
	return d
}

func (d *dialogue) user(blocks ...string) {
	m := dialogueMessage{Role: "user"}
	for _, b := range blocks {
		m.Content = append(m.Content, json.RawMessage(b))
	}
	d.Messages = append(d.Messages, m)
}

// next sends the conversation and appends the answer.
func (d *dialogue) next() {
	d.t.Helper()
	status, body := d.send()
	if status != http.StatusOK {
		d.t.Fatalf("status %d: %s", status, body)
	}
	var answer dialogueMessage
	if err := json.Unmarshal(body, &answer); err != nil {
		d.t.Fatal(err)
	}
	for i, b := range answer.Content { // a member of responses only
		answer.Content[i] = json.RawMessage(strings.Replace(string(b), `"citations":null,`, "", 1))
	}
	d.Messages = append(d.Messages, answer)
}

func (d *dialogue) send() (status int, body []byte) {
	d.t.Helper()
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		d.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.server.MessagesURL()+"/v1/messages", &b)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	res, err := d.server.Client().Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err = io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, body
}

// replace changes the text of a block.
func (d *dialogue) replace(message, block int, from, to string) {
	d.t.Helper()
	changed := strings.Replace(string(d.Messages[message].Content[block]), from, to, 1)
	if changed == string(d.Messages[message].Content[block]) {
		d.t.Fatalf("%s has no %s", changed, from)
	}
	d.Messages[message].Content[block] = json.RawMessage(changed)
}

func (d *dialogue) remove(message, block int) {
	d.Messages[message].Content = slices.Delete(d.Messages[message].Content, block, block+1)
}

const (
	boundText    = "bound to a different conversation"
	modifiedText = "in the latest assistant message cannot be modified"
	invalidText  = "Invalid `signature` in `thinking` block"
)

func TestServerChecksThinkingThatComesBack(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(*dialogue)
		says     string // empty: accepted
		unbound  string // with UnboundThinking
		accepted int
		missing  int
	}{
		"unchanged":       {change: func(*dialogue) {}, accepted: 3},
		"cache marks":     {change: func(d *dialogue) { d.replace(0, 0, `"}`, `","cache_control":{"type":"ephemeral"}}`) }, accepted: 3},
		"front removed":   {change: func(d *dialogue) { d.remove(1, 0) }, accepted: 2, missing: 1},
		"only the newest": {change: func(d *dialogue) { d.remove(1, 2); d.remove(1, 0) }, accepted: 1, missing: 2},
		"all removed":     {change: func(d *dialogue) { d.remove(3, 0); d.remove(1, 2); d.remove(1, 0) }},
		"newest removed":  {change: func(d *dialogue) { d.remove(3, 0) }, accepted: 2},
		"middle removed":  {change: func(d *dialogue) { d.remove(1, 2) }, says: "messages.3.content.0: " + invalidText + ". The block is " + boundText, accepted: 2},
		"prompt":          {change: func(d *dialogue) { d.System = "Another." }, says: "messages.1.content.0: " + invalidText + ". The block is " + boundText, accepted: 3},
		"earlier text":    {change: func(d *dialogue) { d.replace(0, 0, "Go.", "Stop.") }, says: boundText, accepted: 3},
		"earlier result":  {change: func(d *dialogue) { d.replace(2, 0, `"1"`, `"x"`) }, says: "messages.3.content.0", accepted: 3},
		"later result":    {change: func(d *dialogue) { d.replace(4, 0, `"2"`, `"x"`) }, accepted: 3},
		"newest altered":  {change: func(d *dialogue) { d.replace(3, 0, `"thinking":""`, `"thinking":"x"`) }, says: modifiedText, unbound: modifiedText},
		"earlier altered": {change: func(d *dialogue) { d.replace(1, 0, "first", "First") }, says: invalidText, unbound: invalidText},
		"member added":    {change: func(d *dialogue) { d.replace(3, 0, `{`, `{"x":1,`) }, says: modifiedText, unbound: modifiedText},
		"bytes changed":   {change: func(d *dialogue) { d.replace(1, 0, `\u003c`, `<`) }, says: invalidText, unbound: invalidText},
		"another place":   {change: func(d *dialogue) { c := d.Messages[1].Content; c[1], c[2] = c[2], c[1] }, says: invalidText, unbound: invalidText},
		"another order": {change: func(d *dialogue) {
			d.Messages[1].Content[0], d.Messages[3].Content[0] = d.Messages[3].Content[0], d.Messages[1].Content[0]
		}, says: boundText, unbound: modifiedText},
		"not of the server": {change: func(d *dialogue) { d.replace(3, 0, `"signature":"`, `"signature":"x`) }, says: invalidText, unbound: invalidText},
		"no signature":      {change: func(d *dialogue) { d.replace(3, 0, `"signature"`, `"sign"`) }, says: "signature: Field required", unbound: "signature: Field required"},
		"marked":            {change: func(d *dialogue) { d.replace(3, 0, `{`, `{"cache_control":{"type":"ephemeral"},`) }, says: "cache_control: Extra inputs", unbound: "cache_control"},
		"nothing follows it": {change: func(d *dialogue) {
			d.remove(4, 0)
			d.remove(3, 1)
			d.user()
			d.Messages[4].Content = d.Messages[0].Content
			d.Messages = d.Messages[:5]
		}, says: "The final block in an assistant message cannot be `thinking`", unbound: "final block"},
		"another model":         {change: func(d *dialogue) { d.Model = "other" }},
		"in a message of users": {change: func(d *dialogue) { d.Messages[0].Content = append(d.Messages[0].Content, d.Messages[1].Content[0]) }, says: "in a message of the user", unbound: "user"},
	} {
		for _, unbound := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/unbound %t", name, unbound), func(t *testing.T) {
				d := newDialogue(t, modeltest.Reply{Text: "Done."})
				d.server.UnboundThinking = unbound
				c.change(d)
				says := c.says
				if unbound {
					says = c.unbound
				}
				status, body := d.send()
				last := d.server.Requests()[2]
				if says != "" {
					if status != http.StatusBadRequest || !strings.Contains(last.Refused, says) {
						t.Errorf("status %d, %s: want 400 with %q", status, body, says)
					}
					return
				}
				if status != http.StatusOK || last.Thinking.Accepted != c.accepted {
					t.Errorf("status %d, %s: %d blocks were accepted, want %d", status, body, last.Thinking.Accepted, c.accepted)
				}
				if !unbound && last.Thinking.Missing != c.missing {
					t.Errorf("%d blocks are missing, want %d", last.Thinking.Missing, c.missing)
				}
				if dropped := len(last.Thinking.Blocks) - last.Thinking.Accepted; last.Thinking.Dropped != dropped {
					t.Errorf("%d blocks were dropped, want %d", last.Thinking.Dropped, dropped)
				}
			})
		}
	}
}

// TestServerRequiresTheWholeThinkingOfTheNewestAnswer removes a part of it.
func TestServerRequiresTheWholeThinkingOfTheNewestAnswer(t *testing.T) {
	d := newDialogue(t)
	d.Messages = d.Messages[:3]
	d.remove(1, 2)
	if status, body := d.send(); status != http.StatusBadRequest || !strings.Contains(string(body), modifiedText) {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestServerRefusesThinkingThatWasGone sends a block again that was missing when a later
// one was made.
func TestServerRefusesThinkingThatWasGone(t *testing.T) {
	d := newDialogue(t, modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{}}, {Text: "Hm."}}}, modeltest.Reply{})
	first := d.Messages[1].Content[0]
	d.remove(1, 0)
	d.next()
	d.user(`{"type":"text","text":"And?"}`)
	d.Messages[1].Content = slices.Insert(d.Messages[1].Content, 0, first)
	if status, body := d.send(); status != http.StatusBadRequest || !strings.Contains(string(body), boundText) {
		t.Errorf("status %d: %s", status, body)
	}
	d.remove(1, 0)
	if status, body := d.send(); status != http.StatusOK {
		t.Errorf("status %d: %s", status, body)
	}
}

func TestServerShowsThinkingAsConfigured(t *testing.T) {
	for config, text := range map[string]string{
		``: "Hm.", `{"type":"adaptive"}`: "", `{"type":"adaptive","display":"omitted"}`: "", `{"type":"adaptive","display":"summarized"}`: "Hm.",
		`{"type":"enabled","budget_tokens":2000}`: "Hm.",
	} {
		d := &dialogue{t: t, Model: "m", Limit: 9000, Thinking: json.RawMessage(config)}
		d.server = modeltest.NewServer(t, modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "Hm."}}, {Text: "Yes."}}})
		d.user(`{"type":"text","text":"Go."}`)
		d.next()
		var block struct{ Thinking string }
		if err := json.Unmarshal(d.Messages[1].Content[0], &block); err != nil || block.Thinking != text {
			t.Errorf("%s: the text is %q, want %q (%v)", config, block.Thinking, text, err)
		}
	}
}

func TestServerChecksTheConfigurationOfThinking(t *testing.T) {
	const adaptive, enabled, disabled, effort = `"thinking":{"type":"adaptive"}`, `"thinking":{"type":"enabled","budget_tokens":1024}`,
		`"thinking":{"type":"disabled"}`, `"output_config":{"effort":"low"}`
	for mode, refused := range map[modeltest.ThinkingMode][]string{
		"":                         nil,
		modeltest.ThinkingAdaptive: {enabled}, modeltest.ThinkingAlways: {enabled, disabled},
		modeltest.ThinkingBudget: {adaptive, effort}, modeltest.ThinkingNever: {adaptive, enabled, effort},
	} {
		for _, config := range []string{adaptive, enabled, disabled, effort} {
			s := modeltest.NewServer(t, modeltest.Reply{})
			s.Thinking = map[string]modeltest.ThinkingMode{"m": mode}
			body := `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":"hi"}],` + config + `}`
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.MessagesURL()+"/v1/messages", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Anthropic-Version", "2023-06-01")
			res, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if want := slices.Contains(refused, config); (res.StatusCode == http.StatusBadRequest) != want {
				t.Errorf("%s and %s: status %d", mode, config, res.StatusCode)
			}
		}
	}
}

func TestParseMessagesRequest(t *testing.T) {
	request := func(more, messages string) string {
		return `{"model":"m","max_tokens":4000` + more + `,"messages":[` + messages + `]}`
	}
	const (
		hi      = `{"role":"user","content":"hi"}`
		call    = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
		result  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}`
		thought = `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},{"type":"tool_use","id":"b","name":"f","input":{}}]}`
		image   = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
		pdf     = `{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}`
		enabled = `,"thinking":{"type":"enabled","budget_tokens":1024}`
	)
	later := strings.ReplaceAll(result, `"a"`, `"b"`)
	with := func(more string) string { return strings.Replace(result, `"a"`, `"a",`+more, 1) }
	for text, says := range map[string]string{
		request("", hi): "",
		request(`,"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"}`, hi): "",
		request(enabled, hi):                                           "",
		request(enabled, hi+","+thought+","+later):                     "",
		request(enabled, hi+","+thought+","+later+","+call+","+result): "",
		request(enabled, hi+","+call+","+strings.Replace(result, `}]`, `},{"type":"text","text":"And?"}]`, 1)): "",
		request("", `{"role":"user","content":[{"type":"text","text":"See."},`+image+`,`+pdf+`]}`):             "",
		request("", `{"role":"user","content":[`+image+`]}`):                                                   "",
		request("", hi+","+call+","+with(`"content":[`+image+`,`+pdf+`]`)):                                     "",
		request(enabled, hi+","+call+","+result):                                                               "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
		request(enabled, hi+","+call+","+result+","+thought+","+later):                                         "messages.1.content.0.type: Expected `thinking`",
		request(`,"temperature":1`, hi):                                                                        "`temperature` is deprecated", request(`,"top_k":1`, hi): "`top_k`", request(`,"tool_choice":{"type":"any"}`, hi): "tool_choice: Extra inputs",
		request(`,"thinking":{"type":"auto"}`, hi):                          "does not match any of the expected tags",
		request(`,"thinking":7`, hi):                                        "expected tags",
		request(`,"thinking":{"type":"adaptive","budget_tokens":2000}`, hi): "thinking.adaptive.budget_tokens: Extra inputs",
		request(`,"thinking":{"type":"adaptive","block_binding":{}}`, hi):   "block_binding: Extra inputs",
		request(`,"thinking":{"type":"adaptive","display":"all"}`, hi):      "display",
		request(`,"thinking":{"type":"enabled","budget_tokens":1023}`, hi):  "greater than or equal to 1024",
		request(`,"thinking":{"type":"enabled"}`, hi):                       "1024",
		request(`,"thinking":{"type":"enabled","budget_tokens":4000}`, hi):  "`max_tokens` must be greater",
		request(`,"output_config":{"effort":"minimal"}`, hi):                "output_config.effort",
		request(`,"output_config":{"format":"x"}`, hi):                      "output_config.format.type: Input should",
		request(`,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false,"properties":{"n":{"type":"number","maximum":1}}}}}`, hi): "property 'maximum' is not supported",
		request(`,"output_config":{"format":{"type":"json_schema","schema":{"type":"array","items":{"type":"object"}}}}`, hi):                                                      "additionalProperties",
		request(`,"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false}}}`, hi):                                   "",
		request(`,"output_config":{"other":1}`, hi): "output_config.other: Extra inputs",
		request(`,"output_config":1`, hi):           "output_config: Input should",
		request("", hi+","+call+","+with(`"is_error":true,"content":[{"type":"text","text":"e"},`+image+`]`)):    "all content must be type `text` if `is_error` is true",
		request("", `{"role":"user","content":[`+strings.Replace(image, "png", "bmp", 1)+`]}`):                   "media_type",
		request("", `{"role":"user","content":[`+strings.Replace(image, "image/png", "application/pdf", 1)+`]}`): "media_type",
		request("", `{"role":"user","content":[`+strings.Replace(image, "AAAA", "A", 1)+`]}`):                    "base64 data",
		request("", `{"role":"user","content":[`+strings.Replace(image, "AAAA", "", 1)+`]}`):                     "base64 data",
		request("", `{"role":"user","content":[`+strings.Replace(image, "base64", "url", 1)+`]}`):                "base64",
		request("", `{"role":"user","content":[`+strings.Replace(image, `{`, `{"title":"x",`, 1)+`]}`):           "title: Extra inputs",
		request("", `{"role":"user","content":[`+strings.Replace(pdf, "a.pdf", "", 1)+`]}`):                      "document.title",
		request("", `{"role":"user","content":[`+image+`,{"type":"tool_result","tool_use_id":"a"}]}`):            "must come first",
	} {
		_, err := modeltest.ParseMessagesRequest([]byte(text))
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}

func TestParseMessagesRequestReadsMedia(t *testing.T) {
	r, err := modeltest.ParseMessagesRequest([]byte(`{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[
		{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"YQ=="}},{"type":"text","text":"See."},
		{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"Yg=="}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", r.Messages); !strings.Contains(got, "Media:[{Type:application/pdf Name:a.pdf Data:[97]}]") || !strings.Contains(got, "Content:See. HasContent:true") ||
		!strings.Contains(got, "Media:[{Type:image/gif Name: Data:[98]}]") || len(r.Messages) != 2 {
		t.Errorf("messages %s", got)
	}
}
