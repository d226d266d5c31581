//go:build shifted

package mesh

import (
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// TestSystemClockOfNATSGoesBack: the clock of NATS is an hour ahead while a worker gets a step, and is right again when the
// worker dies. Another worker continues the step, as after every death.
func TestSystemClockOfNATSGoesBack(t *testing.T) {
	t.Parallel()
	shifted, err := program.ShiftedNATS()
	if err != nil {
		t.Fatal(err)
	}
	m := meshtest.Start(t, meshtest.Binaries{Harness: bin.Harness, NATS: shifted}, meshtest.Config{Takeover: time.Second, Workers: 2})
	m.Bus.SetClock(0, time.Hour)
	run := startSlowModel(t, m, 8*time.Second)
	w := worker(t, m, run, 1)
	m.Bus.SetClock(0, 0)
	w.Kill()
	begin := time.Now()
	worker(t, m, run, 2)
	t.Logf("the next worker has the step after %v", time.Since(begin))
	if step := rest(t, m, run); step.GetResult().GetStatus() != harnessv1.RunStatus_RUN_STATUS_DONE {
		t.Errorf("the run is at %v", step)
	}
}
