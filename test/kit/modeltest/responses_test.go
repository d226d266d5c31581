package modeltest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	inputUser   = `{"type":"message","role":"user","content":"hi"}`
	inputText   = `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"so"}]}`
	inputCall   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
	inputResult = `{"type":"function_call_output","call_id":"a","output":"1"}`
	flatTool    = `{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}`
	png         = `{"type":"input_image","image_url":"data:image/png;base64,aQ=="}`
	pdf         = `{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,aQ=="}`
)

func responsesBody(items ...string) string {
	return `{"model":"m","store":false,"input":[` + strings.Join(items, ",") + `]}`
}

func responsesWith(more string) string {
	return strings.Replace(responsesBody(inputUser), `"store":false`, `"store":false,`+more, 1)
}

func contents(parts string) string {
	return `{"type":"message","role":"user","content":[` + parts + `]}`
}

// thoughts returns the items that a server makes of reasoning and what it led to, as
// they come in a response that is not streamed.
func thoughts(t *testing.T, parts ...modeltest.ReplyPart) []string {
	t.Helper()
	s := modeltest.NewServer(t, modeltest.Reply{Parts: parts})
	if status, body := postResponses(t, s, responsesWith(`"include":["reasoning.encrypted_content"]`)); status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	var items []string
	for _, raw := range s.ResponseItems()[0] {
		items = append(items, string(raw))
	}
	return items
}

func postResponses(t *testing.T, s *modeltest.Server, body string) (status int, answer string) {
	t.Helper()
	res, err := s.Client().Post(s.BaseURL()+"/responses", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

var (
	thought = modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: "Why."}}
	callA   = modeltest.ReplyPart{Call: &modeltest.Call{ID: "a", Name: "f", Arguments: "{}"}}
	callB   = modeltest.ReplyPart{Call: &modeltest.Call{ID: "b", Name: "f", Arguments: "{}"}}
	said    = modeltest.ReplyPart{Text: "so"}
)

