package wire

import (
	"strings"
	"testing"
)

func TestParseFault(t *testing.T) {
	for body, want := range map[string]Fault{
		`{"error":{"code":"c","type":"t","message":"m","param":"p"}}`: {"c", "t", "m", "p"},
		`{"error":{"code":400,"message":{"a":1},"param":null}}`:       {"400", "", "", ""},
		`{"message":"m","type":"insufficient_quota"}`:                 {"", "insufficient_quota", "m", ""},
		`{"error":"m"}`:            {"", "", "m", ""},
		`{"error":"m","code":"c"}`: {"c", "", "m", ""},
		`{"error":null,"code":"c","message":"m","param":"p"}`:           {"c", "", "m", "p"},
		`{"type":"error","code":"c","message":"m","sequence_number":3}`: {"c", "", "m", ""},
		`{"detail":"m"}`: {"", "", "m", ""},
		`{"error":{"code":{"a":1},"type":["a"],"param":{}}}`:                 {},
		`{"error":{"message":"m","details":{"error_code":"d"}}}`:             {"d", "", "m", ""},
		`{"error":{"message":"m","code":"c","details":{"error_code":"d"}}}`:  {"c", "", "m", ""},
		`{"error":{"message":"m","details":[1]}}`:                            {"", "", "m", ""},
		`{"type":"error","error":{"type":"overloaded_error"}}`:               {"", "overloaded_error", "", ""},
		`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`: {"400", "", "m", ""},
		`<html>`: {}, ``: {}, `[]`: {}, `[7]`: {}, `null`: {},
	} {
		if got := ParseFault([]byte(body)); got != want {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

// TestMessages has structured messages, and others that repeat the request.
func TestMessages(t *testing.T) {
	const problem = `{"type":"t","loc":["body","messages",1,"x"],"msg":"m","input":"ECHO","ctx":{"error":"ECHO"},"url":"ECHO"}`
	for body, want := range map[string]string{
		`{"detail":[` + problem + `]}`:                                                      "body.messages.1.x: m",
		`{"detail":[` + problem + `,{"msg":"n"},"o",{"a":1}]}`:                              "body.messages.1.x: m; n; o",
		`{"message":{"detail":[` + problem + `]}}`:                                          "body.messages.1.x: m",
		`{"message":{"message":"m","input":"ECHO"}}`:                                        "m",
		`{"message":{"error":{"message":"m"}}}`:                                             "m",
		`{"error":{"message":` + problem + `}}`:                                             "body.messages.1.x: m",
		`{"error":[` + problem + `]}`:                                                       "body.messages.1.x: m",
		`{"message":[{"loc":"body","msg":"m"}]}`:                                            "body: m",
		`{"message":{"loc":[{"input":"ECHO"}],"msg":"m"}}`:                                  "m",
		`{"message":{"input":"ECHO"}}`:                                                      "",
		`{"message":" [{\"loc\":[\"body\"],\"msg\":\"m\",\"input\":\"ECHO\"}]"}`:            "body: m",
		`{"message":"[{'loc': ('body',), 'msg': 'm', 'input': 'ECHO'}]"}`:                   "[{'loc': ('body',), 'msg': 'm', ",
		`{"message":"[{\"loc\":[\"body\"],\"input\":\"ECHO"}`:                               `[{"loc":["body"],`,
		`{"message":"m [type=extra_forbidden, input_value='ECHO', input_type=str]"}`:        "m [type=extra_forbidden, ",
		`{"message":"Invalid type for 'input': expected a string"}`:                         "Invalid type for 'input': expected a string",
		`{"message":` + strings.Repeat("[", 5000) + `"m"` + strings.Repeat("]", 5000) + `}`: "",
	} {
		if got := ParseFault([]byte(body)).Message; got != want {
			t.Errorf("%.200s: got %q, want %q", body, got, want)
		}
	}
}

// TestPassedOnFaults has errors that a gateway passes on.
func TestPassedOnFaults(t *testing.T) {
	body := func(raw string) string {
		return `{"error":{"message":"m","code":400,"metadata":{"raw":` + raw + `,"provider_name":"p"}}}`
	}
	nested := `"n"`
	for range 10 {
		nested = body(nested)
	}
	for raw, want := range map[string]Fault{
		body(`"{\"error\":{\"code\":\"c\",\"type\":\"t\",\"message\":\"n\"}}"`):     {"400", "c", "m: n", ""},
		body(`"{\"type\":\"error\",\"error\":{\"type\":\"t\",\"message\":\"n\"}}"`): {"400", "t", "m: n", ""},
		body(`{"error":{"code":400,"type":"t","message":"n"}}`):                     {"400", "t", "m: n", ""},
		body(`{"detail":[{"loc":["a"],"msg":"n","input":"ECHO"}]}`):                 {"400", "", "m: a: n", ""},
		body(`"[{\"loc\":[\"a\"],\"msg\":\"n\",\"input\":\"ECHO\"}]"`):              {"400", "", "m: a: n", ""},
		body(`"plain text"`): {"400", "", "m: plain text", ""},
		body(`"m"`):          {"400", "", "m", ""},
		body(`""`):           {"400", "", "m", ""},
		body(`null`):         {"400", "", "m", ""},
		body(`7`):            {"400", "", "m: 7", ""},
		nested:               {"400", "", "m", ""},
		`{"error":{"type":"t","metadata":{"raw":"n"}}}`: {"", "t", "n", ""},
		`{"error":{"message":"m","metadata":"x"}}`:      {"", "", "m", ""},
	} {
		if got := ParseFault([]byte(raw)); got != want {
			t.Errorf("%.200s: got %+v, want %+v", raw, got, want)
		}
	}
}
