package quality_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// padded returns text with plain words after it, n code points in all.
func padded(text string, n int) string {
	return string([]rune(text + strings.Repeat(" wörd", n/4+1))[:n])
}

// seen returns severity and checkpoint of each alert.
func seen(head, kind string, passed ...uint32) (alerts []string, now []uint32) {
	found, now := quality.Checkpoints(head, kind, passed)
	for _, a := range found {
		alerts = append(alerts, fmt.Sprint(a.GetSeverity(), " ", a.GetCheckpoint()))
		if a.GetIssue() == "" || a.GetSuggestion() == "" {
			alerts = append(alerts, "no text")
		}
	}
	return alerts, now
}

func TestCheckpointsAtTheirLengths(t *testing.T) {
	for _, c := range []struct {
		chars  int
		passed []uint32
		now    []uint32
	}{
		{499, nil, nil}, {500, nil, []uint32{500}}, {1999, nil, []uint32{500}}, {2000, nil, []uint32{500, 2000}}, {5000, nil, []uint32{500, 2000, 5000}},
		{4999, []uint32{500}, []uint32{2000}}, {5000, []uint32{500, 2000, 5000}, nil}, {5000, []uint32{2000}, []uint32{500, 5000}},
	} {
		if _, now := seen(padded("", c.chars), "chat", c.passed...); !slices.Equal(now, c.now) {
			t.Errorf("%+v: %v", c, now)
		}
	}
}

func TestMonitorFindsRefusals(t *testing.T) {
	for text, refused := range map[string]bool{
		"I can't do it": true, "I CAN’T do it": true, "well, i cannot": true, "I am unable to": true, "I’m unable to": true, "I don't have access": true,
		"I do not have the ability": true, "Unfortunately, no": true, "As an AI model": true, "as an AI language model": true,
		"I can do it": false, "hi can't": false, "I don't have time": false, "I cannotate": false, "an AI model": false,
	} {
		alerts, _ := seen(padded(text, 500), "chat")
		if got := slices.Contains(alerts, "critical 500"); got != refused || len(alerts) > 1 {
			t.Errorf("%s: %v", text, alerts)
		}
	}
	if alerts, _ := seen(padded("", 495)+" I cannot "+padded("", 2000), "chat"); len(alerts) > 0 {
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
			alerts, _ := seen(padded(c.text, c.chars), kind)
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
