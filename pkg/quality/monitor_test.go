package quality_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// padded returns text with plain words after it, n code points in all.
func padded(text string, n int) string {
	return string([]rune(text + strings.Repeat(" wörd", n/4+1))[:n])
}

// seen returns severity and checkpoint of each alert.
func seen(head, kind string, passed ...uint32) (alerts []string) {
	for _, a := range quality.NewMonitor(kind, passed).Add(head) {
		alerts = append(alerts, fmt.Sprint(a.GetSeverity(), " ", a.GetCheckpoint()))
		if a.GetIssue() == "" || a.GetSuggestion() == "" {
			alerts = append(alerts, "no text")
		}
	}
	return alerts
}

func TestMonitorReadsAtItsCheckpoints(t *testing.T) {
	for _, c := range []struct {
		chars  int
		passed []uint32
		alerts string
	}{
		{499, nil, "[]"}, {500, nil, "[critical 500]"}, {1999, nil, "[critical 500]"}, {2000, nil, "[critical 500 warning 2000]"},
		{5000, nil, "[critical 500 warning 2000 warning 5000]"}, {4999, []uint32{500}, "[warning 2000]"}, {5000, []uint32{500, 2000, 5000}, "[]"},
		{5000, []uint32{2000}, "[critical 500 warning 5000]"},
	} {
		if alerts := seen(padded("Unfortunately", c.chars), "synthesis", c.passed...); fmt.Sprint(alerts) != c.alerts {
			t.Errorf("%+v: %v", c, alerts)
		}
	}
}

// TestMonitorReadsAnyPieces: how a text is divided, also within a code point, changes neither
// the alerts nor the checkpoint at which each comes.
func TestMonitorReadsAnyPieces(t *testing.T) {
	parts := []string{"I can’t do it. ", "Great question. ", "\n## Head\n", "\n- item\n", "wörds and 言葉 of 🙂 kinds ", "“a quote of more words” ", "[12] ", "x", strings.Repeat("plain ", 80)}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 1, 60).Draw(t, "parts"), "")
		kind := rapid.SampledFrom([]string{"synthesis", "recommendation", "full_pipeline", "drafting", "chat"}).Draw(t, "kind")
		passed := rapid.SampledFrom([][]uint32{nil, {500}, {500, 2000}}).Draw(t, "passed")
		want := quality.NewMonitor(kind, passed).Add(text)
		m, chars := quality.NewMonitor(kind, passed), 0
		var got []*harnessv1.QualityAlert
		for at := 0; at < len(text); {
			size := min(rapid.SampledFrom([]int{1, 2, 3, 7, 64, 1000}).Draw(t, "size"), len(text)-at)
			for _, a := range m.Add(text[at : at+size]) {
				got = append(got, a)
				if now := utf8.RuneCountInString(text[:at+size]); chars >= int(a.GetCheckpoint()) || now < int(a.GetCheckpoint()) {
					t.Fatalf("alert of %d between %d and %d characters", a.GetCheckpoint(), chars, now)
				}
			}
			at += size
			chars = utf8.RuneCountInString(text[:at])
		}
		if !slices.EqualFunc(got, want, func(a, b *harnessv1.QualityAlert) bool { return proto.Equal(a, b) }) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestMonitorFindsRefusals(t *testing.T) {
	for text, refused := range map[string]bool{
		"I can't do it": true, "I CAN’T do it": true, "well, i cannot": true, "I am unable to": true, "I’m unable to": true, "I don't have access": true,
		"I do not have the ability": true, "Unfortunately, no": true, "As an AI model": true, "as an AI language model": true,
		"I can do it": false, "hi can't": false, "I don't have time": false, "I cannotate": false, "an AI model": false,
	} {
		alerts := seen(padded(text, 500), "chat")
		if got := slices.Contains(alerts, "critical 500"); got != refused || len(alerts) > 1 {
			t.Errorf("%s: %v", text, alerts)
		}
	}
	if alerts := seen(padded("", 495)+" I cannot "+padded("", 2000), "chat"); len(alerts) > 0 {
		t.Errorf("words after the checkpoint: %v", alerts)
	}
}

func TestMonitorWarnsByKind(t *testing.T) {
	all := []string{"synthesis", "recommendation", "full_pipeline", "drafting", "chat", "own"}
	for _, c := range []struct {
		text  string
		chars int
		alert string
		kinds []string
	}{
		{"Sure, here", 500, "warning 500", all[:3]}, {" \nOF COURSE! x", 500, "warning 500", all[:3]}, {"certainly.", 500, "warning 500", all[:3]},
		{"That’s a great question", 500, "warning 500", all[:3]}, {"Great question", 500, "warning 500", all[:3]},
		{"Surely here", 500, "warning 500", nil}, {"x Sure, here", 500, "warning 500", nil},
		{"plain", 2000, "warning 2000", all[:4]}, {"x\n## head\n", 2000, "warning 2000", nil}, {"x\n   - item\n", 2000, "warning 2000", nil},
		{"x\n1) item\n", 2000, "warning 2000", nil}, {"x\n    - item\n", 2000, "warning 2000", all[:4]}, {"x\n#tag\n", 2000, "warning 2000", all[:4]},
		{"plain", 5000, "warning 5000", []string{"synthesis", "full_pipeline"}}, {"see [12]", 5000, "warning 5000", nil}, {"According to x", 5000, "warning 5000", nil},
	} {
		for _, kind := range all {
			alerts := seen(padded(c.text, c.chars), kind)
			if got := slices.Contains(alerts, c.alert); got != slices.Contains(c.kinds, kind) {
				t.Errorf("%q for %s: %v", c.text, kind, alerts)
			}
		}
	}
}

func TestHasMarker(t *testing.T) {
	for text, marked := range map[string]bool{
		"ACCORDING TO x": true, "[1]": true, "[123]": true, "[1234]": false, "[a]": false, "http://x": true, "https://x": true, "ftp://x": false,
		"a\n> quote": true, "a > b": false, `"fifteen letters"`: true, `"fourteen chars"`: false, "“fifteen letters”": true, "\"fifteen\nletters\"": false, "": false,
	} {
		if got := quality.HasMarker(text); got != marked {
			t.Errorf("%q: %v", text, got)
		}
	}
}
