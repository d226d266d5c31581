package mesh

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// executors of the loop, in order.
var executors = []string{"repair", "compaction", "turn", "stopdecision"}

// floorName returns the name of the floor's consumer for an executor.
func floorName(executor string) string { return "floor-" + executor }

// provisionFloor adds the floor's consumers to the mesh's bus.
func provisionFloor(m *meshtest.Mesh, replicas int, takeover time.Duration) {
	args := []string{"provision", "--nats", m.Bus.URL(), "--nats-wait", "30s", "--max-bytes", fmt.Sprint(8 << 30),
		"--replicas", fmt.Sprint(max(replicas, 1)), "--takeover", takeover.String()}
	for _, x := range executors {
		args = append(args, "--executor", floorName(x))
	}
	m.Harness(args...)
}

// pattern is a turn as the mesh wrote it, split by writer: the records that each
// executor appends when it has a step.
type pattern [][]*harnessv1.Record

func (p pattern) records() int {
	n := 0
	for _, part := range p {
		n += len(part)
	}
	return n
}

func (p pattern) bytes() int {
	n := 0
	for _, part := range p {
		for _, r := range part {
			n += proto.Size(r)
		}
	}
	return n
}

// patterns returns the complete turns in a log.
func patterns(log []runlog.Entry) []pattern {
	var all []pattern
	var now pattern
	began := false
	for _, e := range log {
		if began {
			writer := e.Record.GetWriter().GetExecutor()
			if len(now) == 0 || now[len(now)-1][0].GetWriter().GetExecutor() != writer {
				now = append(now, nil)
			}
			now[len(now)-1] = append(now[len(now)-1], e.Record)
		}
		if !closesTurn(e) {
			continue
		}
		if began && whole(now) && (len(all) == 0 || now.records() == all[0].records()) {
			all = append(all, now)
		}
		began, now = true, nil
	}
	return all
}

// whole reports whether each executor wrote its part and passed the run on.
func whole(p pattern) bool {
	if len(p) != len(executors) {
		return false
	}
	for i, part := range p {
		if part[0].GetWriter().GetExecutor() != executors[i] || part[len(part)-1].GetStep() == nil {
			return false
		}
	}
	return p[len(p)-1][0].GetStep().GetTo() == executors[0]
}

// floor drives the logs of runs through the same records, without any other work.
type floor struct {
	log       *jetstream.Log
	namespace string
	turns     []pattern
	instance  string

	done     atomic.Int64 // turns
	appends  atomic.Int64
	stopping atomic.Bool
	stopped  atomic.Int64 // runs that have stopped
	wrong    atomic.Pointer[error]
}

// runFloor measures the given number of runs of bare records on the mesh's bus.
func runFloor(b *testing.B, m *meshtest.Mesh, turns []pattern, runs int, lasts time.Duration) side {
	b.Helper()
	ctx, cancel := bounded()
	defer cancel()
	log, err := jetstream.Open(ctx, jetstream.Config{URL: m.Bus.URL(), Wait: 30 * time.Second, Name: "floor"})
	must(b, err)
	defer log.Close()
	f := &floor{log: log, namespace: fmt.Sprintf("floor%d", fleets.Add(1)), instance: fmt.Sprintf("floor-%d", rand.Uint64())}
	for _, t := range turns {
		f.turns = append(f.turns, f.readdress(t))
	}
	working, stop := context.WithCancel(context.Background())
	defer stop()
	var g errgroup.Group
	for i, x := range executors {
		g.Go(func() error {
			err := log.Consume(working, floorName(x), 256, func(ctx context.Context, d runlog.Delivery) {
				if err := f.handle(ctx, i, d); err != nil {
					f.wrong.Store(&err)
				}
			})
			if working.Err() != nil {
				return nil
			}
			return err
		})
	}
	last := f.turns[0][len(executors)-1]
	for i := range runs {
		_, err := f.append(ctx, last[len(last)-1], runlog.Run{Namespace: f.namespace, ID: fmt.Sprintf("r%03d", i)}, 1, 0)
		must(b, err)
	}
	f.await(b, "the floor is warm", func() bool { return f.done.Load() >= int64(runs*warm) })
	warmed := f.done.Load()
	s := window(b, lasts, func() (int, int) { return int(f.done.Load()), int(f.appends.Load()) }, func() bool { return f.done.Load() > warmed })
	f.stopping.Store(true)
	f.await(b, "the floor stops", func() bool { return f.stopped.Load() == int64(runs) })
	stop()
	must(b, g.Wait())
	s.bytes = f.turns[0].bytes()
	return s
}

// await waits for the floor unless it fails.
func (f *floor) await(b *testing.B, what string, holds func() bool) {
	b.Helper()
	waittest.Eventually(b, what, func() bool {
		if err := f.wrong.Load(); err != nil {
			b.Fatalf("%s: %v", what, *err)
		}
		return holds()
	})
}

// readdress addresses the steps of a turn to the floor's executors.
func (f *floor) readdress(t pattern) pattern {
	var own pattern
	for _, part := range t {
		records := make([]*harnessv1.Record, len(part))
		for i, r := range part {
			records[i] = proto.CloneOf(r)
			if step := records[i].GetStep(); step != nil {
				step.To = floorName(step.GetTo())
			}
		}
		own = append(own, records)
	}
	return own
}

// handle appends what executor i appends, after the step that it received.
func (f *floor) handle(ctx context.Context, i int, d runlog.Delivery) error {
	e := d.Entry()
	if e.Err != nil || e.Run.Namespace != f.namespace {
		return fmt.Errorf("delivered sequence %d of %s: %w", e.Sequence, e.Run, e.Err)
	}
	if d.Redelivered() {
		return errors.New("a step was delivered twice")
	}
	if i == 0 && f.stopping.Load() {
		f.stopped.Add(1)
		return d.Ack()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), waittest.Patience)
	defer cancel()
	turn := f.turns[int(e.Header.Version)/f.turns[0].records()%len(f.turns)]
	version, sequence := e.Header.Version, e.Sequence
	for _, r := range turn[i] {
		version++
		var err error
		if sequence, err = f.append(ctx, r, e.Run, version, sequence); err != nil {
			return err
		}
		f.appends.Add(1)
	}
	if i == len(executors)-1 {
		f.done.Add(1)
	}
	return d.Ack()
}

// append appends a record like r. What r refers to is shared and never changes.
func (f *floor) append(ctx context.Context, r *harnessv1.Record, run runlog.Run, version, prev uint64) (uint64, error) {
	return f.log.Append(ctx, &harnessv1.Record{
		Namespace: run.Namespace, RunId: run.ID, Version: version, PrevSequence: prev, Schema: r.GetSchema(), CommitTime: timestamppb.Now(),
		Writer:   &harnessv1.Writer{Executor: r.GetWriter().GetExecutor(), Instance: f.instance, Nonce: rand.Uint64()},
		Appended: r.GetAppended(), Events: r.GetEvents(), Body: r.GetBody(),
	})
}
