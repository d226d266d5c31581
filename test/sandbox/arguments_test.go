//go:build linux

package sandbox

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/confinement"
)

// bubblewrapArguments returns the arguments of bubblewrap, for a user and for root.
func bubblewrapArguments(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, root := range []bool{false, true} {
		m := confinement.Machine{ABI: 7, Bwrap: "/usr/bin/bwrap", Root: root, Home: "/home/me", Environ: []string{"PATH=/usr/bin"}}
		r := confinement.Request{Workspace: "/w", Home: "/data/sandbox/r/home", Temporary: "/data/sandbox/r/tmp", Hidden: "/data"}
		all = append(all, confinement.Build(m, sandbox.Full, r).Plan.Bwrap...)
	}
	return all
}
