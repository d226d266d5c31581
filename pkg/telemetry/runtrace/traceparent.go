package runtrace

import (
	"encoding/hex"
	"strings"
)

// Header is the key of a traceparent, in headers of NATS, HTTP and gRPC. NATS does not
// change the case of keys, and other programs expect lower case.
const Header = "traceparent"

// Traceparent returns ref as a W3C traceparent, sampled; empty for none.
func Traceparent(ref Ref) string {
	if ref.Trace == (TraceID{}) || ref.Span == (SpanID{}) {
		return ""
	}
	return "00-" + ref.Trace.String() + "-" + ref.Span.String() + "-01"
}

// Parse parses a W3C traceparent. ok is false if it is invalid or not sampled.
func Parse(text string) (ref Ref, ok bool) {
	const v0 = 55
	switch {
	case len(text) < v0, text[2] != '-', text[35] != '-', text[52] != '-', strings.HasPrefix(text, "ff"):
		return Ref{}, false
	case strings.HasPrefix(text, "00") && len(text) != v0, len(text) > v0 && text[v0] != '-':
		return Ref{}, false
	case strings.ToLower(text[:v0]) != text[:v0]:
		return Ref{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		text string
	}{{version[:], text[:2]}, {ref.Trace[:], text[3:35]}, {ref.Span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Ref{}, false
		}
	}
	if ref.Trace == (TraceID{}) || ref.Span == (SpanID{}) || flags[0]&1 == 0 {
		return Ref{}, false
	}
	return ref, true
}
