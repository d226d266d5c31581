package hookcaller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// host is a tool host whose answers are a function; the tests of examples/hooks use a real one.
type host struct {
	harnessv1.UnimplementedToolHostServiceServer
	answer func(ctx context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error)
	killed chan *harnessv1.CancelToolsRequest
}

func (h host) CheckCommand(ctx context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
	return h.answer(ctx, r)
}

func (h host) CancelTools(_ context.Context, r *harnessv1.CancelToolsRequest) (*harnessv1.CancelToolsResponse, error) {
	h.killed <- r
	return &harnessv1.CancelToolsResponse{Killed: r.GetCallIds()}, nil
}

func serveHost(t testing.TB, h host) harnessv1.ToolHostServiceClient {
	return harnessv1.NewToolHostServiceClient(client(t, serve(t, func(s *grpc.Server) { harnessv1.RegisterToolHostServiceServer(s, h) })))
}

// respond is a tool host that gives every command the same response.
func respond(t testing.TB, resp *harnessv1.CheckCommandResponse) harnessv1.ToolHostServiceClient {
	return serveHost(t, host{answer: func(context.Context, *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		return resp, nil
	}})
}

const done = harnessv1.ToolOutcome_TOOL_OUTCOME_DONE

var command = &harnessv1.Hook{Command: "check"}

func TestCommandReadsTheRequestAsJSON(t *testing.T) {
	requests := make(chan *harnessv1.CheckCommandRequest, 1)
	b := newBed(t, serveHost(t, host{answer: func(_ context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		requests <- r
		return &harnessv1.CheckCommandResponse{Outcome: done}, nil
	}}))
	h := &harnessv1.Hook{Command: "check", Timeout: durationpb.New(3 * time.Second)}
	b.info.Sandbox = &harnessv1.SandboxConfig{Read: []string{"/data"}}
	if got := b.Call(t.Context(), h, request(beforeTool, "k"), b.info); got.GetVerdict().GetAction() != carryOn {
		t.Fatalf("got %v", got)
	}
	r := <-requests
	want := &harnessv1.CheckCommandRequest{
		Namespace: "n", RunId: "r", Key: "k", Command: "check", Workspace: b.info.Workspace, Timeout: h.Timeout, FirstSequence: 7, Input: r.GetInput(),
		Confinement: &harnessv1.Confinement{Config: b.info.Sandbox},
	}
	if !proto.Equal(r, want) {
		t.Errorf("got %v", r)
	}
	if want := `{"namespace":"n","run_id":"r","hook_id":"h","topic":"before_tool_call","idempotency_key":"k","turn_number":3,` +
		`"payload":{"arguments":{"command":"rm -rf /"},"tool":"run_command"}}` + "\n"; r.GetInput() != want || !json.Valid([]byte(want)) {
		t.Errorf("it reads %s", r.GetInput())
	}
}

// TestCommandIsConfinedAsTheRun, unless the user's file lets it run outside; a program outside
// the workspace can be read.
func TestCommandIsConfinedAsTheRun(t *testing.T) {
	requests := make(chan *harnessv1.CheckCommandRequest, 1)
	b := newBed(t, serveHost(t, host{answer: func(_ context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		requests <- r
		return &harnessv1.CheckCommandResponse{Outcome: done}, nil
	}}))
	b.info.Sandbox = &harnessv1.SandboxConfig{Read: []string{"/data"}}
	withProgram := &harnessv1.SandboxConfig{Read: []string{"/data", "/srv/guard.sh"}}
	for _, c := range []struct {
		hook *harnessv1.Hook
		want *harnessv1.Confinement
	}{
		{&harnessv1.Hook{Command: "scripts/guard.sh"}, &harnessv1.Confinement{Config: b.info.Sandbox}},
		{&harnessv1.Hook{Command: "/usr/bin/env guard"}, &harnessv1.Confinement{Config: b.info.Sandbox}},
		{&harnessv1.Hook{Command: "/srv/guard.sh -x"}, &harnessv1.Confinement{Config: withProgram}},
		{&harnessv1.Hook{Command: "/srv/guard.sh", Unconfined: true}, &harnessv1.Confinement{Config: b.info.Sandbox, Level: sandbox.Off}},
	} {
		if got := b.Call(t.Context(), c.hook, request(beforeTool, "k"), b.info); got.GetVerdict().GetAction() != carryOn {
			t.Fatalf("got %v", got)
		}
		if r := <-requests; !proto.Equal(r.GetConfinement(), c.want) {
			t.Errorf("%v is confined as %v", c.hook, r.GetConfinement())
		}
	}
	if len(b.info.Sandbox.GetRead()) != 1 {
		t.Errorf("the run's own settings are now %v", b.info.Sandbox)
	}
}

