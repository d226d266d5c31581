package modeltest

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

func TestRequestTokens(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 150, 100))); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("A sentence that is repeated. ", 40)
	count := func(text string) int { return tokens.Count("gpt-4o", text) }
	for name, c := range map[string]struct {
		request Request
		want    int
	}{
		"nothing": {Request{}, 0},
		"messages": {Request{Messages: []RequestMessage{{Role: "system", Content: "Be brief."}, {Role: "user", Content: long}}},
			2*tokens.MessageOverhead + count("Be brief.") + count(long)},
		"calls": {Request{Messages: []RequestMessage{{ToolCalls: []Call{{Name: "read_file", Arguments: `{"path":"a"}`}}}}},
			tokens.MessageOverhead + count("read_file") + count(`{"path":"a"}`)},
		"tools": {Request{Tools: []RequestTool{{Name: "read_file", Description: "Reads a file.", Parameters: json.RawMessage(`{"type":"object"}`)}}},
			tokens.MessageOverhead + count("read_file") + count("Reads a file.") + count(`{"type":"object"}`)},
		"an image": {Request{Messages: []RequestMessage{{Media: []RequestMedia{{Type: "image/png", Data: picture.Bytes()}}}}},
			tokens.MessageOverhead + 150*100/750},
		"reasoning": {Request{
			Messages:  []RequestMessage{{reasoning: json.RawMessage(`"12345678"`)}},
			Thinking:  RequestThinking{Blocks: []json.RawMessage{json.RawMessage(strings.Repeat("x", 60))}},
			responses: responsesDetails{sealed: 30},
		}, tokens.MessageOverhead + (10+60+30)/4},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Model = "gpt-4o"
			if got := c.request.Tokens(); got != c.want {
				t.Errorf("got %d tokens, want %d", got, c.want)
			}
			c.request.counter = &counter{}
			for range 2 { // the second time from memory
				if got := c.request.Tokens(); got != c.want {
					t.Errorf("with a counter: got %d tokens, want %d", got, c.want)
				}
			}
		})
	}
}
