package responses

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

func newDecoder() *decoder {
	var c Config
	return &decoder{refusals: c.refusals()}
}

// fold adds events, one a line, and returns the response with the sum of the deltas.
func fold(t *testing.T, events string) (r *model.Response, shown model.Delta) {
	t.Helper()
	s := newDecoder().stream()
	for line := range strings.Lines(events) {
		piece, err := s.Add("", []byte(strings.TrimSpace(line)))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		shown.Text += piece.Text
		shown.Reasoning += piece.Reasoning
	}
	if !s.Complete() || !s.Ended() {
		t.Fatalf("the response is not complete after\n%s", events)
	}
	return s.Response(), shown
}

// summary writes a response as one line: each part with its opaque bytes, or the text
// and the calls.
func summary(r *model.Response) string {
	var b strings.Builder
	text := r.Text
	call := func(c *harnessv1.ToolCall) {
		fmt.Fprintf(&b, "call %s %s %s|", c.GetId(), c.GetName(), c.GetArguments().GetInline())
	}
	for _, p := range r.Parts {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			fmt.Fprintf(&b, "text %s%s|", text[:kind.Text], p.GetOpaque().GetInline())
			text = text[kind.Text:]
		case *harnessv1.Part_Call:
			call(r.ToolCalls[kind.Call])
		case *harnessv1.Part_Reasoning:
			fmt.Fprintf(&b, "reasoning %s%s|", kind.Reasoning.GetText().GetInline(), p.GetOpaque().GetInline())
		}
	}
	if r.Parts == nil {
		fmt.Fprintf(&b, "%s|", text)
		for _, c := range r.ToolCalls {
			call(c)
		}
	}
	return b.String() + r.FinishReason
}

func on(kind, members string) string { return `{"type":"response.` + kind + `",` + members + "}\n" }

