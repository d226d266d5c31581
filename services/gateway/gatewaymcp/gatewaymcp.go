// Package gatewaymcp serves the gateway over the Model Context Protocol, so that an agent of
// another program can start runs, wait for them, and answer what they wait for.
//
// It has no state: each call of a tool becomes a call of GatewayService with the rights of its
// caller. The client is a model. So approvals are refused unless Config.Approves permits them:
// what a person has to approve is not approved by another agent.
package gatewaymcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const (
	// defaultWait and maxWait bound how long wait_run waits, in seconds.
	defaultWait = 30
	maxWait     = 300
	// maxListed bounds the runs of a list.
	maxListed = 50
)

// Config configures a server. Gateway and Approves are required.
type Config struct {
	// Gateway is called with the context of the call.
	Gateway harnessv1.GatewayServiceClient
	// Approves reports whether the caller may approve calls of tools.
	Approves func(context.Context) bool
	// Spec is what runs are started with, apart from what a call says; may be nil.
	Spec *harnessv1.RunSpec
	// Fixed: a person has named the agent or the workspace of Spec. A call cannot replace its
	// instructions and its mode, and names only folders within its workspace.
	Fixed bool
	// Namespace of calls that name none; empty: default.
	Namespace string
	// Version of the program.
	Version string
}

// Handler serves over streamable HTTP, without sessions.
func Handler(cfg Config) http.Handler {
	server := New(cfg)
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
		// The caller of this handler checks origins, hosts and tokens.
		&mcp.StreamableHTTPOptions{Stateless: true, DisableLocalhostProtection: true})
}

// Serve serves one client on a reader and a writer, until it leaves or ctx ends.
func Serve(ctx context.Context, cfg Config, in io.ReadCloser, out io.WriteCloser) error {
	err := New(cfg).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

// service has the tools.
type service struct{ cfg Config }

func New(cfg Config) *mcp.Server {
	s := &service{cfg}
	server := mcp.NewServer(&mcp.Implementation{Name: "harnessmesh", Version: cfg.Version}, &mcp.ServerOptions{
		Instructions: "Runs are agents that work for minutes or hours. Start one with start_run, and call wait_run until it has ended or waits for an answer. " +
			"Give start_run, continue_run, cancel_run and answer a request_id: a call that is repeated with it has no second effect.",
		// The list of tools never changes, and there is nothing but tools.
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	server.AddReceivingMiddleware(onlyTools)
	reads := &mcp.ToolAnnotations{ReadOnlyHint: true}
	add(server, &mcp.Tool{Name: "start_run", Description: "Starts a run of an agent, which works for the goal until it is done. Returns its run_id."}, s.start)
	add(server, &mcp.Tool{Name: "continue_run", Description: "Sends a message of the user to a run. A run that has ended works on."}, s.send)
	add(server, &mcp.Tool{Name: "wait_run", Description: "Waits until a run has ended or waits for an answer, at most for some seconds, and returns its status, result and pending calls.", Annotations: reads}, s.wait)
	add(server, &mcp.Tool{Name: "run_status", Description: "Returns the status of a run, its result, and the calls that wait for an answer.", Annotations: reads}, s.status)
	add(server, &mcp.Tool{Name: "list_runs", Description: "Lists runs, newest first.", Annotations: reads}, s.list)
	add(server, &mcp.Tool{Name: "list_pending", Description: "Lists the calls of tools that wait for an answer from outside, of one run or of all.", Annotations: reads}, s.pending)
	add(server, &mcp.Tool{Name: "answer", Description: "Answers a call that waits: with text for a question or the tool of a client, or with a decision for an approval."}, s.answer)
	add(server, &mcp.Tool{Name: "cancel_run", Description: "Ends a run with everything that it has started."}, s.cancel)
	return server
}

// onlyTools refuses methods of capabilities that the server does not declare. The SDK answers them with
// empty lists, from which a client would conclude that the server has the capability.
func onlyTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		switch capability, _, _ := strings.Cut(method, "/"); capability {
		case "prompts", "resources", "completion", "logging":
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + ": this server has tools only"}
		}
		return next(ctx, method, request)
	}
}