func TestExitCodeIsTheVerdict(t *testing.T) {
	for _, c := range []struct {
		topic  harnessv1.HookTopic
		resp   *harnessv1.CheckCommandResponse
		action harnessv1.HookAction
		want   string // of the reason or the error
	}{
		{beforeTool, &harnessv1.CheckCommandResponse{ErrorOutput: "talk"}, carryOn, ""},
		{beforeTool, &harnessv1.CheckCommandResponse{ExitCode: 2, ErrorOutput: " not here\n"}, deny, "not here"},
		{agentStop, &harnessv1.CheckCommandResponse{ExitCode: 2, ErrorOutput: "tests fail"}, harnessv1.HookAction_HOOK_ACTION_BLOCK, "tests fail"},
		{beforeStep, &harnessv1.CheckCommandResponse{ExitCode: 2}, harnessv1.HookAction_HOOK_ACTION_ABORT, ""},
		{afterTool, &harnessv1.CheckCommandResponse{ExitCode: 2}, harnessv1.HookAction_HOOK_ACTION_ABORT, ""},
		{beforeTool, &harnessv1.CheckCommandResponse{ExitCode: 2, ErrorOutput: strings.Repeat("x", 10_000)}, deny, strings.Repeat("x", hook.MaxReason)},
		{onPause, &harnessv1.CheckCommandResponse{ExitCode: 2}, 0, "nothing can be refused at on_pause"},
		{beforeTool, &harnessv1.CheckCommandResponse{ExitCode: 1}, 0, "exit code 1; 0 lets things go on"},
		{beforeTool, &harnessv1.CheckCommandResponse{ExitCode: 127, ErrorOutput: "sh: check: not found\n"}, 0, "exit code 127: sh: check: not found"},
		{beforeTool, &harnessv1.CheckCommandResponse{ExitCode: 124}, 0, "longer than 5s"},
		{beforeTool, &harnessv1.CheckCommandResponse{Error: "no such directory"}, 0, "no such directory"},
		{beforeTool, &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED}, 0, "killed"},
		{beforeTool, &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, 0, "died twice"},
	} {
		if c.resp.GetOutcome() == 0 {
			c.resp.Outcome = done
		}
		b := newBed(t, respond(t, c.resp))
		got := b.Call(t.Context(), command, request(c.topic, "k"), b.info)
		if c.action == 0 {
			if got.GetVerdict() != nil || !strings.Contains(got.GetError(), c.want) {
				t.Errorf("%v: %v", c.resp, got)
			}
			continue
		}
		if got.GetVerdict().GetAction() != c.action || got.GetVerdict().GetReason() != c.want {
			t.Errorf("%v, %v: %v", c.topic, c.resp, got)
		}
	}
}

