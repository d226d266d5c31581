package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// bytesOf returns the bytes of a request, which are JSON.
func bytesOf(t *testing.T, request any) []byte {
	t.Helper()
	body, ok := request.(*wire.Body)
	if !ok || !json.Valid(body.Bytes()) {
		t.Fatalf("the request is %T: %v", request, request)
	}
	return body.Bytes()
}

// encoded returns the bytes of a request with the messages, without the model.
func encoded(t *testing.T, c Config, messages ...*harnessv1.Message) string {
	t.Helper()
	body, err := c.encode(&model.Request{Messages: messages}, "m")
	if err != nil {
		t.Fatal(err)
	}
	raw := bytesOf(t, body)
	text, ends := strings.CutSuffix(string(raw), `],"model":"m"}`)
	text, begins := strings.CutPrefix(text, `{"messages":[`)
	if !begins || !ends {
		t.Fatalf("request %s", raw)
	}
	return text
}

func opaqueOf(text string) *harnessv1.Opaque {
	return &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(text)}}
}

func textPart(n uint64, opaque *harnessv1.Opaque) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: n}, Opaque: opaque}
}

func callPart(i uint32, opaque *harnessv1.Opaque) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: i}, Opaque: opaque}
}

func thoughtPart(opaque string) *harnessv1.Part {
	p := &harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("for people")}}}
	if opaque != "" {
		p.Opaque = opaqueOf(opaque)
	}
	return p
}

func mediaPart(kind, name, data string) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: kind, Name: name, Data: []byte(data)}}}
}

func answered(text string, calls int, parts ...*harnessv1.Part) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(text), Parts: parts}
	for i := range calls {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: string(rune('a' + i)), Name: "f", Arguments: content.Inline("{}")})
	}
	return m
}

