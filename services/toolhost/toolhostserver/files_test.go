package toolhostserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

func TestReadFilePages(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{ReadBytes: 30, ResultBytes: 4096}})
	h.write("short", "1\n2\n3\n")
	h.write("open", "1\n2")
	h.write("empty", "")
	h.write("long", "line one..\nline two..\nline three\nline four.\n")
	h.write("wide", "a\n"+strings.Repeat("x", 100_000)+"\nb\n")
	h.write("exact", strings.Repeat("x", 29)+"\n")
	for _, c := range []struct {
		path          string
		offset, limit int
		want          string
		isError       bool
	}{
		{"short", 0, 0, "1\n2\n3\n", false},
		{"short", 2, 0, "2\n3\n", false},
		{"short", 2, 1, "2\n[The file goes on. Continue with offset 3.]", false},
		{"short", 3, 1, "3\n", false},
		{"short", 4, 0, "short: has 3 lines; offset 4 is beyond its end.", true},
		{"open", 0, 0, "1\n2", false},
		{"empty", 0, 0, "[The file is empty.]", false},
		{"long", 0, 0, "line one..\nline two..\n[The file goes on. Continue with offset 3.]", false},
		{"long", 3, 0, "line three\nline four.\n", false},
		{"wide", 0, 0, "a\n[The file goes on. Continue with offset 2.]", false},
		{"wide", 2, 0, strings.Repeat("x", 30) + "\n[Line 2 is longer than a read returns and was cut here. See the rest of it with a command such as cut -c. Lines after it: offset 3.]", false},
		{"wide", 3, 0, "b\n", false},
		{"exact", 0, 0, strings.Repeat("x", 29) + "\n", false},
	} {
		arguments := map[string]any{"path": c.path}
		if c.offset > 0 {
			arguments["offset"] = c.offset
		}
		if c.limit > 0 {
			arguments["limit"] = float64(c.limit)
		}
		resp := h.call(tools.ReadFile, arguments)
		if resp.GetResult() != c.want || resp.GetIsError() != c.isError {
			t.Errorf("%s from %d: got %q", c.path, c.offset, resp.GetResult())
		}
	}
}

func TestWriteAndEdit(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Sync: true})
	resp := h.call(tools.WriteFile, map[string]any{"path": "a/b/c.txt", "content": "one\ntwo\n"})
	expect(t, resp, done, false, "Wrote a/b/c.txt: 8 bytes, 2 lines.")
	if !slices.Equal(resp.GetFilesChanged(), []string{"a/b/c.txt"}) {
		t.Errorf("changed %v", resp.GetFilesChanged())
	}
	again := h.call(tools.WriteFile, map[string]any{"path": "a/b/c.txt", "content": "one\ntwo\n"})
	if again.GetResult() != resp.GetResult() {
		t.Errorf("the same effect has the texts %q and %q", resp.GetResult(), again.GetResult())
	}
	if err := os.Chmod(filepath.Join(h.dir, "a/b/c.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	expect(t, h.call(tools.EditFile, map[string]any{"path": "a/b/c.txt", "old": "two", "new": "2\n3"}), done, false, "at line 2: 1 lines became 2")
	if got := h.read("a/b/c.txt"); got != "one\n2\n3\n" {
		t.Errorf("got %q", got)
	}
	if info, _ := os.Stat(filepath.Join(h.dir, "a/b/c.txt")); info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v", info.Mode())
	}
	expect(t, h.call(tools.EditFile, map[string]any{"path": "a/b/c.txt", "old": "four", "new": ""}), done, true, "was not found")
	expect(t, h.call(tools.EditFile, map[string]any{"path": "none", "old": "four", "new": ""}), done, true, "none: no such file or folder.")
	expect(t, h.call(tools.WriteFile, map[string]any{"path": "a/b", "content": ""}), done, true, "a/b: is a folder.")
	expect(t, h.call(tools.WriteFile, map[string]any{"path": "a/b/c.txt/d", "content": ""}), done, true, "is a file, not a folder")
	expect(t, h.call(tools.WriteFile, map[string]any{"path": "new/", "content": ""}), done, true, "names a folder")
	if left, _ := filepath.Glob(filepath.Join(h.dir, "a/b/.harness-*")); left != nil {
		t.Errorf("files left behind: %v", left)
	}
}

