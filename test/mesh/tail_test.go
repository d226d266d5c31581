package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// tailRuns are at work at each cut.
const tailRuns = 4

// TestSystemTailIsCut kills the bus while runs are at work, cuts a random number of records off its
// stream, and starts it again: half of the times with all roles alive, half with new ones. Each
// run that the bus still has continues from its newest record to its end, within a minute of
// two sweeps, and no log has versions out of order. A run that is there is never not found.
func TestSystemTailIsCut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := meshtest.Start(t, bin, meshtest.Config{NATS: meshtest.NATSConfig{Dir: func() string { return dir }}})
	random := rand.New(rand.NewPCG(*seed, 7))
	var removed, lost, continued int
	for n := range *cuts {
		s := appending("cut", 12)
		script, runs := s.file(t), make([]runlog.Run, tailRuns)
		for i := range runs {
			runs[i] = runlog.Run{Namespace: "default", ID: fmt.Sprintf("cut-%d-%d", n, i)}
			_, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.StartRunResponse, error) {
				return m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: runs[i].ID, RequestId: runs[i].ID, Spec: s.spec(script, newWorkspace(t))})
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(time.Duration(random.IntN(1500)) * time.Millisecond) // where they are then is the point
		m.Bus.Kill(0)
		restarted := n%2 == 1
		if restarted {
			for _, role := range meshtest.Roles {
				m.Process(role).Kill()
			}
		}
		newest, err := storetest.CutNewest(dir, "RUNS_0", 1+random.IntN(1<<random.IntN(9))) // 1 to 256, more often few
		if err != nil {
			t.Fatal(err)
		}
		removed += newest
		m.Bus.Restart(0)
		m.Bus.AwaitReady(0)
		if restarted {
			for _, role := range meshtest.Roles {
				m.Start(role)
			}
			for _, role := range meshtest.Roles {
				m.AwaitReady(role)
			}
		}
		for _, run := range runs {
			if !isStored(t, m, run) {
				lost++
				continue
			}
			continued++
			_, err := waittest.Retry(t.Context(), func(ctx context.Context) (*harnessv1.GetRunResponse, error) {
				return m.Client().GetRun(ctx, &harnessv1.GetRunRequest{RunId: run.ID})
			})
			if status.Code(err) == codes.NotFound {
				t.Errorf("cut %d, roles restarted %v: the gateway does not find %s: %v", n, restarted, run, err)
			}
			if err := meshtest.Check(m.Ended(run, 0)); err != nil {
				t.Errorf("cut %d, roles restarted %v: %s: %v", n, restarted, run, err)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("seed %d: %d cuts, %d records removed; %d runs were lost whole, %d continued to their end", *seed, *cuts, removed, lost, continued)
	if removed == 0 || continued == 0 {
		t.Error("nothing was cut, or nothing continued")
	}
}

// isStored reports whether the bus has a run, as a process sees it that knows nothing of before.
func isStored(t *testing.T, m *meshtest.Mesh, run runlog.Run) bool {
	t.Helper()
	fresh, err := jetstream.Open(t.Context(), jetstream.Config{URL: m.Bus.URL(), Wait: waittest.Patience, Name: "fresh"})
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	_, err = fresh.View(t.Context(), run, 0)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}