func TestAnswersGoBack(t *testing.T) {
	const (
		callA = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}`
		callB = `{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}`
	)
	never, back := Config{}, Config{Reasoning: backAlways}
	calls := Config{Reasoning: Reasoning{Back: BackWithCalls}}
	blank := Config{Reasoning: Reasoning{Field: "reasoning_content", Back: BackAlways, HasBlank: true}}
	space := Config{Reasoning: Reasoning{Field: "reasoning_content", Back: BackWithCalls, Blank: " ", HasBlank: true}}
	signed := Config{Reasoning: Reasoning{Signature: true}}
	thought := thoughtPart(`{"reasoning_content":"\u0061 <"}`)
	for name, c := range map[string]struct {
		config  Config
		message *harnessv1.Message
		want    string
	}{
		"text":                   {back, answered("x", 0), `{"role":"assistant","content":"x"}`},
		"calls":                  {never, answered("", 1), `{"role":"assistant","tool_calls":[` + callA + `}]}`},
		"always":                 {back, answered("x", 0, thought, textPart(1, nil)), `{"role":"assistant","content":"x","reasoning_content":"\u0061 <"}`},
		"always, with calls":     {back, answered("", 1, thought, callPart(0, nil)), `{"role":"assistant","tool_calls":[` + callA + `}],"reasoning_content":"\u0061 <"}`},
		"with calls, none":       {calls, answered("x", 0, thought, textPart(1, nil)), `{"role":"assistant","content":"x"}`},
		"with calls":             {calls, answered("x", 1, thought, textPart(1, nil), callPart(0, nil)), `{"role":"assistant","content":"x","tool_calls":[` + callA + `}],"reasoning_content":"\u0061 <"}`},
		"never":                  {never, answered("x", 1, thought, textPart(1, nil), callPart(0, nil)), `{"role":"assistant","content":"x","tool_calls":[` + callA + `}]}`},
		"blank":                  {blank, answered("x", 0), `{"role":"assistant","content":"x","reasoning_content":""}`},
		"blank, own":             {blank, answered("x", 0, thought, textPart(1, nil)), `{"role":"assistant","content":"x","reasoning_content":"\u0061 <"}`},
		"blank, text for people": {blank, answered("x", 0, thoughtPart(""), textPart(1, nil)), `{"role":"assistant","content":"x","reasoning_content":""}`},
		"space":                  {space, answered("", 1), `{"role":"assistant","tool_calls":[` + callA + `}],"reasoning_content":" "}`},
		"space, no calls":        {space, answered("x", 0), `{"role":"assistant","content":"x"}`},
		"empty":                  {never, answered("", 0), `{"role":"assistant","content":""}`},
		"an empty object":        {back, answered("x", 0, thoughtPart(`{}`), textPart(1, nil)), `{"role":"assistant","content":"x"}`},
		"white space": {
			back, answered("x", 0, thoughtPart(` { "reasoning_details" : [ {"a":1} ] } `), textPart(1, nil)),
			`{"role":"assistant","content":"x","reasoning_details" : [ {"a":1} ]}`,
		},
		"one member in two parts": {
			back, answered("x", 0, thoughtPart(`{"reasoning_content":"a","b": 1}`), thoughtPart(`{"c":2}`), thoughtPart(`{"reasoning_content":"\u0061 <"}`), textPart(1, nil)),
			`{"role":"assistant","content":"x","reasoning_content":"\u0061 <","b":1,"c":2}`,
		},
		"other members in two parts": {
			back, answered("x", 0, thoughtPart(`{"reasoning_content": "a"}`), textPart(1, opaqueOf(`{"extra_content":{"g": 1}}`))),
			`{"role":"assistant","content":"x","reasoning_content": "a","extra_content":{"g": 1}}`,
		},
		"chunks": {
			back, answered("xyz", 1, thoughtPart(`{"content":[{"type": "thinking"},{"b":1}]}`), textPart(2, nil), thoughtPart(`{"content":[{"c":1}]}`), callPart(0, nil)),
			`{"role":"assistant","content":[{"type": "thinking"},{"b":1},{"type":"text","text":"xy"},{"c":1},{"type":"text","text":"z"}],"tool_calls":[` + callA + `}]}`,
		},
		"chunks, more text than there is": {back, answered("x", 0, thoughtPart(`{"content":[{"c":1}]}`), textPart(9, nil)), `{"role":"assistant","content":[{"c":1},{"type":"text","text":"x"}]}`},
		"chunks, never":                   {never, answered("x", 0, thoughtPart(`{"content":[{"c":1}]}`), textPart(1, nil)), `{"role":"assistant","content":"x"}`},
		"a signed call": {
			never, answered("", 2, callPart(0, nil), callPart(1, opaqueOf(`{"extra_content":{"g": 1}}`))),
			`{"role":"assistant","tool_calls":[` + callA + `},` + callB + `,"extra_content":{"g": 1}}]}`,
		},
		"a signed text":     {never, answered("x", 0, textPart(1, opaqueOf(`{"extra_content":{"g":1}}`))), `{"role":"assistant","content":"x","extra_content":{"g":1}}`},
		"a signature alone": {blank, answered("", 0, thoughtPart(`{"extra_content":{"g":1}}`)), `{"role":"assistant","content":"","extra_content":{"g":1},"reasoning_content":""}`},
		"a stand-in": {
			signed, answered("", 2),
			`{"role":"assistant","tool_calls":[` + callA + `,"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}},` + callB + `}]}`,
		},
		"no stand-in next to a signature": {
			signed, answered("", 2, callPart(0, nil), callPart(1, opaqueOf(`{"extra_content":{"g":1}}`))),
			`{"role":"assistant","tool_calls":[` + callA + `},` + callB + `,"extra_content":{"g":1}}]}`,
		},
		"no stand-in without calls": {signed, answered("x", 0), `{"role":"assistant","content":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := encoded(t, c.config, c.message); got != c.want {
				t.Errorf("message\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestMedia(t *testing.T) {
	user := func(text string, parts ...*harnessv1.Part) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline(text), Parts: parts}
	}
	result := func(id, tool string, parts ...*harnessv1.Part) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: tool, Content: content.Inline("shown"), Parts: parts}
	}
	png, pdf := mediaPart("image/png", "a.png", "PNG>"), mediaPart("application/pdf", "b.pdf", "%PDF")
	const (
		image    = `{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5HPg=="}}`
		document = `{"type":"file","file":{"filename":"b.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}`
		shownA   = `{"role":"tool","content":"shown","tool_call_id":"a"}`
		shownB   = `{"role":"tool","content":"shown","tool_call_id":"b"}`
	)
	for name, c := range map[string]struct {
		messages []*harnessv1.Message
		want     string
	}{
		"text and media": {[]*harnessv1.Message{user("Look.", png, pdf)}, `{"role":"user","content":[{"type":"text","text":"Look."},` + image + `,` + document + `]}`},
		"media alone":    {[]*harnessv1.Message{user("", png)}, `{"role":"user","content":[` + image + `]}`},
		"no name":        {[]*harnessv1.Message{user("", mediaPart("application/pdf", "", "%PDF"))}, `{"role":"user","content":[` + strings.Replace(document, "b.pdf", "document.pdf", 1) + `]}`},
		"of results": {
			[]*harnessv1.Message{result("a", "read_file", png), result("b", "", pdf, png), user("And?")},
			shownA + "," + shownB + `,{"role":"user","content":[{"type":"text","text":"Attached to the result of tool call a (read_file):"},` + image +
				`,{"type":"text","text":"Attached to the result of tool call b:"},` + document + `,` + image + `]},{"role":"user","content":"And?"}`,
		},
		"of the second result": {
			[]*harnessv1.Message{result("a", "f"), result("b", "f", png)},
			shownA + "," + shownB + `,{"role":"user","content":[{"type":"text","text":"Attached to the result of tool call b (f):"},` + image + `]}`,
		},
		"of two answers": {
			[]*harnessv1.Message{result("a", "f", png), answered("x", 0), result("b", "f", png)},
			shownA + `,{"role":"user","content":[{"type":"text","text":"Attached to the result of tool call a (f):"},` + image + `]},{"role":"assistant","content":"x"},` +
				shownB + `,{"role":"user","content":[{"type":"text","text":"Attached to the result of tool call b (f):"},` + image + `]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := encoded(t, Config{}, c.messages...); got != c.want {
				t.Errorf("messages\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	none, low, most := harnessv1.Effort_EFFORT_NONE, harnessv1.Effort_EFFORT_LOW, harnessv1.Effort_EFFORT_MAX
	some := func(efforts ...harnessv1.Effort) func(string) []harnessv1.Effort {
		return func(name string) []harnessv1.Effort {
			if name == "m" {
				return efforts
			}
			return nil
		}
	}
	body := func(members ...string) map[string]json.RawMessage {
		b := map[string]json.RawMessage{}
		for i := 0; i < len(members); i += 2 {
			b[members[i]] = json.RawMessage(members[i+1])
		}
		return b
	}
	for name, c := range map[string]struct {
		config Config
		effort harnessv1.Effort
		want   string
	}{
		"none":                    {Config{}, low, ``},
		"field":                   {Config{Effort: EffortField}, low, `,"reasoning_effort":"low"`},
		"field, off":              {Config{Effort: EffortField}, none, `,"reasoning_effort":"none"`},
		"field, unset":            {Config{Effort: EffortField}, 0, ``},
		"object":                  {Config{Effort: EffortObject}, most, `,"reasoning":{"effort":"max"}`},
		"object, more in it":      {Config{Endpoint: adapter.Endpoint{Body: body("reasoning", `{"exclude": false,"effort":"low"}`)}, Effort: EffortObject}, most, `,"reasoning":{"exclude":false,"effort":"max"}`},
		"object, unset":           {Config{Endpoint: adapter.Endpoint{Body: body("reasoning", `{"exclude": false}`)}, Effort: EffortObject}, 0, `,"reasoning":{"exclude": false}`},
		"thinking":                {Config{Effort: EffortThinking}, low, `,"thinking":{"type":"enabled"},"reasoning_effort":"low"`},
		"thinking, off":           {Config{Endpoint: adapter.Endpoint{Body: body("thinking", `{"clear_thinking":false}`)}, Effort: EffortThinking}, none, `,"thinking":{"type":"disabled"}`},
		"thinking, more in it":    {Config{Endpoint: adapter.Endpoint{Body: body("thinking", `{"type":"enabled","clear_thinking":false}`)}, Effort: EffortThinking}, low, `,"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low"`},
		"thinking, unset":         {Config{Endpoint: adapter.Endpoint{Body: body("thinking", `{"type":"enabled","clear_thinking":false}`)}, Effort: EffortThinking}, 0, `,"thinking":{"type":"enabled","clear_thinking":false}`},
		"thinking, no object":     {Config{Endpoint: adapter.Endpoint{Body: body("thinking", `true`)}, Effort: EffortThinking}, low, `,"thinking":{"type":"enabled"},"reasoning_effort":"low"`},
		"switch":                  {Config{Effort: EffortSwitch}, low, `,"enable_thinking":true,"reasoning_effort":"low"`},
		"switch, off":             {Config{Effort: EffortSwitch}, none, `,"enable_thinking":false`},
		"the nearest":             {Config{Effort: EffortField, Efforts: some(low, harnessv1.Effort_EFFORT_HIGH)}, most, `,"reasoning_effort":"high"`},
		"the lowest":              {Config{Effort: EffortField, Efforts: some(low, harnessv1.Effort_EFFORT_HIGH)}, none, `,"reasoning_effort":"low"`},
		"all":                     {Config{Effort: EffortField, Efforts: some()}, most, `,"reasoning_effort":"max"`},
		"key":                     {Config{CacheKey: true}, 0, `,"prompt_cache_key":"run-1"`},
		"additional, in order":    {Config{Endpoint: adapter.Endpoint{Body: body("z", `1`, "a", `{ "b": 2 }`, "reasoning_effort", `"high"`)}, CacheKey: true, Effort: EffortField}, low, `,"reasoning_effort":"low","prompt_cache_key":"run-1","a":{ "b": 2 },"z":1`},
		"additional, with quotes": {Config{Endpoint: adapter.Endpoint{Body: body("a\"b", `1`)}}, 0, `,"a\"b":1`},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := c.config.encode(&model.Request{Effort: c.effort, CacheKey: "run-1", Streaming: true}, "m")
			if err != nil {
				t.Fatal(err)
			}
			want := `{"model":"m","stream":true,"stream_options":{"include_usage":true}` + c.want + `}`
			if got := string(bytesOf(t, raw)); got != want {
				t.Errorf("request\n%s\nwant\n%s", got, want)
			}
		})
	}
	raw, err := (&Config{NoStreamOptions: true}).encode(&model.Request{Streaming: true}, "m")
	if err != nil || string(bytesOf(t, raw)) != `{"model":"m","stream":true}` {
		t.Errorf("without stream options: %s, %v", raw, err)
	}
}

func TestRequestsThatAreNotWritten(t *testing.T) {
	for name, m := range map[string]*harnessv1.Message{
		"an opaque part that is no object": answered("x", 0, thoughtPart(`[1]`), textPart(1, nil)),
		"media without data":               {Role: harnessv1.Role_ROLE_USER, Parts: []*harnessv1.Part{mediaPart("image/png", "", "")}},
		"media of a result without data":   {Role: harnessv1.Role_ROLE_TOOL, Parts: []*harnessv1.Part{mediaPart("image/png", "", "")}},
	} {
		if body, err := (&Config{Reasoning: backAlways}).encode(&model.Request{Messages: []*harnessv1.Message{m}}, "m"); err == nil {
			t.Errorf("%s: %s", name, body)
		}
	}
}

func TestSettingsThatContradict(t *testing.T) {
	for says, c := range map[string]Config{
		`"model"`:            {Endpoint: adapter.Endpoint{Body: map[string]json.RawMessage{"model": json.RawMessage(`"x"`)}}},
		`"prompt_cache_key"`: {Endpoint: adapter.Endpoint{Body: map[string]json.RawMessage{"prompt_cache_key": json.RawMessage(`"x"`)}}},
		`"a": expected JSON`: {Endpoint: adapter.Endpoint{Body: map[string]json.RawMessage{"a": json.RawMessage(`{`)}}},
		"needs the field":    {Reasoning: Reasoning{HasBlank: true}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want one with %s", err, says)
		}
	}
}

func TestChunksThatNoServerTakesAreLeftOut(t *testing.T) {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("b"), Parts: []*harnessv1.Part{
		{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{}}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`{"content":[{"type":"thinking","thinking":"\ud83d"}]}`)}}},
		{Kind: &harnessv1.Part_Text{Text: 1}},
	}}
	raw, err := (&Config{Reasoning: Reasoning{Chunks: true, Back: BackAlways}}).encode(&model.Request{Messages: []*harnessv1.Message{m}}, "m")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(bytesOf(t, raw)); !strings.Contains(got, `"content":"b"`) {
		t.Errorf("an answer whose chunks no server takes is sent as %s, want its text", got)
	}
}

// FuzzOpaque brings back whatever a server has sent: the request is JSON, and has the
// bytes of the items that a strict server takes.
func FuzzOpaque(f *testing.F) {
	f.Add(`"reasoning_content":"a\ud83d"`)
	f.Add(`"reasoning_details":[{"type":"reasoning.text","text":"a"},{},7,{"type":"reasoning.text","index":0,"text":null}]`)
	f.Add(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},1]},{"type":"text","text":"b"}],"extra_content":{"a":[]}`)
	f.Add(`"content":"x","tool_calls":[{"id":"a","function":{"name":"f"},"extra_content":"\u0000"}]`)
	f.Add("\"reasoning\":\"\xff\"")
	f.Fuzz(func(t *testing.T, members string) {
		chunk := []byte(`{"choices":[{"message":{` + members + `},"delta":{` + members + `},"finish_reason":"stop"}]}`)
		for _, r := range []Reasoning{backAlways, {Chunks: true, Back: BackAlways}, {Field: memberContent, Back: BackWithCalls}, {Field: memberDetails, Back: BackAlways}} {
			plain, err := newDecoder(r).decode(chunk)
			if err != nil {
				continue
			}
			s := newDecoder(r).stream()
			for range 2 {
				if _, err := s.Add("", chunk); err != nil {
					t.Fatal(err)
				}
			}
			for _, resp := range []*model.Response{plain, s.Response()} {
				m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(resp.Text), ToolCalls: resp.ToolCalls, Parts: resp.Parts}
				raw, err := (&Config{Reasoning: r}).encode(&model.Request{Messages: []*harnessv1.Message{m}}, "m")
				if err != nil {
					t.Fatalf("%v: %s", err, raw)
				}
				checkParts(t, resp, bytesOf(t, raw))
			}
		}
	})
}

// checkParts checks that the parts cover a response, and that the bytes of those that can be sent are in
// a request unchanged, and nothing of the others that a strict decoder refuses.
func checkParts(t *testing.T, r *model.Response, request []byte) {
	t.Helper()
	text, calls := uint64(0), 0
	for _, p := range r.Parts {
		text += p.GetText()
		if _, ok := p.GetKind().(*harnessv1.Part_Call); ok {
			calls++
		}
		o := p.GetOpaque().GetInline()
		if o == nil || isChunks(o) {
			continue
		}
		if sent, want := bytes.Contains(request, bytes.TrimSpace(o[1:len(o)-1])), model.SendableOpaque(o); sent != want && len(o) > len("{}") {
			t.Fatalf("%s in %s: %v, want %v", o, request, sent, want)
		}
	}
	if r.Parts != nil && (text != uint64(len(r.Text)) || calls != len(r.ToolCalls)) {
		t.Fatalf("parts %v of %q with %d calls", r.Parts, r.Text, len(r.ToolCalls))
	}
}
