// Package content makes and reads the texts that records carry: short ones
// inline, long ones as a reference to a blob. It imports the generated types
// only, so that every package can use it without the run log.
package content

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// MaxPreview bounds BlobRef.preview, in bytes.
const MaxPreview = 512

// Inline returns content that carries text itself.
func Inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}

// Text returns the inline text of c, or the preview of its blob: at most
// MaxPreview bytes of the text.
func Text(c *harnessv1.Content) string {
	if b := c.GetBlob(); b != nil {
		return b.GetPreview()
	}
	return c.GetInline()
}

// Digest returns the name of a blob: SHA-256 in lower-case hexadecimal.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DigestOf returns the Digest of the whole text of c, inline or in a blob.
func DigestOf(c *harnessv1.Content) string {
	if b := c.GetBlob(); b != nil {
		return b.GetDigest()
	}
	return Digest([]byte(c.GetInline()))
}

// Key returns a string that is equal for equal contents stored in the same
// form: the inline text, or "blob " and the digest. It is cheaper than DigestOf
// and is used to compare the arguments of calls.
func Key(c *harnessv1.Content) string {
	if b := c.GetBlob(); b != nil {
		return "blob " + b.GetDigest()
	}
	return c.GetInline()
}

// Ref returns the reference to data as a blob, with a preview.
func Ref(data []byte) *harnessv1.BlobRef {
	return &harnessv1.BlobRef{Digest: Digest(data), Size: uint64(len(data)), Preview: Cut(string(data), MaxPreview)}
}

// Cut returns the longest prefix of s that has at most limit bytes and ends at a
// rune border. Invalid UTF-8 is replaced first: each run of invalid bytes
// becomes one U+FFFD. A prefix is a copy, so that it does not keep a long text in memory.
func Cut(s string, limit int) string {
	end := 0
	for end < len(s) {
		r, width := utf8.DecodeRuneInString(s[end:])
		if r == utf8.RuneError && width == 1 {
			return cutInvalid(s, end, limit)
		}
		if end+width > limit {
			break
		}
		end += width
	}
	if end == len(s) {
		return s
	}
	return strings.Clone(s[:end])
}

// cutInvalid is Cut for a string whose first valid bytes only are valid UTF-8.
func cutInvalid(s string, valid, limit int) string {
	var b strings.Builder
	b.WriteString(s[:valid])
	replaced := false
	for rest := s[valid:]; rest != ""; {
		r, width := utf8.DecodeRuneInString(rest)
		invalid := r == utf8.RuneError && width == 1
		if !invalid || !replaced {
			if b.Len()+utf8.RuneLen(r) > limit {
				break
			}
			b.WriteRune(r)
		}
		replaced = invalid
		rest = rest[width:]
	}
	return b.String()
}

// Clip returns text on one line: valid UTF-8, control characters escaped, at most
// limit bytes of it, with an ellipsis where something was cut. Use it for text
// that a model or a user wrote and that an error quotes.
func Clip(text string, limit int) string {
	cut := len(text) > limit
	if cut {
		text = text[:limit]
	}
	text = strings.ToValidUTF8(text, "")
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\t' && Controls(r) }) {
		text = strings.Trim(strconv.Quote(text), `"`)
	}
	if cut {
		text += "…"
	}
	return text
}

// OneLine returns text with a single space for each run of white space and
// Controls, and none at its ends. Use it for the text of an error that a server sent.
func OneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return r == ' ' || r == 0xA0 || Controls(r)
	}), " ")
}

// Line returns OneLine of text in at most limit bytes, the last of which are an
// ellipsis where something was cut.
func Line(text string, limit int) string {
	if text = OneLine(text); len(text) <= limit {
		return text
	}
	return Cut(text, limit-len("…")) + "…"
}
