package toolhostserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func TestChangesSurviveARestart(t *testing.T) {
	t.Parallel()
	dir, workspace := t.TempDir(), t.TempDir()
	for life := range uint32(3) {
		h := newHost(t, Config{Dir: dir})
		h.dir = workspace
		h.checkChanges(life)
		h.call(tools.WriteFile, map[string]any{"path": fmt.Sprint("file", life), "content": "x"})
		h.checkChanges(life + 1)
		h.close()
	}
	h := newHost(t, Config{Dir: dir})
	resp, err := h.InspectWorkspace(context.Background(), &harnessv1.InspectWorkspaceRequest{
		Workspace: workspace, Namespace: "n", RunId: "r", FirstSequence: 8,
	})
	if err != nil || resp.GetFilesChanged() != 0 {
		t.Fatalf("another run with the same name: %v, %v", resp, err)
	}
}

func TestChangesCountAFileOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("dir/file", "one two three")
	if err := os.Symlink("dir", filepath.Join(h.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"dir/file", "./dir/file", h.dir + "/dir/file", "link/file"} {
		expect(t, h.call(tools.WriteFile, map[string]any{"path": path, "content": path}), done, false)
	}
	h.checkChanges(1)
	expect(t, h.call(tools.EditFile, map[string]any{"path": "dir/file", "old": "not in the file", "new": ""}), done, true)
	h.check(checkRequest(h.dir, "k", "echo x > made by a check"))
	h.checkChanges(1)
}
