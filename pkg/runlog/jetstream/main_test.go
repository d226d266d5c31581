package jetstream

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/runlogtest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	disktest.Enter()
	goleak.VerifyTestMain(m)
}

// takeover is the takeover time in the suite, which waits for redeliveries.
const takeover = 2 * time.Second

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
	t.Parallel()
	suite(t, Config{}, Layout{Takeover: takeover})
}

// TestSystemLogOfPartitions runs the suite with three partitions.
func TestSystemLogOfPartitions(t *testing.T) {
	t.Parallel()
	suite(t, Config{}, Layout{Partitions: 3, Takeover: takeover})
}

// TestLogUncached runs the suite without a cache, so that every record comes from the
// server.
func TestLogUncached(t *testing.T) {
	t.Parallel()
	suite(t, Config{CacheBytes: 1}, Layout{Takeover: takeover})
}

func suite(t *testing.T, cfg Config, layout Layout) {
	t.Helper()
	runlogtest.Suite(t, func(t *testing.T, test func(*testing.T, runlog.Log)) {
		test(t, open(t, start(t, EmbeddedConfig{}), cfg, layout))
	})
}
