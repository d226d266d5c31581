package runtrace_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
)

const example = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestTraceparentRoundTrip(t *testing.T) {
	ref, ok := runtrace.Parse(example)
	if !ok || ref.Trace.String() != "4bf92f3577b34da6a3ce929d0e0e4736" || ref.Span.String() != "00f067aa0ba902b7" {
		t.Fatalf("%v %v", ref, ok)
	}
	if text := runtrace.Traceparent(ref); text != example {
		t.Error(text)
	}
	if runtrace.Traceparent(runtrace.Ref{}) != "" || runtrace.Traceparent(runtrace.Ref{Trace: ref.Trace}) != "" {
		t.Error("no span has a traceparent")
	}
	if runtrace.Header != strings.ToLower(runtrace.Header) {
		t.Error("NATS keeps the case of keys: others look for lower case")
	}
}

func TestOnlySampledTraceparentsCount(t *testing.T) {
	for text, want := range map[string]bool{
		example:                                                   true,
		strings.TrimSuffix(example, "01") + "03":                  true, // random, sampled
		"cc" + example[2:] + "-more":                              true, // of a later version
		strings.TrimSuffix(example, "01") + "00":                  false,
		example + "-more":                                         false,
		"cc" + example[2:] + "more":                               false,
		"ff" + example[2:]:                                        false,
		strings.ToUpper(example):                                  false,
		strings.Replace(example, "-", "_", 1):                     false,
		strings.Replace(example, "4bf9", "4xf9", 1):               false,
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01": false,
		"":        false,
		"garbage": false,
	} {
		if _, ok := runtrace.Parse(text); ok != want {
			t.Errorf("%q: %v", text, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add("cc" + example[2:] + "-x")
	f.Fuzz(func(t *testing.T, text string) {
		if ref, ok := runtrace.Parse(text); ok {
			if again, ok := runtrace.Parse(runtrace.Traceparent(ref)); !ok || again != ref {
				t.Errorf("%q is read as %v and written as %q", text, ref, runtrace.Traceparent(ref))
			}
		}
	})
}
