package adapter

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// maxMessage is the length of an error message in bytes, without the ellipsis.
const maxMessage = 400

// minKey is the length of the shortest key that Clean replaces, in bytes. A
// shorter one, such as "test", is also an ordinary word.
const minKey = 16

// Clean makes a message one line of at most 400 bytes without the keys that
// have at least 16 bytes and appear as whole tokens. Services quote part of a
// wrong key; that part is kept.
func Clean(message string, keys ...string) string {
	for _, key := range keys {
		if len(key) >= minKey {
			message = withoutToken(message, key)
		}
	}
	message = content.OneLine(strings.ToValidUTF8(message, ""))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// withoutToken replaces key where no letter, digit, "_" or "-" adjoins it. An
// escape before it, such as \n or %20, is no part of a token.
func withoutToken(message, key string) string {
	var b strings.Builder
	for from := 0; ; {
		i := strings.Index(message[from:], key)
		if i < 0 {
			b.WriteString(message[from:])
			return b.String()
		}
		start, end := from+i, from+i+len(key)
		if continues(message[:start]) || end < len(message) && inToken(message[end]) {
			b.WriteString(message[from : start+1])
			from = start + 1
			continue
		}
		b.WriteString(message[from:start] + "[key]")
		from = end
	}
}

// escape is what an escaped character at the end of a text looks like in JSON, Go and URLs.
var escape = regexp.MustCompile(`(?:\\[abfnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2})$`)

// continues reports whether a token can continue after before.
func continues(before string) bool {
	n := len(before)
	return n > 0 && inToken(before[n-1]) && !escape.MatchString(before[max(0, n-len(`\u0000`)):])
}

func inToken(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Inline returns the text of a content as services take it; a request has no blobs.
func Inline(c *harnessv1.Content) (string, error) {
	if c.GetBlob() != nil {
		return "", fmt.Errorf("content %s is not inline", c.GetBlob().GetDigest())
	}
	return model.SendableText(c.GetInline()), nil
}

// ToolCall returns a call with its arguments as the model wrote them.
func ToolCall(id, name, arguments string) *harnessv1.ToolCall {
	return &harnessv1.ToolCall{Id: id, Name: name, Arguments: content.Inline(arguments)}
}

// FinishReason returns the finish reason that follows from the calls of a
// response whose own reason is missing or unknown.
func FinishReason(calls []*harnessv1.ToolCall) string {
	if len(calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// maxCount is more than any request has, in tokens; larger counts are garbage
// whose sum must not overflow.
const maxCount = 1 << 40

// Count returns a number of tokens as reported, between 0 and 2^40.
func Count(n int64) uint64 {
	return uint64(min(max(n, 0), maxCount))
}
