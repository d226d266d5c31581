package anthropic

import (
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// body returns the request as JSON, without its last brace. Thinking is written byte for byte: an encoder would
// leave out white space.
func (r *messagesRequest) body() (*wire.Body, error) {
	b := &wire.Body{}
	fmt.Fprintf(b, `{"max_tokens":%d,"messages":`, r.MaxTokens)
	for i, m := range r.Messages {
		_ = b.WriteByte(opening(i))
		_, _ = b.WriteString(`{"role":"` + m.Role + `","content":`)
		for n, part := range m.Content {
			_ = b.WriteByte(opening(n))
			if raw, is := part.(thinkingBlock); is {
				_, _ = b.Write(raw)
			} else if err := b.Encode(part); err != nil {
				return nil, err
			}
		}
		_, _ = b.WriteString("]}")
	}
	_, _ = b.WriteString("],")
	return b, b.EncodeMembers(r.requestRest)
}

// opening returns what precedes an element of a list.
func opening(index int) byte {
	if index == 0 {
		return '['
	}
	return ','
}
