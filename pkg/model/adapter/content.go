package adapter

import (
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// maxMessage is the length of an error message in bytes, without the ellipsis.
const maxMessage = 400

// Clean makes a message one line of at most 400 bytes without the key.
// Services quote part of a wrong key; that part is kept.
func Clean(message, key string) string {
	if key != "" {
		message = strings.ReplaceAll(message, key, "[key]")
	}
	message = strings.Join(strings.Fields(strings.ToValidUTF8(message, "")), " ")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// Inline returns the text of a content; a request has no blobs.
func Inline(c *harnessv1.Content) (string, error) {
	if c.GetBlob() != nil {
		return "", fmt.Errorf("content %s is not inline", c.GetBlob().GetDigest())
	}
	return c.GetInline(), nil
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
