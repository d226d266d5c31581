package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/node"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
)

// Config of the background process.
type Config struct {
	// Data is the data directory.
	Data string
	// Build is the version and commit of the program.
	Build string
	// Linger is how long the process stays after its last client has left.
	Linger time.Duration
	// Keep are the runs, as NAMESPACE/RUN, that a predecessor was at work on.
	Keep []string
	// environments are those of runs, from a predecessor.
	Environments []*harnessv1.RunEnvironment
	// Env looks up the environment, for telemetry.
	Env func(string) string
	// Catalogue is the model catalogue.
	Catalogue *catalogue.Catalogue
	// CatalogueFile is the file that extends it, absolute; empty: none.
	CatalogueFile string
	// Level of the log.
	Level slog.Level
	// Signals are the requests to end.
	Signals <-chan os.Signal
	// Ready is called when clients can connect.
	Ready func()
}

// process is the running background process.
type process struct {
	harnessv1.UnimplementedLocalServiceServer
	cfg        Config
	node       *node.Node
	background *node.Background
	env        *environments
	started    time.Time
	stop       chan End      // requests to end
	successor  chan struct{} // has a token while a successor may end the process
	ended      chan struct{} // closed when the process is to end
}

// stopTime bounds the end after the drain.
const stopTime = 15 * time.Second

// checkEvery is how often the process checks whether it is idle.
const checkEvery = 5 * time.Second

// Serve runs the process until it is idle or is to end. The error is ErrHeld if another
// process has the data directory.
func Serve(ctx context.Context, cfg Config) error {
	p := &process{cfg: cfg, env: newEnvironments(cfg.Data), started: time.Now(), stop: make(chan End, 1), successor: make(chan struct{}, 1), ended: make(chan struct{})}
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	log, err := openLog(LogFile(cfg.Data), maxLog)
	if err != nil {
		return fmt.Errorf("log of the background process: %w", err)
	}
	defer func() { _ = log.Close() }()
	logger := slog.New(telemetry.Handler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: cfg.Level})))
	for _, env := range cfg.Environments {
		if err := p.env.Put(env); err != nil {
			return err
		}
	}
	p.background = &node.Background{Service: p}
	p.node, err = node.Start(ctx, node.Config{
		Data: cfg.Data, Interrupt: true, Keep: cfg.Keep, Background: p.background, Environments: p.env.forNode(), Program: cfg.Build, Drain: DrainTime,
		ModelEnv: cfg.Env, Catalogue: cfg.Catalogue, Logger: logger,
	})
	var held *node.HeldError
	if errors.As(err, &held) {
		return ErrHeld
	}
	if err != nil {
		logger.Error("the background process did not start", "error", err)
		return err
	}
	logger.Log(ctx, slog.LevelInfo, "the background process has started", "pid", os.Getpid(), "build", cfg.Build)
	if err := os.WriteFile(filepath.Join(cfg.Data, catalogueFile), []byte(cfg.CatalogueFile), 0o600); err != nil {
		logger.Warn("clients cannot compare their catalogue", "error", err)
	}
	cfg.Ready()
	end := p.wait(ctx)
	close(p.ended)
	if err := recordEnd(cfg.Data, os.Getpid(), end); err != nil {
		logger.Warn("clients cannot tell the end from a crash", "error", err)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), node.HandOverTime+stopTime)
	defer cancel()
	err = p.node.Stop(ending)
	logger.Log(ctx, slog.LevelInfo, "the background process has ended", "how", string(end), "error", err)
	return err
}

// wait returns when the process is to end.
func (p *process) wait(ctx context.Context) End {
	tick := time.NewTicker(min(checkEvery, max(p.cfg.Linger/4, 10*time.Millisecond)))
	defer tick.Stop()
	idle, used := Idle{Since: time.Now()}, true
	for {
		select {
		case end := <-p.stop:
			return end
		case <-p.cfg.Signals:
			return Stopped
		case <-p.node.Done():
			return Stopped
		case <-ctx.Done():
			return Stopped
		case <-tick.C:
		}
		if idle.Clients = p.background.Clients(); idle.Clients > 0 {
			idle.Since, used = time.Now(), true
			continue
		}
		if used { // memory of the work goes back to the system
			debug.FreeOSMemory()
			used = false
		}
		if time.Since(idle.Since) < p.cfg.Linger/2 {
			continue
		}
		working, wake, err := p.work(ctx)
		if err != nil || len(working) > 0 {
			idle.Since = time.Now()
			continue
		}
		if idle.NextWake = wake; idle.Ends(time.Now(), p.cfg.Linger) {
			return Stopped
		}
	}
}

