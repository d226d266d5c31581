//go:build linux && usable

package usable

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project is a public project at a version, with commands of its CI.
type project struct {
	Name string `json:"name"`
	// Language is that of most of its code.
	Language string `json:"language"`
	// Registry has its source: go, npm, pip or cargo. Package is its name there, Version the
	// exact version. Folder is where in the package the project is; empty: all of it.
	Registry string `json:"registry"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	Folder   string `json:"folder,omitempty"`
	// CI names the files that the commands are from.
	CI string `json:"ci"`
	// Setup runs once outside, with network, after the source was committed to a new
	// repository of git.
	Setup    []string `json:"setup,omitempty"`
	Commands []line   `json:"commands"`
}

// line is a command of a project. It must succeed outside.
type line struct {
	Run string `json:"run"`
	// Network are the kinds of registries that it reaches, separated by spaces; empty: it has
	// no network.
	Network string `json:"network,omitempty"`
}

// readProjects reads the projects of the test.
func readProjects(t testing.TB) []project {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "projects.json"))
	var all []project
	if err = errors.Join(err, json.Unmarshal(text, &all)); err != nil {
		t.Fatal(err)
	}
	return all
}

// fetch gets the source of a project from its registry into a new folder, by the registry's
// client.
func (p project) fetch(t testing.TB, dir string) {
	t.Helper()
	scratch := t.TempDir()
	get := map[string]string{
		"go":  fmt.Sprintf("cp -r \"$(go mod download -json %s@%s | sed -n 's/.*\"Dir\": \"\\(.*\\)\".*/\\1/p')\" source", p.Package, p.Version),
		"npm": fmt.Sprintf("npm pack --silent %s@%s && tar xzf *.tgz && mv package source", p.Package, p.Version),
		"pip": fmt.Sprintf("python3 -m pip download -q --no-deps --no-binary :all: %s==%s && tar xzf *.tar.gz && rm *.tar.gz && mv * source", p.Package, p.Version),
		"cargo": fmt.Sprintf("mkdir src && touch src/lib.rs && printf '[package]\\nname = \"fetch\"\\n[dependencies]\\n%s = \"=%s\"\\n' > Cargo.toml && cargo -q fetch && "+
			"cp -r \"${CARGO_HOME:-$HOME/.cargo}\"/registry/src/*/%s-%s source", p.Package, p.Version, p.Package, p.Version),
	}[p.Registry]
	if get == "" {
		t.Fatalf("%s: unknown registry %q: expected go, npm, pip or cargo", p.Name, p.Registry)
	}
	for _, command := range []string{get, "chmod -R u+w source"} {
		if o := outside(t, scratch, command, patience); o.code != 0 {
			t.Fatalf("%s: fetch: %s\n%s", p.Name, command, o.output)
		}
	}
	if err := os.Rename(filepath.Join(scratch, "source", p.Folder), dir); err != nil {
		t.Fatal(err)
	}
	setup := append([]string{"git init -q && git add -A && git commit -qm 'Import " + p.Version + "' && git tag " + strings.Split(p.Version, "+")[0]}, p.Setup...)
	for _, command := range setup {
		if o := outside(t, dir, command, 3*patience); o.code != 0 {
			t.Fatalf("%s: setup: %s: exit code %d\n%s", p.Name, command, o.code, tail(o.output))
		}
	}
}

// tail returns the end of a text.
func tail(text string) string { return text[max(0, len(text)-4_000):] }
