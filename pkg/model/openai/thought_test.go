package openai

import (
	"fmt"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// backAlways is how most servers take reasoning back.
var backAlways = Reasoning{Back: BackAlways}

func newDecoder(r Reasoning) decoder { return decoder{reasoning: &r, refusals: &refusals} }

// fold adds the deltas of a stream, then a finish reason, and returns the response and
// the text of the reasoning that it has streamed.
func fold(t *testing.T, r Reasoning, deltas ...string) (*model.Response, string) {
	t.Helper()
	s := newDecoder(r).stream()
	var said, text strings.Builder
	for _, d := range deltas {
		piece, err := s.Add("", []byte(`{"choices":[{"index":0,"delta":`+d+`}]}`))
		if err != nil {
			t.Fatalf("%s: %v", d, err)
		}
		said.WriteString(piece.Reasoning)
		text.WriteString(piece.Text)
	}
	if _, err := s.Add("", []byte(`{"choices":[{"delta":{},"finish_reason":"stop"}]}`)); err != nil {
		t.Fatal(err)
	}
	resp := s.Response()
	if resp.Text != text.String() {
		t.Errorf("text %q of the deltas %q", resp.Text, text.String())
	}
	return resp, said.String()
}

// show returns the parts of a response, one after the other.
func show(r *model.Response) string {
	var parts []string
	text := r.Text
	for _, p := range r.Parts {
		var s string
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			s, text = "text "+text[:kind.Text], text[kind.Text:]
		case *harnessv1.Part_Call:
			s = "call " + r.ToolCalls[kind.Call].GetName()
		case *harnessv1.Part_Reasoning:
			s = "reasoning " + kind.Reasoning.GetText().GetInline()
		}
		if p.GetOpaque() != nil {
			s += " " + string(p.GetOpaque().GetInline())
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, "; ")
}

func TestReasoningIsRead(t *testing.T) {
	const call = `{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}`
	field := func(name string) Reasoning { return Reasoning{Field: name, Back: BackAlways} }
	for name, c := range map[string]struct {
		reasoning Reasoning
		deltas    []string
		said      string
		parts     string
	}{
		"reasoning_content": {
			backAlways, []string{`{"reasoning_content":"a"}`, `{"reasoning_content":"\u00e4 \n"}`, `{"content":"x"}`, call},
			"aä \n", "reasoning aä \n {\"reasoning_content\":\"a\\u00e4 \\n\"}; text x; call f",
		},
		"reasoning": {backAlways, []string{`{"reasoning":"a"}`, `{"reasoning":"b","content":""}`}, "ab", `reasoning ab {"reasoning":"ab"}`},
		"in another member": {
			field("reasoning_content"), []string{`{"reasoning":"a"}`, `{"content":"x"}`}, "a", `reasoning a {"reasoning_content":"a"}; text x`,
		},
		"both members": {
			backAlways, []string{`{"reasoning":"a","reasoning_content":"a"}`, `{"reasoning":"b","reasoning_content":"b"}`},
			"ab", `reasoning ab {"reasoning_content":"ab"}`,
		},
		"one member after the other": {
			backAlways, []string{`{"reasoning":"a"}`, `{"reasoning":"b","reasoning_content":"b"}`}, "ab", `reasoning ab {"reasoning":"ab"}`,
		},
		"a character in two pieces": {
			backAlways, []string{`{"reasoning_content":"\ud83d"}`, `{"reasoning_content":"\ude00"}`}, "\ufffd\ufffd", `reasoning 😀 {"reasoning_content":"\ud83d\ude00"}`,
		},
		"never": {Reasoning{}, []string{`{"reasoning_content":"a"}`, `{"content":"x"}`}, "a", "reasoning a; text x"},
		"with calls, none": {
			Reasoning{Back: BackWithCalls}, []string{`{"reasoning_content":"a"}`, `{"content":"x"}`}, "a", "reasoning a; text x",
		},
		"with calls": {
			Reasoning{Back: BackWithCalls}, []string{`{"reasoning_content":"a"}`, call}, "a", `reasoning a {"reasoning_content":"a"}; call f`,
		},
		"after the text": {backAlways, []string{`{"content":"x"}`, `{"reasoning":"a"}`, `{"content":"y"}`}, "a", `text x; reasoning a {"reasoning":"a"}; text y`},
		"empty":          {backAlways, []string{`{"reasoning_content":"","reasoning":null,"reasoning_details":[]}`, `{"content":"x"}`}, "", ""},
		"other types":    {backAlways, []string{`{"reasoning_content":7,"reasoning":{"effort":"low"},"reasoning_details":"x","extra_content":null}`, `{"content":"x"}`}, "", ""},
		"reasoning alone": {
			backAlways, []string{`{"reasoning_content":"a"}`}, "a", `reasoning a {"reasoning_content":"a"}`,
		},
		"details": {
			field(memberDetails), []string{
				`{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"f","index":0,"signature":null}]}`,
				`{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","format":"f","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","signature":"s","format":"f","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"d1","index":1,"id":"x"}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"d2","index":1,"id":"x"}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","data":"e","index":1,"id":"y"}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0}]}`,
				`{"content":"x"}`,
			},
			"ab", `reasoning ab {"reasoning_details":[{"type":"reasoning.text","text":"ab","format":"f","index":0,"signature":"s"},` +
				`{"type":"reasoning.encrypted","data":"d1","index":1,"id":"x"},{"type":"reasoning.encrypted","data":"d2","index":1,"id":"x"},{"type":"reasoning.encrypted","data":"e","index":1,"id":"y"},` +
				`{"type":"reasoning.text","text":"c","index":0}]}; text x`,
		},
		"a signature that comes twice": {
			field(memberDetails), []string{
				`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"f"}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"","signature":"s","index":0,"format":"g"}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","signature":"t","index":0,"id":"x"}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"c","index":0}]}`,
			},
			"abc", `reasoning abc {"reasoning_details":[{"type":"reasoning.text","text":"a","index":0,"format":"f","signature":"s","id":"x"},` +
				`{"type":"reasoning.text","text":"bc","index":0}]}`,
		},
		"details of several indexes": {
			backAlways, []string{
				`{"reasoning_details":[{"type":"reasoning.summary","summary":"a","index":0},{"type":"reasoning.summary","summary":"b","index":1}]}`,
				`{"reasoning_details":[{"type":"reasoning.summary","summary":"A","index":0},{"type":"reasoning.text","text":"t","index":1}]}`,
			},
			"abAt", `reasoning aAbt {"reasoning_details":[{"type":"reasoning.summary","summary":"aA","index":0},{"type":"reasoning.summary","summary":"b","index":1},` +
				`{"type":"reasoning.text","text":"t","index":1}]}`,
		},
		"details that came together": {
			backAlways, []string{
				`{"reasoning_details":[{"type":"reasoning.text","text":"a","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.text","text":"c","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"d","index":0}]}`,
			},
			"abcd", `reasoning abcd {"reasoning_details":[{"type":"reasoning.text","text":"ab","index":0},{"type":"reasoning.text","text":"cd","index":0}]}`,
		},
		"details after a signature": {
			backAlways, []string{
				`{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.text","signature":"t","index":0}]}`,
			},
			"ab", `reasoning ab {"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s","index":0},` +
				`{"type":"reasoning.text","text":"b","index":0},{"type":"reasoning.text","signature":"t","index":0}]}`,
		},
		"data after the id": {
			backAlways, []string{
				`{"reasoning_details":[{"type":"reasoning.encrypted","id":"x","index":0}]}`,
				`{"reasoning_details":[{"type":"reasoning.encrypted","id":"x","index":0,"data":"d"}]}`,
			},
			"", `reasoning  {"reasoning_details":[{"type":"reasoning.encrypted","id":"x","index":0,"data":"d"}]}`,
		},
		"details as text": {
			field("reasoning_content"), []string{`{"reasoning_details":[{"type":"reasoning.text","text":"a<b"}]}`}, "a<b", `reasoning a<b {"reasoning_content":"a<b"}`,
		},
		"encrypted details, as text": {field("reasoning_content"), []string{`{"reasoning_details":[{"type":"reasoning.encrypted","data":"d"}]}`}, "", "reasoning "},
		"text, as details":           {field(memberDetails), []string{`{"reasoning":"a"}`}, "a", `reasoning a {"reasoning":"a"}`},
		"one detail, as it came": {
			field(memberDetails), []string{`{"reasoning_details":[ {"b" : 1,"type": "new.type"} , 7]}`}, "", `reasoning  {"reasoning_details":[{"b" : 1,"type": "new.type"},7]}`,
		},
		"chunks": {
			Reasoning{Chunks: true, Back: BackAlways}, []string{
				`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}],"closed":false}]}`,
				`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"b"},{"type":"reference","ids":[1]}],"closed":true}]}`,
				`{"content":[{"type":"text","text":"x"}]}`, `{"content":"y"}`,
				`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"c"}]},{"type":"text","text":"z"},{"type":"image_url"}]}`,
			},
			"abc", `reasoning ab {"content":[{"type":"thinking","thinking":[{"type":"text","text":"ab"},{"type":"reference","ids":[1]}],"closed":true}]}; text xy; ` +
				`reasoning c {"content":[{"type":"thinking","thinking":[{"type":"text","text":"c"}]}]}; text z`,
		},
		"chunks of a server without":     {Reasoning{}, []string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"x"}]}`}, "a", "reasoning a; text x"},
		"chunks that are not requested":  {field("reasoning_content"), []string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}`}, "a", "reasoning a"},
		"a member, where chunks go back": {Reasoning{Chunks: true, Back: BackAlways}, []string{`{"reasoning_content":"a"}`}, "a", "reasoning a"},
		"a signed call": {
			Reasoning{}, []string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"f"},"extra_content":{"google": {"thought_signature":"s\/"}}}]}`,
				`{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}}]}`},
			"", `call f {"extra_content":{"google": {"thought_signature":"s\/"}}}; call g`,
		},
		"a signed text": {
			Reasoning{}, []string{`{"content":"x"}`, `{"content":"","extra_content":{"a":1}}`}, "", `text x {"extra_content":{"a":1}}`,
		},
		"a signature alone": {Reasoning{}, []string{`{"extra_content":{"a":1}}`}, "", `reasoning  {"extra_content":{"a":1}}`},
		"text and calls":    {backAlways, []string{`{"content":"x"}`, call}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			resp, said := fold(t, c.reasoning, c.deltas...)
			if said != c.said {
				t.Errorf("the deltas have the reasoning %q, want %q", said, c.said)
			}
			if got := show(resp); got != c.parts {
				t.Errorf("parts\n%s\nwant\n%s", got, c.parts)
			}
		})
	}
}

// severalDetails are entries that would be one if they were the pieces of a stream.
const severalDetails = `[{"type":"reasoning.summary","summary":"A"},{"type":"reasoning.summary","summary":"B"},` +
	`{"type":"reasoning.encrypted","data":"eA==","format":"x","index":0},{"type":"reasoning.encrypted","data":"eB==","format":"x","index":0}]`

// TestPlainReasoningKeepsItsBytes has one of each that no merging may touch.
func TestPlainReasoningKeepsItsBytes(t *testing.T) {
	for message, want := range map[string]string{
		`"reasoning_content":"\u0061\/ "`: `{"reasoning_content":"\u0061\/ "}`,
		`"reasoning":"x","reasoning_details":[{"type":"reasoning.text",  "text":"x","signature":""}]`:          `{"reasoning_details":[{"type":"reasoning.text",  "text":"x","signature":""}]}`,
		`"reasoning_details":` + severalDetails:                                                                `{"reasoning_details":` + severalDetails + `}`,
		`"content":[{"thinking":[ {"text":"x","type":"text"}],"type":"thinking"},{"type":"text","text":"hi"}]`: `{"content":[{"thinking":[ {"text":"x","type":"text"}],"type":"thinking"}]}`,
	} {
		resp, err := newDecoder(backAlways).decode([]byte(`{"choices":[{"message":{` + message + `},"finish_reason":"stop"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(resp.Parts[0].GetOpaque().GetInline()); got != want {
			t.Errorf("%s\ngoes back as %s\nwant %s", message, got, want)
		}
	}
}

// TestPlainChunksStaySeparate has two chunks of reasoning that are next to each other.
func TestPlainChunksStaySeparate(t *testing.T) {
	const one, two = `{"type":"thinking","thinking":[{"type":"text","text":"a"}],"closed":true}`, `{"type":"thinking","thinking":[{"type":"text","text":"b"}]}`
	resp, err := newDecoder(Reasoning{Chunks: true, Back: BackAlways}).decode([]byte(`{"choices":[{"message":{"content":[` + one + `,` + two + `]}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(resp), `reasoning a {"content":[`+one+`]}; reasoning b {"content":[`+two+`]}`; got != want {
		t.Errorf("parts\n%s\nwant\n%s", got, want)
	}
}

// TestLongChunks checks that a reasoning in very many pieces costs no more than its
// length.
func TestLongChunks(t *testing.T) {
	const pieces = 20_000
	deltas := make([]string, pieces)
	for i := range deltas {
		deltas[i] = fmt.Sprintf(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"%04d "}]}],"reasoning_details":[{"type":"reasoning.text","text":"%04d ","index":0}]}`, i%10_000, i%10_000)
	}
	resp, said := fold(t, Reasoning{Chunks: true, Back: BackAlways}, deltas...)
	if len(said) != 2*5*pieces || len(resp.Parts) != 2 {
		t.Errorf("%d bytes in %d parts", len(said), len(resp.Parts))
	}
}
