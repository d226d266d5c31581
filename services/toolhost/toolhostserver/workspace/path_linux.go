package workspace

import (
	"fmt"
	"os"
)

// pathOf returns where an open file is, without links, also if it was moved.
func pathOf(f *os.File) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return ""
	}
	return path
}
