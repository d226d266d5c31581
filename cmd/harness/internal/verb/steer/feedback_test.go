package steer_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestFeedbackRefusesMistakes with one line, before anything is stored.
func TestFeedbackRefusesMistakes(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	for args, want := range map[string]string{
		"feedback r sideways": `harness: THUMB: expected up or down, not "sideways"` + "\n",
		"feedback r up":       "not found",
		"feedback r":          "<thumb>",
	} {
		got := harnesstest.Call(t, nil, "", append(strings.Fields(args), "--data", data)...)
		if got.Code != 1 || !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 {
			t.Errorf("%s: code %d, %q", args, got.Code, got.Err)
		}
	}
}
