package model_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
)

func TestSendableValues(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                          `{}`,
		`{"b":1, "a":[{"b":1}]}`:                      `{"b":1, "a":[{"b":1}]}`,
		`{"b":"x", "a":"x"}`:                          `{"b":"x", "a":"x"}`,
		`{"a":1,"a":2}`:                               `{"a":2}`,
		`{"a":1,"\u0061":2}`:                          `{"a":2}`,
		`{"a" : 1, "b":{"a":1} ,"a" : "<x>"}`:         `{"a":"<x>","b":{"a":1}}`,
		`{"x":[{"a":1,"a":2}]}`:                       `{"x":[{"a":2}]}`,
		`{"n":9007199254740993,"m":-1.5e300}`:         `{"n":9007199254740993,"m":-1.5e300}`,
		`{"n":9007199254740993,"n":9007199254740995}`: `{"n":9007199254740995}`,
		`{"n":[-1.7e308,1e-999]}`:                     `{"n":[-1.7e308,1e-999]}`,
		`{"n":` + strings.Repeat("9", 308) + `}`:      `{"n":` + strings.Repeat("9", 308) + `}`,
		`{"n":` + strings.Repeat("9", 309) + `}`:      `{"n":"` + strings.Repeat("9", 309) + `"}`,
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"e":7}`: `{"a":1,"b":2,"c":3,"d":4,"e":7,"f":6}`,
		`{"a":{"\"":1,"\\":2},"b":{"\"":1}}`:          `{"a":{"\"":1,"\\":2},"b":{"\"":1}}`,
		`{"n":[-1e999]}`:                              `{"n":["-1e999"]}`,
		`{"s":"{\"a\":1,\"a\":1e999}","t":["a","a"]}`: `{"s":"{\"a\":1,\"a\":1e999}","t":["a","a"]}`,
	} {
		if got := model.SendableArguments(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestSendableOpaque(t *testing.T) {
	for data, want := range map[string]bool{
		`{"text":"a ü \ud83d\ude00 \\ud83d","n":9007199254740993}`: true,
		`{"text":"\ud83d"}`:             false,
		`{"text":"\u0000"}`:             false,
		"{\"text\":\"\xff\"}":           false,
		`{"text":"a","text":"b"}`:       false,
		`{"n":1e999}`:                   false,
		nested(`{"a":`, "1", "}", 100):  true,
		nested(`{"a":`, "1", "}", 101):  false,
		nested("[", "", "]", 1_000_000): false,
	} {
		if got := model.SendableOpaque([]byte(data)); got != want {
			t.Errorf("%.80q: got %v, want %v", data, got, want)
		}
	}
}

// FuzzSendableOpaque reads bytes that may be no JSON without a failure.
func FuzzSendableOpaque(f *testing.F) {
	for _, data := range []string{`}]`, `"`, `"\`, `{"`, `{"a":`, `-`, `{"a":1e`, `{"\u":1}`} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { model.SendableOpaque(data) })
}
