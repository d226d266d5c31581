package openai

import (
	"strings"
	"testing"
)

// Streams whose contents are right and whose form is not.

const (
	wholeCall = `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}}]}`
	someText  = `{"choices":[{"index":0,"delta":{"content":"Hi."}}]}`
	atStop    = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

func TestEndsWithoutAFinishReason(t *testing.T) {
	for name, c := range map[string]struct {
		events   []string
		complete bool
		reason   string
	}{
		"a whole call":               {[]string{wholeCall, "[DONE]"}, true, "tool_calls"},
		"a text and a call":          {[]string{someText, wholeCall, "[DONE]"}, true, "tool_calls"},
		"a text":                     {[]string{someText, "[DONE]"}, true, "stop"},
		"a call that is cut":         {[]string{someText, strings.Replace(wholeCall, `"{}"`, `"{"`, 1), "[DONE]"}, false, ""},
		"a call without a name":      {[]string{strings.Replace(wholeCall, `"name":"f",`, "", 1), "[DONE]"}, false, ""},
		"one whole and one cut call": {[]string{wholeCall, strings.NewReplacer(`"c"`, `"d"`, `"{}"`, `"{\"a\":"`).Replace(wholeCall), "[DONE]"}, false, ""},
		"nothing":                    {[]string{"[DONE]"}, false, ""},
		"reasoning only":             {[]string{`{"choices":[{"delta":{"reasoning":"Hm."}}]}`, "[DONE]"}, false, ""},
		"without [DONE]":             {[]string{someText, wholeCall}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDecoder(Reasoning{}).stream()
			for _, e := range c.events {
				if _, err := s.Add("", []byte(e)); err != nil {
					t.Fatal(err)
				}
			}
			if s.Complete() != c.complete {
				t.Fatalf("complete is %t, want %t", s.Complete(), c.complete)
			}
			if got := s.Response().FinishReason; c.complete && got != c.reason {
				t.Errorf("the finish reason is %q, want %q", got, c.reason)
			}
		})
	}
}

// TestTheOnlyChoiceHasAnyIndex: a request has one choice. Servers number it from 1, or number
// the chunks.
func TestTheOnlyChoiceHasAnyIndex(t *testing.T) {
	for name, indexes := range map[string][3]string{
		"1": {"1", "1", "1"}, "counts": {"0", "1", "2"}, "counts from 197": {"197", "198", "199"}, "a text": {`"0"`, `"0"`, `"x"`}, "null": {"null", "null", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newDecoder(Reasoning{}).stream()
			for i, e := range []string{someText, wholeCall, atStop} {
				if _, err := s.Add("", []byte(strings.Replace(e, `"index":0`, `"index":`+indexes[i], 1))); err != nil {
					t.Fatal(err)
				}
			}
			if r := s.Response(); !s.Complete() || r.Text != "Hi." || len(r.ToolCalls) != 1 {
				t.Errorf("complete is %t, the answer %q with %d calls", s.Complete(), r.Text, len(r.ToolCalls))
			}
		})
	}
	s := newDecoder(Reasoning{}).stream()
	if _, err := s.Add("", []byte(`{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}`)); err != nil {
		t.Fatal(err)
	}
	if got := s.Response().Text; got != "a" {
		t.Errorf("of two choices in one chunk the text is %q, want the first", got)
	}
}

// TestTheGreatestUsageCounts: some servers end with an empty report.
func TestTheGreatestUsageCounts(t *testing.T) {
	const reported = `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":7}}`
	for _, last := range []string{`{"choices":[],"usage":{}}`, `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`, `{"choices":[],"usage":null}`, `{"choices":[{"delta":{},"usage":{}}]}`} {
		s := newDecoder(Reasoning{}).stream()
		for _, e := range []string{someText, reported, last} {
			if _, err := s.Add("", []byte(e)); err != nil {
				t.Fatal(err)
			}
		}
		if u := s.Response().Usage; u.GetInputTokens() != 100 || u.GetOutputTokens() != 7 {
			t.Errorf("after %s the usage is %v", last, u)
		}
	}
}
