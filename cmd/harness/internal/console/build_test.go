package console

import (
	"runtime/debug"
	"testing"
	"time"
)

// TestBuildsDiffer: a commit names a build, unless the tree was changed or is not
// known. Then the time of the program's file does.
func TestBuildsDiffer(t *testing.T) {
	t.Parallel()
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

// TestVersionOfAnInstalledProgram: the linker's version counts, then that of a module that a proxy
// served. A checkout has no checksum, whatever its version says.
func TestVersionOfAnInstalledProgram(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		linked string
		built  debug.Module
		want   string
	}{
		{"v1.2.3", debug.Module{Version: "v1.0.0", Sum: "h1:x"}, "v1.2.3"},
		{"dev", debug.Module{Version: "v1.0.0", Sum: "h1:x"}, "v1.0.0"},
		{"dev", debug.Module{Version: "v0.0.0-20261128070000-0123456789ab+dirty"}, "dev"},
		{"dev", debug.Module{Version: "(devel)"}, "dev"},
		{"dev", debug.Module{}, "dev"},
	} {
		if got := versionText(test.linked, test.built); got != test.want {
			t.Errorf("%q, %+v: %q, want %q", test.linked, test.built, got, test.want)
		}
	}
}
