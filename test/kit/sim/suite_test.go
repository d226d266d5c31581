package sim_test

import (
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// TestBusIsARunLog runs the suite of all run logs on the simulated bus, on one
// server and on three, in a few orders of concurrent interactions.
func TestBusIsARunLog(t *testing.T) {
	for seed := range uint64(6) {
		cfg := sim.Config{Executors: workflow.Default(), Seed: seed, Replicated: seed%2 == 1}
		t.Run(fmt.Sprintf("seed %d, replicated %v", seed, cfg.Replicated), func(t *testing.T) {
			t.Parallel()
			runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) { sim.WithLog(t, cfg, test) })
		})
	}
}
