package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway"
	"github.com/harnessmesh/harnessmesh/test/kit/sim"
)

// ofRole decorates the logs of the processes of a role.
func ofRole(role string, f func(log runlog.Log) runlog.Log) decorate {
	return func(r string, _ *sim.Process, log runlog.Log) runlog.Log {
		if r != role {
			return log
		}
		return f(log)
	}
}

// ofRepair decorates the logs of the repair workers.
func ofRepair(f func(log runlog.Log) runlog.Log) decorate { return ofRole(workflow.Repair, f) }

// changing has the repair workers change each inbox item that they append.
func changing(change func(item *harnessv1.InboxItem)) decorate {
	return ofRepair(func(log runlog.Log) runlog.Log { return &itemsLog{Log: log, change: change} })
}

// treeMutations are faults in what keeps parents and children together.
var treeMutations = []mutation{
	{name: "underived-ids", trees: true, invariant: "one run for each call", log: underivedIDs()},
	{name: "report-acknowledged-first", from: 25, trees: true, invariant: "each report arrives", log: ofRepair(func(log runlog.Log) runlog.Log {
		return childrenAckedFirst{log}
	})},
	{name: "orders-without-versions", trees: true, spec: wide, stops: true, invariant: "a child does what its parent wants", log: unversionedOrders()},
	{name: "start-without-a-look", trees: true, from: 5900, invariant: "nothing works below a run that has stopped", log: withoutLook()},
	{name: "lease-given-twice", trees: true, spec: smallBudget, invariant: "a tree keeps its budget", log: ofRepair(func(log runlog.Log) runlog.Log {
		return &rewritingLog{Log: log, rewrite: leaseAll}
	})},
	{name: "result-before-the-end", trees: true, invariant: "a result follows the end of its child", log: changing(func(item *harnessv1.InboxItem) {
		if r := item.GetChildReport(); r.GetStatus() == harnessv1.RunStatus_RUN_STATUS_PARKED {
			r.Status, r.Accepted = harnessv1.RunStatus_RUN_STATUS_DONE, true
		}
	})},
	{name: "stop-not-awaited", spec: wide, stops: true, trees: true, invariant: "a child does what its parent wants", log: changing(func(item *harnessv1.InboxItem) {
		if r := item.GetChildReport(); r != nil {
			r.Order++
		}
	})},
	{name: "children-not-deleted", trees: true, invariant: "no orphan", log: ofRole(gateway.Writer, func(log runlog.Log) runlog.Log {
		return immortalLog{&rewritingLog{Log: log, rewrite: func(rec *harnessv1.Record) {
			if s := rec.GetStep().GetSnapshot(); runstate.Expired(s) {
				s.Children = nil
			}
		}}}
	})},
}

// immortalLog does not store that a child is deleted.
type immortalLog struct{ runlog.Log }

func (l immortalLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if s := rec.GetStep().GetSnapshot(); runstate.Expired(s) && s.GetParent() != nil {
		return rec.GetPrevSequence() + 1, nil
	}
	return l.Log.Append(ctx, rec)
}

// itemsLog changes the inbox items that a process appends.
type itemsLog struct {
	runlog.Log
	change func(item *harnessv1.InboxItem)
}

func (l *itemsLog) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (uint64, bool, error) {
	item = proto.CloneOf(item)
	l.change(item)
	return l.Log.AppendInbox(ctx, run, item, after)
}

// childrenAckedFirst acknowledges the steps of children to park and end before they are handled.
type childrenAckedFirst struct{ runlog.Log }

func (l childrenAckedFirst) ConsumeWakes(ctx context.Context, concurrency int, handle func(context.Context, runlog.Delivery)) error {
	return l.Log.ConsumeWakes(ctx, concurrency, func(ctx context.Context, d runlog.Delivery) {
		if d.Entry().Record.GetStep().GetSnapshot().GetParent() != nil {
			_ = d.Ack()
		}
		handle(ctx, d)
	})
}

// wide has a run begin with five sub-agents that work for some turns at the same time.
func wide(spec *harnessv1.RunSpec, _ *rand.Rand) {
	name, _, _ := strings.Cut(content.Text(spec.Goal), " ")
	spec.Graph = nil
	for n := range 5 {
		id := fmt.Sprint("t", n)
		spec.Graph = append(spec.Graph, &harnessv1.GraphTask{Id: id, Agent: "scout", Prompt: sim.Goal(name+"."+id, 5)})
	}
}

// smallBudget is wide, with tokens for less than half of the turns.
func smallBudget(spec *harnessv1.RunSpec, random *rand.Rand) {
	wide(spec, random)
	spec.Config.Budgets = &harnessv1.Budgets{Tokens: proto.Uint64(uint64(50_000 + random.IntN(50_000)))}
}

// leaseAll gives each child all that its parent may use.
func leaseAll(rec *harnessv1.Record) {
	s := rec.GetStep().GetSnapshot()
	for _, c := range s.GetChildren() {
		if c.GetLease().GetTokens() > 0 {
			c.Lease.Tokens = proto.Uint64(s.GetConfig().GetBudgets().GetTokens())
		}
	}
}

