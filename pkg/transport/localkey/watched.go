package localkey

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
)

// File is a key in a file whose mode is watched: a command at the level kernel runs as the same
// user and can change it, although it reads no key. A key that others could read is renewed, and
// the former one is worth nothing from then on. It is safe for concurrent use.
type File struct {
	path   string
	logger *slog.Logger

	mu   sync.Mutex
	key  string
	seen version
}

// version identifies the state of a file that was read. A change of the mode, also one that was taken
// back, changes the time of the inode, which no program can set.
type version struct {
	device, inode uint64
	changed       syscall.Timespec
	// made: the process that makes the file has a second name for it until it is complete.
	made bool
}

// Watch returns the key of a file, which it makes as Ensure does. If others could read the file, its
// mode is put back and the key is renewed.
func Watch(path string, logger *slog.Logger) (f *File, made bool, err error) {
	f = &File{path: path, logger: logger}
	if f.key, made, err = Ensure(path); err != nil {
		info, statErr := os.Stat(path)
		if statErr != nil || !info.Mode().IsRegular() || owner(info) != os.Geteuid() || info.Mode().Perm()&0o077 == 0 {
			return nil, false, err
		}
		if f.renew(fmt.Sprintf("mode %04o", info.Mode().Perm())) != nil {
			return nil, false, err
		}
		return f, false, nil
	}
	awaitMade(path)
	_, f.seen, err = f.stat()
	return f, made, err
}

// Follow returns the key of a file that another process has made. The error is fs.ErrNotExist without one.
func Follow(path string, logger *slog.Logger) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	f, _, err := Watch(path, logger)
	return f, err
}

// Key returns the key. One stat checks the file: a key whose mode was changed is renewed before it is
// returned, and a key that another process has renewed, or a person replaced, is read.
func (f *File) Key() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, now, err := f.stat()
	if err != nil || now == f.seen {
		return f.key // a file that is gone: the key holds until the next start
	}
	wide := info.Mode().Perm()&0o077 != 0
	if f.seen.made && !wide && now.inode == f.seen.inode {
		f.seen = now
		return f.key
	}
	if wide || now.inode == f.seen.inode && now.device == f.seen.device {
		if key, err := Read(f.path); err == nil && key != f.key { // a person has written it
			f.key, f.seen = key, now
			return f.key
		}
		if err := f.renew(fmt.Sprintf("mode %04o", info.Mode().Perm())); err != nil {
			f.logger.Error("the mode of a key was changed, and it cannot be renewed: replace it, and chmod 600 it", "key_file", f.path, "error", err)
		}
		return f.key
	}
	if key, err := Read(f.path); err != nil {
		f.logger.Warn("a key that was replaced cannot be read, so the former one holds", "key_file", f.path, "error", err)
	} else {
		f.key = key
	}
	f.seen = now
	return f.key
}

// renew replaces the file by one with a new key and mode 0600.
func (f *File) renew(was string) error {
	fresh := New()
	if err := replace(f.path, fresh+"\n"); err != nil {
		return fmt.Errorf("key file: %w", err)
	}
	f.key = fresh
	f.logger.Warn("the mode of a key was changed, so other users may have read it: it is 0600 again and the key is renewed, the former one is refused", "key_file", f.path, "was", was)
	var err error
	_, f.seen, err = f.stat()
	return err
}

func (f *File) stat() (fs.FileInfo, version, error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return nil, version{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, version{}, errors.New("no inode")
	}
	return info, version{device: uint64(stat.Dev), inode: stat.Ino, changed: changeTime(stat), made: stat.Nlink > 1}, nil //nolint:unconvert // 32 bits on some systems
}

func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
