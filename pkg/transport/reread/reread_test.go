package reread_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/transport/reread"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestChangeIsReadAndMistakeKeepsOldValue includes a change of equal length within one
// tick of the file system's clock.
func TestChangeIsReadAndMistakeKeepsOldValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "one")
	warned, parsed := 0, 0
	parse := func() (string, error) {
		parsed++
		raw, err := os.ReadFile(path)
		if err == nil && string(raw) == "bad" {
			err = errors.New("bad")
		}
		return string(raw), err
	}
	v, err := reread.New(parse, func(error) { warned++ }, path, "")
	if err != nil || v.Get() != "one" {
		t.Fatal(v, err)
	}
	write(t, path, "two")
	if got := v.Get(); got != "two" {
		t.Errorf("%s after a change", got)
	}
	for _, mistake := range []func(){func() { write(t, path, "bad") }, func() { _ = os.Remove(path) }} {
		mistake()
		for range 3 {
			if got, err := v.Try(); got != "two" || err == nil {
				t.Errorf("%s, %v after a mistake", got, err)
			}
		}
	}
	if warned != 2 {
		t.Errorf("warned %d times of 2 mistakes", warned)
	}
	write(t, path, "six")
	if got, err := v.Try(); got != "six" || err != nil {
		t.Errorf("%s, %v after the correction", got, err)
	}
	// An old unchanged file is not parsed again.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	v.Get()
	before := parsed
	v.Get()
	if parsed != before {
		t.Error("read again without a change")
	}
}

// TestSwitchedLinkIsAChange: Kubernetes renames a link to a directory.
func TestSwitchedLinkIsAChange(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "file"), name)
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, name, "file"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	link, next := filepath.Join(dir, "now"), filepath.Join(dir, "next")
	if err := errors.Join(os.Symlink("a", link), os.Symlink("b", next)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(link, "file")
	v, err := reread.New(func() (string, error) { raw, err := os.ReadFile(path); return string(raw), err }, nil, path)
	if err != nil || v.Get() != "a" {
		t.Fatal(v.Get(), err)
	}
	if err := os.Rename(next, link); err != nil {
		t.Fatal(err)
	}
	if v.Get() != "b" {
		t.Error("the switch was not seen")
	}
}
