package bridgeserver_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/bridge/bridgeserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

const critic = "critic"

// target is an ExecutorService that is a function.
type target func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error)

type service struct {
	harnessv1.UnimplementedExecutorServiceServer
	target target
}

func (s service) Execute(ctx context.Context, r *harnessv1.ExecuteRequest) (*harnessv1.ExecuteResponse, error) {
	out, err := s.target(ctx, r.GetInput())
	return &harnessv1.ExecuteResponse{Output: out}, err
}

func serve(t *testing.T, f target) string {
	t.Helper()
	return steptest.Serve(t, func(r grpc.ServiceRegistrar) { harnessv1.RegisterExecutorServiceServer(r, service{target: f}) })
}

// bridge makes a bridge to a target.
func bridge(b *steptest.Bed, address string, timeout time.Duration) *bridgeserver.Server {
	b.Helper()
	pool := &remote.Pool{}
	b.Cleanup(pool.Close)
	s, err := bridgeserver.New(bridgeserver.Config{Name: critic, Target: address, Timeout: timeout, Log: b.Log, Remote: pool, Logger: b.Logger()})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// step is a step from the turn to the critic, which the stop decision follows.
func step() *harnessv1.Step {
	return &harnessv1.Step{From: "turn", To: critic,
		Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_REFLECTING, TurnCount: 2, MaxTurns: 9, MessageCount: 5,
			Workflow: []string{"repair", "turn", critic, "stopdecision"}, Config: runstate.Resolve(nil, 0),
			Turn: &harnessv1.TurnState{Number: 2, AgentDone: true},
		},
		Message: &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: 2, AgentDone: true}},
	}
}

// outcome is an answer with a text for the model.
func outcome(text string) *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Outcome{Outcome: &harnessv1.Outcome{
		Appended: []*harnessv1.Message{{Content: content.Inline(text)}},
	}}}
}

// isPassedOn fails the test unless a step is the one that the critic received, passed
// on unchanged.
func isPassedOn(t *testing.T, got *harnessv1.Step) {
	t.Helper()
	want := step()
	if got.GetFrom() != critic || got.GetTo() != workflow.StopDecision || !proto.Equal(got.GetTurnComplete(), want.GetTurnComplete()) ||
		!proto.Equal(got.GetSnapshot(), want.GetSnapshot()) {
		t.Errorf("passed on %v", got)
	}
}

func TestBridgeCommitsTheAnswer(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	received := make(chan *harnessv1.StepInput, 1)
	b.Start(bridge(b, serve(t, func(_ context.Context, in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		received <- in
		return outcome("Test it."), nil
	}), 0).Run)
	put := b.Put(step())
	rec := b.Next()
	in := <-received
	if in.GetNamespace() != b.Run.Namespace || in.GetRunId() != b.Run.ID || in.GetVersion() != 1 || in.GetSequence() != put.Sequence ||
		!proto.Equal(in.GetStep(), step()) {
		t.Errorf("the target received %v", in)
	}
	if got := rec.GetStep(); got.GetFrom() != critic || got.GetTo() != workflow.StopDecision || got.GetSnapshot().GetMessageCount() != 6 {
		t.Errorf("committed %v", got)
	}
	if m := rec.GetAppended(); len(m) != 1 || m[0].GetId() != 6 || m[0].GetContent().GetInline() != "Test it." {
		t.Errorf("appended %v", m)
	}
}

// TestBridgeRetries_WhenTheTargetIsUnavailable: the step is put back, and no failure is
// recorded.
func TestBridgeRetries_WhenTheTargetIsUnavailable(t *testing.T) {
	for _, code := range []codes.Code{codes.Unavailable, codes.Aborted} {
		t.Run(code.String(), func(t *testing.T) {
			t.Parallel()
			b := steptest.New(t, critic)
			var calls atomic.Int32
			b.Start(bridge(b, serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
				if calls.Add(1) == 1 {
					return nil, status.Error(code, "not yet")
				}
				return nil, nil
			}), 0).Run)
			b.Put(step())
			isPassedOn(t, b.NextStep())
			if n := calls.Load(); n != 2 {
				t.Errorf("the target was called %d times", n)
			}
		})
	}
}

// TestBridgeRecordsFailures: an error, a call that takes too long and an answer that is
// no answer are recorded with a reason on one line.
func TestBridgeRecordsFailures(t *testing.T) {
	garbage := func(t *testing.T) string {
		codec := rawCodec{}
		return steptest.Serve(t, func(grpc.ServiceRegistrar) {}, grpc.ForceServerCodecV2(codec), grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
			return s.SendMsg([]byte("\xff\xff no message"))
		}))
	}
	for name, c := range map[string]struct {
		target func(t *testing.T) string
		want   string
	}{
		"an error": {func(t *testing.T) string {
			return serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
				return nil, status.Error(codes.DataLoss, "the disk\nis gone")
			})
		}, "DataLoss: the disk is gone"},
		"no answer in time": {func(t *testing.T) string {
			return serve(t, func(ctx context.Context, _ *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
		}, "within 300ms"},
		"another service": {func(t *testing.T) string { return steptest.Serve(t, func(grpc.ServiceRegistrar) {}) }, "harness.v1.ExecutorService"},
		"a refused answer": {func(t *testing.T) string {
			return serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
				return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: []string{"tokens"}}}}, nil
			})
		}, "needs tokens"},
		"bytes that are no message": {garbage, "Internal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := steptest.New(t, critic)
			b.Start(bridge(b, c.target(t), 300*time.Millisecond).Run)
			b.Put(step())
			failed := b.Next().GetJournal().GetExecutorFailed()
			if failed.GetExecutor() != critic || failed.GetCount() != 1 || !strings.Contains(failed.GetError(), c.want) || strings.Contains(failed.GetError(), "\n") {
				t.Errorf("recorded %v, want one line with %q", failed, c.want)
			}
		})
	}
}

