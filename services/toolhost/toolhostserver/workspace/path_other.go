//go:build !linux

package workspace

import (
	"os"
	"path/filepath"
)

// pathOf returns where a file is that was opened by an absolute path, without links; empty
// for other files.
func pathOf(f *os.File) string {
	if !filepath.IsAbs(f.Name()) {
		return ""
	}
	path, err := filepath.EvalSymlinks(f.Name())
	if err != nil {
		return ""
	}
	return path
}
