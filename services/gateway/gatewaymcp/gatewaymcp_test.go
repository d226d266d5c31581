package gatewaymcp

import (
	"os"
	"path/filepath"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestWhatAPersonHasNamedIsFixed: a client cannot replace the agent, nor leave its workspace.
func TestWhatAPersonHasNamedIsFixed(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	named := &harnessv1.RunSpec{Workspace: root, Agent: &harnessv1.AgentSpec{Instructions: "Read.", Mode: "plan"}}
	for name, c := range map[string]struct {
		in        startInput
		workspace string
		open      bool
	}{
		"nothing":            {startInput{}, root, true},
		"the same":           {startInput{Workspace: root, Instructions: "Read.", Mode: "plan"}, root, true},
		"a folder within":    {startInput{Workspace: filepath.Join(root, "sub")}, filepath.Join(root, "sub"), true},
		"a missing one":      {startInput{Workspace: filepath.Join(root, "none")}, filepath.Join(root, "none"), true},
		"another folder":     {startInput{Workspace: outside}, outside, false},
		"the one above":      {startInput{Workspace: root + "/.."}, root + "/..", false},
		"one that begins so": {startInput{Workspace: root + "2"}, root + "2", false},
		"a link out":         {startInput{Workspace: filepath.Join(root, "link")}, filepath.Join(root, "link"), false},
		"a relative one":     {startInput{Workspace: "sub"}, "sub", false},
		"instructions":       {startInput{Instructions: "Write."}, root, false},
		"a mode":             {startInput{Mode: "execute"}, root, false},
	} {
		for _, fixed := range []bool{true, false} {
			spec, err := (&service{Config{Spec: named, Fixed: fixed}}).spec(c.in)
			if (err == nil) != (c.open || !fixed) || err == nil && spec.GetWorkspace() != c.workspace {
				t.Errorf("%s, fixed %v: %v, %v", name, fixed, spec, err)
			}
		}
	}
	if named.GetAgent().GetInstructions() != "Read." {
		t.Error("a call changed the settings of the server")
	}
}
