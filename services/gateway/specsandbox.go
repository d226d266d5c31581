package gateway

import (
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// checkSandbox refuses settings of the sandbox that no host could follow.
func checkSandbox(c *harnessv1.SandboxConfig) error {
	if c.GetLeast() != sandbox.Auto {
		return fault.Invalid("spec.config.sandbox.least", "is set by the gateway: leave it out; level is the level below which nothing runs")
	}
	return fault.In("spec.config.sandbox", sandbox.Validate(c))
}
