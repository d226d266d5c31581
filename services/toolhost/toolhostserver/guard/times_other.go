//go:build !linux

package guard

import "io/fs"

// keepsTimes returns false: every folder is read at each search.
func keepsTimes(string) bool { return false }

// changed returns the time of the last change of a file.
func changed(info fs.FileInfo) int64 { return info.ModTime().UnixNano() }
