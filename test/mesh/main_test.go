// Package mesh tests a deployed mesh: one process per role, separate NATS servers, and
// every way in which one of them can fail.
//
//	go test ./test/mesh                       # what CI runs
//	go test ./test/mesh -rounds 20 -timeout 1h   # every kill point 20 times
//	go test ./test/mesh -run TestSystemTailIsCut -cuts 200 -timeout 2h
//	go test ./test/mesh -run TestSystemServersSurviveKills -serverkills 100 -timeout 1h -v
package mesh

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/disktest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/servicetest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

var (
	bin         meshtest.Binaries
	scripts     string // folder of the scenarios' scripts
	rounds      = flag.Int("rounds", 1, "kills at each failpoint")
	cuts        = flag.Int("cuts", 4, "times that the bus loses its newest records")
	serverKills = flag.Int("serverkills", 8, "deaths during calls of servers")
	seed        = flag.Uint64("seed", 1, "of the random moments")
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	disktest.Enter()
	servertest.Enter()
	servicetest.Enter()
	flag.Parse()
	// These tests mostly wait for takeovers. Each is a mesh of eight processes: with more at the same time a slow
	// machine misses the times that they are about.
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := flag.Set("test.parallel", "3"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(meshtest.Run(m, &bin, &scripts))
}
