//go:build !linux

package places

import "golang.org/x/sys/unix"

func statusOf(s *unix.Stat_t) status {
	return status{mode: uint32(s.Mode), dev: uint64(s.Dev), ino: uint64(s.Ino), size: s.Size, time: s.Mtim.Nano()} //nolint:unconvert,gosec // other widths on some systems
}

// tellsChanges reports whether the time of a file's last change tells of each.
func tellsChanges(string) bool { return false }
