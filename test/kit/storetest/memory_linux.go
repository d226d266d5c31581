package storetest

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	// shared is the file system in memory that Linux mounts for every process.
	shared = "/dev/shm"
	// room is the space that must be free in it: servers of the tests of a package use some 100 MiB.
	room = 2 << 30
	// noexec is ST_NOEXEC.
	noexec = 8
)

// InMemory makes the temporary folders of this process and of those that it starts folders in memory:
// creating a file on a disk takes ten times the CPU, and servers create thousands. It does nothing if
// TMPDIR is set or if the memory has too little room or runs no programs. Call it first in TestMain.
func InMemory() {
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(shared, &fs) != nil || fs.Flags&noexec != 0 ||
		fs.Bavail*uint64(fs.Bsize) < room {
		return
	}
	// The folder keeps its name, so that results of tests can be cached. Others may use it as they may
	// use /tmp: some tests run programs as another user.
	dir := filepath.Join(shared, "harness-test-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return
	}
	if own, err := os.Lstat(dir); err != nil || !own.IsDir() || !ownedBySelf(own) || os.Chmod(dir, 0o777|os.ModeSticky) != nil {
		return
	}
	_ = os.Setenv("TMPDIR", dir)
}

// ownedBySelf reports whether this user made a folder.
func ownedBySelf(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
