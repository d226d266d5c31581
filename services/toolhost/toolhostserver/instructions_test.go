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

// instructed expects these instruction files: path and content, in turn.
func (h *host) instructed(want ...string) {
	h.t.Helper()
	var got []string
	files := h.describe().GetInstructionFiles()
	for _, f := range files {
		got = append(got, f.GetPath(), f.GetContent())
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		h.t.Errorf("got %q instead of %q", got, want)
	}
	now := h.inspect().GetInstructionFiles()
	if !proto.Equal(&harnessv1.Environment{InstructionFiles: now}, &harnessv1.Environment{InstructionFiles: files}) {
		h.t.Errorf("%v and %v", files, now)
	}
}

func TestInstructionFilesAreFoundUpToTheRepositorysRoot(t *testing.T) {
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
	// The root's AGENTS.md says what that between says, which is nearer.
	h.instructed("AGENTS.md", "here\n", "../AGENTS.md", "root\n", "../CLAUDE.md", "between\n",
		"../../CLAUDE.md", "root, too\n", "../../.github/copilot-instructions.md", "copilot\n")
	if got := h.describe().GetInstructionFiles()[0].GetDigest(); got != digest("here\n") {
		t.Errorf("got digest %s", got)
	}
	h.write("AGENTS.md", "here, changed\n")
	h.instructed("AGENTS.md", "here, changed\n", "CLAUDE.md", "here\n", "../AGENTS.md", "root\n", "../CLAUDE.md", "between\n",
		"../../CLAUDE.md", "root, too\n", "../../.github/copilot-instructions.md", "copilot\n")
}

func TestWithoutARepositoryOnlyTheWorkspaceCounts(t *testing.T) {
	h := newHost(t, Config{})
	h.instructed()
	h.write("CLAUDE.md", "above\n")
	h.write("here/CLAUDE.md", "here\n")
	h.dir = filepath.Join(h.dir, "here")
	h.instructed("CLAUDE.md", "here\n")
}

func TestAGitFileMakesARepositoryToo(t *testing.T) {
	h := newHost(t, Config{})
	h.write(".git", "gitdir: elsewhere\n")
	h.write("AGENTS.md", "above\n")
	h.write("here/x", "")
	h.dir = filepath.Join(h.dir, "here")
	h.instructed("../AGENTS.md", "above\n")
}

func TestInstructionFilesAreNoLinksToTheOutside(t *testing.T) {
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
	h.instructed("AGENTS.md", "inside\n")
	// Without the repository the link leads out of the workspace.
	if err := os.RemoveAll(filepath.Join(above, "repo/.git")); err != nil {
		t.Fatal(err)
	}
	h.instructed()
}

func TestAnInstructionFileThatIsSwappedForALinkShowsNothing(t *testing.T) {
	h := newHost(t, Config{})
	neighbour := t.TempDir()
	if err := os.WriteFile(filepath.Join(neighbour, "copilot-instructions.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("inside/copilot-instructions.md", "inside")
	stop := keepSwapping(t, h, ".github", "inside", neighbour)
	defer stop()
	met := 0
	for range 2000 {
		for _, f := range h.inspect().GetInstructionFiles() {
			if f.GetContent() != "inside" {
				t.Fatalf("got %v", f)
			}
			met++
		}
	}
	if met == 0 {
		t.Error("the link never led inside")
	}
}

func TestWhatIsNoInstructionFileIsLeftOut(t *testing.T) {
	h := newHost(t, Config{Limits: toolhost.Limits{FileBytes: 100_000}})
	h.write("CLAUDE.md", strings.Repeat("x", 100_001))
	h.write(".github/copilot-instructions.md/x", "")
	if err := syscall.Mkfifo(filepath.Join(h.dir, "AGENTS.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.instructed()
	whole := strings.Repeat("a line\n", 12_000)
	h.write("CLAUDE.md", whole)
	files := h.describe().GetInstructionFiles()
	if len(files) != 1 || files[0].GetDigest() != digest(whole) || len(files[0].GetContent()) > toolhost.InstructionBytes ||
		!strings.HasSuffix(files[0].GetContent(), " of the 84000 bytes of CLAUDE.md are shown.]\n") {
		t.Fatalf("got %v", files)
	}
}

func TestARepositoryOfSomebodyElseAboveIsNotBelieved(t *testing.T) {
	mine := uint32(os.Geteuid())
	for name, c := range map[string]struct {
		workspace, git uint32
		believed       bool
	}{
		"mine":                    {workspace: mine, git: mine, believed: true},
		"mine above another's":    {workspace: 12345, git: mine, believed: true},
		"root's":                  {workspace: 12345, git: 0, believed: true},
		"the workspace's owner's": {workspace: 12345, git: 12345, believed: true},
		"somebody else's":         {workspace: mine, git: 12345},
	} {
		if got := isTrusted(owned{uid: c.workspace}, owned{uid: c.git}); got != c.believed {
			t.Errorf("%s: believed %v", name, got)
		}
	}
}

// owned is a file of a user.
type owned struct {
	os.FileInfo
	uid uint32
}

func (o owned) Sys() any { return &syscall.Stat_t{Uid: o.uid} }

func TestADescriptionNamesTheToolsAndTheirUse(t *testing.T) {
	h := newHost(t, Config{})
	environment := h.describe()
	if len(environment.GetTools()) != len(tools.All()) {
		t.Fatalf("got %v", environment.GetTools())
	}
	for _, spec := range environment.GetTools() {
		if spec.GetUsage() == "" {
			t.Errorf("%s: nothing is said of its use", spec.GetName())
		}
	}
}