// add adds a tool whose result is the JSON of a message.
func add[In any](server *mcp.Server, t *mcp.Tool, call func(context.Context, In) (proto.Message, error)) {
	mcp.AddTool(server, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		m, err := call(ctx, in)
		if err != nil {
			return nil, nil, errors.New(reason(err))
		}
		data, err := eventjson.Message(m)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(data)}}, StructuredContent: json.RawMessage(data)}, nil, nil
	})
}

// reason returns an error as one line for the client.
func reason(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Code().String() + ": " + s.Message()
	}
	return err.Error()
}

type startInput struct {
	Goal         string `json:"goal" jsonschema:"what the agent is to achieve"`
	RequestID    string `json:"request_id,omitempty" jsonschema:"the same id starts no second run"`
	RunID        string `json:"run_id,omitempty" jsonschema:"id of the new run; left out: made up"`
	Namespace    string `json:"namespace,omitempty"`
	Workspace    string `json:"workspace,omitempty" jsonschema:"absolute path of the folder in which the agent works"`
	Model        string `json:"model,omitempty" jsonschema:"PROVIDER:NAME"`
	Instructions string `json:"instructions,omitempty" jsonschema:"the agent's part of the system prompt"`
	Mode         string `json:"mode,omitempty" jsonschema:"plan or execute"`
	Autonomous   bool   `json:"autonomous,omitempty" jsonschema:"no person can answer questions"`
	MaxTurns     uint32 `json:"max_turns,omitempty" jsonschema:"turns after which it ends"`
}

func (s *service) start(ctx context.Context, in startInput) (proto.Message, error) {
	spec, err := s.spec(in)
	if err != nil {
		return nil, err
	}
	return s.cfg.Gateway.StartRun(ctx, &harnessv1.StartRunRequest{Namespace: s.namespace(in.Namespace), RunId: in.RunID, RequestId: in.RequestID, Spec: spec})
}

// spec returns what a call starts a run with.
func (s *service) spec(in startInput) (*harnessv1.RunSpec, error) {
	if err := s.checkFixed(in); err != nil {
		return nil, err
	}
	spec := &harnessv1.RunSpec{}
	if s.cfg.Spec != nil {
		spec = proto.CloneOf(s.cfg.Spec)
	}
	if spec.Agent == nil {
		spec.Agent = &harnessv1.AgentSpec{}
	}
	spec.Goal = content.Inline(in.Goal)
	for _, given := range []struct {
		value string
		field *string
	}{{in.Model, &spec.Agent.Model}, {in.Instructions, &spec.Agent.Instructions}, {in.Workspace, &spec.Workspace}, {in.Mode, &spec.Agent.Mode}} {
		if given.value != "" {
			*given.field = given.value
		}
	}
	spec.Agent.Autonomous = spec.GetAgent().GetAutonomous() || in.Autonomous
	if in.MaxTurns > 0 {
		if spec.Config == nil {
			spec.Config = &harnessv1.LoopConfig{}
		}
		if spec.Config.Stop == nil {
			spec.Config.Stop = &harnessv1.StopConfig{}
		}
		spec.Config.Stop.MaxTurns = &in.MaxTurns
	}
	return spec, nil
}