func TestLineEndsOfFilesStay(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	const crlf = "\ufeffone\r\ntwo\r\nthree\r\n"
	h.write("a.cs", crlf)
	expect(t, h.call(tools.EditFile, map[string]any{"path": "a.cs", "old": "three", "new": "tres\nquatro"}), done, false, "at line 3: 1 lines became 2")
	expect(t, h.call(tools.EditFile, map[string]any{"path": "a.cs", "old": "one\ntwo", "new": "uno\ndos"}), done, false, "at line 1: 2 lines became 2")
	if got, want := h.read("a.cs"), "\ufeffuno\r\ndos\r\ntres\r\nquatro\r\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	h.write("b.cs", crlf)
	for range 2 { // a call that runs again changes nothing
		expect(t, h.call(tools.WriteFile, map[string]any{"path": "b.cs", "content": "one\nzwei\n"}), done, false, "Wrote b.cs: 14 bytes, 2 lines. The file's line ends are CRLF and were kept.")
		if got, want := h.read("b.cs"), "\ufeffone\r\nzwei\r\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEditHappensOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := newHost(t, Config{Dir: dir})
	h.write("f", "x")
	req := h.request(tools.EditFile, "c", map[string]any{"path": "f", "old": "x", "new": "xx y"})
	first := h.execute(req)
	expect(t, first, done, false)
	if err := h.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	h2 := newHost(t, Config{Dir: dir})
	if second := h2.execute(req); !proto.Equal(first, second) || h.read("f") != "xx y" {
		t.Fatalf("got %v, file %q", second, h.read("f"))
	}
}

// pathCases returns paths that lead inside the workspace and paths that lead to a secret
// outside.
func pathCases(t *testing.T, h *host) (inside, outside []string) {
	t.Helper()
	neighbour := t.TempDir()
	if err := os.WriteFile(filepath.Join(neighbour, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("dir/file", "inside")
	for link, target := range map[string]string{
		"out": neighbour + "/secret", "outdir": neighbour, "outrel": "../" + filepath.Base(neighbour),
		"dangling": neighbour + "/new", "loop": "loop", "chain": "outdir/secret",
		"in": "dir/file", "inabs": h.dir + "/dir/file", "indir": h.dir + "/dir", "dir/up": "../dir/file",
		"proc": "/proc/self/environ",
	} {
		if err := os.Symlink(target, filepath.Join(h.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	name := filepath.Base(h.dir)
	inside = []string{
		"dir/file", "./dir//file", "dir/../dir/file", h.dir + "/dir/file", h.dir + "/dir/../dir/file",
		"in", "inabs", "indir/file", "dir/up", "indir/up", "../" + name + "/dir/file",
	}
	outside = []string{
		"../" + filepath.Base(neighbour) + "/secret", neighbour + "/secret", "/etc/passwd", "out", "outdir/secret",
		"outrel/secret", "chain", "dir/../../secret", h.dir + "/../secret", "indir/../../secret", "loop", "loop/x", "proc",
		"dir/../outdir/secret", "a\x00b",
	}
	return inside, outside
}

func TestFileToolsStayInsideTheWorkspace(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	inside, outside := pathCases(t, h)
	for _, path := range inside {
		resp := h.call(tools.ReadFile, map[string]any{"path": path})
		if resp.GetIsError() || resp.GetResult() != "inside" {
			t.Errorf("%s: got %q", path, resp.GetResult())
		}
		expect(t, h.call(tools.WriteFile, map[string]any{"path": path, "content": "inside"}), done, false)
		expect(t, h.call(tools.SearchFiles, map[string]any{"path": path, "pattern": "ins"}), done, false, "dir/file:1: inside")
	}
	if info, err := os.Lstat(filepath.Join(h.dir, "in")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("write_file replaced a link")
	}
	for _, path := range append(outside, "dangling") {
		for tool, arguments := range map[string]map[string]any{
			tools.ReadFile:      {"path": path},
			tools.WriteFile:     {"path": path, "content": "overwritten"},
			tools.EditFile:      {"path": path, "old": "secret", "new": "overwritten"},
			tools.ListDirectory: {"path": path},
			tools.SearchFiles:   {"path": path, "pattern": "."},
		} {
			resp := h.call(tool, arguments)
			if !resp.GetIsError() || strings.Contains(resp.GetResult(), "secret\n") {
				t.Errorf("%s %q: got %q", tool, path, resp.GetResult())
			}
		}
	}
	for _, tool := range []string{tools.FindFiles, tools.SearchFiles} {
		if resp := h.call(tool, map[string]any{"pattern": "secret"}); strings.Contains(resp.GetResult(), "outdir/secret") {
			t.Errorf("%s followed a link: %q", tool, resp.GetResult())
		}
	}
	neighbour, _ := os.Readlink(filepath.Join(h.dir, "outdir"))
	names, _ := os.ReadDir(neighbour)
	if content, _ := os.ReadFile(neighbour + "/secret"); string(content) != "secret" || len(names) != 1 {
		t.Errorf("the folder outside changed: %q, %v", content, names)
	}
	expect(t, h.call(tools.ReadFile, map[string]any{"path": "outdir/secret"}), done, true, "is outside the workspace")
}

// swapLink changes the target of a link in the workspace again and again until stop.
func swapLink(t *testing.T, h *host, name string, targets ...string) (stop func()) {
	t.Helper()
	swap := func(target string) {
		fresh := filepath.Join(h.dir, "fresh")
		if err := errors.Join(os.Symlink(target, fresh), os.Rename(fresh, filepath.Join(h.dir, name))); err != nil {
			t.Error(err)
		}
	}
	swap(targets[0])
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				for _, target := range targets {
					swap(target)
				}
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

func TestFileToolsStayInside_WhenALinkIsSwapped(t *testing.T) {
	if testing.Short() {
		t.Skip("swaps links thousands of times")
	}
	t.Parallel()
	h := newHost(t, Config{})
	neighbour := t.TempDir()
	if err := os.WriteFile(filepath.Join(neighbour, "file"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("dir/file", "inside")
	stop := swapLink(t, h, "link", "dir", neighbour)
	reads := 0
	for range 1500 {
		resp := h.call(tools.ReadFile, map[string]any{"path": "link/file"})
		if strings.Contains(resp.GetResult(), "secret") {
			t.Errorf("read from outside: %q", resp.GetResult())
		}
		if resp.GetResult() == "inside" {
			reads++
		}
		h.call(tools.WriteFile, map[string]any{"path": "link/new", "content": "x"})
		if resp := h.call(tools.SearchFiles, map[string]any{"path": "link", "pattern": "secret"}); !strings.HasPrefix(resp.GetResult(), "No match") && !resp.GetIsError() {
			t.Errorf("searched outside: %q", resp.GetResult())
		}
	}
	stop()
	if names, _ := os.ReadDir(neighbour); len(names) != 1 {
		t.Errorf("written outside: %v", names)
	}
	t.Logf("%d of 1500 reads found the link to the inside", reads)
}

func TestFileToolsRejectPipesAndBinaries(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	if err := syscall.Mkfifo(filepath.Join(h.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.write("binary", "a\x00b")
	h.write("latin", "caf\xe9\n")
	for _, tool := range []string{tools.ReadFile, tools.EditFile, tools.WriteFile} {
		arguments := map[string]map[string]any{
			tools.ReadFile:  {"path": "pipe"},
			tools.EditFile:  {"path": "pipe", "old": "a", "new": "b"},
			tools.WriteFile: {"path": "pipe", "content": "b"},
		}[tool]
		expect(t, h.call(tool, arguments), done, true, "pipe: is not a regular file.")
	}
	expect(t, h.call(tools.SearchFiles, map[string]any{"pattern": "a"}), done, false, "latin:1: caf\uFFFD")
	expect(t, h.call(tools.ReadFile, map[string]any{"path": "binary"}), done, true, "is a binary file of 3 bytes")
	expect(t, h.call(tools.ReadFile, map[string]any{"path": "latin"}), done, false, "caf\uFFFD\n")
}

func TestExploringTools(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{Limits: toolhost.Limits{Paths: 3, Matches: 2, LineBytes: 40, FileBytes: 5000}})
	for name, content := range map[string]string{
		"a.go": "package a\nfunc A() {}\n", "b/b.go": "package b\r\n", "b/c.txt": "none", ".git/x.go": "package git",
		"b/wide.txt": strings.Repeat("-", 500) + "needle" + strings.Repeat("-", 500),
		"big.txt":    strings.Repeat("hay\n", 2000), "z/1": "", "z/2": "", "z/3": "", "z/4": "",
	} {
		h.write(name, content)
	}
	for _, c := range []struct {
		tool      string
		arguments map[string]any
		want      string
		isError   bool
	}{
		{tools.ListDirectory, map[string]any{"path": "b"}, "b.go  11\nc.txt  4\nwide.txt  1006\n", false},
		{tools.ListDirectory, map[string]any{"path": "z"}, "1  0\n2  0\n3  0\n[1 more; use find_files with a pattern.]\n", false},
		{tools.ListDirectory, map[string]any{"path": "a.go"}, "a.go: is a file, not a folder; use read_file.", true},
		{tools.ListDirectory, map[string]any{"path": "q"}, "q: no such file or folder.", true},
		{tools.FindFiles, map[string]any{"pattern": "*.go"}, "a.go\nb/b.go\n", false},
		{tools.FindFiles, map[string]any{"pattern": "z/*"}, "z/1\nz/2\nz/3\n[There is more; use a narrower pattern or path.]\n", false},
		{tools.FindFiles, map[string]any{"pattern": "*.rs"}, "No file matches.\n", false},
		{tools.FindFiles, map[string]any{"pattern": "["}, "pattern \"[\": syntax error in pattern in \"[\".", true},
		{tools.SearchFiles, map[string]any{"pattern": "^package .$"}, "a.go:1: package a\nb/b.go:1: package b\n[Not searched: 1 files of more than 5000 bytes.]\n", false},
		{tools.SearchFiles, map[string]any{"pattern": "a", "path": "a.go"}, "a.go:1: package a\n", false},
		{tools.SearchFiles, map[string]any{"pattern": "needle", "path": "b"}, "b/wide.txt:1: …" + strings.Repeat("-", 10) + "needle" + strings.Repeat("-", 24) + "…\n", false},
		{tools.SearchFiles, map[string]any{"pattern": "("}, "pattern: error parsing regexp: missing closing ): `(` (RE2 syntax).", true},
		{tools.SearchFiles, map[string]any{"pattern": ".", "path": "b"}, "b/b.go:1: package b\nb/c.txt:1: none\n[There is more; use a narrower pattern or path.]\n", false},
	} {
		resp := h.call(c.tool, c.arguments)
		if resp.GetResult() != c.want || resp.GetIsError() != c.isError {
			t.Errorf("%s %v: got %q", c.tool, c.arguments, resp.GetResult())
		}
	}
}

func BenchmarkExecuteTool(b *testing.B) {
	content := strings.Repeat("some line of a file\n", 100)
	for name, c := range map[string]struct {
		sync      bool
		tool      string
		arguments map[string]any
	}{
		"read_file":        {false, tools.ReadFile, map[string]any{"path": "f"}},
		"write_file":       {false, tools.WriteFile, map[string]any{"path": "g", "content": content}},
		"run_command":      {false, tools.RunCommand, map[string]any{"command": "true"}},
		"run_command/sync": {true, tools.RunCommand, map[string]any{"command": "true"}},
	} {
		b.Run(name, func(b *testing.B) {
			h := newHost(b, Config{Sync: c.sync})
			h.write("f", content)
			req := h.request(c.tool, "", c.arguments)
			b.ReportAllocs()
			for i := range b.N {
				req := proto.Clone(req).(*harnessv1.ExecuteToolRequest)
				req.CallId = fmt.Sprint(i)
				if resp := h.execute(req); resp.GetIsError() {
					b.Fatal(resp.GetResult())
				}
			}
		})
	}
	b.Run("replay", func(b *testing.B) {
		h := newHost(b, Config{})
		req := h.request(tools.RunCommand, "c", map[string]any{"command": "true"})
		h.execute(req)
		b.ReportAllocs()
		for range b.N {
			h.execute(req)
		}
	})
}
