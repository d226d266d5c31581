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
	fmt.Fprintf(&b, `{"max_tokens":%d,"messages":`, r.MaxTokens)
	for i, m := range r.Messages {
		fmt.Fprintf(&b, `%c{"role":%q,"content":`, opening(i), m.Role)
		for n, part := range m.Content {
			b.WriteByte(opening(n))
			raw, is := part.(thinkingBlock)
			if is {
				b.Write(raw)
				continue
			}
			if err := writeJSON(&b, part); err != nil {
				return nil, err
			}
		}
		b.WriteString("]}")
	}
	b.WriteByte(']')
	start := b.Len()
	if err := writeJSON(&b, r.requestRest); err != nil {
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

// writeJSON writes a value without escaping what only HTML needs escaped.
func writeJSON(b *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the line feed
	return nil
}