func added(index int, item string) string {
	return on("output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func done(index int, item string) string {
	return on("output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, index, item))
}

func textDelta(index int, id, delta string) string {
	return on("output_text.delta", fmt.Sprintf(`"output_index":%d,"item_id":%q,"delta":%q`, index, id, delta))
}

func argumentsDelta(index int, id, delta string) string {
	return on("function_call_arguments.delta", fmt.Sprintf(`"output_index":%d,"item_id":%q,"delta":%q`, index, id, delta))
}

func text(id, text string) string {
	return fmt.Sprintf(`{"type":"message","id":%q,"role":"assistant","content":[{"type":"output_text","text":%q}]}`, id, text)
}

func call(id, callID, arguments string) string {
	return fmt.Sprintf(`{"type":"function_call","id":%q,"call_id":%q,"name":"f","arguments":%q}`, id, callID, arguments)
}

func reason(id, text, encrypted string) string {
	return fmt.Sprintf(`{"type":"reasoning","id":%q,"summary":[{"type":"summary_text","text":%q}],"encrypted_content":%q}`, id, text, encrypted)
}

var (
	completed  = on("completed", `"response":{"model":"m","status":"completed"}`)
	incomplete = on("incomplete", `"response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)
)

func TestStreams(t *testing.T) {
	rs := reason("rs_1", "Why.", "enc")
	for name, c := range map[string]struct{ events, want string }{
		"nothing":                 {completed, "|stop"},
		"text":                    {added(0, text("m", "")) + textDelta(0, "m", "a") + textDelta(0, "m", "b") + done(0, text("m", "ab")) + completed, "ab|stop"},
		"text in its end only":    {done(0, text("m", "ab")) + completed, "ab|stop"},
		"text in its deltas only": {textDelta(0, "m", "ab") + completed, "ab|stop"},
		"text, more in its end":   {added(0, text("m", "")) + textDelta(0, "m", "a") + done(0, text("m", "ab")) + completed, "ab|stop"},
		"two texts":               {done(0, text("m", "a")) + done(1, text("n", "b")) + completed, "ab|stop"},
		"reasoning, then a call":  {done(0, rs) + done(1, call("fc", "c", "{}")) + completed, "reasoning Why." + rs + "|call c f {}|tool_calls"},
		"a call before a text":    {done(0, call("fc", "c", "{}")) + done(1, text("m", "a")) + completed, "call c f {}|text a|tool_calls"},
		"a phase":                 {done(0, strings.Replace(text("m", "a"), `"role"`, `"phase":"commentary","role"`, 1)) + done(1, call("fc", "c", "{}")) + completed, `text a{"phase":"commentary"}|call c f {}|tool_calls`},
		"out of order":            {done(2, call("fc", "c", "{}")) + done(0, rs) + done(1, text("m", "a")) + completed, "reasoning Why." + rs + "|text a|call c f {}|tool_calls"},
		"interleaved calls":       {added(0, call("x", "c", "")) + added(1, call("y", "d", "")) + argumentsDelta(1, "y", "{") + argumentsDelta(0, "x", "[") + argumentsDelta(1, "y", "}") + argumentsDelta(0, "x", "]") + completed, "|call c f []|call d f {}|tool_calls"},
		"never closed": {added(0, reason("rs_1", "", "en")) + on("reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","summary_index":0,"delta":"Why."`) +
			added(1, text("m", "")) + textDelta(1, "m", "a") + added(2, call("fc", "c", "")) + argumentsDelta(2, "fc", "{}") + completed, "reasoning Why.|text a|call c f {}|tool_calls"},
		"never closed, in the output": {added(0, reason("rs_1", "", "en")) + added(1, text("m", "")) + textDelta(1, "m", "a") + end(rs, text("m", "ab"), call("fc", "c", "{}")), "reasoning Why." + rs + "|text ab|call c f {}|tool_calls"},
		"closed, and in the output":   {done(0, rs) + done(1, text("m", "a")) + end(reason("rs_1", "Other.", "o"), text("m", "o")), "reasoning Why." + rs + "|text a|stop"},
		"arguments done only":         {added(0, call("fc", "c", "")) + on("function_call_arguments.done", `"output_index":0,"item_id":"fc","name":"f","arguments":"{}"`) + completed, "|call c f {}|tool_calls"},
		"arguments without a start":   {argumentsDelta(0, "fc", "{") + on("function_call_arguments.done", `"output_index":0,"item_id":"fc","name":"f","arguments":"{}"`) + completed, "|call  f {}|tool_calls"},
		"arguments as an object":      {done(0, `{"type":"function_call","call_id":"c","name":"f","arguments":{"a": 1}}`) + completed, `|call c f {"a": 1}|tool_calls`},
		"arguments in deltas only":    {added(0, call("fc", "c", "")) + argumentsDelta(0, "fc", "{}") + done(0, call("fc", "c", "")) + completed, "|call c f {}|tool_calls"},
		"repeated":                    {strings.Repeat(added(0, text("m", "")), 2) + strings.Repeat(textDelta(0, "m", "a"), 1) + strings.Repeat(done(0, text("m", "a")), 2) + textDelta(0, "m", "a") + strings.Repeat(done(1, call("fc", "c", "{}")), 3) + completed, "a|call c f {}|tool_calls"},
		"repeated without ids":        {strings.Repeat(done(0, text("", "a")), 2) + completed, "a|stop"},
		"closed twice":                {done(0, text("m", "a")) + done(0, text("m", "b")) + completed, "a|stop"},
		"deltas before the start":     {argumentsDelta(0, "fc", "{}") + added(0, call("fc", "c", "")) + completed, "|call c f {}|tool_calls"},
		"another word for the end":    {done(0, text("m", "a")) + on("done", `"response":{}`), "a|stop"},
		"reasoning in its end only":   {done(0, reason("r", "A.", "")) + done(1, reason("s", "B.", "")) + done(2, text("m", "a")) + completed, "reasoning A.|reasoning B.|text a|stop"},
		"one place, no ids":           {added(0, text("", "")) + done(0, text("", "a")) + added(0, text("", "")) + textDelta(0, "", "b") + completed, "ab|stop"},
		"no place, no ids, no start":  {on("output_text.delta", `"delta":"a"`) + on("output_item.added", `"item":`+text("", "")) + on("output_text.delta", `"delta":"b"`) + on("output_item.done", `"item":`+text("", "ab")) + completed, "ab|stop"},
		"no place, other ids":         {on("output_item.added", `"item":`+text("m1", "")) + on("output_text.delta", `"item_id":"m2","delta":"a"`) + on("output_item.done", `"item":`+text("m3", "ab")) + on("output_item.done", `"item":`+text("m4", "c")) + completed, "abc|stop"},
		"doubled ids":                 {added(0, call("x", "c", "")) + added(1, call("x", "c", "")) + argumentsDelta(0, "x", "[") + argumentsDelta(1, "x", "{}") + argumentsDelta(0, "x", "]") + completed, "|call c f []|call c f {}|tool_calls"},
		"doubled ids, closed":         {done(0, call("x", "c", "[]")) + done(1, call("x", "c", "{}")) + completed, "|call c f []|call c f {}|tool_calls"},
		"other ids in each event":     {added(0, text("m1", "")) + textDelta(0, "m2", "a") + textDelta(0, "m3", "b") + done(0, text("m4", "ab")) + added(1, call("x1", "c", "")) + argumentsDelta(1, "x2", "{") + done(1, call("x3", "c", "{}")) + completed, "ab|call c f {}|tool_calls"},
		"one place for all":           {added(0, text("m", "")) + textDelta(0, "m", "a") + done(0, text("m", "a")) + added(0, call("x", "c", "")) + argumentsDelta(0, "x", "[]") + done(0, call("x", "c", "[]")) + done(0, call("y", "d", "{}")) + end(text("m", "a"), call("x", "c", "[]"), call("y", "d", "{}")), "a|call c f []|call d f {}|tool_calls"},
		"one place, all open":         {added(0, call("x", "c", "")) + added(0, call("y", "d", "")) + argumentsDelta(0, "x", "[]") + argumentsDelta(0, "y", "{}") + done(0, call("y", "d", "{}")) + done(0, call("x", "c", "[]")) + completed, "|call c f []|call d f {}|tool_calls"},
		"one place, no start":         {textDelta(0, "m", "a") + done(0, text("m", "a")) + textDelta(0, "n", "b") + completed, "ab|stop"},
		"no place": {on("output_item.added", `"item":`+text("m", "")) + on("output_text.delta", `"item_id":"m","delta":"a"`) + on("output_item.done", `"item":`+text("m", "a")) +
			on("output_item.added", `"item":`+call("x", "c", "")) + on("output_item.added", `"item":`+call("y", "d", "")) + on("function_call_arguments.delta", `"item_id":"x","delta":"[]"`) + on("output_item.done", `"item":`+call("y", "d", "{}")) + completed, "a|call c f []|call d f {}|tool_calls"},
		"no place, no ids": {on("output_item.added", `"item":{"type":"message"}`) + on("output_text.delta", `"delta":"a"`) + on("output_item.added", `"item":{"type":"function_call","call_id":"c","name":"f"}`) + on("function_call_arguments.delta", `"delta":"{}"`) + on("output_item.done", `"item":`+call("", "d", "[]")) +
			on("output_item.done", `"item":`+call("", "e", "7")) + completed, "a|call d f []|call e f 7|tool_calls"},
		"two calls, one id and place": {done(0, call("x", "c", "[]")) + done(0, call("x", "d", "{}")) + completed, "|call c f []|call d f {}|tool_calls"},
		"an empty object in front":    {added(0, call("x", "c", "{}")) + argumentsDelta(0, "x", `{"a"`) + argumentsDelta(0, "x", `:1}`) + completed, `|call c f {"a":1}|tool_calls`},
		"{} in the deltas":            {added(0, call("x", "c", "")) + argumentsDelta(0, "x", "{}") + argumentsDelta(0, "x", `{"a":1}`) + completed, `|call c f {"a":1}|tool_calls`},
		"deltas sent twice":           {added(0, call("x", "c", "")) + argumentsDelta(0, "x", `{"a":1}`) + argumentsDelta(0, "x", `{"a":1}`) + completed, `|call c f {"a":1}|tool_calls`},
		"encrypted, empty":            {done(0, reason("rs_1", "Why.", "")) + done(1, text("m", "a")) + completed, "reasoning Why.|text a|stop"},
		"encrypted, missing":          {done(0, `{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Open."}]}`) + done(1, text("m", "a")) + completed, "reasoning Open.|text a|stop"},
		"encrypted, no text":          {done(0, `{"type":"reasoning","encrypted_content":7,"summary":"x"}`) + done(1, text("m", "a")) + completed, "a|stop"},
		"encrypted, not UTF-8":        {done(0, strings.Replace(rs, `"enc"`, "\"e\xffc\"", 1)) + done(1, text("m", "a")) + completed, "reasoning Why.|text a|stop"},
		"summary in parts":            {done(0, `{"type":"reasoning","summary":[{"text":"One."},{"text":""},{"text":"Two."}]}`) + completed, "reasoning One.\n\nTwo.|stop"},
		"foreign items":               {added(0, `{"type":"web_search_call","id":"ws"}`) + done(0, `{"type":"web_search_call","id":"ws"}`) + on("web_search_call.completed", `"item_id":"ws"`) + done(1, text("m", "a")) + completed, "a|stop"},
		"items of other types":        {added(0, "7") + done(0, `"x"`) + done(1, "null") + on("output_item.done", `"output_index":"2","item":`+text("m", "a")) + completed, "a|stop"},
		"no response":                 {done(0, text("m", "a")) + `{"type":"response.completed"}`, "a|stop"},
		"length":                      {done(0, text("m", "a")) + incomplete, "a|length"},
		"length in a call":            {added(0, call("fc", "c", "")) + argumentsDelta(0, "fc", `{"a`) + incomplete, `|call c f {"a|length`},
		"length in reasoning":         {added(0, reason("rs_1", "", "e")) + incomplete, "|length"},
		"incomplete, somehow":         {done(0, text("m", "a")) + on("completed", `"response":{"status":"incomplete"}`), "a|length"},
		"filtered":                    {done(0, text("m", "a")) + on("incomplete", `"response":{"incomplete_details":{"reason":"content_filter"}}`), "a|content_filter"},
		"refused":                     {added(0, text("m", "")) + on("refusal.delta", `"output_index":0,"item_id":"m","delta":"No."`) + done(0, `{"type":"message","id":"m","content":[{"type":"refusal","refusal":"No."}]}`) + completed, "|content_filter"},
		"refused, not closed":         {on("refusal.delta", `"output_index":0,"item_id":"m","delta":"No."`) + completed, "|content_filter"},
		"strange members": {`{"type":"response.created","response":{"model":7,"output":"x"},"error":null}` + "\n" + `{"type":"response.in_progress","response":[]}` + "\n" + `{"type":7}` + "\n" + `{"type":"keepalive"}` + "\n" + `null` + "\n" +
			on("output_text.delta", `"output_index":-9,"item_id":7,"delta":{"a":1}`) + on("completed", `"response":{"usage":"none","incomplete_details":7,"output":{"a":1}}`), `{"a":1}|stop`},
	} {
		t.Run(name, func(t *testing.T) {
			r, shown := fold(t, c.events)
			if got := summary(r); got != c.want {
				t.Errorf("the response is\n%s\nwant\n%s", got, c.want)
			}
			if shown.Text != r.Text {
				t.Errorf("the deltas are %q, want %q", shown.Text, r.Text)
			}
			if reasoning := reasoningOf(r); shown.Reasoning != reasoning {
				t.Errorf("the deltas of reasoning are %q, want %q", shown.Reasoning, reasoning)
			}
		})
	}
}