func TestParseResponsesAccepts(t *testing.T) {
	made := thoughts(t, thought, said, thought, thought, callA, callB)
	resultB := strings.Replace(inputResult, `"a"`, `"b"`, 1)
	whole := append(append([]string{inputUser}, made...), inputResult, resultB)
	alone := []string{inputUser, made[0], inputText, made[2], inputCall, inputResult}
	for _, text := range []string{
		responsesBody(inputUser), responsesBody(inputUser, inputText), responsesBody(inputUser, inputCall, inputUser, inputResult),
		responsesBody(whole...), responsesBody(alone...),
		responsesBody(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"s"}]}`, inputUser),
		responsesBody(contents(png+","+pdf), inputCall, strings.Replace(inputResult, `"1"`, `[{"type":"input_text","text":""},`+png+`]`, 1)),
		responsesBody(inputUser, strings.Replace(inputText, `"role"`, `"phase":"final_answer","role"`, 1)),
		responsesWith(`"stream":true,"instructions":"i","prompt_cache_key":"k","include":["reasoning.encrypted_content"],"reasoning":{"effort":"max","summary":"auto"},"tools":[` + flatTool + `]`),
	} {
		if _, err := modeltest.ParseResponsesRequest([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseResponsesTranslates(t *testing.T) {
	r, err := modeltest.ParseResponsesRequest([]byte(responsesWith(`"instructions":"i","stream":true,"tools":[` + flatTool + `]`)))
	if err != nil || r.Protocol != modeltest.ProtocolResponses || !r.Stream || len(r.Tools) != 1 || len(r.Messages) != 2 || r.Messages[0].Content != "i" {
		t.Errorf("%+v and %v", r, err)
	}
	r, err = modeltest.ParseResponsesRequest([]byte(responsesBody(inputUser, inputText, inputCall, inputResult, inputText, inputUser)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range r.Messages {
		line := m.Role + " " + m.Content + m.ToolCallID
		for _, c := range m.ToolCalls {
			line += " " + c.ID + c.Name + c.Arguments
		}
		got = append(got, line)
	}
	if want := "user hi|assistant so af{}|tool 1a|assistant so|user hi"; strings.Join(got, "|") != want {
		t.Errorf("messages %q, want %q", strings.Join(got, "|"), want)
	}
}

func TestParseResponsesReadsMedia(t *testing.T) {
	r, err := modeltest.ParseResponsesRequest([]byte(responsesBody(contents(png+","+pdf), inputCall, strings.Replace(inputResult, `"1"`, `[`+png+`]`, 1))))
	if err != nil {
		t.Fatal(err)
	}
	user, result := r.Messages[0].Media, r.Messages[2].Media
	if len(user) != 2 || user[0].Type != "image/png" || string(user[0].Data) != "i" || user[1].Type != "application/pdf" || user[1].Name != "a.pdf" || len(result) != 1 {
		t.Errorf("the media are %v and %v", user, result)
	}
}

func TestParseResponsesRejects(t *testing.T) {
	made := thoughts(t, thought, callA)
	rs, call := made[0], made[1]
	text := thoughts(t, thought, said)[1]
	for body, says := range map[string]string{
		`{`:                                    "could not parse",
		`{"store":false,"input":[]}`:           "'model'",
		`{"model":"m","store":false}`:          "'input'",
		responsesBody():                        "minimum length 1",
		responsesWith(`"temperature":0`):       "Unknown parameter: 'temperature'",
		responsesWith(`"max_output_tokens":9`): "Expected a value >= 16, but got 9",
		responsesWith(`"tool_choice":"auto"`):  "Unknown parameter",
		responsesWith(`"stream":"yes"`):        "'stream'",
		responsesWith(`"prompt_cache_key":"` + strings.Repeat("k", 65) + `"`):                                                  "'prompt_cache_key'",
		responsesWith(`"include":["x"]`):                                                                                       "Invalid value: 'x'",
		responsesWith(`"reasoning":{"effort":"extreme"}`):                                                                      "'reasoning.effort' does not support 'extreme'",
		responsesWith(`"reasoning":{"summary":"long"}`):                                                                        "'reasoning.summary'",
		responsesWith(`"reasoning":{"context":"all"}`):                                                                         "Unknown parameter: 'reasoning.context'",
		strings.Replace(responsesBody(inputUser), `"store":false,`, "", 1):                                                     "'store' must be false",
		strings.Replace(responsesBody(inputUser), `"store":false,`, `"store":true,`, 1):                                        "'store' must be false",
		responsesWith(`"tools":[` + strings.Replace(flatTool, `,"strict":false`, "", 1) + `]`):                                 "'tools[0].strict' must be false",
		responsesWith(`"tools":[` + strings.Replace(flatTool, `"strict":false`, `"strict":true`, 1) + `]`):                     "'tools[0].strict' must be false",
		responsesWith(`"tools":[` + flatTool + `,` + flatTool + `]`):                                                           "'tools[1].name'",
		responsesWith(`"tools":[` + strings.Replace(flatTool, `"f"`, `"a b"`, 1) + `]`):                                        "'tools[0].name'",
		responsesWith(`"tools":[` + strings.Replace(flatTool, `,"properties":{}`, ``, 1) + `]`):                                "missing properties",
		responsesWith(`"tools":[` + tool + `]`):                                                                                "Unknown parameter: 'tools[0].function'",
		responsesBody(strings.Replace(inputUser, "user", "robot", 1)):                                                          "'robot'",
		responsesBody(strings.Replace(inputUser, `"type":"message",`, "", 1)):                                                  "'input[0].type'",
		responsesBody(strings.Replace(inputUser, `"message"`, `"item_reference"`, 1)):                                          "'item_reference'",
		responsesBody(strings.Replace(inputUser, `"hi"`, "null", 1)):                                                           "'input[0].content'",
		responsesBody(contents("")):                                                                                            "'input[0].content'",
		responsesBody(contents(`{"type":"output_text","text":"x"}`)):                                                           "'output_text'",
		responsesBody(contents(`{"type":"input_text"}`)):                                                                       "'input[0].content[0].text'",
		responsesBody(contents(strings.Replace(png, "png", "bmp", 1))):                                                         "data URL",
		responsesBody(contents(strings.Replace(png, "aQ==", "-", 1))):                                                          "data URL",
		responsesBody(contents(strings.Replace(pdf, "application/pdf", "text/html", 1))):                                       "data URL",
		responsesBody(contents(strings.Replace(pdf, `"filename":"a.pdf",`, "", 1))):                                            "'input[0].content[0].filename'",
		responsesBody(inputUser, strings.Replace(inputText, "output_text", "input_text", 1)):                                   "'input_text'",
		responsesBody(inputUser, strings.Replace(inputText, `"role"`, `"phase":"later","role"`, 1)):                            "'later'",
		responsesBody(inputUser, inputCall):                                                                                    "No tool output found for function call a.",
		responsesBody(inputUser, inputResult):                                                                                  "No tool call found for function call output with call_id a.",
		responsesBody(inputUser, inputResult, inputCall):                                                                       "No tool call found",
		responsesBody(inputUser, inputCall, inputResult, inputResult):                                                          "No tool call found",
		responsesBody(inputUser, inputCall, inputCall, inputResult):                                                            "Duplicate",
		responsesBody(inputUser, strings.Replace(inputCall, `"a"`, `"`+strings.Repeat("x", 65)+`"`, 1)):                        "but got a string with length 65",
		responsesBody(inputUser, strings.Replace(inputCall, `"f"`, `"a b"`, 1)):                                                "'input[1].name'",
		responsesBody(inputUser, strings.Replace(inputCall, `"{}"`, `{}`, 1)):                                                  "'input[1].arguments'",
		responsesBody(inputUser, strings.Replace(inputCall, `,"arguments":"{}"`, "", 1)):                                       "'input[1].arguments'",
		responsesBody(inputUser, call, inputResult):                                                                            "of type 'function_call' was provided without its required 'reasoning' item: 'rs_1_0'",
		responsesBody(inputUser, text):                                                                                         "of type 'message' was provided without its required 'reasoning' item",
		responsesBody(inputUser, rs):                                                                                           "'rs_1_0' of type 'reasoning' was provided without its required following item",
		responsesBody(inputUser, rs, inputUser):                                                                                "without its required following item",
		responsesBody(inputUser, rs, inputText, call, inputResult):                                                             "without its required following item",
		responsesBody(inputUser, strings.Replace(rs, `"rs_1_0"`, `"rs_9_9"`, 1), call, inputResult):                            "for item rs_9_9 could not be verified",
		responsesBody(inputUser, strings.Replace(rs, `"encrypted_content":"`, `"encrypted_content":"x`, 1), call, inputResult): "could not be verified",
		responsesBody(inputUser, strings.Replace(rs, `"encrypted_content"`, `"content"`, 1), call, inputResult):                "Item with id 'rs_1_0' not found",
		responsesBody(inputUser, strings.Replace(rs, `"summary":[]`, `"status":"completed"`, 1), call, inputResult):            "'input[1].summary'",
	} {
		if _, err := modeltest.ParseResponsesRequest([]byte(body)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", body, err, says)
		}
	}
}

// TestResponsesServerKnowsWhatItMade sends back reasoning of another organisation, and a
// text without its phase.
func TestResponsesServerKnowsWhatItMade(t *testing.T) {
	const encrypted = `"include":["reasoning.encrypted_content"],"reasoning":{"summary":"auto"}`
	part := said
	part.Phase = "commentary"
	s := modeltest.NewServer(t, modeltest.Reply{Parts: []modeltest.ReplyPart{thought, part}}, modeltest.Reply{}, modeltest.Reply{})
	if status, body := postResponses(t, s, responsesWith(encrypted)); status != http.StatusOK || !strings.Contains(body, "Why.") {
		t.Fatalf("status %d: %s", status, body)
	}
	rs, text := string(s.ResponseItems()[0][0]), string(s.ResponseItems()[0][1])
	s.Responses.KeepPhases = true
	if status, body := postResponses(t, s, responsesBody(inputUser, rs, text)); status != http.StatusOK {
		t.Errorf("status %d: %s", status, body)
	}
	bare := strings.Replace(text, `"phase":"commentary",`, "", 1)
	if status, body := postResponses(t, s, responsesBody(inputUser, rs, bare)); status != http.StatusBadRequest || !strings.Contains(body, "phase") {
		t.Errorf("without the phase: status %d: %s", status, body)
	}
	s.Responses.KeepPhases, s.Responses.Organisation = false, "org-other"
	if status, body := postResponses(t, s, responsesBody(inputUser, rs, bare)); status != http.StatusBadRequest || !strings.Contains(body, `"code":"invalid_encrypted_content"`) {
		t.Errorf("of another organisation: status %d: %s", status, body)
	}
	if status, body := postResponses(t, s, responsesBody(inputUser, bare[:1])); status != http.StatusBadRequest || !strings.Contains(body, "could not parse") {
		t.Errorf("no JSON: status %d: %s", status, body)
	}
	if status, body := postResponses(t, s, responsesBody(inputUser, strings.Replace(rs, `"encrypted_content"`, `"content"`, 1), text)); status != http.StatusNotFound {
		t.Errorf("without encrypted content: status %d: %s", status, body)
	}
	if n := len(s.ResponseItems()); n != 2 {
		t.Errorf("%d responses were made, want 2", n)
	}
}

func TestEncryptedContentHasItsSize(t *testing.T) {
	for _, size := range []int{0, 33, 5000} {
		item := thoughts(t, modeltest.ReplyPart{Thinking: &modeltest.Thinking{Size: size}}, said)[0]
		if n := len(item); n < size || n > size+400 {
			t.Errorf("size %d: the item has %d bytes", size, n)
		}
	}
}

func FuzzParseResponsesRequest(f *testing.F) {
	f.Add([]byte(responsesBody(inputUser, inputText, inputCall, inputResult)))
	f.Add([]byte(responsesBody(contents(png+","+pdf), `{"type":"reasoning","summary":[],"encrypted_content":"e30="}`)))
	f.Add([]byte(responsesWith(`"tools":[` + flatTool + `],"reasoning":{"effort":"low"},"include":[]`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := modeltest.ParseResponsesRequest(text)
		if err == nil && (r.Model == "" || len(r.Messages) == 0) {
			t.Errorf("%s was taken", text)
		}
	})
}
