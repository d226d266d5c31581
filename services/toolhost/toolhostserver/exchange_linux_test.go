package toolhostserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/test/kit/mediatest"
)

// exchange is a workspace whose folder another run moves and replaces by a link to a folder
// outside, which has the same files with a secret in them.
type exchange struct {
	*host
	above, outside string
}

// secret is in each file outside, and in the name of one.
const secret = "s3cr3t-of-another"

func newExchange(t *testing.T) *exchange {
	t.Helper()
	h := newHost(t, Config{})
	above := t.TempDir()
	e := &exchange{host: h, above: filepath.Join(above, "tenant"), outside: filepath.Join(above, "outside")}
	for folder, text := range map[string]string{filepath.Join(e.above, "w"): "of the run", e.outside: secret, filepath.Join(e.outside, "w"): secret} {
		skill := filepath.Join(folder, ".agents/skills/deploy")
		if err := os.MkdirAll(skill, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"a.txt": text + "\n", text + ".txt": text + "\n", "AGENTS.md": text, ".agents/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: " + text + "\n---\n" + text,
			".agents/skills/deploy/steps.txt": text,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.dir = h.found(filepath.Join(e.above, "w"))
	shell(t, e.dir, "git init -q && git add -A && git -c user.name=u -c user.email=u@example.com commit -qm a")
	return e
}

// requests are those of a run to the host, by name: each returns the response as the run has it.
func (e *exchange) requests() map[string]func(ctx context.Context) proto.Message {
	all := map[string]func(ctx context.Context) proto.Message{
		"describe": func(ctx context.Context) proto.Message {
			return shown(e.DescribeWorkspace(ctx, &harnessv1.DescribeWorkspaceRequest{Workspace: e.dir, WithoutLinks: true, SkillFolders: []string{e.dir + "/.agents/skills"}, Roots: []string{e.above}}))
		},
		"inspect": func(ctx context.Context) proto.Message {
			return shown(e.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
				Workspace: e.dir, Namespace: "n", RunId: "r", FirstSequence: 7,
				Proposed: []*harnessv1.ProposedCall{{Tool: "write_file", Arguments: `{"path":"a.txt","content":"x"}`}},
			}))
		},
		"check of a file": func(ctx context.Context) proto.Message {
			return shown(e.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: e.dir, Path: "a.txt", TextBytes: 100}))
		},
		"check by a command": func(ctx context.Context) proto.Message {
			return shown(e.CheckCommand(ctx, &harnessv1.CheckCommandRequest{Namespace: "n", RunId: "r", FirstSequence: 7, Key: randomID(), Command: "cat a.txt; ls", Workspace: e.dir}))
		},
	}
	all["worktree"] = func(ctx context.Context) proto.Message {
		made, err := e.MakeWorktree(ctx, e.worktreeRequest("c"+randomID()))
		if err == nil && made.GetWorkspace() != "" {
			files := &host{Server: e.Server, t: e.t, dir: made.GetWorkspace()}
			return shown(files.ExecuteTool(ctx, files.request("search_files", randomID(), map[string]any{"pattern": "."})))
		}
		return shown(made, err)
	}
	for name, arguments := range map[string]map[string]any{
		"read_file":      {"path": "a.txt"},
		"list_directory": {"path": "."},
		"search_files":   {"pattern": "."},
		"find_files":     {"pattern": "**"},
		"write_file":     {"path": "written.txt", "content": "by the run"},
		"edit_file":      {"path": "a.txt", "old": "t", "new": "u"},
		"skill":          {"name": "deploy", "path": "steps.txt"},
	} {
		if _, found := e.tools.Find(name); !found {
			e.t.Fatalf("no tool %s", name)
		}
		text, _ := json.Marshal(arguments)
		all[name] = func(ctx context.Context) proto.Message {
			r := e.request(name, randomID(), nil)
			r.Arguments, r.SkillFolders, r.Roots = string(text), []string{e.dir + "/.agents/skills"}, []string{e.above}
			return shown(e.ExecuteTool(ctx, r))
		}
	}
	for _, level := range append(e.levels(), harnessv1.SandboxLevel_SANDBOX_LEVEL_OFF) {
		all["command at "+level.String()] = func(ctx context.Context) proto.Message {
			r := e.request(tools.RunCommand, randomID(), map[string]any{"command": "cat a.txt; ls -a . ; pwd -P; echo by the run > written.txt"})
			r.Confinement = &harnessv1.Confinement{Level: level}
			return shown(e.ExecuteTool(ctx, r))
		}
	}
	return all
}

