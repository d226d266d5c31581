package places

import "golang.org/x/sys/unix"

func statusOf(s *unix.Stat_t) status {
	return status{mode: s.Mode, dev: uint64(s.Dev), ino: s.Ino, size: s.Size, time: s.Ctim.Nano()} //nolint:unconvert // 32 bits on some systems
}

// keepsTimes reports whether the file system of a file sets the time of its last change at the first write into a
// mapping of it. A tmpfs sets none, an overlay can be one, and a file system of a network or a program may not know.
func keepsTimes(path string) bool {
	var fs unix.Statfs_t
	if unix.Statfs(path, &fs) != nil {
		return false
	}
	switch int64(fs.Type) { //nolint:unconvert // 32 bits on some systems
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC:
		return true
	}
	return false
}