// checkFixed refuses a call that replaces what a person has named.
func (s *service) checkFixed(in startInput) error {
	if !s.cfg.Fixed {
		return nil
	}
	agent, root := s.cfg.Spec.GetAgent(), s.cfg.Spec.GetWorkspace()
	switch {
	case in.Instructions != "" && in.Instructions != agent.GetInstructions():
		return errors.New("instructions: a person has named the agent of this server: leave them out")
	case in.Mode != "" && in.Mode != agent.GetMode():
		return errors.New("mode: a person has named the agent of this server: leave it out")
	case in.Workspace == "":
		return nil
	}
	relative, err := filepath.Rel(root, filepath.Clean(in.Workspace))
	if root == "" || !filepath.IsAbs(in.Workspace) || err != nil || relative == ".." || strings.HasPrefix(relative, "../") {
		return fmt.Errorf("workspace: %q is not within %s, the workspace of this server", content.Clip(in.Workspace, 200), root)
	}
	if resolved, err := filepath.EvalSymlinks(in.Workspace); err == nil { // it is a folder of this machine
		within, err := filepath.EvalSymlinks(root)
		if relative, rel := filepath.Rel(within, resolved); err != nil || rel != nil || relative == ".." || strings.HasPrefix(relative, "../") {
			return fmt.Errorf("workspace: %q leads out of %s, the workspace of this server", content.Clip(in.Workspace, 200), root)
		}
	}
	return nil
}

// namespace returns the namespace that a call names.
func (s *service) namespace(named string) string {
	if named == "" {
		return s.cfg.Namespace
	}
	return named
}

type sendInput struct {
	RunID     string `json:"run_id"`
	Message   string `json:"message" jsonschema:"what the user says"`
	RequestID string `json:"request_id,omitempty" jsonschema:"the same id sends no second message"`
	Namespace string `json:"namespace,omitempty"`
}

func (s *service) send(ctx context.Context, in sendInput) (proto.Message, error) {
	return s.cfg.Gateway.SendInput(ctx, &harnessv1.SendInputRequest{
		Namespace: s.namespace(in.Namespace), RunId: in.RunID, RequestId: in.RequestID,
		Input: &harnessv1.SendInputRequest_UserMessage{UserMessage: &harnessv1.UserMessage{Content: content.Inline(in.Message)}},
	})
}

type runInput struct {
	RunID     string `json:"run_id"`
	Namespace string `json:"namespace,omitempty"`
}

func (s *service) status(ctx context.Context, in runInput) (proto.Message, error) {
	r, err := s.cfg.Gateway.GetRun(ctx, &harnessv1.GetRunRequest{Namespace: s.namespace(in.Namespace), RunId: in.RunID})
	if err != nil {
		return nil, err
	}
	r.Spec = nil // the client has started it, or need not see it
	return r, nil
}

type waitInput struct {
	RunID     string  `json:"run_id"`
	Seconds   float64 `json:"seconds,omitempty" jsonschema:"at most so long, up to 300; default 30"`
	Namespace string  `json:"namespace,omitempty"`
}

