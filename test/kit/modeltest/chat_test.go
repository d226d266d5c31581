package modeltest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// post sends a request of the chat protocol and returns the status and the body of the
// response.
func post(t *testing.T, s *modeltest.Server, body string) (int, string) {
	t.Helper()
	res, err := s.Client().Post(s.BaseURL()+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// TestTempersRefuse has, for each temper, what comes back wrong and what comes back right.
func TestTempersRefuse(t *testing.T) {
	answer := func(more string) string {
		return body(user, `{"role":"assistant","content":"I see."`+more+`,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}EXTRA}]}`,
			`{"role":"tool","tool_call_id":"c","content":"1"}`)
	}
	plain := func(more string) string { return body(user, `{"role":"assistant","content":"Yes."`+more+`}`, user) }
	results := func(id string, more ...string) string {
		return body(append([]string{
			user, `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"tool","tool_call_id":"` + id + `","content":"1"}`,
		}, more...)...)
	}
	replies := []modeltest.Reply{
		{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "a<b"}}, {Text: "I see."}, {Call: &modeltest.Call{ID: "c", Name: "f", Arguments: "{}"}}}},
		{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "sure"}}, {Text: "Yes."}}},
	}
	const own, other = `"a\u003cb"`, `"a<c"`
	for name, c := range map[string]struct {
		temper  modeltest.Temper
		request string
		status  int
		says    string
		counted modeltest.ReturnCount
	}{
		"always, missing":           {modeltest.TemperDeepSeek(), plain(""), 400, "must be passed back to the API", modeltest.ReturnCount{}},
		"always, empty":             {modeltest.TemperDeepSeek(), plain(`,"reasoning_content":""`), 200, "", modeltest.ReturnCount{Blank: 1}},
		"always, own":               {modeltest.TemperDeepSeek(), answer(`,"reasoning_content": ` + own), 200, "", modeltest.ReturnCount{Reasoning: 1}},
		"always, other":             {modeltest.TemperDeepSeek(), answer(`,"reasoning_content":` + other), 400, "not the reasoning of this answer", modeltest.ReturnCount{}},
		"always, other escapes":     {modeltest.TemperDeepSeek(), answer(`,"reasoning_content":"a<b"`), 400, "not the reasoning of this answer", modeltest.ReturnCount{}},
		"always, of another answer": {modeltest.TemperDeepSeek(), plain(`,"reasoning_content":` + own), 400, "not the reasoning of this answer", modeltest.ReturnCount{}},
		"with calls, missing":       {modeltest.TemperMoonshot(), answer(""), 400, "reasoning_content is missing in assistant tool call message at index 1", modeltest.ReturnCount{}},
		"with calls, empty":         {modeltest.TemperMoonshot(), answer(`,"reasoning_content":""`), 400, "is missing", modeltest.ReturnCount{}},
		"with calls, a space":       {modeltest.TemperMoonshot(), answer(`,"reasoning_content":" "`), 200, "", modeltest.ReturnCount{Blank: 1}},
		"with calls, no calls":      {modeltest.TemperMoonshot(), plain(""), 200, "", modeltest.ReturnCount{}},
		"refused": {
			modeltest.TemperGroq(), plain(`,"reasoning":"sure"`), 400,
			"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1' : property 'reasoning' is unsupported)]", modeltest.ReturnCount{},
		},
		"refused, left out": {modeltest.TemperGroq(), answer(""), 200, "", modeltest.ReturnCount{}},
		"unknown": {
			modeltest.TemperMistral(), plain(`,"reasoning_content":"sure"`), 422,
			`"type":"extra_forbidden"`, modeltest.ReturnCount{},
		},
		"unknown, where": {modeltest.TemperMistral(), plain(`,"reasoning_content":"sure"`), 422, `"loc":["body","messages",1,"assistant","reasoning_content"]`, modeltest.ReturnCount{}},
		"unknown, in the request": {
			modeltest.TemperMistral(), strings.Replace(plain(""), `{"model"`, `{"stream":true,"stream_options":{"include_usage":true},"model"`, 1), 422,
			`"loc":["body","stream_options"]`, modeltest.ReturnCount{},
		},
		"unknown, in no temper": {modeltest.Temper{}, plain(`,"reasoning_content":"sure"`), 400, "unknown parameter: 'messages[1].reasoning_content'", modeltest.ReturnCount{}},
		"chunks": {
			modeltest.TemperMistral(), body(user, `{"role":"assistant","content":[{"type":"thinking","thinking":[{"text":"sure","type":"text"}]},{"type":"text","text":"Yes."}]}`, user),
			200, "", modeltest.ReturnCount{Reasoning: 1},
		},
		"chunks, other": {
			modeltest.TemperMistral(), body(user, `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"no"}]},{"type":"text","text":"Yes."}]}`, user),
			400, "not the reasoning of this answer", modeltest.ReturnCount{},
		},
		"order": {
			modeltest.TemperMistral(), results("aB3456789", `{"role":"user","content":"And?"}`), 400,
			`"message":"Unexpected role 'user' after role 'tool'","object":"error","param":null,"raw_status_code":400,"type":"invalid_request_message_order"`, modeltest.ReturnCount{},
		},
		"order, its code":        {modeltest.TemperMistral(), results("aB3456789", user), 400, `"code":"3230"`, modeltest.ReturnCount{}},
		"order, an answer":       {modeltest.TemperMistral(), results("aB3456789", `{"role":"assistant","content":"Understood."}`, user), 200, "", modeltest.ReturnCount{}},
		"order, no temper":       {modeltest.TemperVLLM(), results("aB3456789", user), 200, "", modeltest.ReturnCount{}},
		"order, its own setting": {modeltest.Temper{NoUserAfterResults: true}, results("aB3456789", user), 400, "Unexpected role 'user' after role 'tool'", modeltest.ReturnCount{}},
		"id": {
			modeltest.TemperMistral(), results("call_0fypS1hVX"), 400, "Tool call id was call_0fypS1hVX but must be a-z, A-Z, 0-9, with a length of 9.", modeltest.ReturnCount{},
		},
		"id, its code":          {modeltest.TemperMistral(), results("aB34567890"), 400, `"code":"3280"`, modeltest.ReturnCount{}},
		"id, another character": {modeltest.TemperMistral(), results("aB345678_"), 400, `"type":"invalid_function_call"`, modeltest.ReturnCount{}},
		"id, no temper":         {modeltest.TemperVLLM(), results("call_0fypS1hVX"), 200, "", modeltest.ReturnCount{}},
		"id, of a result": {
			modeltest.TemperMistral(), strings.Replace(results("aB3456789"), `_id":"aB3456789"`, `_id":"x"`, 1), 400, "Tool call id was x but", modeltest.ReturnCount{},
		},
		"empty": {modeltest.TemperOpenRouter(), plain(`,"reasoning_details":[]`), 400, "missing 'reasoning_details'", modeltest.ReturnCount{}},
		"details, other": {
			modeltest.TemperOpenRouter(), plain(`,"reasoning_details":[{"type":"reasoning.text","text":"sure"}]`), 400, "not the reasoning of this answer", modeltest.ReturnCount{},
		},
		"accepted, missing": {modeltest.TemperVLLM(), plain(""), 200, "", modeltest.ReturnCount{}},
		"accepted, own":     {modeltest.TemperVLLM(), plain(`,"reasoning":"sure"`), 200, "", modeltest.ReturnCount{Reasoning: 1}},
		"signature missing": {modeltest.TemperGemini(), answer(""), 400, "missing a thought_signature", modeltest.ReturnCount{}},
		"signature, other": {
			modeltest.TemperGemini(), strings.Replace(answer(""), "EXTRA", `,"extra_content":{"google":{"thought_signature":"x"}}`, 1), 400, "Corrupted thought signature", modeltest.ReturnCount{},
		},
		"signature, stand-in": {
			modeltest.TemperGemini(), strings.Replace(answer(""), "EXTRA", `,"extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}`, 1),
			200, "", modeltest.ReturnCount{Substitutes: 1},
		},
		"signature, not asked for": {modeltest.TemperVLLM(), strings.Replace(answer(""), "EXTRA", `,"extra_content":{}`, 1), 400, "unknown parameter", modeltest.ReturnCount{}},
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, append(replies, modeltest.Reply{})...)
			s.Temper = c.temper
			for range replies {
				if status, text := post(t, s, body(user)); status != http.StatusOK {
					t.Fatal(text)
				}
			}
			status, text := post(t, s, strings.ReplaceAll(c.request, "EXTRA", ""))
			if status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("status %d, want %d with %q: %s", status, c.status, c.says, text)
			}
			if got := s.Requests()[len(replies)].Returned; got != c.counted {
				t.Errorf("counted %+v, want %+v", got, c.counted)
			}
		})
	}
}

