package wire

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header [2]string
		want   time.Duration
	}{
		{[2]string{"X", "1"}, -1},
		{[2]string{"Retry-After", "7"}, 7 * time.Second},
		{[2]string{"Retry-After", " 0.5 "}, 500 * time.Millisecond},
		{[2]string{"Retry-After", "-1"}, -1},
		{[2]string{"Retry-After", "NaN"}, -1},
		{[2]string{"Retry-After", "1e300"}, 24 * time.Hour},
		{[2]string{"Retry-After", "soon"}, -1},
		{[2]string{"Retry-After", "Sat, 21 Nov 2026 12:00:30 GMT"}, 30 * time.Second},
		{[2]string{"Retry-After", "Sat, 21 Nov 2026 11:00:00 GMT"}, 0},
		{[2]string{"Retry-After-Ms", "250"}, 250 * time.Millisecond},
	} {
		h := http.Header{}
		h.Set(c.header[0], c.header[1])
		if got := RetryAfter(h, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.header, got, c.want)
		}
	}
}

func TestParseFault(t *testing.T) {
	for body, want := range map[string]Fault{
		`{"error":{"code":"c","type":"t","message":"m","param":"p"}}`: {"c", "t", "m", "p"},
		`{"error":{"code":400,"message":{"a":1},"param":null}}`:       {"400", "", `{"a":1}`, ""},
		`{"message":"m","type":"insufficient_quota"}`:                 {"", "insufficient_quota", "m", ""},
		`{"error":"m"}`:            {"", "", "m", ""},
		`{"error":"m","code":"c"}`: {"c", "", "m", ""},
		`{"error":null,"code":"c","message":"m","param":"p"}`:           {"c", "", "m", "p"},
		`{"type":"error","code":"c","message":"m","sequence_number":3}`: {"c", "", "m", ""},
		`{"detail":"m"}`:           {"", "", "m", ""},
		`{"detail":[{"msg":"x"}]}`: {"", "", `[{"msg":"x"}]`, ""},
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
