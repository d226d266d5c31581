package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// body returns the request as JSON. Thinking is written byte for byte: an encoder would
// leave out white space.
func (r *messagesRequest) body() (json.RawMessage, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	write := func(v any) error {
		if err := encoder.Encode(v); err != nil {
			return err
		}
		b.Truncate(b.Len() - 1) // the line feed
		return nil
	}
	fmt.Fprintf(&b, `{"max_tokens":%d,"messages":`, r.MaxTokens)
	for i, m := range r.Messages {
		b.WriteByte(opening(i))
		b.WriteString(`{"role":"` + m.Role + `","content":`)
		for n, part := range m.Content {
			b.WriteByte(opening(n))
			if raw, is := part.(thinkingBlock); is {
				b.Write(raw)
			} else if err := write(part); err != nil {
				return nil, err
			}
		}
		b.WriteString("]}")
	}
	b.WriteByte(']')
	start := b.Len()
	if err := write(r.requestRest); err != nil {
		return nil, err
	}
	b.Bytes()[start] = ',' // instead of its brace
	return b.Bytes(), nil
}

// opening returns what precedes an element of a list.
func opening(index int) byte {
	if index == 0 {
		return '['
	}
	return ','
}
