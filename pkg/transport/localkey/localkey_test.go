package localkey_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

func TestKeyIsMadeOnceAndReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "gateway.key")
	if _, err := localkey.Read(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: %v", err)
	}
	key, made, err := localkey.Ensure(path)
	if err != nil || !made || !strings.HasPrefix(key, localkey.Prefix) || len(key) != len(localkey.Prefix)+64 {
		t.Fatalf("%d bytes, %v, %v", len(key), made, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	again, made, err := localkey.Ensure(path)
	if err != nil || made || again != key {
		t.Errorf("another key: %v, %v", made, err)
	}
	if read, err := localkey.Read(path); err != nil || read != key {
		t.Errorf("another key is read: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	if other := localkey.New(); other == key {
		t.Error("two keys are equal")
	}
}

func TestConcurrentStartsGetTheSameKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.key")
	keys, made := make([]string, 16), make([]bool, 16)
	var starts sync.WaitGroup
	for i := range keys {
		starts.Go(func() {
			var err error
			if keys[i], made[i], err = localkey.Ensure(path); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	makers := 0
	for i := range keys {
		if keys[i] != keys[0] {
			t.Error("two processes have different keys")
		}
		if made[i] {
			makers++
		}
	}
	if makers != 1 {
		t.Errorf("%d processes made the key", makers)
	}
}

// TestKeyThatMayBeKnownToOthersIsRefused: the error names the file and what to do, and
// has no part of the key.
func TestKeyThatMayBeKnownToOthersIsRefused(t *testing.T) {
	key := localkey.New()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"readable by all":   {func(t *testing.T, path string) { chmod(t, path, 0o644) }, "chmod 600"},
		"readable by group": {func(t *testing.T, path string) { chmod(t, path, 0o640) }, "chmod 600"},
		"writable by all":   {func(t *testing.T, path string) { chmod(t, path, 0o602) }, "chmod 600"},
		"empty":             {func(t *testing.T, path string) { write(t, path, "") }, "remove the file"},
		"another text":      {func(t *testing.T, path string) { write(t, path, strings.TrimPrefix(key, localkey.Prefix)) }, "remove the file"},
		"cut":               {func(t *testing.T, path string) { write(t, path, key[:len(key)-1]) }, "remove the file"},
		"two lines":         {func(t *testing.T, path string) { write(t, path, key+"\n"+key+"\n") }, "remove the file"},
		"large":             {func(t *testing.T, path string) { write(t, path, key+strings.Repeat("\n", 1<<20)) }, "exceeds"},
		"a folder":          {func(t *testing.T, path string) { remove(t, path); mkdir(t, path) }, "regular file"},
		"a pipe":            {func(t *testing.T, path string) { remove(t, path); fifo(t, path) }, "regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "gateway.key")
			write(t, path, key+"\n")
			c.spoil(t, path)
			for _, call := range []func() error{
				func() error { _, err := localkey.Read(path); return err },
				func() error { _, _, err := localkey.Ensure(path); return err },
			} {
				err := call()
				if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), key[len(localkey.Prefix):][:8]) {
					t.Errorf("%v, want %q", err, c.want)
				}
			}
		})
	}
}

// TestFilesOfOtherUsersAreRefused needs root, to give files away.
func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "gateway.key")
	if _, _, err := localkey.Ensure(path); err != nil {
		t.Fatal(err)
	}
	chown(t, path)
	if _, err := localkey.Read(path); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("the key of another user: %v", err)
	}
	notes := localkey.Notes{Dir: filepath.Join(dir, "keys")}
	own := filepath.Join(dir, "own.key")
	if _, _, err := localkey.Ensure(own); err != nil {
		t.Fatal(err)
	}
	if err := notes.Put("127.0.0.1:7447", own); err != nil {
		t.Fatal(err)
	}
	chown(t, filepath.Join(notes.Dir, "127.0.0.1:7447"))
	if note, err := notes.Find("127.0.0.1:7447"); err == nil || errors.Is(err, localkey.ErrNoNote) || !strings.Contains(err.Error(), "another user") {
		t.Errorf("the note of another user: %v, %v", note, err)
	}
	if err := notes.Put("127.0.0.1:7447", own); err != nil {
		t.Errorf("it is not replaced: %v", err)
	}
	chown(t, notes.Dir)
	if note, err := notes.Find("127.0.0.1:7447"); err == nil || errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("a note in the folder of another user: %v", note)
	}
	if err := notes.Put("127.0.0.1:7447", own); err == nil {
		t.Error("a note is put into the folder of another user")
	}
}

