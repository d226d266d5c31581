package simulation

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

var within = flag.Int("within", 1500, "how many seeds a mutation has to be caught within")

// decorate changes the run log of a process.
type decorate func(role string, p *sim.Process, log runlog.Log) runlog.Log

// mutation is a fault in the run logs of processes, or in their tool hosts.
type mutation struct {
	name string
	// replicated restricts the fault to a replicated bus, hangs to a model that hangs.
	replicated, hangs bool
	log               decorate
	// hosts changes the tool hosts of the turn workers.
	hosts func(harnessv1.ToolHostServiceClient) harnessv1.ToolHostServiceClient
	// spec and stops (see mesh) have many seeds detect a fault that few would.
	spec  func(spec *harnessv1.RunSpec, random *rand.Rand)
	stops bool
	// invariant is what has to detect the fault. Empty: any.
	invariant string
	// summaries restricts the fault to a world with summaries, trees to one with sub-agents,
	// judged to one with judged work.
	summaries, trees, judged bool
	// from is the first seed: close to one that detects the fault if few do.
	from uint64
}

// mutations are faults, one at a time. They show that the simulator detects a broken rule.
var mutations = []mutation{
	{name: "no-fence", log: func(_ string, _ *sim.Process, log runlog.Log) runlog.Log { return &unfencedLog{Log: log} }},
	{name: "filter-spelling", replicated: true, log: func(_ string, p *sim.Process, log runlog.Log) runlog.Log {
		return sim.SpellFence(log, p.Name)
	}},
	{name: "ack-before-commit", log: func(_ string, _ *sim.Process, log runlog.Log) runlog.Log {
		return &deliveryLog{Log: log, around: ackFirst}
	}},
	{name: "heartbeat-without-ownership", from: 280, hangs: true, log: func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != "turn" {
			return log
		}
		return &deliveryLog{Log: &trustingLog{Log: log}, around: beatAlways}
	}},
	{name: "no-journal", log: func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != "turn" {
			return log
		}
		return &forgetfulLog{Log: log, kept: map[uint64]unstoredRecord{}}
	}},
	{name: "unvalidatedLog-views", replicated: true, log: func(_ string, _ *sim.Process, log runlog.Log) runlog.Log {
		return &unvalidatedLog{Log: log}
	}},
	{name: "cursor-stays-at-refused", from: 18, log: func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != "repair" {
			return log
		}
		return &rewritingLog{Log: log, rewrite: keepCursor()}
	}},
	{name: "drained-ids-forgotten", log: func(role string, _ *sim.Process, log runlog.Log) runlog.Log {
		if role != "repair" {
			return log
		}
		return &rewritingLog{Log: log, rewrite: forgetDrained}
	}},
	{name: "killed-without-a-kill", from: 20, invariant: "a killed call is dead", hosts: func(hosts harnessv1.ToolHostServiceClient) harnessv1.ToolHostServiceClient {
		return lyingHosts{hosts}
	}},
}

func TestMutations(t *testing.T) {
	for _, m := range slices.Concat(mutations, summaryMutations, treeMutations, qualityMutations) {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			for seed := m.from; seed < m.from+uint64(*within); seed++ {
				cfg, mesh := shape(seed)
				if m.replicated && !cfg.Replicated || m.hangs && cfg.Rates != sim.Hangs() || m.summaries && !mesh.summaries || m.trees && !mesh.trees || m.judged && !mesh.judged {
					continue
				}
				mesh.log, mesh.hosts, mesh.spec, mesh.stops = m.log, m.hosts, m.spec, m.stops
				r := sim.Try(t, cfg, mesh.start)
				if r.Violation != nil && m.invariant != "" && r.Violation.Invariant != m.invariant {
					t.Logf("seed %d: %s: %s", seed, r.Violation.Invariant, r.Violation.Message)
					continue
				}
				if r.Violation != nil {
					t.Logf("caught at seed %d, step %d: %s: %s", seed, r.Steps, r.Violation.Invariant, r.Violation.Message)
					if *whole {
						t.Log(r.Failure(60, ""))
					}
					return
				}
			}
			t.Errorf("not caught within %d seeds", *within)
		})
	}
}

// unfencedLog appends after the newest record if the fence refuses its own.
type unfencedLog struct{ runlog.Log }

func (l *unfencedLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	for {
		sequence, err := l.Log.Append(ctx, rec)
		if !errors.Is(err, runlog.ErrFenced) {
			return sequence, err
		}
		view, verr := l.View(ctx, runlog.Run{Namespace: rec.GetNamespace(), ID: rec.GetRunId()}, 0)
		if verr != nil {
			return 0, err
		}
		rec = proto.CloneOf(rec)
		rec.Version, rec.PrevSequence = view.Newest.Header.Version+1, view.Newest.Sequence
	}
}

// deliveryLog wraps the handling of each delivery.
type deliveryLog struct {
	runlog.Log
	around func(d runlog.Delivery, handle func(runlog.Delivery))
}

func (l *deliveryLog) Consume(ctx context.Context, executor string, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.Log.Consume(ctx, executor, concurrency, func(ctx context.Context, d runlog.Delivery) {
		l.around(d, func(d runlog.Delivery) { handle(ctx, d) })
	})
}

