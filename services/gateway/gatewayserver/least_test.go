package gatewayserver_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/metadata"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// TestLeastOfARunIsStored in its first record, and the tool host knows it at the start. The headers
// are those that the guard sets. A request that is sent again is for the same run.
func TestLeastOfARunIsStored(t *testing.T) {
	var asked harnessv1.SandboxLevel
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Workspaces = func(_ context.Context, r *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
			asked = r.GetSandbox().GetLeast()
			return &harnessv1.DescribeWorkspaceResponse{}, nil
		}
	})
	for run, c := range map[string]struct {
		token string // header of the guard; empty: the caller has none
		level harnessv1.SandboxLevel
		want  harnessv1.SandboxLevel
	}{
		"key":         {"", sandbox.Auto, sandbox.Auto},
		"key-off":     {"", sandbox.Off, sandbox.Auto},
		"bounded":     {"bounded", sandbox.Auto, sandbox.Kernel},
		"bounded-off": {"bounded", sandbox.Off, sandbox.Kernel},
		"unknown":     {"x", sandbox.Off, sandbox.Kernel},
		"free":        {"leaves", sandbox.Full, sandbox.Kernel},
		"free-off":    {"leaves", sandbox.Off, sandbox.Auto},
	} {
		ctx := b.ctx
		if c.token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "harness-token", c.token)
		}
		r := &harnessv1.StartRunRequest{Namespace: b.namespace, RunId: run, Spec: b.spec("goal")}
		if r.Spec.Config == nil {
			r.Spec.Config = &harnessv1.LoopConfig{}
		}
		r.Spec.Config.Sandbox = &harnessv1.SandboxConfig{Level: c.level}
		for _, existed := range []bool{false, true} {
			started, err := b.client.StartRun(ctx, r)
			b.must(err)
			if started.GetExisted() != existed {
				t.Errorf("%s: existed is %v", run, started.GetExisted())
			}
		}
		name := runlog.Run{Namespace: b.namespace, ID: run}
		sequence, err := b.log.Newest(b.ctx, name)
		b.must(err)
		first, err := b.log.Read(b.ctx, name, sequence)
		b.must(err)
		if got := first.Record.GetStep().GetRepairTrigger().GetSpec().GetConfig().GetSandbox().GetLeast(); got != c.want || asked != c.want {
			t.Errorf("%s: stored %s, the tool host received %s, want %s", run, sandbox.Name(got), sandbox.Name(asked), sandbox.Name(c.want))
		}
	}
}
