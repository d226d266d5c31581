package jetstream

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
)

func TestMain(m *testing.M) {
	disktest.Enter()
	goleak.VerifyTestMain(m)
}

// start starts a server that stops with the test.
func start(t testing.TB, cfg EmbeddedConfig) *EmbeddedServer {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	e, err := StartEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	return e
}

// open opens a log that is closed with the test.
func open(t testing.TB, e *EmbeddedServer, cfg Config, layout Layout) *Log {
	t.Helper()
	l, err := e.Open(context.Background(), cfg, layout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestLog(t *testing.T) {
	for name, layout := range map[string]Layout{"1 partition": {Takeover: runlog.MinTakeover}, "3 partitions": {Partitions: 3, Takeover: runlog.MinTakeover}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
				test(t, open(t, start(t, EmbeddedConfig{}), Config{}, layout))
			})
		})
	}
}

// TestLogUncached runs the suite without a cache, so that every record comes from the
// server.
func TestLogUncached(t *testing.T) {
	t.Parallel()
	runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
		test(t, open(t, start(t, EmbeddedConfig{}), Config{CacheBytes: 1}, Layout{}))
	})
}
