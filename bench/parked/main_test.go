package parked

import (
	"flag"

	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
)

var (
	bin         meshtest.Binaries
	collections = flag.Int("collections", 2, "collections of garbage that are awaited in every process that is measured")

	runs    = flag.Int("runs", 500, "parked runs of the benchmark")
	parents = flag.Int("parents", 20, "parents of the benchmark of trees")
	rest    = flag.Duration("rest", 0, "how long everything is left alone after a start, before it is measured")
)
