package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Sizes of arguments in bytes: values up to longValue are shown whole, of longer strings
// only the head.
const (
	longValue  = 200
	headOfLong = 80
)

// briefArguments returns arguments in which long values are shortened: a JSON object with
// the same members in the same order. Of arguments that are stored as a blob the members
// within the preview are shown.
func briefArguments(c *harnessv1.Content, ref string) *harnessv1.Content {
	if size(c) <= longValue {
		return c
	}
	var b bytes.Buffer
	b.WriteByte('{')
	d := json.NewDecoder(strings.NewReader(content.Text(c)))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		writeMember(&b, "arguments", shortenedValue(content.Text(c), size(c), ref))
	} else {
		writeMembers(&b, d, content.Text(c), ref)
	}
	b.WriteByte('}')
	return content.Inline(b.String())
}

// writeMembers writes the members of an object. Where the text ends, the rest is named.
func writeMembers(b *bytes.Buffer, d *json.Decoder, text, ref string) {
	for d.More() {
		name, err := d.Token()
		key, ok := name.(string)
		if err != nil || !ok {
			break
		}
		start := d.InputOffset()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			rest := strings.TrimLeft(text[min(int(start), len(text)):], ": \t\r\n\"")
			writeMember(b, key, shortenedValue(rest, 0, ref))
			return
		}
		if len(value) > longValue {
			var s string
			if json.Unmarshal(value, &s) != nil {
				s = string(value)
			}
			writeMember(b, key, shortenedValue(s, uint64(len(s)), ref))
			continue
		}
		writeRaw(b, key, value)
	}
}

// shortenedValue returns the head of a long value and how to read all of it. bytes is its size, 0
// if it is not known.
func shortenedValue(text string, bytes uint64, ref string) string {
	head := content.Line(content.Cut(strings.ToValidUTF8(text, "\uFFFD"), headOfLong), headOfLong)
	if bytes == 0 {
		return fmt.Sprintf("%s [shortened; %s, ref %s]", head, ReadArtifact, ref)
	}
	return fmt.Sprintf("%s [%d bytes, shortened; %s, ref %s]", head, bytes, ReadArtifact, ref)
}

func writeMember(b *bytes.Buffer, key, value string) {
	quoted, _ := json.Marshal(value) // a string can always be encoded
	writeRaw(b, key, quoted)
}

func writeRaw(b *bytes.Buffer, key string, value []byte) {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	quoted, _ := json.Marshal(key)
	b.Write(quoted)
	b.WriteByte(':')
	b.Write(value)
}
