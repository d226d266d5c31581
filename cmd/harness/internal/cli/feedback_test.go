package cli

import (
	"strings"
	"testing"
)

// TestFeedbackRefusesMistakes with one line, before anything is stored.
func TestFeedbackRefusesMistakes(t *testing.T) {
	data := t.TempDir()
	for args, want := range map[string]string{
		"feedback r sideways": `harness: THUMB: expected up or down, not "sideways"` + "\n",
		"feedback r up":       "not found",
		"feedback r":          "<thumb>",
	} {
		got := call(t, nil, "", append(strings.Fields(args), "--data", data)...)
		if got.code != 1 || !strings.Contains(got.err, want) || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: code %d, %q", args, got.code, got.err)
		}
	}
}
