package console

import (
	"testing"
	"time"
)

// TestBuildsDiffer: a commit names a build, unless the tree was changed or is not
// known. Then the time of the program's file does.
func TestBuildsDiffer(t *testing.T) {
	linked := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for want, settings := range map[string]map[string]string{
		"0123456789abcdef": {"vcs.revision": "0123456789abcdef", "vcs.modified": "false"},
		"0123456789abcdef (modified) built 2026-05-04T03:02:01Z": {"vcs.revision": "0123456789abcdef", "vcs.modified": "true"},
		"unknown built 2026-05-04T03:02:01Z":                     {},
	} {
		if got := commitText(settings, linked); got != want {
			t.Errorf("commit %q, want %q", got, want)
		}
	}
	if got := shortened("0123456789abcdef (modified) built 2026-05-04T03:02:01Z"); got != "0123456789ab (modified) built 2026-05-04T03:02:01Z" {
		t.Errorf("shortened %q", got)
	}
}
