package gateway_test

import (
	"fmt"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// TestLeastIsTotal has every starter, every setting of the operator, and every way to ask.
func TestLeastIsTotal(t *testing.T) {
	const auto, off, kernel, full = sandbox.Auto, sandbox.Off, sandbox.Kernel, sandbox.Full
	boxed := func(b *harnessv1.SandboxConfig) *harnessv1.RunSpec {
		return &harnessv1.RunSpec{Config: &harnessv1.LoopConfig{Sandbox: b}}
	}
	stays := map[string]*harnessv1.RunSpec{
		"nothing": {}, "auto": boxed(&harnessv1.SandboxConfig{}), "kernel": boxed(&harnessv1.SandboxConfig{Level: kernel}), "full": boxed(&harnessv1.SandboxConfig{Level: full}),
		"a hook": {Agent: &harnessv1.AgentSpec{Hooks: []*harnessv1.Hook{{}}}},
	}
	leaves := map[string]*harnessv1.RunSpec{
		"off": boxed(&harnessv1.SandboxConfig{Level: off}), "unconfined": boxed(&harnessv1.SandboxConfig{Unconfined: true}),
		"kernel, unconfined":    boxed(&harnessv1.SandboxConfig{Level: kernel, Unconfined: true}),
		"a hook that leaves it": {Agent: &harnessv1.AgentSpec{Hooks: []*harnessv1.Hook{{}, {Unconfined: true}}}},
	}
	for _, row := range []struct {
		starter          gateway.Starter
		operator         harnessv1.SandboxLevel
		staying, leaving harnessv1.SandboxLevel
	}{
		{gateway.Person, auto, auto, auto}, {gateway.Person, off, auto, auto}, {gateway.Person, kernel, auto, auto}, {gateway.Person, full, auto, auto},
		{gateway.BoundedToken, auto, auto, auto}, {gateway.BoundedToken, off, auto, auto}, {gateway.BoundedToken, kernel, kernel, kernel}, {gateway.BoundedToken, full, full, full},
		{gateway.FreeToken, auto, auto, auto}, {gateway.FreeToken, off, auto, auto}, {gateway.FreeToken, kernel, kernel, auto}, {gateway.FreeToken, full, full, auto},
		{gateway.FreeToken + 1, kernel, kernel, kernel},
	} {
		for want, specs := range map[harnessv1.SandboxLevel]map[string]*harnessv1.RunSpec{row.staying: stays, row.leaving: leaves} {
			if row.staying == row.leaving {
				specs = stays
			}
			for name, spec := range specs {
				if got := gateway.Least(row.starter, row.operator, spec); got != want {
					t.Errorf("starter %d, operator %s, %s: got %s, want %s", row.starter, sandbox.Name(row.operator), name, sandbox.Name(got), sandbox.Name(want))
				}
			}
		}
		for name, spec := range leaves {
			if got := gateway.Least(row.starter, row.operator, spec); got != row.leaving {
				t.Errorf("starter %d, operator %s, %s: got %s, want %s", row.starter, sandbox.Name(row.operator), name, sandbox.Name(got), sandbox.Name(row.leaving))
			}
		}
	}
}

// TestLeastIsNoPartOfARequest: a request that is sent again is for the same run, also if the
// operator has changed the least level meanwhile.
func TestLeastIsNoPartOfARequest(t *testing.T) {
	run := runlog.Run{Namespace: "n", ID: "r"}
	for i, spec := range []*harnessv1.RunSpec{
		{}, {Config: &harnessv1.LoopConfig{}}, {Config: &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{}}},
		{Config: &harnessv1.LoopConfig{Sandbox: &harnessv1.SandboxConfig{Level: sandbox.Full}}},
	} {
		before := fmt.Sprint(spec)
		least := gateway.WithLeast(spec, sandbox.Kernel)
		if got := least.GetConfig().GetSandbox(); got.GetLeast() != sandbox.Kernel || got.GetLevel() != spec.GetConfig().GetSandbox().GetLevel() {
			t.Errorf("%d: got %v", i, got)
		}
		if !gateway.Same(run, spec, least) || !gateway.Same(run, gateway.WithLeast(spec, sandbox.Full), least) {
			t.Errorf("%d: another request", i)
		}
		if fmt.Sprint(spec) != before {
			t.Errorf("%d: the request was changed", i)
		}
	}
}