func ackFirst(d runlog.Delivery, handle func(runlog.Delivery)) {
	_ = d.Ack()
	handle(d)
}

// beatAlways keeps a delivery while it is handled, also without owning the step.
func beatAlways(d runlog.Delivery, handle func(runlog.Delivery)) {
	done := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				_ = d.InProgress()
			}
		}
	})
	handle(deafDelivery{d})
	close(done)
	beating.Wait()
}

// deafDelivery is a delivery whose own heartbeat does nothing.
type deafDelivery struct{ runlog.Delivery }

func (deafDelivery) InProgress() error { return nil }

// trustingLog reports to a heartbeat, the only caller with a deadline, that the step is
// still owned.
type trustingLog struct{ runlog.Log }

func (l *trustingLog) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	v, err := l.Log.View(ctx, run, contains)
	if _, beats := ctx.Deadline(); beats && err == nil {
		v.Newest.Sequence = contains
	}
	return v, err
}

// forgetfulLog does not store the journal: its entries are stored with the next Step. Its
// process does not detect that. All others, and its next instance, do.
type forgetfulLog struct {
	runlog.Log

	mu   sync.Mutex
	next uint64
	kept map[uint64]unstoredRecord // by invented sequences
}

// unstoredRecord is a record that was not stored.
type unstoredRecord struct {
	rec *harnessv1.Record
	// after is the stored record that it follows.
	after runlog.Entry
}

// madeUp is the first sequence of records that are not stored.
const madeUp = 1 << 40

func (l *forgetfulLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	l.mu.Lock()
	before, isKept := l.kept[rec.GetPrevSequence()]
	after := before.after
	if !isKept {
		after = runlog.Entry{Sequence: rec.GetPrevSequence(), Header: runlog.Header{Version: rec.GetVersion() - 1}}
	}
	if rec.GetJournal() != nil {
		defer l.mu.Unlock()
		l.next++
		l.kept[madeUp+l.next] = unstoredRecord{rec: rec, after: after}
		return madeUp + l.next, nil
	}
	rec = proto.CloneOf(rec)
	for at := rec.GetPrevSequence(); ; {
		k, ok := l.kept[at]
		if !ok {
			break
		}
		rec.Appended = append(append([]*harnessv1.Message(nil), k.rec.GetAppended()...), rec.GetAppended()...)
		rec.Events = append(append([]*harnessv1.Event(nil), k.rec.GetEvents()...), rec.GetEvents()...)
		at = k.rec.GetPrevSequence()
	}
	l.mu.Unlock()
	rec.Version, rec.PrevSequence, rec.AppendedBefore = after.Header.Version+1, after.Sequence, 0
	return l.Log.Append(ctx, rec)
}

func (l *forgetfulLog) Read(ctx context.Context, run runlog.Run, sequence uint64) (runlog.Entry, error) {
	l.mu.Lock()
	k, ok := l.kept[sequence]
	l.mu.Unlock()
	if ok {
		return runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(k.rec), Record: k.rec}, nil
	}
	return l.Log.Read(ctx, run, sequence)
}

func (l *forgetfulLog) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	l.mu.Lock()
	if k, ok := l.kept[contains]; ok {
		contains = k.after.Sequence
	}
	l.mu.Unlock()
	return l.Log.View(ctx, run, contains)
}

// unvalidatedLog accepts the answer of any replica.
type unvalidatedLog struct{ runlog.Log }

func (l *unvalidatedLog) View(ctx context.Context, run runlog.Run, _ uint64) (runlog.View, error) {
	return l.Log.View(ctx, run, 0)
}

// rewritingLog changes the steps that a process appends.
type rewritingLog struct {
	runlog.Log
	rewrite func(rec *harnessv1.Record)
}

func (l *rewritingLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if rec.GetStep() == nil {
		return l.Log.Append(ctx, rec)
	}
	rec = proto.CloneOf(rec)
	l.rewrite(rec)
	return l.Log.Append(ctx, rec)
}

// keepCursor makes the inbox cursor stop at the first item that was refused, now or
// before.
func keepCursor() func(rec *harnessv1.Record) {
	var mu sync.Mutex
	refused := map[string]bool{}
	return func(rec *harnessv1.Record) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range rec.GetEvents() {
			if r := e.GetInputRejected(); r != nil {
				refused[r.GetItemId()] = true
			}
		}
		for _, o := range rec.GetStep().GetObserved() {
			for _, item := range o.GetInbox().GetItems() {
				if refused[item.GetId()] {
					rec.GetStep().GetSnapshot().InboxCursor = item.GetPrevSequence()
					return
				}
			}
		}
	}
}

// lyingHosts report that calls were killed, and kill none.
type lyingHosts struct {
	harnessv1.ToolHostServiceClient
}

func (lyingHosts) CancelTools(_ context.Context, r *harnessv1.CancelToolsRequest, _ ...grpc.CallOption) (*harnessv1.CancelToolsResponse, error) {
	return &harnessv1.CancelToolsResponse{Killed: r.GetCallIds()}, nil
}

func forgetDrained(rec *harnessv1.Record) { rec.GetStep().GetSnapshot().DrainedItems = nil }