func randomID() string { return disk.RandomName(8) }

// shown is a response as the run has it.
func shown[M proto.Message](m M, err error) proto.Message {
	if err != nil {
		return status.Convert(err).Proto()
	}
	return m
}

// leaked returns a response that shows the folder outside, else an empty text.
func leaked(m proto.Message) string {
	if raw, err := proto.Marshal(m); err != nil || bytes.Contains(raw, []byte(secret)) {
		return protojson.Format(m)
	}
	return ""
}

// checkOutside fails if the folder outside is not as before.
func (e *exchange) checkOutside(before map[string]string) {
	e.t.Helper()
	now := treeOf(e.t, e.outside)
	for path, text := range now {
		if was, found := before[path]; !found || was != text {
			e.t.Errorf("%s outside was written: %q", path, text)
		}
		delete(before, path)
	}
	for path := range before {
		e.t.Errorf("%s outside was removed", path)
	}
}

// treeOf returns the entries below a folder, by path: the contents of files.
func treeOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		tree[path] = "folder"
		if err == nil && !entry.IsDir() {
			text, readErr := os.ReadFile(path)
			tree[path], err = string(text), readErr
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestWorkspaceThatWasReplacedByALink: the run reads, lists and writes nothing where the link leads,
// whichever part of the path it is, and the result of the call has the reason.
func TestWorkspaceThatWasReplacedByALink(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(e *exchange) error{
		"itself": func(e *exchange) error {
			return errorsOf(os.Rename(e.dir, e.dir+".old"), os.Symlink(e.outside, e.dir))
		},
		"a folder above": func(e *exchange) error {
			return errorsOf(os.Rename(e.above, e.above+".old"), os.Symlink(e.outside, e.above))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExchange(t)
			before := treeOf(t, e.outside)
			if text := leaked(e.requests()["read_file"](t.Context())); text != "" || !strings.Contains(e.call("read_file", map[string]any{"path": "a.txt"}).GetResult(), "of the run") {
				t.Fatalf("before: %s", text)
			}
			if err := replace(e); err != nil {
				t.Fatal(err)
			}
			for name, request := range e.requests() {
				if text := leaked(request(t.Context())); text != "" {
					t.Errorf("%s shows what is outside: %s", name, text)
				}
			}
			e.checkOutside(before)
			if got := e.call("read_file", map[string]any{"path": "a.txt"}); !strings.Contains(got.GetResult(), "is a link") {
				t.Errorf("the run is told %q", got.GetResult())
			}
			if _, err := e.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: e.dir, Roots: []string{e.above + ".old", e.dir + ".old"}}); err == nil {
				t.Error("a new run of the token starts where the link leads")
			}
		})
	}
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// exchangeAll exchanges each path with the link next to it, PATH.link, in turn until the context ends.
func (e *exchange) exchangeAll(ctx context.Context, count *atomic.Int64, paths ...string) {
	for ctx.Err() == nil {
		for _, path := range paths {
			switch err := unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, path+".link", unix.RENAME_EXCHANGE); {
			case errors.Is(err, unix.ENOENT): // the host has removed the link, or has it aside
				_, _ = os.Mkdir(path, 0o755), os.Symlink(filepath.Join(e.outside, disk.Relative(e.dir, path)), path+".link")
			case err != nil:
				e.t.Error(err)
				return
			}
			count.Add(1)
		}
	}
}

