package toolhostserver

import (
	"context"
	"encoding/json"
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
	text := protojson.Format(m)
	if strings.Contains(text, secret) {
		return text
	}
	return ""
}

// checkOutside fails if the folder outside has changed.
func (e *exchange) checkOutside() {
	e.t.Helper()
	for _, folder := range []string{e.outside, filepath.Join(e.outside, "w")} {
		if _, err := os.Lstat(filepath.Join(folder, "written.txt")); err == nil {
			e.t.Error("a file outside was written")
		}
		if text, err := os.ReadFile(filepath.Join(folder, "a.txt")); err != nil || strings.TrimSpace(string(text)) != secret {
			e.t.Errorf("a file outside has changed: %q, %v", text, err)
		}
	}
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
			e.checkOutside()
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

// TestSystemExchangesDuringCalls exchanges the folder of a workspace and a link to the outside 100,000
// times during calls of every kind.
func TestSystemExchangesDuringCalls(t *testing.T) {
	t.Parallel()
	e := newExchange(t)
	link := e.dir + ".link"
	if err := os.Symlink(e.outside, link); err != nil {
		t.Fatal(err)
	}
	const wanted = 100_000
	var exchanges atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			if err := unix.Renameat2(unix.AT_FDCWD, e.dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
				return
			}
			exchanges.Add(1)
		}
	})
	calls, done := map[string]int{}, 0
	for exchanges.Load() < wanted || done < 40 {
		for name, request := range e.requests() {
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
	e.checkOutside()
	t.Logf("%d exchanges during %v calls", exchanges.Load(), calls)
}
