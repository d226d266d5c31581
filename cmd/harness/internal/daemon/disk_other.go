//go:build !linux && !darwin

package daemon

// FreeBytes returns that the space is unknown.
func FreeBytes(string) (free uint64, known bool) { return 0, false }
