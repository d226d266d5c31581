package webclient

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// TestConversionEndsWithItsContext: pages for which a parser or a converter needs the square of
// their size become plain text.
func TestConversionEndsWithItsContext(t *testing.T) {
	if testing.Short() {
		t.Skip("converts the largest pages")
	}
	t.Parallel()
	fill := func(s string) string { return strings.Repeat(s, MaxBody/len(s)) }
	address, _ := url.Parse("http://a.example/x")
	for name, page := range map[string]string{
		"brackets": fill("["), "links": fill("<a href=x>x"), "line breaks": fill("<br>") + "x", "cells": fill("<tr><td>x"), "open elements": fill("<div>") + "x",
		"quotes": strings.Repeat("<blockquote>", 300) + fill("a<br>"), "lists": fill("<ul><li>x</ul>"),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		begin := time.Now()
		if p := markdown(ctx, page, address); p.Text == "" {
			t.Errorf("%s: no text", name)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
		cancel()
	}
}

func TestParts(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "short": "a", "one line": strings.Repeat("é", 3*partBytes), "lines": strings.Repeat("some line of text\n", partBytes/4), "exact": strings.Repeat("x", 2*partBytes),
	} {
		_, parts := Part(text, 1)
		var all strings.Builder
		for i := range parts {
			part, n := Part(text, i+1)
			if n != parts || len(part) > partBytes || !utf8.ValidString(part) {
				t.Errorf("%s: part %d of %d has %d bytes", name, i+1, n, len(part))
			}
			all.WriteString(part)
		}
		if all.String() != text || parts == 0 {
			t.Errorf("%s: %d parts", name, parts)
		}
	}
}
