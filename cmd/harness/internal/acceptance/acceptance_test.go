package acceptance_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/acceptance"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/trust"
)

// TestFileThatARunChangedIsRefusedUnattended until its content is accepted, by the path that is named.
func TestFileThatARunChangedIsRefusedUnattended(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), t.TempDir()
	var out, errs bytes.Buffer
	a := &console.Console{Process: console.Process{In: strings.NewReader(""), Out: &out, Err: &errs}, Env: func(string) string { return "" }}
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agent, own := write("agent.yaml", "name: before\n"), write("own.yaml", "name: own\n")
	instructions := write("AGENTS.md", "be kind\n")
	other := write("sub/CLAUDE.md", "below\n")
	store := trust.Open(filepath.Join(data, "tools"))
	for _, path := range []string{agent, instructions, other} {
		if err := store.Changed(path, trust.Read(path)); err != nil {
			t.Fatal(err)
		}
	}
	person := acceptance.At(a, data)
	read := func(path, want string) {
		t.Helper()
		text, err := person.Read(path)
		if (err != nil) != (want == "") || string(text) != want || err != nil && !strings.Contains(err.Error(), "harness trust") {
			t.Errorf("%s: got %q, %v", path, text, err)
		}
	}
	read(agent, "name: before\n")
	read(own, "name: own\n")
	write("agent.yaml", "name: evil\u202e\n")
	write("AGENTS.md", "be evil\n")
	write("sub/CLAUDE.md", "evil\n")
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink("agent.yaml", link); err != nil {
		t.Fatal(err)
	}
	read(agent, "")
	read(link, "")
	read(own, "name: own\n")

	// A run without a terminal names what it leaves out, and no other file.
	if err := person.BeforeRun(dir); err != nil || !strings.Contains(errs.String(), "AGENTS.md is left out") || strings.Contains(errs.String(), "CLAUDE.md") {
		t.Errorf("got %v, %s", err, errs.String())
	}

	// Nothing is accepted without a path.
	if left, err := person.Waiting(dir, false); err != nil || left != 3 || !strings.Contains(out.String(), "-name: before\n+name: evil<U+202E>\n") {
		t.Errorf("got %d, %v, %s", left, err, out.String())
	}
	read(agent, "")
	if left, err := person.Waiting(agent, true); err != nil || left != 0 {
		t.Errorf("got %d, %v", left, err)
	}
	read(agent, "name: evil\u202e\n")
	read(link, "name: evil\u202e\n")
	write("agent.yaml", "name: evil again\n")
	read(agent, "")
}
