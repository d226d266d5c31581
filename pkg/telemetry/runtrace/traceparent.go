package runtrace

import (
	"encoding/hex"
	"strings"
)

// Header is the key of a traceparent, in NATS headers as in those of HTTP and gRPC. NATS
// does not change the case of keys; other programs look for it in lower case.
const Header = "traceparent"

// Traceparent is ref as a W3C traceparent, sampled; empty for none.
func Traceparent(ref Ref) string {
	if ref.Trace == (TraceID{}) || ref.Span == (SpanID{}) {
		return ""
	}
	return "00-" + ref.Trace.String() + "-" + ref.Span.String() + "-01"
}

// Parse reads a W3C traceparent. ok is false when it is none, or not sampled.
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
