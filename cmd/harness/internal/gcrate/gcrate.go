// Package gcrate sets the rate of garbage collection for the whole program, as
// early as possible: main imports it, and packages are initialised in the order
// of their import paths. Most packages that allocate much at the start are
// initialised after this one, without a collection.
package gcrate

import (
	"os"
	"runtime/debug"
)

// percent lets garbage grow to a few times the heap before it is collected:
// turns allocate much and keep little. Collecting at the default rate takes
// about a tenth of a turn's time (make bench, with GOGC=100 and without).
const percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
