package servertest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/test/kit/processtest"
)

// serveHTTP serves streamable HTTP at an address, which it prints.
func serveHTTP(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: Handler(os.Getenv), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

// Process is a server over streamable HTTP in a process.
type Process struct{ *processtest.Process }

// Start starts this test binary as a server over streamable HTTP with further variables. It is
// killed at the end of the test.
func Start(t testing.TB, env ...string) Process {
	t.Helper()
	return Process{processtest.Start(t, func(address string) []string { return append(slices.Clone(env), Enabled+"=1", Listen+"="+address) })}
}

// URL returns the address of the server.
func (p Process) URL() string { return "http://" + p.Address }
