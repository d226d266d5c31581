package mcpclient

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// TestApprovals: the first definition is taken, a later one differs until a person has approved
// it, and if what is stored cannot be read, each differs.
func TestApprovals(t *testing.T) {
	dir := t.TempDir()
	server := &harnessv1.McpServer{Name: "s", Command: "c"}
	definition := func(tool, description string) *harnessv1.McpDefinition {
		d := &harnessv1.McpDefinition{Tool: tool, Description: description}
		d.Digest = mcptool.Digest(d)
		return d
	}
	before, other, b := definition("a", "A"), definition("a", "Another A"), definition("b", "B")
	expect := func(what string, d *harnessv1.McpDefinition, differ, approved int) {
		t.Helper()
		found, digests := NewApprovals(dir, slog.New(slog.DiscardHandler)).Compare("n", server, []*harnessv1.McpDefinition{d, b})
		if len(found) != differ || len(digests) != approved {
			t.Errorf("%s: %d differ, %d are approved; want %d, %d", what, len(found), len(digests), differ, approved)
		}
	}
	approve := func(d *harnessv1.McpDefinition) {
		NewApprovals(dir, slog.New(slog.DiscardHandler)).Approve("n", server, d)
	}
	expect("the first", before, 0, 0)
	expect("a changed one", other, 1, 0)
	approve(other)
	expect("an approved one", other, 0, 1)
	expect("the first again", before, 1, 0)
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("what was approved cannot be read", other, 2, 0)
	expect("the same, later", other, 2, 0)
	approve(other)
	expect("one of two is approved again", other, 1, 1)
}
