package show_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// unprivileged is a user without rights. Only root can start processes of another user, and only
// root needs one: no mode keeps it from writing.
const unprivileged = 65534

// asReader runs the program as a user for whom modes count.
func asReader(t *testing.T, dir string, args ...string) (code int, out, errs string) {
	t.Helper()
	cmd := harnesstest.Program(t, args...)
	temporary := filepath.Join(dir, "tmp")
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary, "HOME="+temporary)
	if os.Getuid() == 0 {
		self, err := os.ReadFile(cmd.Path)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path = filepath.Join(dir, "harness") // the folder of this program is closed to others
		if err := os.WriteFile(cmd.Path, self, 0o755); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}}
		if err := os.Chown(temporary, unprivileged, unprivileged); err != nil {
			t.Fatal(err)
		}
	}
	var said strings.Builder
	cmd.Stderr = &said
	text, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text), said.String()
}

// TestAReadOnlyDirectoryIsRead: its runs can be listed, shown and watched, and not continued.
// Nothing of it changes, and no copy is left.
func TestAReadOnlyDirectoryIsRead(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "readonly") // others can reach it, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	p := harnesstest.Place{Data: filepath.Join(dir, "data"), Workspace: filepath.Join(dir, "ws"), Script: filepath.Join(dir, "script.yaml")}
	for _, folder := range []string{p.Workspace, filepath.Join(dir, "tmp")} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.Script, []byte(harnesstest.Finishes), 0o600); err != nil {
		t.Fatal(err)
	}
	slow := filepath.Join(dir, "slow.yaml")
	if err := os.WriteFile(slow, []byte(harnesstest.Thinks), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := harnesstest.Call(t, nil, "", p.Run("--run-id", "kept", "look")...); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	killed := harnesstest.Program(t, p.Run("--run-id", "killed", "--model", "script:"+slow, "look")...)
	said := harnesstest.NewText()
	killed.Stderr = said
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	said.Expect(t, "list_directory", 1)
	_ = killed.Process.Kill()
	_ = killed.Wait()
	files := func() string {
		var all []string
		if err := filepath.WalkDir(p.Data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			all = append(all, path+string(text))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(all, "\n")
	}
	before := files()
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(dir, "tmp"):
			return nil
		case entry.IsDir():
			return os.Chmod(path, 0o555)
		}
		return os.Chmod(path, 0o444)
	}); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list"}, 0, "kept"},
		{[]string{"show", "kept"}, 0, "All seen."},
		{[]string{"watch", "kept"}, 0, "All seen."},
		{[]string{"watch", "killed"}, 4, "the run has not ended, and nothing continues it here"},
		{[]string{"watch", "killed"}, 4, "list_directory"},
		{[]string{"send", "kept", "Once more."}, 1, "cannot be written: its runs can be listed, shown and watched only"},
		{[]string{"resume", "kept"}, 1, "cannot be written"},
	} {
		code, out, said := asReader(t, dir, append(c.args, "--data", p.Data)...)
		if code != c.code || !strings.Contains(out+said, c.want) {
			t.Errorf("%v: exit %d, want %d with %q:\n%s%s", c.args, code, c.code, c.want, out, said)
		}
	}
	if after := files(); after != before {
		t.Error("the directory has changed")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "tmp", "harness-read-*")); err != nil || len(left) > 0 {
		t.Errorf("copies are left: %v, %v", left, err)
	}
}
