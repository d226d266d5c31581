package executor

import (
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// verdict is what becomes of a step once its executor and its commit have ended.
type verdict int

const (
	committed   verdict = iota + 1 // a newer Step is stored: acknowledge
	fencedOff                      // another worker has the step: neither acknowledge nor put back
	stopping                       // this worker stops: put back for an immediate redelivery
	unavailable                    // something could not be reached: put back for later
	failed                         // the executor failed: record that and count it
)

// verdictOf returns the verdict on the error of an execution or a commit. stops
// reports whether the worker is being stopped. A fence counts first: a worker that
// has lost the step must not put it back, nor one whose step the bus has lost.
func verdictOf(err error, stops bool) verdict {
	switch {
	case err == nil:
		return committed
	case errors.Is(err, errLost), errors.Is(err, runlog.ErrFenced), errors.Is(err, runlog.ErrLost):
		return fencedOff
	case stops, errors.Is(err, errStopping):
		return stopping
	case errors.Is(err, runlog.ErrUnavailable), errors.Is(err, errRetry):
		return unavailable
	}
	return failed
}

// temporary reports whether a record that cannot be read now may be readable later,
// or to another worker.
func temporary(err error) bool {
	return errors.Is(err, runlog.ErrUnavailable) || errors.Is(err, runlog.ErrSchemaTooNew) || errors.Is(err, runlog.ErrNotFound)
}
