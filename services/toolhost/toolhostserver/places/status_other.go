//go:build !linux

package places

import "golang.org/x/sys/unix"

func statusOf(s *unix.Stat_t) status {
	return status{mode: uint32(s.Mode), dev: uint64(s.Dev), ino: uint64(s.Ino), size: s.Size, time: s.Mtim.Nano()} //nolint:unconvert,gosec // other widths on some systems
}

// keepsTimes reports whether each change of a file sets the time of its last change.
func keepsTimes(string) bool { return false }
