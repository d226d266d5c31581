package parked

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var (
	bin         meshtest.Binaries
	collections = flag.Int("collections", 2, "collections of garbage that are awaited in every process that is measured")

	runs = flag.Int("runs", 500, "parked runs of the benchmark")
	rest = flag.Duration("rest", 0, "how long everything is left alone after a start, before it is measured")
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := func() int {
		if testing.Short() && flag.Lookup("test.bench").Value.String() == "" {
			return m.Run() // nothing to build for
		}
		dir, err := os.MkdirTemp("", "harness-parked")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		if bin, err = meshtest.Build("../..", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}