func TestNoteIsFoundByEachFormOfTheAddress(t *testing.T) {
	notes, key := newNotes(t)
	for at, forms := range map[string][]string{
		"127.0.0.1:7447":     {"127.0.0.1:7447", "127.0.0.1:07447", "localhost:7447", "LocalHost:7447", "[::ffff:127.0.0.1]:7447"},
		"[::1]:7448":         {"[::1]:7448", "[0:0::1]:7448", "localhost:7448"},
		"127.0.0.2:7447":     {"127.0.0.2:7447"},
		"unix:/run/a%b.sock": {"unix:/run/a%b.sock", "unix:///run/a%b.sock", "unix:/run/../run/a%b.sock"},
	} {
		if err := notes.Put(at, key); err != nil {
			t.Fatal(err)
		}
		for _, form := range forms {
			note, err := notes.Find(form)
			if err != nil || note != (localkey.Note{Address: at, KeyFile: key, PID: os.Getpid()}) {
				t.Errorf("%s: %v, %v", form, note, err)
			}
		}
	}
	for _, none := range []string{"127.0.0.1:7449", "example.org:7447", "10.0.0.1:7447", "0.0.0.0:7447", "", "x", "unix:", "unix:/run/a", "127.0.0.1:x", "127.0.0.1:99999", "../127.0.0.1:7447"} {
		if note, err := notes.Find(none); !errors.Is(err, localkey.ErrNoNote) {
			t.Errorf("%s: %v, %v", none, note, err)
		}
	}
	for _, wrong := range []string{"localhost:7447", "0.0.0.0:7447", "10.0.0.1:7447", "", "unix:"} {
		if err := notes.Put(wrong, key); err == nil {
			t.Errorf("a note for %q is taken", wrong)
		}
	}
	info, err := os.Stat(notes.Dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	raw, err := os.ReadFile(filepath.Join(notes.Dir, "127.0.0.1:7447"))
	if err != nil || string(raw) != key+"\n"+strconv.Itoa(os.Getpid())+"\n" {
		t.Errorf("the note is %q, %v", raw, err)
	}
}

// TestNoteOfAnEndedProcessDoesNotCount: another user may listen at its address.
func TestNoteOfAnEndedProcessDoesNotCount(t *testing.T) {
	notes, key := newNotes(t)
	if err := notes.Put("127.0.0.1:7447", key); err != nil {
		t.Fatal(err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(notes.Dir, "127.0.0.1:7447")
	write(t, note, key+"\n"+strconv.Itoa(ended.Process.Pid)+"\n")
	if found, err := notes.Find("127.0.0.1:7447"); !errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("%v, %v", found, err)
	}
	if err := notes.Put("127.0.0.1:7447", key); err != nil {
		t.Fatal(err)
	}
	if _, err := notes.Find("127.0.0.1:7447"); err != nil {
		t.Errorf("the stale note is not replaced: %v", err)
	}
}

func TestNotesAreRemoved(t *testing.T) {
	notes, key := newNotes(t)
	gone := filepath.Join(t.TempDir(), "gateway.key")
	if _, _, err := localkey.Ensure(gone); err != nil {
		t.Fatal(err)
	}
	for _, put := range []struct{ address, key string }{{"127.0.0.1:1", gone}, {"127.0.0.1:2", key}} {
		if err := notes.Put(put.address, put.key); err != nil {
			t.Fatal(err)
		}
	}
	remove(t, gone)
	if err := notes.Put("127.0.0.1:3", key); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(notes.Dir)
	if err != nil || len(left) != 2 || left[0].Name() != "127.0.0.1:2" || left[1].Name() != "127.0.0.1:3" {
		t.Errorf("%v, %v", left, err)
	}
	for range 2 {
		if err := notes.Remove("127.0.0.1:2"); err != nil {
			t.Error(err)
		}
	}
	if note, err := notes.Find("127.0.0.1:2"); !errors.Is(err, localkey.ErrNoNote) {
		t.Errorf("%v, %v", note, err)
	}
}

func TestDamagedOrOpenNoteIsAnError(t *testing.T) {
	notes, key := newNotes(t)
	if err := notes.Put("127.0.0.1:7447", key); err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(notes.Dir, "127.0.0.1:7447")
	expect := func(want string) {
		t.Helper()
		found, err := notes.Find("127.0.0.1:7447")
		if err == nil || errors.Is(err, localkey.ErrNoNote) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v, want %q", found, err, want)
		}
	}
	for _, text := range []string{"", "x\n1\n", key + "\n", key + "\nx\n", key + "\n0\n", key + "\n-1\n", key + "\n1\n\n"} {
		write(t, note, text)
		expect("remove it")
	}
	write(t, note, key+"\n"+strconv.Itoa(os.Getpid())+"\n")
	chmod(t, note, 0o644)
	expect("chmod 600")
	chmod(t, note, 0o600)
	chmod(t, notes.Dir, 0o755)
	expect("chmod 700")
	if err := notes.Put("127.0.0.1:7447", key); err == nil {
		t.Error("a note is put into a folder that others can read")
	}
}

func TestNotesAreInTheUsersConfiguration(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/config/harness/keys":         {"XDG_CONFIG_HOME": "/config", "HOME": "/home/u"},
		"/home/u/.config/harness/keys": {"XDG_CONFIG_HOME": "relative", "HOME": "/home/u"},
	} {
		notes, err := localkey.UserNotes(func(name string) string { return env[name] })
		if err != nil || notes.Dir != want {
			t.Errorf("%v, %v, want %s", notes, err, want)
		}
	}
	if notes, err := localkey.UserNotes(func(string) string { return "" }); err == nil {
		t.Errorf("%v without a home", notes)
	}
}

// newNotes returns an empty folder of notes and a key file.
func newNotes(t *testing.T) (notes localkey.Notes, key string) {
	t.Helper()
	dir := t.TempDir()
	key = filepath.Join(dir, "gateway.key")
	if _, _, err := localkey.Ensure(key); err != nil {
		t.Fatal(err)
	}
	return localkey.Notes{Dir: filepath.Join(dir, "config", "keys")}, key
}

func write(t *testing.T, path, text string) {
	t.Helper()
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	check(t, os.Chmod(path, mode))
}

// chown gives a file to another user.
func chown(t *testing.T, path string) {
	t.Helper()
	check(t, os.Chown(path, 1, 1))
}

func remove(t *testing.T, path string) {
	t.Helper()
	check(t, os.Remove(path))
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	check(t, os.Mkdir(path, 0o700))
}

func fifo(t *testing.T, path string) {
	t.Helper()
	check(t, syscall.Mkfifo(path, 0o600))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
