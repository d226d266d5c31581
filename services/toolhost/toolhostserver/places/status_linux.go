package places

import "golang.org/x/sys/unix"

func statusOf(s *unix.Stat_t) status {
	return status{mode: s.Mode, dev: uint64(s.Dev), ino: s.Ino, size: s.Size, time: s.Ctim.Nano()} //nolint:unconvert // 32 bits on some systems
}
