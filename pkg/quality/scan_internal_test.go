package quality

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestScansFindWhatTheExpressionsFind compares the scans of the monitor with the expressions
// that define what it looks for.
func TestScansFindWhatTheExpressionsFind(t *testing.T) {
	refusals := regexp.MustCompile(`(?i)\b(i can't|i cannot|i am unable to|i'm unable to|i (don't|do not) have (access|the ability)|unfortunately|as an ai( language)? model)\b`)
	fillers := regexp.MustCompile(`(?i)^\s*(sure|of course|certainly|absolutely)[,!.]|^\s*(that's a )?great question`)
	forms := regexp.MustCompile(`(?m)^ {0,3}(#{1,6}\s|[-*]\s|\d{1,3}[.)]\s)`)
	markers := regexp.MustCompile(`(?i)according to|\[\d{1,3}\]|https?://|(?m:^>\s)|["“][^"”\n]{15,}["”]`)
	pieces := rapid.SampledFrom([]string{
		"i", "I ", "can't", "cannot", " am", "'m", " unable to", "don't ", "do not ", "have ", "access", "the ability", "unfortunately", "Unfortunately", "as an ai", "AS AN AI", " language", " model",
		"sure", "of course", "certainly", "Absolutely", ",", "!", ".", "great question", "That's a ", "\n", "\r\n", " ", "   ", "\t", "\f", "\v", "\u00a0", "#", "######", "-", "*", "1", "12", "1234", ")",
		"according to", "According", " TO", "[", "]", "http", "HTTPS", "ſ", "s", "://", ">", "\"", "“", "”", "a", "_", "wörd", "fourteen chars", "fifteen letters", "言葉", "\xff", "\xe2\x80", "K", "İ",
	})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), "")
		if got, want := refusalIn(text), refusals.FindString(text); got != want {
			t.Errorf("refusal %q, want %q", got, want)
		}
		if got, want := filler.MatchString(text), fillers.MatchString(text); got != want {
			t.Errorf("filler %v, want %v", got, want)
		}
		if got, want := hasForm(text), forms.MatchString(text); got != want {
			t.Errorf("form %v, want %v", got, want)
		}
		if got, want := HasMarker(text), markers.MatchString(text); got != want {
			t.Errorf("marker %v, want %v", got, want)
		}
	})
}
