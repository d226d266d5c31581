package mesh

import (
	"flag"
	"fmt"
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
	code := func() int {
		if f := flag.Lookup("test.bench"); f.Value.String() == "" {
			return m.Run() // nothing to build for
		}
		dir, err := os.MkdirTemp("", "harness-bench")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		scratch = dir
		if bin, err = meshtest.Build("../..", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}
