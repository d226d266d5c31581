package guard

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// zfsMagic is the number of ZFS, which is no part of Linux.
const zfsMagic = 0x2fc12fc1

// keepsTimes reports whether the file system of a folder sets the time of the last change
// reliably. Those of networks and of programs may not.
func keepsTimes(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false
	}
	switch int64(fs.Type) { //nolint:unconvert // 32 bits on some systems
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, zfsMagic:
		return true
	}
	return false
}

// changed returns the time of the last change of a file, which no program can set.
func changed(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctim.Nano()
	}
	return 0
}