// TestCutReasoningIsNotExpectedBack has an answer that the client cannot have.
func TestCutReasoningIsNotExpectedBack(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "sure"}}, {Text: "Yes."}}, Fault: modeltest.FaultError})
	s.Temper = modeltest.TemperVLLM()
	_, _ = post(t, s, body(user))
	if status, text := post(t, s, body(user, `{"role":"assistant","content":"Yes.","reasoning":"sure"}`, user)); status != http.StatusBadRequest {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestMediaOfRequests(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}}`
	message := func(role, parts string) string { return fmt.Sprintf(`{"role":%q,"content":[%s]}`, role, parts) }
	r, err := modeltest.ParseRequest([]byte(body(message("user", `{"type":"text","text":"hi"},`+image+`,{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}`))))
	if err != nil {
		t.Fatal(err)
	}
	media := r.Messages[0].Media
	if len(media) != 2 || media[0].Type != "image/png" || !bytes.Equal(media[0].Data, []byte("PNG")) || media[1].Name != "a.pdf" || !bytes.Equal(media[1].Data, []byte("%PDF")) {
		t.Errorf("media %+v", media)
	}
	for text, says := range map[string]string{
		message("system", image):                                                                                 "image_url",
		message("user", strings.Replace(image, "png", "tiff", 1)):                                                "image/tiff",
		message("user", strings.Replace(image, "data:", "http:", 1)):                                             "data URL",
		message("user", strings.Replace(image, "UE5H", "", 1)):                                                   "data URL",
		message("user", strings.Replace(image, `"url"`, `"uri"`, 1)):                                             "uri",
		message("user", `{"type":"image_url","image_url":"x"}`):                                                  "expected an object",
		message("user", `{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERg=="}}`):           "filename",
		message("user", `{"type":"file","file":{"filename":"a","file_data":"data:text/plain;base64,JVBERg=="}}`): "text/plain",
		message("user", `{"type":"thinking","thinking":[]}`):                                                     "thinking",
		message("user", ``): "array of parts",
	} {
		if _, err := modeltest.ParseRequest([]byte(body(text))); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", text, err, says)
		}
	}
}
