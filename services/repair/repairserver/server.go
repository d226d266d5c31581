// Package repairserver runs the repair executor: it fetches what repair has to
// know, wakes resting runs when something comes in for them, turns fired timers
// into inbox items, deletes what is stored of deleted runs, and sweeps for runs
// that nobody has.
package repairserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// Log is what a Server needs of a run log.
type Log interface {
	interrupt.Log
	runlog.Appender
	runlog.Viewer
	runlog.Leader
	runlog.InboxAppender
	runlog.BlobReader
	runlog.WakeConsumer
	runlog.TimerSetter
	runlog.TimerConsumer
	runlog.RunFollower
	runlog.PokeFeed
	runlog.Consumers
	runlog.Eraser
}

// Server is the repair executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedRepairServiceServer
	log      Log
	toolHost harnessv1.ToolHostServiceClient
	logger   *slog.Logger
	now      func() time.Time
	keep     time.Duration
	sweeping time.Duration
	erasing  chan struct{} // holds a token for each erasure under way
	attended *attended
	hooks    *hookcaller.Caller
	remote   *remote.Pool

	definitions *agent.Cache
	interrupts  *interrupt.Watch
}

// Config of a repair worker.
type Config struct {
	// Log stores the runs. Required.
	Log Log
	// ToolHost describes workspaces. Required.
	ToolHost harnessv1.ToolHostServiceClient
	// Hooks calls subscribers. Nil: agents cannot have any but CEL rules.
	Hooks *hookcaller.Caller
	// Remote has the connections to ContextServices. Nil: agents cannot have any.
	Remote *remote.Pool
	// Logger; nil discards.
	Logger *slog.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// KeepDeleted is how long the last record of a deleted run stays, so that a
	// late retry of its start is refused and does not run the work once more.
	// Default 10 min.
	KeepDeleted time.Duration
	// Sweep is the time between two looks for runs that nobody has. Default 1 min.
	Sweep time.Duration
	// Attended limits the runs that are woken. Nil: all are.
	Attended *Attended
}

// New makes a repair worker.
func New(cfg Config) *Server {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.KeepDeleted <= 0 {
		cfg.KeepDeleted = 10 * time.Minute
	}
	if cfg.Sweep <= 0 {
		cfg.Sweep = time.Minute
	}
	return &Server{
		log: cfg.Log, toolHost: cfg.ToolHost, logger: cfg.Logger, now: cfg.Now, keep: cfg.KeepDeleted, sweeping: cfg.Sweep,
		erasing: make(chan struct{}, maxErasures), attended: attend(cfg.Attended),
		hooks: cfg.Hooks, remote: cfg.Remote, definitions: &agent.Cache{Blob: cfg.Log.Blob},
		interrupts: interrupt.New(cfg.Log, cfg.Logger, cfg.Now),
	}
}

// Register adds the gRPC form to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) { harnessv1.RegisterRepairServiceServer(r, s) }

// Repair maps a step to what repair would commit.
func (s *Server) Repair(_ context.Context, req *harnessv1.RepairRequest) (*harnessv1.RepairResponse, error) {
	out, err := repair.Decide(req.GetInput())
	if err != nil {
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.RepairResponse{Output: out}, nil
}

// Run executes repair, wakes runs and takes in timers until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	stop, err := s.log.OnPoke(s.interrupts.Poke)
	if err != nil {
		return err
	}
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: repair.Name, Bind: s.bind})
	})
	g.Go(func() error {
		return orEnded(ctx, s.log.ConsumeWakes(ctx, wakeConcurrency, func(ctx context.Context, d runlog.Delivery) {
			s.wake(ctx, cfg, d)
		}))
	})
	g.Go(func() error { return orEnded(ctx, s.log.ConsumeTimers(ctx, s.fired)) })
	g.Go(func() error {
		s.sweep(ctx, cfg)
		return nil
	})
	return g.Wait()
}

const wakeConcurrency = 64

func orEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// bind makes the decision for one task.
func (s *Server) bind(ctx context.Context, task *executor.Task) (executor.Decide, executor.ObserveNeeds, error) {
	var made *agent.Definition
	var err error
	if spec := task.Step().GetRepairTrigger().GetSpec(); spec != nil {
		made, err = s.definitions.LoadSpec(ctx, task.Run, spec)
	} else {
		made, err = s.definitions.Load(ctx, task.Run, task.Step().GetSnapshot())
	}
	if err != nil {
		return nil, nil, err
	}
	decide := func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) { return repair.DecideWith(in, made) }
	said := &agent.OutcomeLimit{}
	taken := &harnessv1.Snapshot{InboxCursor: task.Step().GetSnapshot().GetInboxCursor(), DrainedItems: task.Step().GetSnapshot().GetDrainedItems()}
	observe := func(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
		var seen []*harnessv1.Observation
		if len(needs.GetHooks()) > 0 {
			// What comes in while subscribers are asked, behind what this decision takes
			// in, breaks them off: the next decision takes it in.
			watched, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			_, stop := s.interrupts.Inbox(watched, cancel, task.Run, taken)
			defer stop()
			ctx = watched
		}
		for _, key := range needs.GetKeys() {
			o, err := s.see(ctx, task, made, said, needs, key)
			if err != nil {
				return nil, fmt.Errorf("observe %s: %w", key, err)
			}
			taken.InboxCursor = max(taken.GetInboxCursor(), o.GetInbox().GetCursor())
			seen = append(seen, o)
		}
		return seen, nil
	}
	return decide, observe, nil
}

// see looks at one thing: what a subscriber or a context provider says, or what
// every repair has to know.
func (s *Server) see(ctx context.Context, task *executor.Task, made *agent.Definition, said *agent.OutcomeLimit, needs *harnessv1.Needs, key string) (*harnessv1.Observation, error) {
	snapshot, spec := task.Step().GetSnapshot(), task.Step().GetRepairTrigger().GetSpec()
	for _, request := range needs.GetHooks() {
		if request.GetIdempotencyKey() != key {
			continue
		}
		where := hookcaller.RunInfo{Workspace: snapshot.GetWorkspace(), FirstSequence: snapshot.GetFirstSequence(), Timeout: snapshot.GetConfig().GetHooks().GetTimeout().AsDuration()}
		if spec != nil {
			where = hookcaller.RunInfo{Workspace: spec.GetWorkspace(), FirstSequence: task.Entry.Sequence, Timeout: spec.GetConfig().GetHooks().GetTimeout().AsDuration()}
		}
		outcome := s.hooks.Call(ctx, made.Hooks.Hook(request.GetHookId()), request, where)
		if err := context.Cause(ctx); err != nil && !interrupt.Stopped(ctx) {
			return nil, err
		}
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Hook{Hook: said.Apply(outcome)}}, nil
	}
	if name, ok := strings.CutPrefix(key, repair.NeedContext); ok {
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Context{Context: s.context(ctx, task.Run, spec, name)}}, nil
	}
	if digest, ok := strings.CutPrefix(key, repair.NeedText); ok {
		data, err := s.log.Blob(ctx, task.Run, digest)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Context{Context: &harnessv1.ContextText{Text: content.Inline(string(data))}}}, nil
	}
	return s.observe(ctx, task, key)
}

// contextTime is how long a ContextService may take, and maxContext what is taken of
// its text, in bytes.
const (
	contextTime = 5 * time.Second
	maxContext  = 64 << 10
)

