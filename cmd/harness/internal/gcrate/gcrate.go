// Package gcrate sets the rate of garbage collection and the memory limit for the whole
// program, as early as possible: main imports it, and packages are initialised in the
// order of their import paths. Most packages that allocate much at the start are
// initialised after this one, without a collection.
//
// The limit is that of the container, so that the rate cannot make a process outgrow it.
// A process without a container limit has none. GOGC and GOMEMLIMIT override both.
package gcrate

import (
	"os"
	"runtime/debug"
)

// percent lets garbage grow to a few times the heap before it is collected:
// turns allocate much and keep little. Collecting at the default rate takes
// about a tenth of a turn's time (make bench, with GOGC=100 and without).
const percent = 400

// reservePercent is the share of the container's memory that the Go runtime does not
// get: memory of the kernel for sockets and pages, pages of the program file, and the
// time between an allocation and the collection that makes room for it.
const reservePercent = 10

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if limit, ok := containerLimit(os.DirFS("/")); ok {
		debug.SetMemoryLimit(goLimit(limit))
	}
}

// goLimit returns the memory limit of the Go runtime in a container of limit bytes.
func goLimit(limit int64) int64 { return limit - limit/100*reservePercent }
