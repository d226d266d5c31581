// Package waittest waits in tests: for a condition, and for the end of a run across failures of the
// gateway. It needs no bus, so test beds without one do not link it. A wait that exceeds Patience fails
// the test; Watch and Retry end with their context.
package waittest

import (
	"context"
	"testing"
	"time"
)

// Patience bounds every wait. Only a hang reaches it.
const Patience = 90 * time.Second

// Eventually waits until a condition holds.
func Eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for !holds() {
		select {
		case <-pause.C:
		case <-ctx.Done():
			tb.Fatalf("%s: not within %s", what, Patience)
		}
	}
}