// work returns the runs at work and when a timer wakes the next one.
func (p *process) work(ctx context.Context) (working []*harnessv1.LocalRun, wake time.Time, err error) {
	request := &harnessv1.ListRunsRequest{Namespace: "*", PageSize: 1000, Statuses: []harnessv1.RunStatus{
		harnessv1.RunStatus_RUN_STATUS_RUNNING, harnessv1.RunStatus_RUN_STATUS_PARKED,
	}}
	for {
		page, err := p.node.Client().ListRuns(ctx, request)
		if err != nil {
			return nil, wake, err
		}
		for _, run := range page.GetRuns() {
			if run.GetStatus() == harnessv1.RunStatus_RUN_STATUS_RUNNING {
				working = append(working, &harnessv1.LocalRun{Namespace: run.GetNamespace(), RunId: run.GetRunId()})
				continue
			}
			if !timed(run.GetReason().GetKind()) {
				continue
			}
			now, err := p.node.Client().GetRun(ctx, &harnessv1.GetRunRequest{Namespace: run.GetNamespace(), RunId: run.GetRunId()})
			if err != nil {
				return nil, wake, err
			}
			if at := now.GetResult().GetWakeAt(); at != nil && (wake.IsZero() || at.AsTime().Before(wake)) {
				wake = at.AsTime()
			}
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return working, wake, nil
		}
	}
}

// timed reports whether the timer of a park continues its run. Those of answers end the wait
// for them, which may be late.
func timed(kind string) bool {
	return kind == "wait" || kind == "agent" || kind == "provider_unavailable" || kind == "poison"
}

// DescribeProcess returns the build, the load and the next wake of the process.
func (p *process) DescribeProcess(ctx context.Context, _ *harnessv1.DescribeProcessRequest) (*harnessv1.DescribeProcessResponse, error) {
	working, wake, err := p.work(ctx)
	if err != nil {
		return nil, err
	}
	r := &harnessv1.DescribeProcessResponse{
		Pid: uint32(os.Getpid()), Build: p.cfg.Build, ApiLevel: uint32(node.APILevel), StartTime: timestamppb.New(p.started), //nolint:gosec // a pid is positive
		Clients: uint32(p.background.Clients()), Working: working, MemoryBytes: residentMemory(), //nolint:gosec // bounded by descriptors
	}
	if !wake.IsZero() {
		r.NextWake = timestamppb.New(wake)
	}
	return r, nil
}

// residentMemory returns the resident memory of this process in bytes; 0 if it is unknown.
func residentMemory() uint64 {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(raw), &size, &resident); err != nil {
		return 0
	}
	return resident * uint64(syscall.Getpagesize()) //nolint:gosec // positive
}

// ProvideEnvironment keeps the environment of a run.
func (p *process) ProvideEnvironment(_ context.Context, r *harnessv1.ProvideEnvironmentRequest) (*harnessv1.ProvideEnvironmentResponse, error) {
	env := r.GetEnvironment()
	if slices.ContainsFunc(env.GetCommands(), func(pair string) bool { return strings.ContainsRune(pair, 0) }) {
		return nil, fault.Invalid("environment.commands", "a variable contains a zero byte")
	}
	return &harnessv1.ProvideEnvironmentResponse{}, p.env.Put(env)
}

// StopProcess has the process drain and end.
func (p *process) StopProcess(ctx context.Context, r *harnessv1.StopProcessRequest) (*harnessv1.StopProcessResponse, error) {
	answer, end := &harnessv1.StopProcessResponse{}, Stopped
	if r.GetSuccessor() {
		working, _, err := p.work(ctx)
		if err != nil {
			return nil, err
		}
		answer.Working, answer.Environments, end = working, p.env.All(), Replaced
		if len(p.successor) > 0 {
			p.node.HandOver()
		}
	}
	if r.GetInterrupt() {
		if err := p.interrupt(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case p.stop <- end:
	default: // it is ending
	}
	return answer, nil
}

// interrupt parks the runs at work.
func (p *process) interrupt(ctx context.Context) error {
	working, _, err := p.work(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	for _, run := range working {
		if _, err := p.node.Client().InterruptRun(ctx, &harnessv1.InterruptRunRequest{
			Namespace: run.GetNamespace(), RunId: run.GetRunId(), Reason: "The background process was stopped; resume the run to continue.",
		}); err != nil {
			return err
		}
	}
	for _, run := range working {
		stream, err := p.node.Client().WatchRun(ctx, &harnessv1.WatchRunRequest{
			Namespace: run.GetNamespace(), RunId: run.GetRunId(), Until: harnessv1.WatchUntil_WATCH_UNTIL_REST, NoDeltas: true, Tree: proto.Bool(false), AfterVersion: 1 << 62,
		})
		for err == nil {
			_, err = stream.Recv()
		}
	}
	return nil
}
