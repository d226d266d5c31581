package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction/compactionserver"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
	"github.com/harnessmesh/harnessmesh/services/inference/inferenceserver"
	"github.com/harnessmesh/harnessmesh/services/repair/repairserver"
	"github.com/harnessmesh/harnessmesh/services/stopdecision/stopdecisionserver"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// mesh is a whole mesh in a world: two processes for each role, two tool hosts and
// clients that drive a few runs. log decorates the run log of each process, and hosts the
// tool hosts of the turn workers; nil leaves them unchanged. With summaries, it has inference workers, and runs with small windows.
// With trees, the runs delegate to sub-agents. With judged, their work is judged.
type mesh struct {
	log   func(role string, p *sim.Process, log runlog.Log) runlog.Log
	hosts func(harnessv1.ToolHostServiceClient) harnessv1.ToolHostServiceClient
	// spec changes the spec of each run last; stops has clients interrupt runs time and again.
	spec      func(spec *harnessv1.RunSpec, random *rand.Rand)
	stops     bool
	runs      int
	summaries bool
	trees     bool
	judged    bool
}

func available(context.Context) bool { return true }

func (m mesh) start(w *sim.World) {
	logOf := func(role string, p *sim.Process) runlog.Log {
		log := p.Log()
		if m.log != nil { // first: some take the log of the process itself
			log = m.log(role, p, log)
		}
		if m.trees && role == workflow.Repair {
			log = &lateStartLog{Log: log, ctx: p.Context(), random: w.Random(p.Instance + " starts")}
		}
		return log
	}
	config := func(p *sim.Process, log runlog.Log) executor.Config {
		c := p.Executor()
		c.Log = log
		return c
	}
	w.ToolHost("host-0")
	w.ToolHost("host-1")
	for i := range 2 {
		start := func(role string, f func(ctx context.Context, p *sim.Process, log runlog.Log) error) {
			w.Start(fmt.Sprintf("%s-%d", role, i), func(ctx context.Context, p *sim.Process) error {
				return f(ctx, p, logOf(role, p))
			})
		}
		start("repair", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
			c := repairserver.Config{Log: log, ToolHost: p.ToolHosts(), Logger: slog.New(slog.DiscardHandler), KeepDeleted: 20 * time.Second}
			if m.judged {
				c.Jobs, c.Inference, c.Profiles = log, available, profiles(log)
			}
			return repairserver.New(c).Run(ctx, config(p, log))
		})
		start("compaction", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
			c := compactionserver.Config{Log: log}
			if m.summaries {
				c.Jobs, c.Inference = log, available
			}
			return compactionserver.New(c).Run(ctx, config(p, log))
		})
		if m.summaries || m.judged {
			start("inference", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
				return inferenceserver.New(inferenceserver.Config{Log: log, Open: p.Model(), Random: func() float64 { return 0.5 }}).Run(ctx, config(p, log))
			})
		}
		start("turn", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
			hosts := p.ToolHosts()
			if m.hosts != nil {
				hosts = m.hosts(hosts)
			}
			s := turnserver.New(turnserver.Config{
				Log: log, ToolHost: hosts, Open: p.Model(), Random: func() float64 { return 0.5 },
			})
			return s.Run(ctx, config(p, log))
		})
		start("stopdecision", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
			c := stopdecisionserver.Config{Log: log, ToolHost: p.ToolHosts()}
			if m.judged {
				c.Jobs, c.Inference, c.Profiles = log, available, profiles(log)
			}
			return stopdecisionserver.New(c).Run(ctx, config(p, log))
		})
		start("gateway", func(ctx context.Context, p *sim.Process, log runlog.Log) error {
			c := gatewayserver.Config{Log: log, Instance: p.Instance, Random: p.Numbers()}
			if m.judged {
				c.Profiles = profiles(log)
			}
			s := gatewayserver.New(c)
			s.Start(ctx)
			p.Serve(s)
			<-ctx.Done()
			s.Close()
			return nil
		})
	}
	clients := w.Clients("gateway-0", "gateway-1")
	clients.Stops = m.stops
	for i := range m.runs {
		name := fmt.Sprintf("r%d", i)
		random := w.Random(name + " spec")
		turns, tries := uint32(4+random.IntN(8)), uint32(2)
		spec := &harnessv1.RunSpec{
			Goal:      content.Inline(sim.Goal(name, 1+random.IntN(4))),
			Agent:     &harnessv1.AgentSpec{Model: "sim:model"},
			Workspace: "/w",
			Config: &harnessv1.LoopConfig{
				Stop:  &harnessv1.StopConfig{MaxTurns: &turns},
				Model: &harnessv1.ModelConfig{MaxTries: &tries},
			},
		}
		if random.IntN(5) == 0 {
			calls := uint32(3)
			spec.Config.Budgets = &harnessv1.Budgets{ToolCalls: &calls}
		}
		if random.IntN(4) == 0 {
			yolo := true
			spec.Config.Tools = &harnessv1.ToolConfig{Yolo: &yolo}
		}
		if random.IntN(2) == 0 {
			spec.ClientTools = sim.ClientTools()
		}
		if random.IntN(3) == 0 {
			if spec.Config.Tools == nil {
				spec.Config.Tools = &harnessv1.ToolConfig{}
			}
			longest := [...]int{5, 60}[random.IntN(2)]
			spec.Config.Tools.ApprovalTimeout = durationpb.New(time.Duration(1+random.IntN(longest)) * time.Second)
			spec.Config.Tools.AnswerTimeout = durationpb.New(time.Duration(1+random.IntN(longest)) * time.Second)
		}
		if m.summaries && random.IntN(4) > 0 {
			fill(name, spec, random)
		}
		if m.trees {
			clients.Trees = true
			delegate(name, spec, random)
		}
		if m.judged {
			withQuality(spec, random)
		}
		if m.spec != nil {
			m.spec(spec, random)
		}
		clients.Drive(name, spec)
	}
}

// fill gives a run a small window and long responses, so that it needs summaries.
func fill(name string, spec *harnessv1.RunSpec, random *rand.Rand) {
	turns := uint32(14)
	spec.Goal, spec.Config.Stop.MaxTurns = content.Inline(sim.LongGoal(name, 10, 150+random.IntN(300))), &turns
	c := &harnessv1.ContextConfig{
		MaxInputTokens: proto.Uint32(3_000), SoftThreshold: proto.Float64(0.75), BlockingThreshold: proto.Float64(0.85), Target: proto.Float64(0.6),
		RecentMessages: proto.Uint32(3), RecentShare: proto.Float64(0.1), SummaryWait: durationpb.New(time.Duration(5+random.IntN(60)) * time.Second),
	}
	if random.IntN(3) > 0 {
		c.Strategies = []harnessv1.CompactionAction{harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE}
	}
	spec.Config.Context = c
}

// executors of the mesh.
var executors = workflow.Default()