// TestSystemExchangesDuringCalls exchanges folders and links to the outside 100,000 times in all during calls of every kind: the
// workspace itself, and folders in it.
func TestSystemExchangesDuringCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		folders  []string
		requests func(e *exchange) map[string]func(ctx context.Context) proto.Message
	}{
		"the workspace":  {[]string{"."}, (*exchange).requests},
		"folders in it":  {[]string{"sub", ".agents"}, (*exchange).requestsBelow},
		"lower folders":  {[]string{"sub/deep", ".agents/skills/deploy", ".git/info"}, (*exchange).requestsBelow},
		"its git folder": {[]string{".git"}, (*exchange).requestsOfGit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExchange(t)
			e.fillBelow()
			var paths []string
			for _, folder := range c.folders {
				path := filepath.Join(e.dir, folder)
				if err := os.Symlink(filepath.Join(e.outside, folder), path+".link"); err != nil {
					t.Fatal(err)
				}
				paths = append(paths, path)
			}
			before := treeOf(t, e.outside)
			const wanted = 25_000
			var exchanges atomic.Int64
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { e.exchangeAll(ctx, &exchanges, paths...) })
			calls, done := map[string]int{}, 0
			for exchanges.Load() < wanted || done < 2 {
				for name, request := range c.requests(e) {
					m := request(ctx)
					calls[name]++
					if text := leaked(m); text != "" {
						t.Errorf("%s shows what is outside: %s", name, text)
					}
				}
				if done++; t.Failed() {
					break
				}
			}
			cancel()
			running.Wait()
			e.checkOutside(before)
			t.Logf("%d exchanges during %v calls", exchanges.Load(), calls)
		})
	}
}

// fillBelow makes the folders below the workspace, and their counterparts outside, that the calls name.
func (e *exchange) fillBelow() {
	e.t.Helper()
	for folder, text := range map[string]string{e.dir: "of the run", e.outside: secret} {
		for _, below := range []string{"sub", "sub/deep"} {
			for name, content := range map[string]string{
				"a.txt": text + "\n", text + ".txt": text + "\n", "AGENTS.md": text + "\n@imported.md\n", "imported.md": "imported, " + text + "\n", ".gitignore": "ignored-" + text + "\n",
				"doc.pdf": string(mediatest.PDF(1)) + "%" + text + "\n", ".envrc": text, "old.txt": text,
			} {
				put(e.t, filepath.Join(folder, below), name, content)
			}
		}
		put(e.t, folder, "AGENTS.md", text+"\n@sub/imported.md\n@sub/deep/imported.md\n")
	}
	gitOutput(e.t, e.outside, "init", "-q", "-b", secret)
	gitOutput(e.t, e.outside, "config", "user.name", secret)
	put(e.t, e.outside, ".git/info/exclude", secret+"\n")
	for dir, message := range map[string]string{e.outside: secret, e.dir: "of the run"} {
		gitOutput(e.t, dir, "add", "-fA")
		gitOutput(e.t, dir, "commit", "-qm", message)
	}
}

// tool is a call of a tool by its arguments.
func (e *exchange) tool(name string, arguments map[string]any) func(ctx context.Context) proto.Message {
	text, _ := json.Marshal(arguments)
	return func(ctx context.Context) proto.Message {
		r := e.request(name, randomID(), nil)
		r.Arguments, r.SkillFolders, r.Roots = string(text), []string{e.dir + "/.agents/skills"}, []string{e.above}
		return shown(e.ExecuteTool(ctx, r))
	}
}

// commandAt is a command line at a level.
func (e *exchange) commandAt(level harnessv1.SandboxLevel, arguments map[string]any) func(ctx context.Context) proto.Message {
	return func(ctx context.Context) proto.Message {
		r := e.request(tools.RunCommand, randomID(), arguments)
		r.Confinement = &harnessv1.Confinement{Level: level}
		return shown(e.ExecuteTool(ctx, r))
	}
}

