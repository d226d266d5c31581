package mcp

import (
	"flag"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/servicetest"
)

var bin meshtest.Binaries

func TestMain(m *testing.M) {
	servertest.Enter()
	servicetest.Enter()
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to build for
	}
	os.Exit(meshtest.Run(m, &bin, nil))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

func slowest(all []time.Duration) time.Duration { return slices.Max(all) }

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
