package memory

import (
	"flag"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var (
	bin  meshtest.Binaries
	runs = flag.Int("runs", 16, "runs that work at the same time; 4 at most with -short")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*runs = min(*runs, 4)
	}
	if testing.Short() && flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to build for
	}
	os.Exit(meshtest.Run(m, &bin, nil))
}
