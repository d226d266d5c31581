//go:build linux

package wayout

import (
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// files are reached by path.
var files = []Way{
	{Name: "read a file", Try: func(t *Target) error { return read(t.file()) }},
	{Name: "read a file by a path with ..", Try: func(t *Target) error {
		up := t.Workspace
		path := ""
		for up != "/" {
			path, up = path+"../", filepath.Dir(up)
		}
		return read(path + t.file())
	}},
	{Name: "list a folder", Try: func(t *Target) error {
		_, err := os.ReadDir(t.Folder())
		return err
	}},
	{Name: "run a program", Try: func(t *Target) error { return exec.Command(filepath.Join(t.Folder(), "program")).Run() }},
	{Name: "overwrite a file", Try: func(t *Target) error { return os.WriteFile(t.file(), []byte("x"), 0o600) }, Seen: changed},
	{Name: "append to a file", Try: func(t *Target) error {
		f, err := os.OpenFile(t.file(), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("x")
		return err
	}, Seen: changed},
	{Name: "truncate a file", Try: func(t *Target) error { return unix.Truncate(t.file(), 0) }, Seen: changed},
	{
		Name: "truncate a readable file by opening it",
		Prepare: func(t *Target) error {
			return os.WriteFile(filepath.Join(t.Readable, "truncated"), []byte(Secret), 0o600)
		},
		Try: func(t *Target) error {
			return open(filepath.Join(t.Readable, "truncated"), unix.O_RDONLY|unix.O_TRUNC)
		},
		Seen: func(t *Target) bool { return read(filepath.Join(t.Readable, "truncated")) != nil },
	},
	{
		Name: "truncate a file by opening it for neither reading nor writing",
		Try:  func(t *Target) error { return open(t.file(), unix.O_ACCMODE|unix.O_TRUNC) }, Seen: changed,
	},
	{Name: "truncate a file by opening it (openat2)", Try: func(t *Target) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, t.file(), &unix.OpenHow{Flags: unix.O_TRUNC | unix.O_CLOEXEC})
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	}, Seen: changed},
	{Name: "overwrite a readable file", Prepare: func(t *Target) error {
		return os.WriteFile(filepath.Join(t.Readable, "overwritten"), []byte(Secret), 0o600)
	}, Try: func(t *Target) error {
		return os.WriteFile(filepath.Join(t.Readable, "overwritten"), []byte("x"), 0o600)
	}, Seen: func(t *Target) bool { return read(filepath.Join(t.Readable, "overwritten")) != nil }},
	{Name: "create a file", Try: func(t *Target) error { return os.WriteFile(filepath.Join(t.Folder(), "made"), nil, 0o600) }, Seen: exists("made")},
	{Name: "remove a file", Try: func(t *Target) error { return os.Remove(t.file()) }, Seen: changed},
	{Name: "make a folder", Try: func(t *Target) error { return os.Mkdir(filepath.Join(t.Folder(), "made"), 0o700) }, Seen: exists("made")},
	{
		Name: "remove a folder", Try: func(t *Target) error { return os.Remove(filepath.Join(t.Folder(), "folder")) },
		Seen: func(t *Target) bool { return !exists("folder")(t) },
	},
	{Name: "make a pipe", Try: func(t *Target) error { return unix.Mkfifo(filepath.Join(t.Folder(), "made"), 0o600) }, Seen: exists("made")},
	{
		Name: "make a socket file", Try: func(t *Target) error { return unix.Mknod(filepath.Join(t.Folder(), "made"), unix.S_IFSOCK|0o600, 0) },
		Seen: exists("made"),
	},
	{Name: "make a symbolic link", Try: func(t *Target) error { return os.Symlink("/", filepath.Join(t.Folder(), "made")) }, Seen: exists("made")},
}

// links lead from the workspace to what is outside, or back.
var links = []Way{
	{Name: "read through a symbolic link", Try: func(t *Target) error {
		if err := os.Symlink(t.file(), t.inside("link")); err != nil {
			return err
		}
		return read(t.inside("link"))
	}},
	{Name: "read through a hard link", Try: func(t *Target) error {
		if err := os.Link(t.file(), t.inside("link")); err != nil {
			return err
		}
		return read(t.inside("link"))
	}},
	{Name: "hard link into a folder outside", Try: func(t *Target) error {
		if err := os.WriteFile(t.inside("file"), nil, 0o600); err != nil {
			return err
		}
		return os.Link(t.inside("file"), filepath.Join(t.Folder(), "made"))
	}, Seen: exists("made")},
	{Name: "rename into the workspace", Try: func(t *Target) error {
		if err := os.Rename(t.file(), t.inside("file")); err != nil {
			return err
		}
		return read(t.inside("file"))
	}},
	{Name: "rename out of the workspace", Try: func(t *Target) error {
		if err := os.WriteFile(t.inside("file"), nil, 0o600); err != nil {
			return err
		}
		return os.Rename(t.inside("file"), filepath.Join(t.Folder(), "made"))
	}, Seen: exists("made")},
	{Name: "exchange with a file outside", Try: func(t *Target) error {
		if err := os.WriteFile(t.inside("file"), nil, 0o600); err != nil {
			return err
		}
		if err := unix.Renameat2(unix.AT_FDCWD, t.inside("file"), unix.AT_FDCWD, t.file(), unix.RENAME_EXCHANGE); err != nil {
			return err
		}
		return read(t.inside("file"))
	}},
	{Name: "rename within a folder outside", Try: func(t *Target) error { return os.Rename(t.file(), filepath.Join(t.Folder(), "made")) }, Seen: exists("made")},
}

// properties of files that are not their content.
var properties = []Way{
	{Name: "see that a file exists", Try: func(t *Target) error {
		_, err := os.Stat(t.file())
		return err
	}},
	{Name: "watch a folder (inotify)", Try: func(t *Target) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		_, err = unix.InotifyAddWatch(fd, t.Folder(), unix.IN_ALL_EVENTS)
		return err
	}},
	{Name: "change the mode of a file", Try: func(t *Target) error { return os.Chmod(t.file(), 0o644) }, Seen: func(t *Target) bool {
		info, err := os.Stat(t.file())
		return err == nil && info.Mode().Perm() != 0o600
	}},
	{Name: "change the owner of a file", Try: func(t *Target) error { return os.Chown(t.file(), os.Geteuid(), os.Getegid()) }},
	{Name: "give a file to another user", Try: func(t *Target) error { return os.Chown(t.file(), 1, 1) }, Seen: func(t *Target) bool {
		var stat unix.Stat_t
		return unix.Stat(t.file(), &stat) == nil && stat.Uid == 1
	}},
	{Name: "change the times of a file", Try: func(t *Target) error {
		return unix.Utimes(t.file(), []unix.Timeval{{Sec: 1}, {Sec: 1}})
	}, Seen: func(t *Target) bool {
		info, err := os.Stat(t.file())
		return err == nil && info.ModTime().Unix() == 1
	}},
	{Name: "set an attribute of a file", Try: func(t *Target) error { return unix.Setxattr(t.file(), "user.made", []byte("x"), 0) }, Seen: func(t *Target) bool {
		_, err := unix.Getxattr(t.file(), "user.made", nil)
		return err == nil
	}},
}
