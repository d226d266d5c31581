package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// describe writes parts on lines: text and call with their numbers, reasoning with its
// block and its text.
func describe(parts []*harnessv1.Part) string {
	var lines []string
	for _, p := range parts {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			lines = append(lines, fmt.Sprintf("text %d", kind.Text))
		case *harnessv1.Part_Call:
			lines = append(lines, fmt.Sprintf("call %d", kind.Call))
		case *harnessv1.Part_Reasoning:
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s", p.GetOpaque().GetInline(), kind.Reasoning.GetText().GetInline())))
		}
	}
	return strings.Join(lines, "\n")
}

// complete returns the answer to one request, and the reasoning in its deltas.
func complete(t *testing.T, reply modeltest.Reply) (*model.Response, string) {
	t.Helper()
	var reasoning strings.Builder
	resp, err := open(t, modeltest.NewServer(t, reply), anthropic.Config{}).Complete(t.Context(), modeltest.Conversation(true), func(d model.Delta) { reasoning.WriteString(d.Reasoning) })
	if err != nil {
		t.Fatal(err)
	}
	return resp, reasoning.String()
}

// answerBody is a plain response with a content.
func answerBody(content ...string) modeltest.Reply {
	return modeltest.Reply{Body: `{"type":"message","model":"m","content":[` + strings.Join(content, ",") + `],"stop_reason":"end_turn"}`}
}

func TestPlainPartsAreTheBlocksThatCame(t *testing.T) {
	const call = `{"type":"tool_use","id":"a","name":"f","input":{}}`
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	long := `{"type":"thinking","thinking":"","signature":"` + strings.Repeat("A", 2<<20) + `"}`
	for name, c := range map[string]struct {
		content []string
		want    []string // nil: no parts
	}{
		"text and calls":         {[]string{text("Hi."), call, call}, nil},
		"texts and calls":        {[]string{text("Hi."), text(" Ho."), call}, nil},
		"a blank after a call":   {[]string{text("Hi."), call, text(" ")}, nil},
		"a text after a call":    {[]string{text("Hi."), call, text(""), text("Ho.")}, []string{"text 3", "call 0", "text 3"}},
		"thinking":               {[]string{thought, text("Hi."), call}, []string{thought + ` < a <b>`, "text 3", "call 0"}},
		"redacted":               {[]string{text("Hi."), redacted, call}, []string{"text 3", redacted, "call 0"}},
		"unknown":                {[]string{`{"type":"hologram","thinking":"x"}`, redacted, `{"type":"other"}`, call}, []string{redacted, "call 0"}},
		"empty text":             {[]string{redacted, text(""), call}, []string{redacted, "call 0"}},
		"one twice":              {[]string{redacted, redacted, call}, []string{redacted, redacted, "call 0"}},
		"ids twice":              {[]string{call, redacted, call}, []string{"call 0", redacted, "call 1"}},
		"no signature":           {[]string{`{"type":"thinking","thinking":"a","signature":""}`, text("Hi.")}, []string{`{"type":"thinking","thinking":"a","signature":""} a`, "text 3"}},
		"of 2 MB":                {[]string{long, text("Hi.")}, []string{long, "text 3"}},
		"other types of members": {[]string{`{"type":"thinking","thinking":{"a":1},"signature":7}`, text("Hi.")}, []string{`{"type":"thinking","thinking":{"a":1},"signature":7} {"a":1}`, "text 3"}},
		"alone":                  {[]string{redacted}, []string{redacted}},
	} {
		t.Run(name, func(t *testing.T) {
			resp, reasoning := complete(t, answerBody(c.content...))
			if got, want := describe(resp.Parts), strings.Join(c.want, "\n"); got != want {
				t.Errorf("parts\n%.2000s\nwant\n%.2000s", got, want)
			}
			if (resp.Parts == nil) != (c.want == nil) || (resp.Origin == nil) != (c.want == nil) {
				t.Errorf("parts %v with the origin %v", resp.Parts, resp.Origin)
			}
			if strings.Contains(resp.Text, reasoning) && reasoning != "" {
				t.Errorf("the reasoning is in the text %q", resp.Text)
			}
		})
	}
}

// streamOf is a streamed response with events between its frame.
func streamOf(events ...string) modeltest.Reply {
	all := append([]string{`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}`}, events...)
	all = append(all, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)
	var b strings.Builder
	for _, e := range all {
		b.WriteString("data: " + e + "\n\n")
	}
	return modeltest.Reply{Body: b.String(), Quirks: modeltest.Quirks{ContentType: "text/event-stream"}}
}

