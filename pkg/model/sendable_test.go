package model_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

func TestSendableArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"a": 1}`:                     `{"a": 1}`,
		` {"a":9007199254740993e4}`:    ` {"a":9007199254740993e4}`,
		`{"n":9007199254740993e400}`:   `{"n":"9007199254740993e400"}`,
		`null`:                         `{"not_a_json_object":"null"}`,
		``:                             `{}`,
		`[1]`:                          `{"not_a_json_object":"[1]"}`,
		`{"a":`:                        `{"not_a_json_object":"{\"a\":"}`,
		`{"a":"\ud99c"}`:               `{"a":"\ufffd"}`,
		`{"a":"\uDC00\ud83d"}`:         `{"a":"\ufffd\ufffd"}`,
		`{"a":"\ud83d\ude00"}`:         `{"a":"\ud83d\ude00"}`,
		`{"a":"\ud83d\ud83d\ude00"}`:   `{"a":"\ufffd\ud83d\ude00"}`,
		`{"\ud99c":1}`:                 `{"\ufffd":1}`,
		`{"a":"\\ud99c"}`:              `{"a":"\\ud99c"}`,
		`{"a":"\\\ud99c"}`:             `{"a":"\\\ufffd"}`,
		`{"a":"\u0000b"}`:              `{"a":"\ufffdb"}`,
		`{"a":"\ud99`:                  `{"not_a_json_object":"{\"a\":\"\\ud99"}`,
		`{"a":"` + "\x00" + `"`:        `{"not_a_json_object":"{\"a\":\" \""}`,
		nested(`{"a":`, "1", "}", 100): nested(`{"a":`, "1", "}", 100),
	} {
		if got := model.SendableArguments(arguments); got != want {
			t.Errorf("%.80q becomes %.80q, want %.80q", arguments, got, want)
		}
	}
	for _, deep := range []string{nested(`{"a":`, "1", "}", 101), nested(`{"a":[`, "", "]}", 10_000)} {
		if got := model.SendableArguments(deep); !strings.HasPrefix(got, `{"not_a_json_object":`) {
			t.Errorf("arguments of %d levels become %.80q", strings.Count(deep, "{")+strings.Count(deep, "["), got)
		}
	}
}

func nested(open, inner, end string, levels int) string {
	return strings.Repeat(open, levels) + inner + strings.Repeat(end, levels)
}

// FuzzSendableArguments: whatever a model writes, the result is a JSON object that strict
// decoders take.
func FuzzSendableArguments(f *testing.F) {
	for _, seed := range []string{`{"a":"\ud99c"}`, `{"a":"\\\ud83d\ude00\u0000"}`, "{\"a\":\"\x00\"}", `{"a":`, "[[[", `"\`, `{"\u`, `{"a":1,"a":2}`, `{"n":1e999}`, "{\"\xff\":1}", `{"a":[[{"b":-0.0E+1}]]}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		sent := model.SendableArguments(arguments)
		var object map[string]any
		if err := json.Unmarshal([]byte(sent), &object); err != nil || object == nil {
			t.Fatalf("%q is sent as %q, which is no object: %v", arguments, sent, err)
		}
		if strings.IndexByte(sent, 0) >= 0 || !model.SendableOpaque([]byte(sent)) || model.SendableArguments(sent) != sent {
			t.Errorf("%q is sent as %q", arguments, sent)
		}
	})
}
