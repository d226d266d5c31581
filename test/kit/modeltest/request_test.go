package modeltest_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const (
	user  = `{"role":"user","content":"hi"}`
	calls = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{"}}]}`
	a     = `{"role":"tool","tool_call_id":"a","content":"1"}`
	b     = `{"role":"tool","tool_call_id":"b","content":""}`
	tool  = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}`
)

func body(messages ...string) string {
	return `{"model":"m","messages":[` + strings.Join(messages, ",") + `]}`
}

func with(more string) string {
	return `{"model":"m","messages":[` + user + `],` + more + `}`
}

func TestParseAccepts(t *testing.T) {
	for _, text := range []string{
		body(user), body(user, user), body(`{"role":"system","content":"s"}`, user), body(user, calls, a, b), body(user, calls, b, a, user),
		body(user, `{"role":"assistant","content":""}`, user), body(user, strings.Replace(calls, `"tool_calls"`, `"content":null,"tool_calls"`, 1), a, b),
		body(`{"role":"user","content":[{"type":"text","text":"hi"}]}`),
		with(`"stream":true,"stream_options":{"include_usage":true}`), with(`"stream":false`), with(`"tools":[` + tool + `]`),
	} {
		if _, err := modeltest.ParseRequest([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for text, says := range map[string]string{
		`{`:                           "could not parse",
		`{"messages":[` + user + `]}`: "model parameter",
		`{"model":"m"}`:               "'messages'",
		body():                        "'messages'",
		with(`"temperature":0`):       "unknown parameter: 'temperature'",
		with(`"stream":"yes"`):        "'stream'",
		with(`"stream_options":{}`):   "only allowed when 'stream'",
		with(`"stream":true,"stream_options":{"x":1}`): "unknown parameter: 'stream_options.x'",
		with(`"tools":[]`):                                                         "minimum length 1",
		with(`"tools":[` + tool + `,` + tool + `]`):                                "there twice",
		with(`"tools":[` + strings.Replace(tool, `"f"`, `"a b"`, 1) + `]`):         "does not match pattern",
		with(`"tools":[` + strings.Replace(tool, `,"properties":{}`, ``, 1) + `]`): "missing properties",
		with(`"tools":[` + strings.Replace(tool, `"object"`, `"array"`, 1) + `]`):  "must have type 'object'",
		with(`"tools":[{"type":"function","function":{"name":"f"}}]`):              "schema",
		body(`{"role":"robot","content":"hi"}`):                                    `"robot"`,
		body(`{"role":"user"}`):                                                    "got null",
		body(`{"role":"user","content":null}`):                                     "got null",
		body(`{"role":"user","content":7}`):                                        "'messages[0].content'",
		body(`{"role":"user","content":"hi","kind":"x"}`):                          "unknown parameter: 'messages[0].kind'",
		body(user, `{"role":"assistant"}`):                                         "got null",
		body(user, `{"role":"assistant","tool_calls":[]}`):                         "minimum length 1",
		body(user, calls):                "did not have a response",
		body(user, calls, a):             `"b" did not have a response`,
		body(user, calls, a, user, b):    `"b" did not have a response`,
		body(user, calls, a, a, b):       "answered twice",
		body(user, a):                    "must be a response to a preceding message",
		body(user, calls, a, b, user, a): "must be a response to a preceding message",
		body(user, calls, a, b, strings.Replace(a, `"a"`, `"z"`, 1)):                              "not found",
		body(user, strings.Replace(calls, `"b"`, `"a"`, 1), a, a):                                 "duplicate",
		body(user, strings.Replace(calls, `"a"`, `""`, 1), a, b):                                  "'messages[1].tool_calls[0].id'",
		body(user, strings.Replace(calls, `"a"`, `"`+strings.Repeat("x", 41)+`"`, 1), a, b):       "string too long",
		body(user, strings.Replace(calls, `"{}"`, `{}`, 1), a, b):                                 "expected a string",
		body(user, strings.Replace(calls, `"function","function"`, `"tool","function"`, 1), a, b): `expected "function"`,
		body(user, calls, `{"role":"tool","content":"1"}`, b):                                     "'messages[2].tool_call_id'",
	} {
		if _, err := modeltest.ParseRequest([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v, want %q", text, err, says)
		}
	}
}

func FuzzParseRequest(f *testing.F) {
	f.Add([]byte(body(user, calls, a, b)))
	f.Add([]byte(with(`"tools":[` + tool + `],"stream":true`)))
	f.Add([]byte(body(`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := modeltest.ParseRequest(text)
		if err == nil && (r.Model == "" || len(r.Messages) == 0) {
			t.Errorf("%s was taken", text)
		}
	})
}
