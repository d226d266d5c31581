// Package localkey makes and reads the keys with which processes of one user on one
// machine admit each other: the key of a gateway for its clients, and the key of a mesh
// for its roles.
//
// A key is a text of a file that only its owner can read. A gateway notes the path of its
// key file under its address in a folder of the user, so that clients find the key
// without being configured; see Notes. Neither notes nor errors contain a key.
package localkey

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// Prefix begins every key, so that people and scanners for leaked secrets recognise one.
const Prefix = "harness-key-"

// keyBytes is the size of a key before its encoding.
const keyBytes = 32

var keyForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf("^%s[0-9a-f]{%d}$", Prefix, 2*keyBytes))
})

// maxFile bounds the size of a key file, in bytes.
const maxFile = 4 << 10

// New returns a new key, which is in no file.
func New() string {
	var random [keyBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	return Prefix + hex.EncodeToString(random[:])
}

// Ensure returns the key of a file. If the file does not exist, it is made with a new key
// and mode 0600, and made is true. Processes that call Ensure at the same time get the
// same key.
func Ensure(path string) (key string, made bool, err error) {
	key, err = Read(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", false, fmt.Errorf("folder of the key file: %w", err)
	}
	fresh := New()
	switch err := create(path, fresh+"\n"); {
	case errors.Is(err, fs.ErrExist): // another process was faster
		key, err = Read(path)
		return key, false, err
	case err != nil:
		return "", false, fmt.Errorf("key file: %w", err)
	}
	return fresh, true, nil
}

// Read returns the key of a file. A file that another user owns or can read is an error,
// because its key may be known to that user.
func Read(path string) (string, error) {
	raw, err := readOwn(path)
	if err != nil {
		return "", fmt.Errorf("key file: %w", err)
	}
	key := strings.TrimSpace(string(raw))
	if !keyForm().MatchString(key) {
		return "", fmt.Errorf("key file %s: expected one line, %s and %d hexadecimal digits: remove the file, and the next start makes a new key", path, Prefix, 2*keyBytes)
	}
	return key, nil
}

// readOwn reads a small file that belongs to this user and that no other user can access.
func readOwn(path string) ([]byte, error) {
	// A FIFO does not block the open.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	if err := private(path, info, "600"); err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("%s exceeds %d bytes", path, maxFile)
	}
	return raw, err
}

// private returns an error unless a file or folder belongs to this user alone.
func private(path string, info fs.FileInfo, mode string) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user: name another one, or run as its owner", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is accessible to other users (mode %04o): chmod %s it, and replace its content if they may have read it", path, info.Mode().Perm(), mode)
	}
	return nil
}

// create creates a file with a content and mode 0600. The file appears complete or not
// at all; if it exists, the error is fs.ErrExist. It is locked until its second name is removed: that
// changes its time, which others take for a change of its mode.
func create(path, content string) error {
	temporary, err := writeTemporary(path, content)
	if err != nil {
		return err
	}
	held, err := os.Open(temporary)
	if err == nil {
		_ = syscall.Flock(int(held.Fd()), syscall.LOCK_EX) // some file systems have no locks
		defer func() { _ = held.Close() }()
	}
	defer func() { _ = os.Remove(temporary) }()
	if err != nil {
		return err
	}
	return os.Link(temporary, path)
}

// awaitMade returns when no process makes a file any more.
func awaitMade(path string) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	_ = syscall.Flock(int(file.Fd()), syscall.LOCK_SH) // as in create
	_ = file.Close()
}

// replace is create, but replaces a file that exists.
func replace(path, content string) error {
	temporary, err := writeTemporary(path, content)
	if err != nil {
		return err
	}
	err = os.Rename(temporary, path)
	if err != nil {
		_ = os.Remove(temporary)
	}
	return err
}

// writeTemporary writes a file next to path and flushes it to disk.
func writeTemporary(path, content string) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), temporaryPrefix+"*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// temporaryPrefix begins the names of files that are being written.
const temporaryPrefix = ".harness-"