// requestsBelow are requests that name files in folders of the workspace.
func (e *exchange) requestsBelow() map[string]func(ctx context.Context) proto.Message {
	all := map[string]func(ctx context.Context) proto.Message{"merge": e.mergeBelow}
	for name, request := range e.requests() {
		switch name {
		case "describe", "inspect", "skill", "search_files":
			all[name] = request
		}
	}
	for _, level := range e.levels() {
		const line = "cat sub/a.txt; ls sub/deep; cd sub/deep && cat a.txt; echo by the run > written.txt; echo by the run > .envrc"
		all["command at "+level.String()] = e.commandAt(level, map[string]any{"command": line})
	}
	for _, below := range []string{"sub/", "sub/deep/"} {
		for name, arguments := range map[string]map[string]any{
			"read_file":      {"path": below + "a.txt"},
			"list_directory": {"path": strings.TrimSuffix(below, "/")},
			"search_files":   {"pattern": ".", "path": strings.TrimSuffix(below, "/"), "include_ignored": true},
			"find_files":     {"pattern": below + "**", "include_ignored": true},
			"write_file":     {"path": below + "new/written.txt", "content": "by the run"},
			"edit_file":      {"path": below + "a.txt", "old": "t", "new": "u"},
		} {
			all[name+" in "+below] = e.tool(name, arguments)
		}
		all["document in "+below] = e.tool("read_file", map[string]any{"path": below + "doc.pdf"})
		all["check of a file in "+below] = func(ctx context.Context) proto.Message {
			return shown(e.CheckFile(ctx, &harnessv1.CheckFileRequest{Workspace: e.dir, Path: below + "a.txt", TextBytes: 100}))
		}
		all["preview in "+below] = func(ctx context.Context) proto.Message {
			return shown(e.InspectWorkspace(ctx, &harnessv1.InspectWorkspaceRequest{
				Workspace: e.dir, Namespace: "n", RunId: "r", FirstSequence: 7,
				Proposed: []*harnessv1.ProposedCall{{Tool: "write_file", Arguments: `{"path":"` + below + `a.txt","content":"x"}`}},
			}))
		}
	}
	return all
}

// mergeBelow merges the changes of a sub-agent in folders of the workspace.
func (e *exchange) mergeBelow(ctx context.Context) proto.Message {
	child := "c" + randomID()
	made, err := e.MakeWorktree(ctx, e.worktreeRequest(child))
	if err != nil || made.GetWorkspace() == "" {
		return shown(made, err)
	}
	files, err := os.OpenRoot(made.GetWorkspace()) // the worktree can have the links
	if err != nil {
		e.t.Error(err)
		return made
	}
	defer func() { _ = files.Close() }()
	for _, name := range []string{"sub/merged/new.txt", "sub/deep/merged.txt", "sub/a.txt"} {
		_ = files.MkdirAll(filepath.Dir(name), 0o755)
		_ = files.WriteFile(name, []byte("by the run"), 0o600)
	}
	_ = files.Remove("sub/old.txt")
	if _, err := e.EndWorktree(ctx, &harnessv1.EndWorktreeRequest{Namespace: "n", RunId: child}); err != nil {
		return shown(made, err)
	}
	return e.tool("merge_agent_work", map[string]any{"run": child})(ctx)
}

// requestsOfGit are requests during which the host runs git, or puts back what it runs programs by.
func (e *exchange) requestsOfGit() map[string]func(ctx context.Context) proto.Message {
	all := map[string]func(ctx context.Context) proto.Message{}
	for name, request := range e.requests() {
		switch name {
		case "describe", "inspect", "find_files", "search_files":
			all[name] = request
		}
	}
	all["merge"] = e.mergeBelow
	all["worktree"] = func(ctx context.Context) proto.Message {
		made, err := e.MakeWorktree(ctx, e.worktreeRequest("c"+randomID()))
		if err != nil || made.GetWorkspace() == "" {
			return shown(made, err)
		}
		files := &host{Server: e.Server, t: e.t, dir: made.GetWorkspace()}
		return shown(files.ExecuteTool(ctx, files.request(tools.RunCommand, randomID(), map[string]any{"command": "git log; git ls-files; cat .git/info/exclude .git/config .git/shallow; git log --all; ls .git/refs/*"})))
	}
	for _, level := range e.levels() {
		all["command at "+level.String()] = e.commandAt(level, map[string]any{"command": "git status; git log; cat .git/config .git/HEAD; git config core.fsmonitor ./x; echo ./x >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"})
	}
	return all
}
