//go:build !linux

package trust

import (
	"io/fs"
	"time"
)

// lastChange returns the present: the time of the last change is not known.
func lastChange(fs.FileInfo) time.Time { return time.Now() }