// context asks a context provider for its text.
func (s *Server) context(ctx context.Context, run runlog.Run, spec *harnessv1.RunSpec, name string) *harnessv1.ContextText {
	ctx, cancel := context.WithTimeout(ctx, contextTime)
	defer cancel()
	for _, p := range spec.GetAgent().GetContextProviders() {
		if p.GetName() != name {
			continue
		}
		conn, err := s.remote.Dial(p.GetGrpc())
		if err != nil {
			return &harnessv1.ContextText{Error: err.Error()}
		}
		r, err := harnessv1.NewContextServiceClient(conn).ProvideContext(ctx, &harnessv1.ProvideContextRequest{
			Namespace: run.Namespace, RunId: run.ID, Provider: name, Goal: content.Text(spec.GetGoal()), Workspace: spec.GetWorkspace(),
		})
		if err != nil {
			return &harnessv1.ContextText{Error: remote.Reason(err)}
		}
		return &harnessv1.ContextText{Text: content.Inline(content.Cut(r.GetText(), maxContext))}
	}
	return &harnessv1.ContextText{Error: "there is no such provider"}
}

// observe fetches what a decision of repair has to know.
func (s *Server) observe(ctx context.Context, task *executor.Task, key string) (*harnessv1.Observation, error) {
	switch key {
	case repair.NeedInbox:
		batch, err := s.inbox(ctx, task)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Inbox{Inbox: batch}}, nil
	case repair.NeedEnvironment:
		workspace := task.Step().GetRepairTrigger().GetSpec().GetWorkspace()
		if workspace == "" {
			return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{}}}, nil
		}
		r, err := s.toolHost.DescribeWorkspace(ctx, &harnessv1.DescribeWorkspaceRequest{Workspace: workspace})
		if err != nil {
			if code := status.Code(err); code != codes.InvalidArgument && code != codes.NotFound {
				return nil, executor.Retry("tool host", err)
			}
			return nil, err
		}
		return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Environment{Environment: r.GetEnvironment()}}, nil
	}
	return nil, fmt.Errorf("repair does not observe %q", key)
}

// inbox reads what is beyond the cursor. For a wake the view must contain the
// trigger, so that at least the item that woke the run is seen; between turns
// a look that may be behind does no harm: what it misses is found at the next
// turn, or wakes the run when it rests.
func (s *Server) inbox(ctx context.Context, task *executor.Task) (*harnessv1.InboxBatch, error) {
	cursor := task.Step().GetSnapshot().GetInboxCursor()
	var last uint64
	if task.Step().GetRepairTrigger().GetCause() == harnessv1.TriggerCause_TRIGGER_CAUSE_WAKE {
		view, err := s.log.View(ctx, task.Run, task.Entry.Sequence)
		if err != nil {
			return nil, err
		}
		last = view.InboxSequence
	} else {
		var err error
		if last, err = s.log.LastInbox(ctx, task.Run); err != nil {
			return nil, err
		}
	}
	if last <= cursor {
		return &harnessv1.InboxBatch{Cursor: cursor}, nil
	}
	items, err := s.log.Inbox(ctx, task.Run, cursor, last)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if link, ok := spans.Link(item.GetTraceparent(), spans.Cause.String("input")); ok {
			trace.SpanFromContext(ctx).AddLink(link)
		}
		if item.GetInput() != nil {
			continue
		}
		if i == 0 {
			return nil, executor.Retry("inbox", fmt.Errorf("input %s is of a kind that this program does not know: it waits for a newer one", item.GetId()))
		}
		items = items[:i]
		break
	}
	return &harnessv1.InboxBatch{Items: items, Cursor: items[len(items)-1].GetSequence()}, nil
}