func TestOutputMayBeAVerdict(t *testing.T) {
	for text, want := range map[string]*harnessv1.HookVerdict{
		"":                                     {Action: carryOn},
		"checked 3 files\n{}\n":                {Action: carryOn},
		"{}":                                   {Action: carryOn},
		` {"context":"Mind the cat."} ` + "\n": {Action: carryOn, Context: "Mind the cat."},
		`{"action":"deny","reason":"no","payload":null}`:           {Action: deny, Reason: "no"},
		`{"action":"replace","payload":{"arguments":{"n":1e400}}}`: {Action: harnessv1.HookAction_HOOK_ACTION_REPLACE, Payload: `{"arguments":{"n":1e400}}`},
		`{"action":"DENY"}`: nil, `{"action":"allow"}`: nil, `{"verdict":"deny"}`: nil, `{"action":"deny"} {}`: nil, `{"action":"deny"} }`: nil,
		`{"action":"deny"`: nil, `{"action":2}`: nil, `{"reason":["a"]}`: nil,
	} {
		b := newBed(t, respond(t, &harnessv1.CheckCommandResponse{Outcome: done, Output: text}))
		got := b.Call(t.Context(), command, request(beforeTool, "k"), b.info)
		switch {
		case want == nil && (got.GetVerdict() != nil || !strings.Contains(got.GetError(), "no verdict")):
			t.Errorf("%s: %v", text, got)
		case want != nil && !proto.Equal(got.GetVerdict(), want):
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestCommandRunsAgain_WhenItsToolHostDied: under another key.
func TestCommandRunsAgain_WhenItsToolHostDied(t *testing.T) {
	var keys []string
	b := newBed(t, serveHost(t, host{answer: func(_ context.Context, r *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		keys = append(keys, r.GetKey())
		if len(keys) == 1 {
			return &harnessv1.CheckCommandResponse{Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN}, nil
		}
		return &harnessv1.CheckCommandResponse{Outcome: done, ExitCode: 2, ErrorOutput: "no"}, nil
	}}))
	got := b.Call(t.Context(), command, request(beforeTool, "k"), b.info)
	if got.GetVerdict().GetAction() != deny || !slices.Equal(keys, []string{"k", "k/2"}) {
		t.Fatalf("got %v under %v", got, keys)
	}
}

func TestUnreachableToolHostIsCalledAgainUntilTheTimeout(t *testing.T) {
	calls := 0
	b := newBed(t, serveHost(t, host{answer: func(context.Context, *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		if calls++; calls < 3 {
			return nil, status.Error(codes.Unavailable, "starting")
		}
		return &harnessv1.CheckCommandResponse{Outcome: done}, nil
	}}))
	if got := b.Call(t.Context(), command, request(beforeTool, "k"), b.info); got.GetVerdict().GetAction() != carryOn || calls != 3 {
		t.Fatalf("got %v after %d calls", got, calls)
	}
	away := newBed(t, harnessv1.NewToolHostServiceClient(client(t, unusedAddress(t))))
	short := &harnessv1.Hook{Command: "check", Timeout: durationpb.New(50 * time.Millisecond)}
	if got := away.Call(t.Context(), short, request(beforeTool, "k"), b.info); !strings.Contains(got.GetError(), "tool host cannot be reached") {
		t.Fatalf("got %v", got)
	}
	refusing := newBed(t, serveHost(t, host{answer: func(context.Context, *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
		return nil, status.Error(codes.InvalidArgument, "workspace: is relative")
	}}))
	if got := refusing.Call(t.Context(), command, request(beforeTool, "k"), b.info); got.GetError() != "the tool host: workspace: is relative" {
		t.Fatalf("got %v", got)
	}
}

// TestOnlyErrKillKillsACommand: a worker that takes over the run joins its command.
func TestOnlyErrKillKillsACommand(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		kills bool
	}{
		"interrupted": {fmt.Errorf("interrupted: %w", hookcaller.ErrKill), true}, "taken over": {context.Canceled, false},
	} {
		arrived, killed := make(chan struct{}), make(chan *harnessv1.CancelToolsRequest, 1)
		b := newBed(t, serveHost(t, host{killed: killed, answer: func(ctx context.Context, _ *harnessv1.CheckCommandRequest) (*harnessv1.CheckCommandResponse, error) {
			close(arrived)
			<-ctx.Done()
			return nil, ctx.Err()
		}}))
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan *harnessv1.HookOutcome)
		go func() { ended <- b.Call(ctx, command, request(beforeTool, "k"), b.info) }()
		<-arrived
		cancel(c.cause)
		if got := <-ended; !strings.Contains(got.GetError(), "broken off") {
			t.Errorf("%s: %v", name, got)
		}
		if len(killed) == 1 != c.kills {
			t.Errorf("%s: killed %v", name, len(killed) == 1)
		}
		if c.kills {
			if r := <-killed; !slices.Equal(r.GetCallIds(), []string{"k"}) || r.GetFirstSequence() != 7 || r.GetRunId() != "r" {
				t.Errorf("killed %v", r)
			}
		}
	}
}