func (s *service) wait(ctx context.Context, in waitInput) (proto.Message, error) {
	seconds := in.Seconds
	if seconds <= 0 {
		seconds = defaultWait
	}
	bounded, cancel := context.WithTimeout(ctx, time.Duration(min(seconds, maxWait)*float64(time.Second)))
	defer cancel()
	leave := false
	stream, err := s.cfg.Gateway.WatchRun(bounded, &harnessv1.WatchRunRequest{
		Namespace: s.namespace(in.Namespace), RunId: in.RunID, Until: harnessv1.WatchUntil_WATCH_UNTIL_REST, NoDeltas: true, Tree: &leave,
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if bounded.Err() == nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.status(ctx, runInput{RunID: in.RunID, Namespace: in.Namespace})
}

type listInput struct {
	Status    []string `json:"status,omitempty" jsonschema:"RUNNING, PARKED, DONE, STALLED, FAILED or CANCELLED; left out: all"`
	PageToken string   `json:"page_token,omitempty" jsonschema:"next_page_token of the list before"`
	Namespace string   `json:"namespace,omitempty"`
}

func (s *service) list(ctx context.Context, in listInput) (proto.Message, error) {
	request := &harnessv1.ListRunsRequest{Namespace: s.namespace(in.Namespace), PageSize: maxListed, PageToken: in.PageToken}
	for _, name := range in.Status {
		number, ok := harnessv1.RunStatus_value["RUN_STATUS_"+strings.ToUpper(name)]
		if !ok {
			return nil, fmt.Errorf("status: unknown status %q: must be RUNNING, PARKED, DONE, STALLED, FAILED or CANCELLED", content.Clip(name, 40))
		}
		request.Statuses = append(request.Statuses, harnessv1.RunStatus(number))
	}
	return s.cfg.Gateway.ListRuns(ctx, request)
}

type pendingInput struct {
	RunID     string `json:"run_id,omitempty" jsonschema:"left out: all runs"`
	Namespace string `json:"namespace,omitempty"`
}

func (s *service) pending(ctx context.Context, in pendingInput) (proto.Message, error) {
	return s.cfg.Gateway.ListPending(ctx, &harnessv1.ListPendingRequest{Namespace: s.namespace(in.Namespace), RunId: in.RunID})
}

type answerInput struct {
	RunID     string `json:"run_id"`
	CallID    string `json:"call_id" jsonschema:"the call that waits, as list_pending names it"`
	Text      string `json:"text,omitempty" jsonschema:"the answer to a question, or the result of a client's tool. The question of a server of tools takes a JSON object with the values of its form; a form with one field takes its value; an address takes done"`
	IsError   bool   `json:"is_error,omitempty" jsonschema:"the text is an error"`
	Action    string `json:"action,omitempty" jsonschema:"for the question of a server of tools: accept, decline or cancel; left out: accept"`
	Round     uint32 `json:"round,omitempty" jsonschema:"for the question of a server of tools: its round, as list_pending names it"`
	Decision  string `json:"decision,omitempty" jsonschema:"for an approval: once, run or deny"`
	Reason    string `json:"reason,omitempty" jsonschema:"for deny: why"`
	Digest    string `json:"digest,omitempty" jsonschema:"digest of the preview that the decision is about"`
	RequestID string `json:"request_id,omitempty" jsonschema:"the same id answers once"`
	Namespace string `json:"namespace,omitempty"`
}

// errNoApproval: the caller may not approve.
var errNoApproval = errors.New("PermissionDenied: approving here needs a token with the right approve, or a person: harness approve RUN CALL. Deny is possible")

func (s *service) answer(ctx context.Context, in answerInput) (proto.Message, error) {
	request := &harnessv1.SendInputRequest{Namespace: s.namespace(in.Namespace), RunId: in.RunID, RequestId: in.RequestID}
	if in.Decision == "" {
		action, ok := harnessv1.AnswerAction_value["ANSWER_ACTION_"+strings.ToUpper(cmp.Or(in.Action, "unspecified"))]
		if !ok || in.Action != "" && action == 0 {
			return nil, fmt.Errorf("action: unknown action %q: must be accept, decline or cancel", content.Clip(in.Action, 40))
		}
		request.Input = &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: &harnessv1.ToolAnswer{
			CallId: in.CallID, Result: content.Inline(in.Text), IsError: in.IsError, Action: harnessv1.AnswerAction(action), Round: in.Round,
		}}
		return s.cfg.Gateway.SendInput(ctx, request)
	}
	decision, ok := harnessv1.ApprovalDecision_value["APPROVAL_DECISION_"+strings.ToUpper(in.Decision)]
	switch {
	case !ok || decision == 0:
		return nil, fmt.Errorf("decision: unknown decision %q: must be once, run or deny", content.Clip(in.Decision, 40))
	case harnessv1.ApprovalDecision(decision) != harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY && !s.cfg.Approves(ctx):
		return nil, errNoApproval
	}
	request.Input = &harnessv1.SendInputRequest_Approval{Approval: &harnessv1.Approval{
		CallId: in.CallID, Decision: harnessv1.ApprovalDecision(decision), Reason: in.Reason, Digest: in.Digest,
	}}
	return s.cfg.Gateway.SendInput(ctx, request)
}

type cancelInput struct {
	RunID     string `json:"run_id"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

func (s *service) cancel(ctx context.Context, in cancelInput) (proto.Message, error) {
	return s.cfg.Gateway.CancelRun(ctx, &harnessv1.CancelRunRequest{Namespace: s.namespace(in.Namespace), RunId: in.RunID, RequestId: in.RequestID, Reason: in.Reason})
}