func TestStreamedPartsAreRebuilt(t *testing.T) {
	start := func(index int, block string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
	}
	delta := func(index int, kind, member, value string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"%s_delta","%s":%s}}`, index, kind, member, value)
	}
	think := func(index int, value string) string { return delta(index, "thinking", "thinking", value) }
	sign := func(index int, value string) string { return delta(index, "signature", "signature", value) }
	stop := func(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }
	const empty, call = `{"type":"thinking","thinking":"","signature":""}`, `{"type":"tool_use","id":"a","name":"f","input":{}}`
	text := func(index int, s string) string { return delta(index, "text", "text", `"`+s+`"`) }
	long := strings.Repeat("A", 1<<20)
	for name, c := range map[string]struct {
		events    []string
		want      []string
		text      string
		reasoning string
	}{
		"in deltas": {
			[]string{start(0, empty), think(0, `"a \u003c"`), think(0, `"<b>"`), sign(0, `"c2"`), sign(0, `"ln"`), stop(0), start(1, `{"type":"text","text":""}`), text(1, "Hi."), stop(1)},
			[]string{`{"type":"thinking","thinking":"a \u003c<b>","signature":"c2ln"} a <<b>`, "text 3"}, "Hi.", "a <<b>",
		},
		"omitted":           {[]string{start(0, empty), sign(0, `"c2ln"`), start(1, call)}, []string{`{"type":"thinking","thinking":"","signature":"c2ln"}`, "call 0"}, "", ""},
		"redacted":          {[]string{start(0, redacted), stop(0), start(1, call)}, []string{redacted, "call 0"}, "", ""},
		"other members":     {[]string{start(0, `{ "z":[1 ,2], "signature" : "a", "type":"thinking","thinking" :null,"more":{"thinking":"x"}}`), think(0, `"t"`), sign(0, `"b"`), start(1, call)}, []string{`{ "z":[1 ,2], "signature" : "ab", "type":"thinking","thinking" :"t","more":{"thinking":"x"}} t`, "call 0"}, "", "t"},
		"members missing":   {[]string{start(0, `{"type":"thinking"}`), sign(0, `"s"`), think(0, `"t"`), start(1, call)}, []string{`{"type":"thinking","thinking":"t","signature":"s"} t`, "call 0"}, "", "t"},
		"half a character":  {[]string{start(0, empty), think(0, `"\ud83d"`), think(0, `"\ude00"`), sign(0, `"s"`), start(1, call)}, []string{`{"type":"thinking","thinking":"\ud83d\ude00","signature":"s"} ` + "\ufffd\ufffd", "call 0"}, "", "\ufffd\ufffd"},
		"two, set apart":    {[]string{start(0, empty), think(0, `"a"`), start(1, empty), think(1, `"b"`), think(1, `"c"`), start(2, call)}, []string{`{"type":"thinking","thinking":"a","signature":""} a`, `{"type":"thinking","thinking":"bc","signature":""} bc`, "call 0"}, "", "a\n\nbc"},
		"never closed":      {[]string{start(0, empty), think(0, `"a"`), start(1, `{"type":"text","text":"Hi"}`), text(1, ".")}, []string{`{"type":"thinking","thinking":"a","signature":""} a`, "text 3"}, "Hi.", "a"},
		"started twice":     {[]string{start(0, empty), sign(0, `"a"`), start(0, empty), sign(0, `"b"`), start(1, call)}, []string{`{"type":"thinking","thinking":"","signature":"a"}`, `{"type":"thinking","thinking":"","signature":"b"}`, "call 0"}, "", ""},
		"reordered":         {[]string{start(2, call), start(0, empty), start(1, `{"type":"text","text":""}`), sign(0, `"s"`), text(1, "Hi.")}, []string{"call 0", `{"type":"thinking","thinking":"","signature":"s"}`, "text 3"}, "Hi.", ""},
		"texts interleaved": {[]string{start(0, redacted), start(1, `{"type":"text","text":""}`), start(2, `{"type":"text","text":""}`), text(1, "a"), text(2, "b"), text(1, "c")}, []string{redacted, "text 1", "text 1", "text 1"}, "abc", ""},
		"no start":          {[]string{think(0, `"a"`), sign(0, `"s"`), text(0, "Hi.")}, nil, "Hi.", ""},
		"other index":       {[]string{start(0, empty), sign(7, `"s"`), think(7, `"t"`), start(1, call)}, []string{empty, "call 0"}, "", ""},
		"not strings":       {[]string{start(0, empty), sign(0, `7`), think(0, `null`), start(1, call)}, []string{empty, "call 0"}, "", ""},
		"ids twice":         {[]string{start(0, call), start(1, redacted), start(2, call)}, []string{"call 0", redacted, "call 1"}, "", ""},
		"of 2 MB":           {[]string{start(0, empty), sign(0, `"`+long+`"`), sign(0, `"`+long+`"`), start(1, call)}, []string{`{"type":"thinking","thinking":"","signature":"` + long + long + `"}`, "call 0"}, "", ""},
		"not UTF-8":         {[]string{start(0, empty), think(0, "\"\xff\""), sign(0, "\"\xfe\""), start(1, call)}, []string{"{\"type\":\"thinking\",\"thinking\":\"\xff\",\"signature\":\"\xfe\"} \ufffd", "call 0"}, "", "\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, reasoning := complete(t, streamOf(c.events...))
			if got, want := describe(resp.Parts), strings.Join(c.want, "\n"); got != want {
				t.Errorf("parts\n%.2000s\nwant\n%.2000s", got, want)
			}
			if resp.Text != c.text || reasoning != c.reasoning {
				t.Errorf("text %q and reasoning %q, want %q and %q", resp.Text, reasoning, c.text, c.reasoning)
			}
		})
	}
}

// TestStreamedAndPlainPartsAreEqual compares the parts of the same answers.
func TestStreamedAndPlainPartsAreEqual(t *testing.T) {
	for turn := range 14 {
		var seen [2]string
		for i, plain := range []bool{true, false} {
			reply := thoughtfulReply(turn)
			reply.Quirks.IgnoreStream = plain
			resp, reasoning := complete(t, reply)
			seen[i] = describe(resp.Parts) + "\nreasoning " + reasoning
			if resp.Usage.GetReasoningTokens() != 7 {
				t.Errorf("usage %v", resp.Usage)
			}
			for _, p := range resp.Parts {
				if p.GetReasoning() != nil && !json.Valid(p.GetOpaque().GetInline()) {
					t.Errorf("%s is not JSON", p.GetOpaque().GetInline())
				}
			}
		}
		if seen[0] != seen[1] {
			t.Errorf("turn %d: the plain answer is\n%s\nthe streamed one\n%s", turn, seen[0], seen[1])
		}
	}
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("ä ", 300)
	for name, c := range map[string]struct{ details, want string }{
		"category":     {`{"type":"refusal","category":"cyber","explanation":null}`, "cyber"},
		"both":         {`{"type":"refusal","category":"bio","explanation":"It could\nharm."}`, "bio: It could harm."},
		"no category":  {`{"type":"refusal","category":null,"explanation":"It could harm."}`, "It could harm."},
		"no details":   {`null`, ""},
		"another form": {`"no"`, ""},
		"too long":     {`{"category":"c","explanation":"` + long + `"}`, "c: " + strings.Repeat("ä ", 64)},
	} {
		for form, reply := range map[string]modeltest.Reply{
			"plain":         {Body: `{"type":"message","model":"m","content":[],"stop_reason":"refusal","stop_details":` + c.details + `}`},
			"in the delta":  {Body: `data: {"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":` + c.details + "}}\n\ndata: {\"type\":\"message_stop\"}\n\n"},
			"next to it":    {Body: `data: {"type":"message_delta","delta":{"stop_reason":"refusal"},"stop_details":` + c.details + "}\n\ndata: {\"type\":\"message_stop\"}\n\n"},
			"by the server": {FinishReason: "content_filter", Refusal: "cyber"},
		} {
			resp, _ := complete(t, reply)
			want := c.want
			if form == "by the server" {
				want = "cyber"
			}
			if resp.FinishReason != "content_filter" || !strings.HasPrefix(resp.Refusal, want) || len(resp.Refusal) > 200 || len(resp.Refusal) > len(want)+5 {
				t.Errorf("%s, %s: %q with the reason %q, want %q", name, form, resp.FinishReason, resp.Refusal, want)
			}
		}
	}
	resp, _ := complete(t, modeltest.Reply{Body: `{"type":"message","model":"m","content":[],"stop_reason":"end_turn","stop_details":{"category":"cyber"}}`})
	if resp.Refusal != "" || resp.FinishReason != "stop" {
		t.Errorf("an answer that is no refusal has the reason %q", resp.Refusal)
	}
}

func TestReasoningTokens(t *testing.T) {
	for usage, want := range map[string]uint64{
		`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}`:  4,
		`{"output_tokens":9,"output_tokens_details":{"thinking_tokens":40}}`: 9,
		`{"output_tokens":9,"output_tokens_details":{}}`:                     0,
		`{"output_tokens":9,"output_tokens_details":null}`:                   0,
		`{"output_tokens":9}`: 0,
	} {
		for _, body := range []string{
			`{"type":"message","model":"m","content":[],"stop_reason":"end_turn","usage":` + usage + `}`,
			`data: {"type":"message_start","message":{"model":"m","usage":{"output_tokens":1,"output_tokens_details":{"thinking_tokens":1}}}}` + "\n\n" +
				`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":` + usage + "}\n\ndata: {\"type\":\"message_stop\"}\n\n",
		} {
			resp, _ := complete(t, modeltest.Reply{Body: body})
			got := resp.Usage.GetReasoningTokens()
			if want == 0 && strings.HasPrefix(body, "data") {
				got-- // of the first report
			}
			if got != want || resp.Usage.GetOutputTokens() != 9 {
				t.Errorf("%s: %d tokens of reasoning in %d, want %d", body, got, resp.Usage.GetOutputTokens(), want)
			}
		}
	}
}
