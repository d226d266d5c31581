package hookcaller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

const (
	// grace is how much longer than its timeout the caller of a command waits for the
	// result.
	grace = 2 * time.Second
	// hostPause is the wait before a tool host that cannot be reached is called again.
	hostPause = 100 * time.Millisecond
	// killTime is how long kill waits until the command is dead.
	killTime = 5 * time.Second

	exitRefused  = 2   // exit code of a command that refuses
	exitTimedOut = 124 // exit code of a command that exceeded its timeout
)

// input is a request as a command reads it.
type input struct {
	Namespace      string          `json:"namespace"`
	RunID          string          `json:"run_id"`
	HookID         string          `json:"hook_id"`
	Topic          string          `json:"topic"`
	IdempotencyKey string          `json:"idempotency_key"`
	TurnNumber     uint32          `json:"turn_number"`
	Payload        json.RawMessage `json:"payload"`
}

// output is a verdict as a command writes it.
type output struct {
	Action  string          `json:"action"`
	Reason  string          `json:"reason"`
	Payload json.RawMessage `json:"payload"`
	Context string          `json:"context"`
}

// command runs a command under the key of the request. If the tool host dies while it
// runs, it runs a second time, under another key.
func (c *Caller) command(ctx context.Context, h *harnessv1.Hook, req *harnessv1.HookRequest, info RunInfo, timeout time.Duration) (*harnessv1.HookVerdict, error) {
	if c.cfg.ToolHost == nil {
		return nil, errors.New("no command can be run from here")
	}
	text, err := hook.Encode(input{
		Namespace: req.GetNamespace(), RunID: req.GetRunId(), HookID: req.GetHookId(), Topic: hook.TopicName(req.GetTopic()),
		IdempotencyKey: req.GetIdempotencyKey(), TurnNumber: req.GetTurnNumber(), Payload: json.RawMessage(req.GetPayload()),
	})
	if err != nil {
		return nil, err
	}
	check := &harnessv1.CheckCommandRequest{
		Namespace: req.GetNamespace(), RunId: req.GetRunId(), Key: req.GetIdempotencyKey(), Command: h.GetCommand(), Input: text + "\n",
		Workspace: info.Workspace, Timeout: durationpb.New(timeout), FirstSequence: info.FirstSequence,
		Confinement: confinement(h, info.Sandbox),
	}
	resp, err := c.check(ctx, check, timeout)
	if err == nil && resp.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		check.Key += "/2"
		resp, err = c.check(ctx, check, timeout)
	}
	if err != nil {
		return nil, err
	}
	return verdictOf(req.GetTopic(), resp, timeout)
}

// check runs a command on the tool host. A host that cannot be reached is called again
// within the timeout.
func (c *Caller) check(ctx context.Context, check *harnessv1.CheckCommandRequest, timeout time.Duration) (*harnessv1.CheckCommandResponse, error) {
	called, cancel := context.WithTimeout(ctx, timeout+grace)
	defer cancel()
	patience := time.NewTimer(timeout)
	defer patience.Stop()
	for {
		resp, err := c.cfg.ToolHost.CheckCommand(called, check)
		switch {
		case err == nil:
			return resp, nil
		case ctx.Err() != nil:
			c.kill(ctx, check)
			return nil, ctx.Err()
		case called.Err() != nil:
			return nil, called.Err()
		case status.Code(err) != codes.Unavailable:
			return nil, fmt.Errorf("the tool host: %s", remote.Reason(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(hostPause):
		case <-patience.C:
			return nil, fmt.Errorf("the tool host cannot be reached: %s", remote.Reason(err))
		}
	}
}

// kill kills a command if its context ended with the cause ErrKill.
func (c *Caller) kill(ctx context.Context, check *harnessv1.CheckCommandRequest) {
	if !errors.Is(context.Cause(ctx), ErrKill) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	_, err := c.cfg.ToolHost.CancelTools(ctx, &harnessv1.CancelToolsRequest{
		Namespace: check.GetNamespace(), RunId: check.GetRunId(), CallIds: []string{check.GetKey()}, FirstSequence: check.GetFirstSequence(),
	})
	if err != nil {
		c.cfg.Logger.WarnContext(ctx, "hook command not killed; it may run until its timeout", "namespace", check.GetNamespace(), "run", check.GetRunId(),
			"key", check.GetKey(), "error", err)
	}
}

// systemFolders are readable in every sandbox.
var systemFolders = []string{"/bin", "/lib", "/nix", "/opt", "/sbin", "/usr"}

// confinement returns how the command of a hook is confined: as the commands of the run, but
// it can read its own program, which people keep outside the workspace.
func confinement(h *harnessv1.Hook, cfg *harnessv1.SandboxConfig) *harnessv1.Confinement {
	if h.GetUnconfined() {
		return &harnessv1.Confinement{Config: cfg, Level: sandbox.Off}
	}
	program, _, _ := strings.Cut(strings.TrimSpace(h.GetCommand()), " ")
	system := slices.ContainsFunc(systemFolders, func(folder string) bool { return sandbox.Within(program, folder) })
	if !filepath.IsAbs(program) || system || filepath.Clean(program) != program {
		return &harnessv1.Confinement{Config: cfg}
	}
	cfg = proto.CloneOf(cfg)
	if cfg == nil {
		cfg = &harnessv1.SandboxConfig{}
	}
	cfg.Read = append(cfg.Read, program)
	return &harnessv1.Confinement{Config: cfg}
}

// verdictOf returns the verdict that the exit code and the output of a command mean.
func verdictOf(topic harnessv1.HookTopic, resp *harnessv1.CheckCommandResponse, timeout time.Duration) (*harnessv1.HookVerdict, error) {
	text := strings.TrimSpace(resp.GetErrorOutput())
	switch code := resp.GetExitCode(); {
	case resp.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		return nil, errors.New("the tool host died twice while the command ran")
	case resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE:
		return nil, errors.New("the command was killed")
	case resp.GetError() != "":
		return nil, fmt.Errorf("the command could not be run: %s", resp.GetError())
	case code == 0:
		return parse(resp.GetOutput())
	case code == exitRefused && hook.Refusal(topic) == harnessv1.HookAction_HOOK_ACTION_CONTINUE:
		return nil, fmt.Errorf("exit code 2: nothing can be refused at %s", hook.TopicName(topic))
	case code == exitRefused:
		return &harnessv1.HookVerdict{Action: hook.Refusal(topic), Reason: content.Cut(text, hook.MaxReason)}, nil
	case code == exitTimedOut:
		return nil, fmt.Errorf("the command took longer than %v", timeout)
	case text != "":
		return nil, fmt.Errorf("exit code %d: %s", code, text)
	default:
		return nil, fmt.Errorf("exit code %d; 0 lets things go on, 2 does not", code)
	}
}

// parse returns the verdict that a command has written. Output that is no JSON object
// means CONTINUE.
func parse(text string) (*harnessv1.HookVerdict, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "{") {
		return &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE}, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	var out output
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("its output is no verdict: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("its output is no verdict: something follows the JSON object")
	}
	v := &harnessv1.HookVerdict{Action: harnessv1.HookAction_HOOK_ACTION_CONTINUE, Reason: out.Reason, Context: out.Context}
	if !bytes.Equal(out.Payload, []byte("null")) {
		v.Payload = strings.ToValidUTF8(string(out.Payload), "\uFFFD")
	}
	if out.Action == "" {
		return v, nil
	}
	var ok bool
	if v.Action, ok = hook.ParseAction(out.Action); !ok {
		return nil, fmt.Errorf("its output is no verdict: %q is no action", out.Action)
	}
	return v, nil
}
