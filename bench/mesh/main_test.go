package mesh

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var (
	bin     meshtest.Binaries
	scratch string // ends with the process
	measure = flag.Duration("measure", time.Second, "how long turns are counted, on each side")
	full    = flag.Bool("full", false, "every combination of bus, workers and tools, not only those that CI runs")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to build for
	}
	os.Exit(meshtest.Run(m, &bin, &scratch))
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
