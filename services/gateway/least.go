package gateway

import (
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Starter is the kind of caller that starts a run, as far as its confinement depends on it.
type Starter uint8

// Starters.
const (
	// Person has no token of the tokens file: a local person, the holder of the key, or a caller of
	// whom nothing is required.
	Person Starter = iota
	// BoundedToken has folders (roots=), or lacks the right to approve. Package access refuses its
	// requests that leave the sandbox.
	BoundedToken
	// FreeToken is every other token. It leaves the sandbox by naming it in the request.
	FreeToken
)

// Least returns the level below which nothing of a run may run, by its starter and by the
// level that the operator of the gateway demands of runs that are started with a token; Auto: the gateway
// demands nothing.
func Least(s Starter, operator harnessv1.SandboxLevel, spec *harnessv1.RunSpec) harnessv1.SandboxLevel {
	switch {
	case s == Person, operator <= sandbox.Off:
		return sandbox.Auto
	case s == FreeToken && sandbox.Leaves(spec) != "":
		return sandbox.Auto
	}
	return operator // of an unknown starter too
}

// WithLeast returns a request's spec with a least level, which replaces any other; the same one if
// it has it.
func WithLeast(spec *harnessv1.RunSpec, least harnessv1.SandboxLevel) *harnessv1.RunSpec {
	if spec.GetConfig().GetSandbox().GetLeast() == least {
		return spec
	}
	spec = proto.CloneOf(spec)
	if spec.Config == nil {
		spec.Config = &harnessv1.LoopConfig{}
	}
	if spec.Config.Sandbox == nil {
		spec.Config.Sandbox = &harnessv1.SandboxConfig{}
	}
	spec.Config.Sandbox.Least = least
	return spec
}

// removeLeast removes the least level from a spec, and the messages that are empty without it: whether
// WithLeast has made them is not known.
func removeLeast(spec *harnessv1.RunSpec) {
	c := spec.GetConfig()
	if c == nil {
		return
	}
	if c.GetSandbox() != nil {
		c.Sandbox.Least = sandbox.Auto
		if proto.Size(c.Sandbox) == 0 {
			c.Sandbox = nil
		}
	}
	if proto.Size(c) == 0 {
		spec.Config = nil
	}
}