// reasoningOf returns the reasoning of a response as the deltas have it.
func reasoningOf(r *model.Response) string {
	var texts []string
	for _, p := range r.Parts {
		if text := p.GetReasoning().GetText().GetInline(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, partBreak)
}

func TestReasoningIsShownWhileItIsWritten(t *testing.T) {
	delta := func(index int, kind, part string, text string) string {
		return on("reasoning_"+kind+".delta", fmt.Sprintf(`"output_index":%d,%s,"delta":%q`, index, part, text))
	}
	r, shown := fold(t, delta(0, "summary_text", `"summary_index":0`, "One")+delta(0, "summary_text", `"summary_index":0`, ".")+delta(0, "summary_text", `"summary_index":1`, "Two.")+
		done(0, `{"type":"reasoning","summary":[{"text":"One."},{"text":"Two."},{"text":"Three."}],"encrypted_content":"e"}`)+
		delta(1, "text", `"content_index":0`, "Open.")+done(2, reason("rs", "Late.", "e"))+
		delta(3, "summary_text", `"summary_index":1`, "More.")+delta(4, "summary_text", `"summary_index":1`, "Last.")+delta(5, "text", `"content_index":0`, "")+completed)
	if want := "One.\n\nTwo.\n\nThree.\n\nOpen.\n\nLate.\n\nMore.\n\nLast."; shown.Reasoning != want || reasoningOf(r) != want {
		t.Errorf("shown is %q and kept is %q, want %q", shown.Reasoning, reasoningOf(r), want)
	}
}

// TestTheEndOfAnItemDecides has deltas that differ from the item: the deltas cannot be
// taken back, but the response is that of the closed item.
func TestTheEndOfAnItemDecides(t *testing.T) {
	r, shown := fold(t, textDelta(0, "m", "ax")+done(0, text("m", "ab"))+completed)
	if r.Text != "ab" || shown.Text != "ax" {
		t.Errorf("text %q after the deltas %q", r.Text, shown.Text)
	}
}

func TestLargeEncryptedContent(t *testing.T) {
	rs := reason("rs_1", "", strings.Repeat("x", 2<<20))
	r, _ := fold(t, done(0, rs)+done(1, text("m", "a"))+completed)
	if got := string(r.Parts[0].GetOpaque().GetInline()); got != rs {
		t.Errorf("%d bytes are kept, want the %d that came", len(got), len(rs))
	}
}

// TestItemsAreKeptAsTheyCame has white space and an order of members that no encoder
// would write, in both forms of a response.
func TestItemsAreKeptAsTheyCame(t *testing.T) {
	rs := `{ "encrypted_content" : "\u0065<` + "\u2028" + `>" , "summary":[ ],  "type":"reasoning","x":[1.0e3]}`
	streamed, _ := fold(t, done(0, rs)+done(1, text("m", "a"))+completed)
	plain, err := newDecoder().decode([]byte("{\n \"status\": \"completed\", \"output\": [\n " + rs + ",\n " + text("m", "a") + " ] }"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*model.Response{streamed, plain} {
		if got := string(r.Parts[0].GetOpaque().GetInline()); got != rs {
			t.Errorf("kept is\n%s\nwant\n%s", got, rs)
		}
	}
}

func TestTheModelIsThatOfTheResponse(t *testing.T) {
	start := on("created", `"response":{"model":"m-1"}`)
	for end, want := range map[string]string{`{"model":"m-2"}`: "m-2", `{}`: "m-1"} {
		if r, _ := fold(t, start+on("completed", `"response":`+end)); r.Model != want {
			t.Errorf("%s: the model is %q, want %q", end, r.Model, want)
		}
	}
}

func TestUsage(t *testing.T) {
	want := &harnessv1.Usage{InputTokens: 9, OutputTokens: 8, CachedInputTokens: 7, CacheWriteTokens: 1, ReasoningTokens: 5}
	const usage = `"usage":{"input_tokens":9,"output_tokens":8.0,"input_tokens_details":{"cached_tokens":"7","cache_write_tokens":1},"output_tokens_details":{"reasoning_tokens":5}}`
	r, _ := fold(t, on("completed", `"response":{`+usage+`}`))
	if !proto.Equal(r.Usage, want) {
		t.Errorf("usage %v, want %v", r.Usage, want)
	}
	r, _ = fold(t, on("completed", `"response":{"usage":{"input_tokens":-1,"output_tokens":1e30,"input_tokens_details":[]}}`))
	if u := r.Usage; u.GetInputTokens() != 0 || u.GetOutputTokens() != 1<<40 {
		t.Errorf("usage %v, want counts within their bounds", u)
	}
}

func TestRefusalsName(t *testing.T) {
	for events, want := range map[string]string{
		done(0, `{"type":"message","content":[{"type":"refusal","refusal":"I can't\nhelp."}]}`) + completed:                   "refusal: I can't help.",
		done(0, `{"type":"message","content":[{"type":"refusal","refusal":""}]}`) + completed:                                 "refusal",
		done(0, `{"type":"message","content":[{"type":"refusal","refusal":"`+strings.Repeat("no ", 999)+`"}]}`) + incomplete:  "refusal: " + strings.TrimSpace(strings.Repeat("no ", 130)) + " n…",
		on("incomplete", `"response":{"incomplete_details":{"reason":"content_filter"}}`):                                     "content_filter",
		on("refusal.delta", `"output_index":0,"delta":"N"`) + on("refusal.delta", `"output_index":0,"delta":"o"`) + completed: "refusal: No",
	} {
		if r, _ := fold(t, events); r.Refusal != want || r.FinishReason != "content_filter" {
			t.Errorf("refusal %q and %s, want %q", r.Refusal, r.FinishReason, want)
		}
	}
}

// TestStreamsEnd has the end that some servers send after the last event, or instead.
func TestStreamsEnd(t *testing.T) {
	s := newDecoder().stream()
	if _, err := s.Add("response.output_text.delta", []byte(`{"delta":"a"}`)); err != nil {
		t.Fatal(err)
	}
	if s.Complete() || s.Ended() {
		t.Errorf("the stream has ended after a delta")
	}
	if _, err := s.Add("", []byte("[DONE]")); err != nil || s.Complete() || !s.Ended() {
		t.Errorf("after [DONE]: %v, complete %t, ended %t, want an end that is not complete", err, s.Complete(), s.Ended())
	}
	if r := s.Response(); r.Text != "a" || r.Usage == nil {
		t.Errorf("the response is %+v", r)
	}
}

func TestPlainResponses(t *testing.T) {
	for body, want := range map[string]string{
		`{"status":"completed","model":"m","output":[` + reason("rs", "Why.", "e") + `,` + text("m", "a") + `]}`: "reasoning Why." + reason("rs", "Why.", "e") + "|text a|stop",
		`{"output":[` + text("m", "a") + `]}`: "a|stop",
		`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[` + call("x", "c", "{") + `]}`: "|call c f {|length",
		`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`:                               "|content_filter",
	} {
		r, err := newDecoder().decode([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got := summary(r); got != want {
			t.Errorf("%s:\n%s, want\n%s", body, got, want)
		}
	}
	for body, retryable := range map[string]bool{
		`{"status":"failed","error":{"code":"server_error","message":"m"}}`:   true,
		`{"status":"failed","error":{"code":"invalid_prompt","message":"m"}}`: false,
		`{"status":"failed"}`:                     true,
		`{"status":"in_progress"}`:                true,
		`{"status":"cancelled","output":[]}`:      true,
		`{"error":{"message":"m"}}`:               true,
		`{"choices":[]}`:                          true,
		`{"status":"completed","output":[]`:       true,
		`{"error":{"code":"insufficient_quota"}}`: false,
	} {
		r, err := newDecoder().decode([]byte(body))
		var got *model.Error
		if r != nil || !errors.As(err, &got) || got.Retryable != retryable {
			t.Errorf("%s: %v and %+v, want an error with retryable %t", body, r, err, retryable)
		}
	}
}
