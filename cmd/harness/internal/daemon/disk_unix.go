//go:build linux || darwin

package daemon

import "golang.org/x/sys/unix"

// FreeBytes returns the space that this user may still write where a folder is. known is
// false if it cannot be read.
func FreeBytes(dir string) (free uint64, known bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true //nolint:gosec // no size is negative; the type depends on the system
}
