package acceptance_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
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
	a := &console.Console{Process: console.Process{In: strings.NewReader(""), Out: &out, Err: &errs}, Env: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)}
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

// TestFilesThatAreReadAreRegistered, in the data directory, by each path that leads to them.
func TestFilesThatAreReadAreRegistered(t *testing.T) {
	t.Parallel()
	data, dir := t.TempDir(), t.TempDir()
	a := &console.Console{Process: console.Process{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, Env: func(string) string { return "" }, Log: slog.New(slog.DiscardHandler)}
	hooks, link := filepath.Join(dir, "checks.txt"), filepath.Join(dir, "link.txt")
	if err := os.WriteFile(hooks, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("checks.txt", link); err != nil {
		t.Fatal(err)
	}
	person, store := acceptance.At(a, data), trust.Open(filepath.Join(data, "tools"))
	if _, err := person.Read(link); err != nil {
		t.Fatal(err)
	}
	if _, err := person.Read("/dev/null"); err != nil {
		t.Fatal(err)
	}
	if len(store.NamedIn("/")) != 0 {
		t.Error("something is stored before the run starts")
	}
	person.Register()
	if got := store.NamedIn("/"); len(got) != 2 || len(store.NamedIn(dir)) != 2 {
		t.Errorf("registered: %v", got)
	}

	// One that a run has changed since is refused, and the error has the directory of its record.
	if err := store.Changed(hooks, trust.Read(hooks)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hooks, []byte("evil\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{hooks, link} {
		if _, err := person.Read(path); err == nil || !strings.Contains(err.Error(), "harness trust --data "+data+" "+path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if v, ok := store.Named(hooks); !ok || string(v.Text) != "before\n" {
		t.Errorf("what waits is registered: %v", v)
	}
	if _, err := person.Waiting(filepath.Join(dir, "nowhere"), true); err == nil || !strings.Contains(err.Error(), "nowhere cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
}

// TestRegisteredFilesAreBounded: those that were read longest ago go first.
func TestRegisteredFilesAreBounded(t *testing.T) {
	t.Parallel()
	store := trust.Open(t.TempDir())
	for i := range 1028 {
		if err := store.Name(fmt.Sprintf("/w/%d", i), trust.Of([]byte("x"))); err != nil {
			t.Fatal(err)
		}
	}
	if got := store.NamedIn("/w"); len(got) > 1024 || !slices.Contains(got, "1027") {
		t.Errorf("%d names: %v", len(got), got)
	}
}
