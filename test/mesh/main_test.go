// Package mesh tests a deployed mesh: one process per role, separate NATS servers, and
// every way in which one of them can fail.
//
//	go test ./test/mesh                       # what CI runs
//	go test ./test/mesh -rounds 20 -timeout 1h   # every kill point 20 times
package mesh

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var (
	bin     meshtest.Binaries
	scripts string // folder of the scenarios' scripts
	rounds  = flag.Int("rounds", 2, "kills at each failpoint")
	seed    = flag.Uint64("seed", 1, "of the random moments")
)

func TestMain(m *testing.M) {
	code := func() int {
		dir, err := os.MkdirTemp("", "harness-mesh")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(dir) }()
		scripts = dir
		if bin, err = meshtest.Build("../..", dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		flag.Parse()
		// These tests mostly wait for takeovers.
		if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
			if err := flag.Set("test.parallel", "6"); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		return m.Run()
	}()
	os.Exit(code)
}
