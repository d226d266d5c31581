package gatewayserver_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

func TestWhatARunIsEntitledTo(t *testing.T) {
	b := newBed(t, func(c *gatewayserver.Config) {
		c.Features = []*harnessv1.Feature{{Name: "short", Config: &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(4)}}}}
	})
	for run, c := range map[string]struct {
		headers []string // as the guard sets them
		request []string
		want    []string
		tier    string
		refused bool
	}{
		"plain":   {},
		"local":   {request: []string{"b", "a", "b"}, want: []string{"a", "b"}},
		"token":   {headers: []string{"harness-caller", "ci", "harness-entitlements", "has_synthesis_swarm", "harness-tier", "gold"}, want: []string{"has_synthesis_swarm"}, tier: "gold"},
		"claimed": {headers: []string{"harness-caller", "ci"}, request: []string{"has_synthesis_swarm"}, refused: true},
	} {
		ctx := metadata.AppendToOutgoingContext(b.ctx, c.headers...)
		_, err := b.client.StartRun(ctx, &harnessv1.StartRunRequest{Namespace: b.namespace, RunId: run, Spec: b.spec("goal"), Entitlements: c.request})
		if c.refused {
			b.refused(err, codes.PermissionDenied, "UNSPECIFIED")
			continue
		}
		b.must(err)
		name := runlog.Run{Namespace: b.namespace, ID: run}
		sequence, err := b.log.Newest(b.ctx, name)
		b.must(err)
		first, err := b.log.Read(b.ctx, name, sequence)
		b.must(err)
		trigger := first.Record.GetStep().GetRepairTrigger()
		if !slices.Equal(trigger.GetEntitlements(), c.want) || trigger.GetTier() != c.tier {
			t.Errorf("%s: %v, %q", run, trigger.GetEntitlements(), trigger.GetTier())
		}
		if !slices.Equal(trigger.GetFeatures(), []string{"short"}) || trigger.GetFeatureConfig().GetStop().GetMaxTurns() != 4 || trigger.GetSpec().GetConfig().GetStop() != nil {
			t.Errorf("%s: %v", run, trigger)
		}
		got, err := b.client.GetRun(b.ctx, &harnessv1.GetRunRequest{Namespace: b.namespace, RunId: run})
		b.must(err)
		list, err := b.client.ListRuns(b.ctx, &harnessv1.ListRunsRequest{Namespace: b.namespace})
		b.must(err)
		if !slices.Equal(got.GetRun().GetFeatures(), trigger.GetFeatures()) || len(list.GetRuns()) == 0 || !slices.Equal(list.GetRuns()[0].GetFeatures(), trigger.GetFeatures()) {
			t.Errorf("%s: GET has %v, the list %v", run, got.GetRun(), list.GetRuns())
		}
	}
}
