package hookcaller_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestCallReturnsTheVerdictOfAHookService(t *testing.T) {
	b := newBed(t, nil)
	want := &harnessv1.HookVerdict{Action: deny, Reason: "not here", Context: "Use the trash."}
	asked := make(chan *harnessv1.HookRequest, 1)
	target := serveHooks(t, func(_ context.Context, r *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
		asked <- r
		return want, nil
	})
	req := request(beforeTool, "k")
	got := b.Call(t.Context(), &harnessv1.Hook{Grpc: target}, req, b.info)
	if !proto.Equal(got, &harnessv1.HookOutcome{Verdict: want}) || !proto.Equal(<-asked, req) {
		t.Fatalf("got %v", got)
	}
}

func TestCallFails_WhenAHookServiceDoesNotAnswer(t *testing.T) {
	b := newBed(t, nil)
	silent := serveHooks(t, func(ctx context.Context, _ *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	short := durationpb.New(30 * time.Millisecond)
	for name, c := range map[string]struct {
		hook *harnessv1.Hook
		info hookcaller.RunInfo
		want string
	}{
		"its own time": {&harnessv1.Hook{Grpc: silent, Timeout: short}, hookcaller.RunInfo{Timeout: time.Hour}, "no answer within 30ms"},
		"the run's":    {&harnessv1.Hook{Grpc: silent}, hookcaller.RunInfo{Timeout: 40 * time.Millisecond}, "no answer within 40ms"},
		"no server":    {&harnessv1.Hook{Grpc: unusedAddress(t)}, hookcaller.RunInfo{}, "connection refused"},
		"no verdict":   {&harnessv1.Hook{Grpc: serveHooks(t, func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) { return nil, nil })}, hookcaller.RunInfo{}, "neither"},
		"an error": {&harnessv1.Hook{Grpc: serveHooks(t, func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
			return nil, status.Error(codes.Internal, "boom\nbang")
		})}, hookcaller.RunInfo{}, "boom bang"},
		"says too much": {&harnessv1.Hook{Grpc: serveHooks(t, func(context.Context, *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
			return &harnessv1.HookVerdict{Payload: strings.Repeat("x", hook.MaxPayload+1)}, nil
		})}, hookcaller.RunInfo{}, "at most 65536"},
		"no kind": {&harnessv1.Hook{Cel: "true"}, hookcaller.RunInfo{}, "none that is called"},
		"no host": {&harnessv1.Hook{Command: "true"}, hookcaller.RunInfo{}, "no command can be run"},
	} {
		got := b.Call(t.Context(), c.hook, request(beforeTool, "k"), c.info)
		if got.GetVerdict() != nil || !strings.Contains(got.GetError(), c.want) || strings.Contains(got.GetError(), "\n") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	b := newBed(t, nil)
	arrived := make(chan struct{})
	silent := serveHooks(t, func(ctx context.Context, _ *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
		close(arrived)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan *harnessv1.HookOutcome)
	go func() {
		ended <- b.Call(ctx, &harnessv1.Hook{Grpc: silent, Timeout: durationpb.New(time.Minute)}, request(beforeTool, "k"), b.info)
	}()
	<-arrived
	cancel(errors.New("the run was interrupted"))
	if got := <-ended; !strings.Contains(got.GetError(), "the run was interrupted") {
		t.Fatalf("got %v", got)
	}
}

func TestCallReturnsTheVerdictOfAClient(t *testing.T) {
	b := newBed(t, nil)
	callback := &harnessv1.Hook{Callback: true}
	if got := b.Call(t.Context(), callback, request(beforeTool, "k"), b.info); !strings.Contains(got.GetError(), "no client answers") {
		t.Fatalf("got %v", got)
	}
	stop, err := b.log.ServeHooks(run, func(ctx context.Context, r *harnessv1.HookRequest) (*harnessv1.HookAnswer, error) {
		switch r.GetIdempotencyKey() {
		case "late":
			<-ctx.Done()
			return nil, ctx.Err()
		case "broken":
			return &harnessv1.HookAnswer{Error: "it broke"}, nil
		case "empty":
			return &harnessv1.HookAnswer{}, nil
		}
		return &harnessv1.HookAnswer{Verdict: &harnessv1.HookVerdict{Action: deny}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if got := b.Call(t.Context(), callback, request(beforeTool, "k"), b.info); got.GetVerdict().GetAction() != deny {
		t.Errorf("got %v", got)
	}
	late := &harnessv1.Hook{Callback: true, Timeout: durationpb.New(20 * time.Millisecond)}
	for key, h := range map[string]*harnessv1.Hook{"broken": callback, "empty": callback, "late": late} {
		if got := b.Call(t.Context(), h, request(beforeTool, key), b.info); got.GetError() == "" || got.GetVerdict() != nil {
			t.Errorf("%s: %v", key, got)
		}
	}
}

// TestFireCallsHooksInOrder: each call that fails follows the policy of its hook.
func TestFireCallsHooksInOrder(t *testing.T) {
	b := newBed(t, nil)
	var order []string
	say := func(name string, v *harnessv1.HookVerdict) string {
		return serveHooks(t, func(_ context.Context, r *harnessv1.HookRequest) (*harnessv1.HookVerdict, error) {
			order = append(order, name+" "+r.GetPayload())
			return v, nil
		})
	}
	set := compile(t,
		&harnessv1.Hook{Id: "open", Topic: beforeTool, Grpc: unusedAddress(t), OnFailure: harnessv1.HookFailure_HOOK_FAILURE_OPEN},
		&harnessv1.Hook{Id: "safer", Topic: beforeTool, Grpc: say("safer", &harnessv1.HookVerdict{
			Action: harnessv1.HookAction_HOOK_ACTION_REPLACE, Payload: `{"arguments":{"command":"ls"}}`,
		})},
		&harnessv1.Hook{Id: "seen", Topic: beforeTool, Grpc: say("seen", &harnessv1.HookVerdict{Context: "Mind the cat."})},
		&harnessv1.Hook{Id: "rule", Topic: beforeTool, Cel: `args.command == "ls"`, Action: carryOn},
		&harnessv1.Hook{Id: "shut", Topic: beforeTool, Grpc: unusedAddress(t)},
		&harnessv1.Hook{Id: "never", Topic: beforeTool, Grpc: say("never", nil)},
	)
	r := b.Fire(t.Context(), set, hook.Point{
		Namespace: run.Namespace, RunID: run.ID, Topic: beforeTool, Key: "1/c", Tool: "run_command",
		Payload: map[string]any{"arguments": map[string]any{"command": "rm"}},
	}, b.info)
	if want := []string{`safer {"arguments":{"command":"rm"}}`, `seen {"arguments":{"command":"ls"}}`}; !slices.Equal(order, want) {
		t.Fatalf("called %q", order)
	}
	if r.Action != deny || r.HookID != "shut" || !strings.Contains(r.Reason, "refused") || !r.Replaced || len(r.Events) != 5 || len(r.Context) != 1 {
		t.Fatalf("got %+v", r)
	}
	if open, shut := r.Events[0].GetHookError(), r.Events[4].GetHookError(); open.GetFailedClosed() || !shut.GetFailedClosed() {
		t.Fatalf("got %v and %v", open, shut)
	}
}

func TestReachReportsUnreachableServices(t *testing.T) {
	there, away := serveHooks(t, nil), unusedAddress(t)
	open := func(target string) *harnessv1.Hook { return &harnessv1.Hook{Topic: afterTool, Grpc: target} }
	shut := func(target string) *harnessv1.Hook { return &harnessv1.Hook{Topic: beforeTool, Grpc: target} }
	rule := &harnessv1.Hook{Topic: beforeTool, Cel: "true", Action: deny}
	for _, c := range []*hookcaller.Caller{newBed(t, nil).Caller, hookcaller.New(hookcaller.Config{})} {
		warnings, err := c.Reach(t.Context(), []*harnessv1.Hook{rule, open(there), shut(there), open(away)})
		if err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0], "hooks[3].grpc: "+away+" cannot be reached: ") {
			t.Errorf("got %q, %v", warnings, err)
		}
		_, err = c.Reach(t.Context(), []*harnessv1.Hook{rule, open(away), shut(away)})
		var invalid *fault.FieldError
		if !errors.As(err, &invalid) || invalid.Field != "hooks[2].grpc" || !strings.Contains(invalid.Message, away) {
			t.Errorf("got %v", err)
		}
		if warnings, err := c.Reach(t.Context(), nil); len(warnings) != 0 || err != nil {
			t.Errorf("got %q, %v", warnings, err)
		}
	}
}
