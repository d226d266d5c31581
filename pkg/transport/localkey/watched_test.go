package localkey_test

import (
	"bytes"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
)

// TestKeyWhoseModeWasChangedIsRenewed, also if the change was taken back, and by one of the processes that
// share it: the others read the new one.
func TestKeyWhoseModeWasChangedIsRenewed(t *testing.T) {
	for name, modes := range map[string][]fs.FileMode{"wider": {0o644}, "of the group": {0o640}, "taken back": {0o644, 0o600}} {
		path := filepath.Join(t.TempDir(), "k")
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		key, _, err := localkey.Watch(path, logger)
		if err != nil {
			t.Fatal(err)
		}
		other, err := localkey.Follow(path, logger)
		if err != nil {
			t.Fatal(err)
		}
		former := key.Key()
		if other.Key() != former || key.Key() != former {
			t.Errorf("%s: the key of an unchanged file is renewed", name)
		}
		for _, mode := range modes {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		renewed := key.Key()
		info, err := os.Stat(path)
		if err != nil || renewed == former || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: renewed %t, mode %v, %v", name, renewed != former, info.Mode(), err)
		}
		if read, err := localkey.Read(path); err != nil || read != renewed || other.Key() != renewed || key.Key() != renewed {
			t.Errorf("%s: two processes have two keys: %v", name, err)
		}
		if n := strings.Count(log.String(), "the key is renewed"); n != 1 || strings.Contains(log.String(), localkey.Prefix) {
			t.Errorf("%s: %d lines in\n%s", name, n, log.String())
		}
	}
}

// TestKeyThatAPersonReplacesIsRead, in the file and by another file; one that is gone holds.
func TestKeyThatAPersonReplacesIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	key, _, err := localkey.Watch(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	written, moved := localkey.New(), localkey.New()
	if err := os.WriteFile(path, []byte(written), 0o600); err != nil || key.Key() != written {
		t.Errorf("written: %v", err)
	}
	if err := os.WriteFile(path+"2", []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"2", path); err != nil || key.Key() != moved {
		t.Errorf("moved there: %v", err)
	}
	if err := os.Remove(path); err != nil || key.Key() != moved {
		t.Errorf("removed: %v", err)
	}
}

// TestConcurrentStartsRenewNothing: the file that another process is making is not a changed one.
func TestConcurrentStartsRenewNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	keys := make([]string, 16)
	var starts sync.WaitGroup
	for i := range keys {
		starts.Go(func() {
			key, _, err := localkey.Watch(path, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				keys[i] = key.Key()
			}
		})
	}
	starts.Wait()
	for i := range keys {
		if keys[i] != keys[0] {
			t.Error("two processes have different keys")
		}
	}
}
