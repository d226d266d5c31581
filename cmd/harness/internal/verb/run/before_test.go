package run_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestARunSaysFirstWhoElseWorksThere: another run of the workspace that works, and no other.
func TestARunSaysFirstWhoElseWorksThere(t *testing.T) {
	t.Parallel()
	f := harnesstest.ServeGateway(t)
	f.Started = func(r *harnesstest.Run) { r.Done() }
	here, there := harnesstest.ASpec(), harnesstest.ASpec()
	here.Workspace, there.Workspace = t.TempDir(), t.TempDir()
	f.Add("r-here", "default", here)
	f.Add("r-there", "default", there)
	f.Add("r-done", "default", here).Done()
	got := harnesstest.Call(t, nil, "", "run", "--server", f.Address, "--workspace", here.GetWorkspace(), "go")
	first, _, _ := strings.Cut(got.Err, "\n")
	if got.Code != 0 || !strings.Contains(first, "run r-here is at work in this workspace") || strings.Contains(got.Err, "r-there") || strings.Contains(got.Err, "r-done") {
		t.Errorf("%+v", got)
	}
}

// TestARunSaysFirstThatItsWorkspaceIsWide: a home directory, and no folder below it.
func TestARunSaysFirstThatItsWorkspaceIsWide(t *testing.T) {
	t.Parallel()
	p := harnesstest.NewPlace(t, harnesstest.Finishes)
	for home, wide := range map[string]bool{p.Workspace: true, p.Workspace + "/": true, t.TempDir(): false} {
		got := harnesstest.Call(t, map[string]string{"HOME": home}, "", p.Run("go")...)
		first, _, _ := strings.Cut(got.Err, "\n")
		if got.Code != 0 || strings.Contains(first, "the workspace is your home directory") != wide {
			t.Errorf("home %s: %+v", home, got)
		}
	}
}
