package tree

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// bed is a mesh with a process for each role and one NATS server.
type bed struct {
	b       *testing.B
	m       *meshtest.Mesh
	js      jetstream.JetStream
	scripts int
	runs    int
}

func newBed(b *testing.B) *bed {
	b.Helper()
	bed := &bed{b: b, m: meshtest.Start(b, bin, meshtest.Config{})}
	nc, err := nats.Connect(bed.m.Bus.URL())
	bed.must(err)
	b.Cleanup(nc.Close)
	bed.js, err = jetstream.New(nc)
	bed.must(err)
	return bed
}

func (b *bed) must(err error) {
	b.b.Helper()
	if err != nil {
		b.b.Fatal(err)
	}
}

// bounded returns a context that ends a hang.
func bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waittest.Patience)
}

// script returns a scripted model with a line for each turn.
func (b *bed) script(turns ...string) string {
	b.scripts++
	return "script:" + b.m.Write(fmt.Sprintf("script%d.yaml", b.scripts), "turns:\n  - "+strings.Join(turns, "\n  - ")+"\n")
}

// spec returns the spec of a run whose calls never ask.
func spec(model, workspace string, agents ...*harnessv1.SubAgent) *harnessv1.RunSpec {
	return &harnessv1.RunSpec{
		Goal: content.Inline("Do what the script contains."), Workspace: workspace,
		Agent:  &harnessv1.AgentSpec{Model: model, Agents: agents},
		Config: &harnessv1.LoopConfig{Tools: &harnessv1.ToolConfig{Yolo: proto.Bool(true)}},
	}
}

// helper returns a sub-agent with the name helper.
func helper(model string, agents ...*harnessv1.SubAgent) *harnessv1.SubAgent {
	return &harnessv1.SubAgent{Name: "helper", Description: "Helps.", Instructions: "Help.", Model: model, Agents: agents}
}

// start starts a run and returns its id.
func (b *bed) start(ctx context.Context, s *harnessv1.RunSpec) string {
	b.b.Helper()
	b.runs++
	id := fmt.Sprintf("run%d", b.runs)
	_, err := b.m.Client().StartRun(ctx, &harnessv1.StartRunRequest{RunId: id, Spec: s})
	b.must(err)
	return id
}

// until reads the events of a run up to an event.
func (b *bed) until(stream harnessv1.GatewayService_WatchRunClient, is func(*harnessv1.Event) bool) {
	b.b.Helper()
	for {
		r, err := stream.Recv()
		b.must(err)
		if e := r.GetUpdate().GetEvent(); e != nil && is(e) {
			return
		}
	}
}

// cost is what runs have used: time of processors, and bytes in the stream of the logs.
type cost struct {
	cpu   time.Duration
	bytes uint64
}

func (c cost) plus(o cost) cost  { return cost{c.cpu + o.cpu, c.bytes + o.bytes} }
func (c cost) since(o cost) cost { return cost{c.cpu - o.cpu, c.bytes - o.bytes} }

// cost returns the usage so far. It waits until all steps are acknowledged.
func (b *bed) cost() (c cost) {
	b.b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	waittest.Eventually(b.b, "every step is acknowledged", func() bool {
		stream, err := b.js.Stream(ctx, "RUNS_0")
		b.must(err)
		c.bytes = stream.CachedInfo().State.Bytes
		left := uint64(0)
		list := stream.ListConsumers(ctx)
		for info := range list.Info() {
			if info.Config.Durable != "" {
				left += info.NumPending + uint64(info.NumAckPending)
			}
		}
		b.must(list.Err())
		return left == 0
	})
	pids := []int{b.m.Bus.PID(0)}
	for _, role := range meshtest.Roles {
		pids = append(pids, b.m.Process(role).PID())
	}
	for _, pid := range pids {
		c.cpu += b.processor(pid)
	}
	return c
}

// processor returns the user and system time of a process.
func (b *bed) processor(pid int) (used time.Duration) {
	b.b.Helper()
	const tick = 10 * time.Millisecond // of /proc on every Linux that Go supports
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	b.must(err)
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		b.must(err)
		used += time.Duration(n) * tick
	}
	return used
}
