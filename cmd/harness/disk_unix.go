//go:build linux || darwin

package main

import "golang.org/x/sys/unix"

// freeBytes returns the space that this user may still write where a folder is; 0 if it is
// unknown.
func freeBytes(dir string) uint64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0
	}
	return s.Bavail * uint64(s.Bsize) //nolint:gosec // no size is negative; the type depends on the system
}
