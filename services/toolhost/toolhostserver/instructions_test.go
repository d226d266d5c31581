package toolhostserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func (h *host) describe() *harnessv1.Environment {
	h.t.Helper()
	resp, err := h.DescribeWorkspace(context.Background(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.GetEnvironment()
}

// checkInstructions checks the instruction files. want has the path and content of each.
func (h *host) checkInstructions(want ...string) {
	h.t.Helper()
	var got []string
	files := h.describe().GetInstructionFiles()
	for _, f := range files {
		got = append(got, f.GetPath(), f.GetContent())
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		h.t.Errorf("got %q, want %q", got, want)
	}
	now := h.inspect().GetInstructionFiles()
	if !proto.Equal(&harnessv1.Environment{InstructionFiles: now}, &harnessv1.Environment{InstructionFiles: files}) {
		h.t.Errorf("InspectWorkspace returns %v, DescribeWorkspace %v", now, files)
	}
}

func TestInstructionFilesUpToTheRepositoryRoot(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("AGENTS.md", "beyond the repository\n")
	for name, content := range map[string]string{
		".git/HEAD": "", "AGENTS.md": "root\n", "CLAUDE.md": "root, too\n", ".github/copilot-instructions.md": "copilot\n",
		"between/CLAUDE.md": "between\n", "between/AGENTS.md": "root\n",
		"between/here/AGENTS.md": "here\n", "between/here/CLAUDE.md": "here\n", "between/here/below/AGENTS.md": "below\n",
	} {
		h.write("repo/"+name, content)
	}
	h.dir = filepath.Join(h.dir, "repo/between/here")
	// The root's AGENTS.md equals the nearer one in between, so it is left out.
	h.checkInstructions("AGENTS.md", "here\n", "../AGENTS.md", "root\n", "../CLAUDE.md", "between\n",
		"../../CLAUDE.md", "root, too\n", "../../.github/copilot-instructions.md", "copilot\n")
	if got := h.describe().GetInstructionFiles()[0].GetDigest(); got != digest("here\n") {
		t.Errorf("got digest %s", got)
	}
	h.write("AGENTS.md", "here, changed\n")
	h.checkInstructions("AGENTS.md", "here, changed\n", "CLAUDE.md", "here\n", "../AGENTS.md", "root\n", "../CLAUDE.md", "between\n",
		"../../CLAUDE.md", "root, too\n", "../../.github/copilot-instructions.md", "copilot\n")
}

func TestInstructionFilesOfTheWorkspaceOnly_WithoutRepository(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.checkInstructions()
	h.write("CLAUDE.md", "above\n")
	h.write("here/CLAUDE.md", "here\n")
	h.dir = filepath.Join(h.dir, "here")
	h.checkInstructions("CLAUDE.md", "here\n")
}

func TestRepositoryWithAGitFile(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write(".git", "gitdir: elsewhere\n")
	h.write("AGENTS.md", "above\n")
	h.write("here/x", "")
	h.dir = filepath.Join(h.dir, "here")
	h.checkInstructions("../AGENTS.md", "above\n")
}

func TestInstructionFilesExcludeLinksToTheOutside(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.write("outside/secret", "secret\n")
	h.write("outside/copilot-instructions.md", "secret\n")
	h.write("repo/.git/HEAD", "")
	h.write("repo/docs/rules.md", "inside\n")
	h.write("repo/here/x", "")
	for link, target := range map[string]string{
		"AGENTS.md": "../outside/secret", "CLAUDE.md": h.dir + "/outside/secret", ".github": h.dir + "/outside",
		"here/AGENTS.md": "../docs/rules.md", "here/CLAUDE.md": "CLAUDE.md", "here/.github": "../../outside",
	} {
		if err := os.Symlink(target, filepath.Join(h.dir, "repo", link)); err != nil {
			t.Fatal(err)
		}
	}
	above := h.dir
	h.dir = filepath.Join(above, "repo/here")
	h.checkInstructions("AGENTS.md", "inside\n")
	// Without the repository, the link leads out of the workspace.
	if err := os.RemoveAll(filepath.Join(above, "repo/.git")); err != nil {
		t.Fatal(err)
	}
	h.checkInstructions()
}

func TestInstructionFileSwappedForALinkShowsNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("swaps links for a second")
	}
	t.Parallel()
	h := newHost(t, Config{})
	neighbour := t.TempDir()
	if err := os.WriteFile(filepath.Join(neighbour, "copilot-instructions.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("inside/copilot-instructions.md", "inside")
	stop := swapLink(t, h, ".github", "inside", neighbour)
	defer stop()
	inside := 0
	for range 2000 {
		for _, f := range h.inspect().GetInstructionFiles() {
			if f.GetContent() != "inside" {
				t.Fatalf("got %v", f)
			}
			inside++
		}
	}
	if inside == 0 {
		t.Error("no read found the link to the inside")
	}
}

func TestInstructionFilesMustBeRegularAndSmall(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{FileBytes: 100_000}})
	h.write("CLAUDE.md", strings.Repeat("x", 100_001))
	h.write(".github/copilot-instructions.md/x", "")
	if err := syscall.Mkfifo(filepath.Join(h.dir, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.checkInstructions()
	whole := strings.Repeat("a line\n", 12_000)
	h.write("CLAUDE.md", whole)
	files := h.describe().GetInstructionFiles()
	if len(files) != 1 || files[0].GetDigest() != digest(whole) || len(files[0].GetContent()) > toolhost.InstructionBytes ||
		!strings.HasSuffix(files[0].GetContent(), " of the 84000 bytes of CLAUDE.md are shown.]\n") {
		t.Fatalf("got %v", files)
	}
}

func TestDescribeWorkspaceHasToolsWithUsage(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	environment := h.describe()
	if len(environment.GetTools()) != len(tools.All()) {
		t.Fatalf("got %v", environment.GetTools())
	}
	for _, spec := range environment.GetTools() {
		if spec.GetUsage() == "" {
			t.Errorf("%s has no usage", spec.GetName())
		}
	}
}
