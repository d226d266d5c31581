package repairserver

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestWaitOutputIsTheEndOfWhatATerminalShows(t *testing.T) {
	for output, want := range map[string]string{
		"10%\r50%\r100%\n": "100%\nfailed",
		"10%\b\b\b50%\n":   "50%\nfailed",
		"first\n" + strings.Repeat("é", maxWaitOutput): "…" + strings.Repeat("é", (maxWaitOutput-len("…failed"))/2) + "failed",
	} {
		if got := waitOutput(&harnessv1.CheckCommandResponse{Output: output, ErrorOutput: "failed"}); got != want {
			t.Errorf("%.20q: got %.60q, %d bytes, want %.60q, %d bytes", output, got, len(got), want, len(want))
		}
	}
}