// rawCodec sends bytes unchanged.
type rawCodec struct{}

func (rawCodec) Name() string { return "raw" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// TestBridgeFailsTheRun_AfterFiveFailures passes the turn on with an error of kind
// poison.
func TestBridgeFailsTheRun_AfterFiveFailures(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	b.Start(bridge(b, serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		return nil, status.Error(codes.InvalidArgument, "never")
	}), 0).Run)
	b.Put(step())
	for i := range uint32(5) {
		if failed := b.Next().GetJournal().GetExecutorFailed(); failed.GetCount() != i+1 {
			t.Fatalf("failure %d is recorded as %v", i+1, failed)
		}
	}
	got := b.NextStep()
	if e := got.GetTurnComplete().GetError(); got.GetTo() != workflow.StopDecision || e.GetKind() != harnessv1.TurnErrorKind_TURN_ERROR_KIND_POISON {
		t.Errorf("committed %v", got)
	}
}

// blocking is a target that answers when its call is cancelled. It reports each call
// that starts and each that was cancelled.
func blocking(t *testing.T) (address string, started, cancelled chan struct{}) {
	started, cancelled = make(chan struct{}, 8), make(chan struct{}, 8)
	return serve(t, func(ctx context.Context, _ *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		started <- struct{}{}
		<-ctx.Done()
		cancelled <- struct{}{}
		return nil, ctx.Err()
	}), started, cancelled
}

func TestBridgeCancelsTheCall_WhenTheRunIsInterrupted(t *testing.T) {
	t.Parallel()
	b := steptest.NewLayout(t, jetstream.Layout{Executors: []string{critic}, Takeover: steptest.WithoutHeartbeats})
	address, started, cancelled := blocking(t)
	b.Start(bridge(b, address, 0).Run)
	b.Put(step())
	<-started
	b.Interrupt()
	isPassedOn(t, b.NextStep())
	<-cancelled
}

// TestBridgeReadsTheInbox_WhenAPokeIsLost: the heartbeat reads it too.
func TestBridgeReadsTheInbox_WhenAPokeIsLost(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	address, started, _ := blocking(t)
	b.Start(bridge(b, address, 0).Run)
	b.Put(step())
	<-started
	if _, _, err := b.Log.AppendInbox(b.Context(), b.Run, &harnessv1.InboxItem{Id: "c", Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{}}}, 0); err != nil {
		t.Fatal(err)
	}
	isPassedOn(t, b.NextStep())
}

// TestBridgeReadsTheInbox_BeforeItRetries: a target that is away fails faster than the
// inbox is read, and the interrupt still takes effect on the first call.
func TestBridgeReadsTheInbox_BeforeItRetries(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	var calls atomic.Int32
	address := serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		calls.Add(1)
		return nil, status.Error(codes.Unavailable, "away")
	})
	b.Put(step())
	b.Interrupt()
	b.Start(bridge(b, address, 0).Run)
	isPassedOn(t, b.NextStep())
	if n := calls.Load(); n > 1 {
		t.Errorf("the target was called %d times", n)
	}
}

// TestBridgePutsTheStepBack_WhenItStops: another bridge executes it, and the failed call
// is not counted.
func TestBridgePutsTheStepBack_WhenItStops(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	address, started, cancelled := blocking(t)
	stop := b.Start(bridge(b, address, 0).Run)
	b.Put(step())
	<-started
	stop()
	<-cancelled
	b.Start(bridge(b, serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) { return nil, nil }), 0).Run)
	isPassedOn(t, b.NextStep())
}

func TestExecuteCommitsNothing(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	refuse := atomic.Bool{}
	s := bridge(b, serve(t, func(context.Context, *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		out := outcome("Test it.")
		if refuse.Load() {
			out.GetOutcome().Events = []*harnessv1.Event{{}}
		}
		return out, nil
	}), 0)
	client := harnessv1.NewExecutorServiceClient(steptest.Dial(t, steptest.Serve(t, func(r grpc.ServiceRegistrar) { s.Register(r) })))
	b.Put(step())
	request := &harnessv1.ExecuteRequest{Input: &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: step()}}
	r, err := client.Execute(b.Context(), request)
	if err != nil || len(r.GetOutput().GetOutcome().GetAppended()) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	refuse.Store(true)
	if _, err := client.Execute(b.Context(), request); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a refused answer: %v", err)
	}
	_, err = client.Execute(b.Context(), &harnessv1.ExecuteRequest{})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "input.step.snapshot") {
		t.Errorf("an input without a snapshot: %v", err)
	}
	b.IsNewest()
}

func TestReachNamesTheExecutor_WhenItsTargetIsAway(t *testing.T) {
	t.Parallel()
	b := steptest.New(t, critic)
	if err := bridge(b, steptest.Serve(t, func(grpc.ServiceRegistrar) {}), 0).Reach(b.Context()); err != nil {
		t.Errorf("a target that serves: %v", err)
	}
	if err := bridge(b, "127.0.0.1:1", 0).Reach(b.Context()); err == nil || !strings.Contains(err.Error(), critic) || !strings.Contains(err.Error(), "--target") {
		t.Errorf("a target that is away: %v", err)
	}
}

func TestNewNamesTheFlag(t *testing.T) {
	for want, cfg := range map[string]bridgeserver.Config{
		"--executor": {Name: "turn", Target: "127.0.0.1:1"},
		"--target":   {Name: critic, Target: "nowhere"},
	} {
		cfg.Remote = &remote.Pool{}
		if _, err := bridgeserver.New(cfg); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
}
