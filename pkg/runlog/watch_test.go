package runlog_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// deaf is a log whose feed brings nothing but interruptions.
type deaf struct {
	mu        sync.Mutex
	entries   entries
	newest    runlog.Entry
	interrupt func(*runlog.Entry)
}

func (d *deaf) View(context.Context, runlog.Run, uint64) (runlog.View, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return runlog.View{Newest: d.newest}, nil
}

func (d *deaf) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries.Read(ctx, run, sequence)
}

func (d *deaf) Newer(context.Context, runlog.Run, uint64) (bool, error) { return false, nil }

func (d *deaf) Subscribe(_ context.Context, _ runlog.Run, handle func(*runlog.Entry)) (func(), error) {
	d.interrupt = handle
	return func() {}, nil
}

func (d *deaf) store(sequence, version uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest = runlog.Entry{
		Header: runlog.Header{Version: version}, Sequence: sequence,
		Record: &harnessv1.Record{Version: version, PrevSequence: d.newest.Sequence, Writer: &harnessv1.Writer{}},
	}
	d.entries[sequence] = d.newest
}

// TestRecordsThatTheFeedLost are handled within two seconds after an interruption, and after another path
// has brought them; otherwise after the silence.
func TestRecordsThatTheFeedLost(t *testing.T) {
	for name, c := range map[string]struct {
		interrupted, hinted bool
		within              time.Duration
	}{
		"after an interruption":  {true, false, 2 * time.Second},
		"known by another path":  {false, true, 2 * time.Second},
		"without either of them": {false, false, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &deaf{entries: entries{}}
				log.store(1, 1)
				hints, known, ended := make(chan struct{}, 1), uint64(0), errors.New("the end")
				handled := make(chan error, 1)
				w := runlog.Watcher{Hints: hints, Known: func() uint64 { return known }, Handle: func(e runlog.Entry) error {
					if e.Header.Version == 2 {
						return ended
					}
					return nil
				}}
				go func() { handled <- w.Watch(t.Context(), log, runlog.Run{Namespace: "default", ID: "r"}) }()
				synctest.Wait()
				if c.interrupted {
					log.interrupt(nil)
				}
				synctest.Wait() // the read after the interruption does not have the record
				log.store(2, 2)
				if c.hinted {
					known = 2
					hints <- struct{}{}
				}
				stored := time.Now()
				if err := <-handled; !errors.Is(err, ended) {
					t.Fatal(err)
				}
				if late := time.Since(stored); late > c.within {
					t.Errorf("handled after %v, want at most %v", late, c.within)
				}
			})
		})
	}
}
