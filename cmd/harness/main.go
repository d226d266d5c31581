// Command harness is harnessmesh in one binary: it starts, follows and steers
// runs, and serves every role of the mesh.
package main

import (
	"os"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/cli"
	_ "github.com/harnessmesh/harnessmesh/cmd/harness/internal/gcrate" // before the packages that allocate
)

// version is set by the linker in releases. A program that `go install` has built has the
// version of its module.
var version = "dev"

func main() { os.Exit(cli.Main(version)) }
