package executor

import (
	"errors"
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// TestVerdictIsTotal checks the verdict on each kind of error, alone and wrapped, for
// a worker that runs and for one that stops.
func TestVerdictIsTotal(t *testing.T) {
	for _, c := range []struct {
		err           error
		runs, stopped verdict
	}{
		{nil, committed, committed},
		{errLost, fencedOff, fencedOff},
		{runlog.ErrFenced, fencedOff, fencedOff},
		{fmt.Errorf("%w after %w", runlog.ErrFenced, runlog.ErrUnavailable), fencedOff, fencedOff},
		{runlog.ErrUnavailable, unavailable, stopping},
		{Retry("find the tool host", errors.New("refused")), unavailable, stopping},
		{runlog.ErrTooLarge, failed, stopping},
		{runlog.ErrNotFound, failed, stopping},
		{errors.New("any other error"), failed, stopping},
	} {
		for stops, want := range map[bool]verdict{false: c.runs, true: c.stopped} {
			if got := verdictOf(c.err, stops); got != want {
				t.Errorf("%v, stops %v: got %d, want %d", c.err, stops, got, want)
			}
			if c.err == nil {
				continue
			}
			if got := verdictOf(fmt.Errorf("append: %w", c.err), stops); got != want {
				t.Errorf("%v wrapped, stops %v: got %d, want %d", c.err, stops, got, want)
			}
		}
	}
}
