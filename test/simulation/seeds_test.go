package simulation

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

var (
	oneSeed  = flag.Int64("seed", -1, "run this seed alone")
	seeds    = flag.Int("seeds", 0, "how many seeds TestSeeds and TestSystemSeeds run; 0: 100 and 1,000")
	from     = flag.Uint64("from", 0, "the first of them")
	repeated = flag.Int("repeated", 10, "how many seeds TestReproduces runs twice")
	whole    = flag.Bool("trace", false, "print the whole trace of -seed")
	progress = flag.Bool("progress", false, "say on stderr how far TestSeeds is")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // worlds are small and short-lived: rare collections save a tenth of the time
	os.Exit(m.Run())
}

// shape returns the world of a seed.
func shape(seed uint64) (sim.Config, mesh) {
	cfg := sim.Config{Seed: seed, Executors: executors}
	switch seed % 5 {
	case 0:
		cfg.Rates = sim.Crashes()
	case 1:
		cfg.Rates, cfg.Replicated = sim.Lag(), true
	case 2:
		cfg.Rates = sim.Everything()
	case 3:
		cfg.Rates, cfg.Replicated = sim.Everything(), true
	case 4:
		cfg.Rates, cfg.Replicated = sim.Hangs(), seed%2 == 0
	}
	m := mesh{runs: 2 + int(seed/5%3), summaries: seed/5%4 == 3, trees: seed/5%4 == 1, judged: seed/5%4 == 2}
	if m.judged {
		cfg.Check = append(cfg.Check, sameVerdicts())
	}
	if m.trees {
		m.runs = 1 + int(seed/5%2)
	}
	return cfg, m
}

func again(seed uint64) string {
	return fmt.Sprintf("go test ./test/simulation -run TestSeeds -seed %d -trace", seed)
}

// TestSeeds checks every invariant in every seed.
func TestSeeds(t *testing.T) {
	if *oneSeed >= 0 {
		runOne(t, uint64(*oneSeed))
		return
	}
	many := 100
	if testing.Short() {
		many = 20
	}
	runSeeds(t, cmp.Or(*seeds, many))
}

// TestSystemSeeds is TestSeeds with ten times as many seeds.
func TestSystemSeeds(t *testing.T) { runSeeds(t, cmp.Or(*seeds, 1000)) }

// runSeeds runs that many seeds, from -from on.
func runSeeds(t *testing.T, many int) {
	t.Helper()
	var done, steps, records atomic.Int64
	stop := make(chan struct{})
	defer close(stop)
	if *progress {
		go report(&done, many, stop)
	}
	t.Run("shards", func(t *testing.T) {
		shards := runtime.GOMAXPROCS(0)
		for shard := range shards {
			t.Run(fmt.Sprint(shard), func(t *testing.T) {
				t.Parallel()
				for n := shard; n < many; n += shards {
					cfg, m := shape(*from + uint64(n))
					r := sim.Try(t, cfg, m.start)
					done.Add(1)
					steps.Add(int64(r.Steps))
					records.Add(int64(r.Records))
					if r.Violation != nil {
						t.Error(r.Failure(60, again(r.Seed)))
					}
				}
			})
		}
	})
	t.Logf("%d seeds, %d interactions, %d records", done.Load(), steps.Load(), records.Load())
}

// runOne runs one seed and logs its result.
func runOne(t *testing.T, seed uint64) {
	cfg, m := shape(seed)
	r := sim.Try(t, cfg, m.start)
	if *whole {
		for _, line := range r.Trace(0) {
			t.Log(line)
		}
	}
	t.Logf("%d interactions, %d records, %v, hash %016x", r.Steps, r.Records, r.Time, r.Hash)
	if r.Violation != nil {
		t.Fatal(r.Failure(60, again(seed)))
	}
}

// report prints the progress to stderr every ten seconds.
func report(done *atomic.Int64, many int, stop <-chan struct{}) {
	began := time.Now()
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			fmt.Fprintf(os.Stderr, "%d of %d seeds, %v, heap %d MiB\n", done.Load(), many, time.Since(began).Round(time.Second), memory.HeapAlloc>>20)
		}
	}
}