// withoutLook shows a child that starts a parent that waits for it, whatever the parent wants by then.
func withoutLook() decorate {
	shared := &blindLog{known: map[runlog.Run]runlog.View{}}
	return ofRepair(func(log runlog.Log) runlog.Log { return sharedBlindLog{Log: log, blindLog: shared} })
}

// blindLog contains the last view of each run that a process read.
type blindLog struct {
	mu    sync.Mutex
	known map[runlog.Run]runlog.View
}

type sharedBlindLog struct {
	runlog.Log
	*blindLog
}

func (l sharedBlindLog) Newest(ctx context.Context, run runlog.Run) (uint64, error) {
	n, err := l.Log.Newest(ctx, run)
	if err == nil && n == 0 && calledBy("(*observer).seeParent") {
		n = 1
	}
	return n, err
}

func (l sharedBlindLog) View(ctx context.Context, run runlog.Run, contains uint64) (runlog.View, error) {
	v, err := l.Log.View(ctx, run, contains)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && v.Step.Record != nil && !runstate.Expired(v.Step.Record.GetStep().GetSnapshot()) {
		l.known[run] = v
	}
	if known, ok := l.known[run]; ok && calledBy("(*observer).seeParent") {
		v, err = known, nil
		v.Step.Record = proto.CloneOf(v.Step.Record)
		s := v.Step.Record.GetStep().GetSnapshot()
		s.Status = harnessv1.RunStatus_RUN_STATUS_PARKED
		for _, c := range s.GetChildren() {
			c.Want, c.Order, c.Background = harnessv1.ChildWant_CHILD_WANT_WORK, 1, true
		}
	}
	return v, err
}

// calledBy reports whether a function is on the stack of the caller.
func calledBy(name string) bool {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, name) {
			return true
		}
		if !more {
			return false
		}
	}
}

// invention is what underivedLog and unversionedLog of all processes know of what they invented.
type invention struct {
	mu      sync.Mutex
	derived map[string]string // by invented id
	newest  map[string]string // invented ids by derived ones
	orders  map[string]uint32 // by invented order and run
	count   uint32
}

// underivedIDs invents the id of a child when its start is sent.
func underivedIDs() decorate {
	shared := &invention{derived: map[string]string{}, newest: map[string]string{}}
	return ofRepair(func(log runlog.Log) runlog.Log {
		return &underivedLog{Log: log, shared: shared, mine: map[string]string{}}
	})
}

// underivedLog has a process know only the children that it has started by itself.
type underivedLog struct {
	runlog.Log
	shared *invention
	mine   map[string]string // invented ids by derived ones, guarded by shared.mu
}

func (l *underivedLog) Append(ctx context.Context, rec *harnessv1.Record) (uint64, error) {
	if rec.GetVersion() != 1 || rec.GetStep().GetRepairTrigger().GetParent() == nil {
		return l.Log.Append(ctx, rec)
	}
	rec = proto.CloneOf(rec)
	derived := rec.GetRunId()
	rec.RunId = fmt.Sprintf("%s-%d", derived, rec.GetWriter().GetNonce())
	l.shared.mu.Lock()
	l.mine[derived], l.shared.derived[rec.GetRunId()], l.shared.newest[derived] = rec.GetRunId(), derived, rec.GetRunId()
	l.shared.mu.Unlock()
	return l.Log.Append(ctx, rec)
}

func (l *underivedLog) Newest(ctx context.Context, run runlog.Run) (uint64, error) {
	l.shared.mu.Lock()
	if invented := l.mine[run.ID]; invented != "" {
		run.ID = invented
	}
	l.shared.mu.Unlock()
	return l.Log.Newest(ctx, run)
}

func (l *underivedLog) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (uint64, bool, error) {
	item = proto.CloneOf(item)
	l.shared.mu.Lock()
	if invented := l.shared.newest[run.ID]; invented != "" {
		run.ID = invented
	}
	if derived := l.shared.derived[item.GetChildReport().GetRunId()]; derived != "" {
		item.GetChildReport().RunId = derived
	}
	l.shared.mu.Unlock()
	return l.Log.AppendInbox(ctx, run, item, after)
}

// unversionedOrders gives each order that is sent another number, so that a child takes
// also one that is late.
func unversionedOrders() decorate {
	shared := &invention{orders: map[string]uint32{}, count: 1000}
	return ofRepair(func(log runlog.Log) runlog.Log { return &unversionedLog{Log: log, shared: shared} })
}

type unversionedLog struct {
	runlog.Log
	shared *invention
}

func (l *unversionedLog) AppendInbox(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem, after uint64) (uint64, bool, error) {
	item = proto.CloneOf(item)
	l.shared.mu.Lock()
	if item.GetOrder() > 0 {
		l.shared.count++
		l.shared.orders[fmt.Sprint(run.ID, l.shared.count)] = item.GetOrder()
		item.Order = l.shared.count
		item.Id += fmt.Sprintf("-%d", rand.Uint64())
	}
	if r := item.GetChildReport(); l.shared.orders[fmt.Sprint(r.GetRunId(), r.GetOrder())] > 0 {
		r.Order = l.shared.orders[fmt.Sprint(r.GetRunId(), r.GetOrder())]
	}
	l.shared.mu.Unlock()
	return l.Log.AppendInbox(ctx, run, item, after)
}
