package console

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Once reports whether a note, which a key names, was never shown to this user on this machine, and
// remembers that: an empty file in the user's folder of caches. It is true where that has no place.
func (a *Console) Once(key string) bool {
	dir := a.Env("XDG_CACHE_HOME")
	if home := a.Env("HOME"); !filepath.IsAbs(dir) && filepath.IsAbs(home) {
		dir = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(dir) {
		return true
	}
	sum := sha256.Sum256([]byte(key))
	dir = filepath.Join(dir, "harness", "said")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return true
	}
	f, err := os.OpenFile(filepath.Join(dir, hex.EncodeToString(sum[:12])), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = f.Close()
	}
	return !errors.Is(err, fs.ErrExist)
}