// wake applies the one rule for steps to park and end and for inbox items.
// Never acknowledge on a conflict alone: look again.
func (s *Server) wake(ctx context.Context, cfg executor.Config, d runlog.Delivery) {
	e := d.Entry()
	logger := s.logger.With("run", e.Run.ID, "namespace", e.Run.Namespace)
	for {
		view, err := s.log.View(ctx, e.Run, e.Sequence)
		if errors.Is(err, runlog.ErrNotFound) {
			s.erase(ctx, d, e.Run, nil) // an input that came behind the deletion of its run
			return
		}
		if err == nil && view.Newest.Record == nil {
			err = view.Newest.Err
		}
		if err != nil {
			if ctx.Err() == nil {
				logger.Warn("wake put back", "error", err)
			}
			_ = d.Nak(time.Second)
			return
		}
		if runstate.Expired(view.Step.Record.GetStep().GetSnapshot()) {
			s.erase(ctx, d, e.Run, &view)
			return
		}
		step := repair.Wake(view)
		if step == nil {
			_ = d.Ack()
			return
		}
		if asked, err := s.asked(ctx, view); err != nil || !asked {
			_ = d.Nak(unattendedDelay)
			return
		}
		failpoint.Hit(repair.Name, "wake_seen")
		err = s.append(ctx, cfg, view, &harnessv1.Record{Body: &harnessv1.Record_Step{Step: step}})
		switch {
		case err == nil:
			failpoint.Hit(repair.Name, "woken")
			_ = d.Ack()
			return
		case errors.Is(err, runlog.ErrFenced):
			continue
		case ctx.Err() == nil:
			logger.Warn("wake put back", "error", err)
		}
		_ = d.Nak(time.Second)
		return
	}
}

// envelope completes a record that is to follow the newest one of a view.
func (s *Server) envelope(cfg executor.Config, view runlog.View, rec *harnessv1.Record) *harnessv1.Record {
	rec.Namespace, rec.RunId = view.Newest.Run.Namespace, view.Newest.Run.ID
	rec.Version, rec.PrevSequence = view.Newest.Header.Version+1, view.Newest.Sequence
	rec.AppendedBefore = runlog.AppendedBefore(view.Newest)
	rec.Schema = runlog.Schema
	rec.CommitTime = timestamppb.New(s.now())
	rec.Writer = &harnessv1.Writer{Executor: repair.Name, Instance: cfg.Instance, Nonce: rand.Uint64()} //nolint:gosec // tells records apart
	return rec
}

// append stores a record behind the newest one of a view, with where the run then stands
// in its trace. The cycle that it begins, which is made at its end, counts as its writer.
func (s *Server) append(ctx context.Context, cfg executor.Config, view runlog.View, rec *harnessv1.Record) error {
	rec = s.envelope(cfg, view, rec)
	state := view.Step.Record.GetStep().GetSnapshot().GetTrace()
	var ended []runtrace.Span
	if step := rec.GetStep(); step.GetSnapshot() != nil {
		state, ended = runtrace.Next(state, step, rec.GetVersion(), rec.GetCommitTime().AsTime())
		step.Snapshot.Trace = state
	}
	_, err := s.log.Append(spans.Under(ctx, runtrace.Current(state)), rec)
	if err == nil {
		spans.End(cfg.Tracer, view.Newest.Run, rec.GetStep(), ended)
	}
	return err
}

// fired turns a timer into an inbox item. The item's id names the park, so a
// timer that is delivered twice has one effect.
func (s *Server) fired(ctx context.Context, run runlog.Run, parkVersion uint64) error {
	view, err := s.log.View(ctx, run, 0)
	if errors.Is(err, runlog.ErrNotFound) {
		// The replica that answered may be behind; then the timer comes again. The
		// leader knows when the run is gone.
		if newest, lerr := s.log.Newest(ctx, run); lerr == nil && newest == 0 {
			return nil
		}
	}
	if err != nil {
		return err
	}
	if runstate.Expired(view.Step.Record.GetStep().GetSnapshot()) && parkVersion == view.Step.Header.Version {
		return s.log.Erase(ctx, run, 0, seen(view)) // the last of it
	}
	if repair.StaleTimer(view, parkVersion) {
		return nil
	}
	failpoint.Hit(repair.Name, "timer_fired")
	_, _, err = s.log.AppendInbox(ctx, run, &harnessv1.InboxItem{
		Id:    "timer " + strconv.FormatUint(parkVersion, 10), // no request has an id with a space
		Time:  timestamppb.New(s.now()),
		Input: &harnessv1.InboxItem_TimerFired{TimerFired: &harnessv1.TimerFired{ParkVersion: parkVersion}},
	}, repair.TimerAfter(view, parkVersion))
	if err == nil {
		failpoint.Hit(repair.Name, "timer_kept")
	}
	return err
}
