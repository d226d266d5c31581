package tree

import (
	"flag"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var bin meshtest.Binaries

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.bench").Value.String() == "" {
		os.Exit(m.Run()) // nothing to build for
	}
	os.Exit(meshtest.Run(m, &bin, nil))
}
