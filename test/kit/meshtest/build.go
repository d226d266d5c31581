package meshtest

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

// Binaries are the programs of a mesh.
type Binaries struct {
	// Harness is built with failpoints.
	Harness string
	// NATS is the server version that the module requires.
	NATS string
}

// Build builds both programs, or returns those that are built already.
func Build() (b Binaries, err error) {
	var other sync.WaitGroup
	var natsErr error
	other.Go(func() { b.NATS, natsErr = program.NATS() })
	harness, err := program.Harness("failpoint")
	other.Wait()
	b.Harness = harness
	return b, errors.Join(err, natsErr)
}

// Run builds both programs and runs the tests of a package. It returns their exit code. dir, if not nil, is
// a folder for the time of the tests.
func Run(m *testing.M, b *Binaries, dir *string) int {
	var err error
	if *b, err = Build(); err == nil && dir != nil {
		*dir, err = os.MkdirTemp("", "harness-mesh")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if dir != nil {
		defer func() { _ = os.RemoveAll(*dir) }()
	}
	return m.Run()
}
