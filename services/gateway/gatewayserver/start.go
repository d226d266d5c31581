package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/runtrace"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry/spans"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// maxGeneratedIDs bounds the ids that are generated for one request. The chance that one
// is already in use is one in millions.
const maxGeneratedIDs = 3

// lagPause is the wait before a lagging replica is read again.
const lagPause = 5 * time.Millisecond

// StartRun starts a run and returns once it is stored.
func (s *Server) StartRun(ctx context.Context, r *harnessv1.StartRunRequest) (*harnessv1.StartRunResponse, error) {
	run, existed, err := s.start(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	return &harnessv1.StartRunResponse{Namespace: run.Namespace, RunId: run.ID, Existed: existed}, nil
}

// start starts a run whose client answers hooks; nil: it answers none.
func (s *Server) start(ctx context.Context, r *harnessv1.StartRunRequest, hooks *callbacks) (run runlog.Run, existed bool, err error) {
	ctx, span := s.startSpan(ctx)
	defer func() { endStart(span, run, existed, err) }()
	if err := gateway.CheckStart(r); err != nil {
		return run, false, err
	}
	if run.Namespace, err = gateway.Namespace(r.GetNamespace()); err != nil {
		return run, false, err
	}
	if len(r.GetEntitlements()) > 0 && access.Name(ctx) != access.Local {
		return run, false, fault.New(codes.PermissionDenied, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED,
			"entitlements: only callers on the gateway's machine name them: leave them out, a token has those of its line")
	}
	stored, err := s.admitStart(ctx)
	if err != nil {
		return run, false, err
	}
	defer stored()
	if r, err = s.withServices(ctx, r); err != nil {
		return run, false, err
	}
	r = s.withLeast(ctx, r)
	folder, err := s.startable(ctx, r.GetSpec())
	if err != nil {
		return run, false, err
	}
	field := gateway.WindowField(r.GetSpec())
	r = s.withWindow(r)
	if err := s.checkOverhead(ctx, field, r.GetSpec()); err != nil {
		return run, false, err
	}
	if r, err = acceptMedia(r); err != nil {
		return run, false, err
	}
	for i := 1; ; i++ {
		var generated bool
		run.ID, generated = gateway.RunID(r, s.now(), s.random())
		existed, err = s.create(ctx, run, r, folder, hooks)
		known := (*fault.Error)(nil)
		taken := existed || errors.As(err, &known) && known.Code == codes.AlreadyExists
		if !generated || !taken {
			if err == nil && !existed {
				s.logger.Info("run started", "namespace", run.Namespace, "run", run.ID, "caller", access.Name(ctx))
			}
			return run, existed, err
		}
		if i == maxGeneratedIDs {
			return run, false, fmt.Errorf("%d generated ids in a row already existed, the last is %s", i, run)
		}
	}
}

// entitlements returns what a run is entitled to: by the token of its caller, or, without one, by
// the request.
func entitlements(ctx context.Context, r *harnessv1.StartRunRequest) []string {
	names := slices.Concat(access.Entitlements(ctx), r.GetEntitlements())
	slices.Sort(names)
	return slices.Compact(names)
}

// withWindow returns the request with the model's input window, if only this process knows
// it. It is stored with the run, so that no other process has to look it up.
func (s *Server) withWindow(r *harnessv1.StartRunRequest) *harnessv1.StartRunRequest {
	if s.window == nil || r.GetSpec().GetConfig().GetContext().GetMaxInputTokens() != 0 {
		return r
	}
	window := s.window(r.GetSpec().GetAgent().GetModel())
	if window == 0 {
		return r
	}
	r = proto.CloneOf(r)
	if r.Spec.Config == nil {
		r.Spec.Config = &harnessv1.LoopConfig{}
	}
	if r.Spec.Config.Context == nil {
		r.Spec.Config.Context = &harnessv1.ContextConfig{}
	}
	r.Spec.Config.Context.MaxInputTokens = &window
	return r
}

// withServices returns the request with the tool services of the tool host's operator.
func (s *Server) withServices(ctx context.Context, r *harnessv1.StartRunRequest) (*harnessv1.StartRunRequest, error) {
	var services []*harnessv1.McpServer
	if s.services != nil {
		bounded, cancel := s.bounded(ctx)
		defer cancel()
		var err error
		switch services, err = s.services(bounded); {
		case err != nil && ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_TOOL_HOST_UNAVAILABLE,
				"the tool host, which knows the tool services, cannot be reached; send the same request again")
		}
	}
	spec := gateway.WithServices(r.GetSpec(), services)
	if spec == r.GetSpec() {
		return r, nil
	}
	r = proto.CloneOf(r)
	r.Spec = spec
	return r, nil
}

// withLeast returns the request with the least level of a run of its caller.
func (s *Server) withLeast(ctx context.Context, r *harnessv1.StartRunRequest) *harnessv1.StartRunRequest {
	spec := gateway.WithLeast(r.GetSpec(), gateway.Least(starter(ctx), s.tokenLeast, r.GetSpec()))
	if spec == r.GetSpec() {
		return r
	}
	r = proto.CloneOf(r)
	r.Spec = spec
	return r
}

func starter(ctx context.Context) gateway.Starter {
	switch token, leaves := access.Token(ctx); {
	case token && leaves:
		return gateway.FreeToken
	case token:
		return gateway.BoundedToken
	}
	return gateway.Person
}

// startable refuses a run that the mesh could not carry out. It returns the folder that the run will
// work in, if the tool host has looked at it.
func (s *Server) startable(ctx context.Context, spec *harnessv1.RunSpec) (*harnessv1.WorkspaceFolder, error) {
	if err := s.supported(ctx, spec); err != nil {
		return nil, err
	}
	return s.describe(ctx, spec)
}

// supported refuses a run for which something is missing that does not depend on its workspace.
func (s *Server) supported(ctx context.Context, spec *harnessv1.RunSpec) error {
	if err := s.checkEffort(spec.GetAgent()); err != nil {
		return err
	}
	if s.priced != nil {
		if err := gateway.CheckPrices(spec, s.priced); err != nil {
			return err
		}
	}
	caller := ctx
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	missing, err := s.executors.missing(ctx, workflow.Of(spec.GetWorkflow()))
	if err != nil {
		if caller.Err() != nil {
			return context.Cause(caller)
		}
		return because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"the log, which knows the executors, cannot be reached; send the same request again")
	}
	if missing != "" {
		return fault.New(codes.FailedPrecondition, harnessv1.ErrorReason_ERROR_REASON_EXECUTOR_MISSING,
			"no process serves executor "+strconv.Quote(missing)+": provision it and start it, or leave it out of spec.workflow", "executor", missing)
	}
	if gateway.NamesTools(spec) {
		names, err := s.toolNames(ctx)
		if err != nil {
			return err
		}
		if err := gateway.CheckClientNames("spec.client_tools", spec.GetClientTools(), names); err != nil {
			return err
		}
		for _, t := range spec.GetClientTools() {
			names = append(names, t.GetName())
		}
		if err := tree.CheckNames("spec.agent.agents", spec.GetAgent().GetAgents(), names); err != nil {
			return err
		}
		if s.tools != nil {
			slices.Sort(names)
			names = slices.Compact(names)
			if err := gateway.CheckTools(spec.GetAgent(), names); err != nil {
				return err
			}
			if err := gateway.CheckNamed(spec, names); err != nil {
				return err
			}
		}
	}
	if s.hooks != nil {
		if err := s.hooks(ctx, spec.GetAgent().GetHooks()); err != nil {
			return err
		}
	}
	return nil
}

// describe has the tool host describe the workspace of a run, and returns its folder.
func (s *Server) describe(ctx context.Context, spec *harnessv1.RunSpec) (*harnessv1.WorkspaceFolder, error) {
	if s.workspaces == nil {
		return nil, nil //nolint:nilnil // it is not known
	}
	caller := ctx
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	seen, err := s.workspaces(ctx, &harnessv1.DescribeWorkspaceRequest{
		Workspace: spec.GetWorkspace(), Sandbox: spec.GetConfig().GetSandbox(), Roots: access.Roots(caller),
	})
	var known *fault.Error
	switch code := status.Code(err); {
	case seen.GetProblem() != nil:
		return nil, fault.Invalid("spec.config."+seen.GetProblem().GetField(), "%s", seen.GetProblem().GetMessage())
	case err == nil, errors.As(err, &known):
		return seen.GetEnvironment().GetFolder(), err
	case caller.Err() != nil:
		return nil, context.Cause(caller)
	case code == codes.Unavailable, code == codes.DeadlineExceeded, errors.Is(err, context.DeadlineExceeded):
		return nil, because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"the tool host, which has to look at the workspace, cannot be reached; send the same request again")
	default:
		return nil, because(err, codes.InvalidArgument, harnessv1.ErrorReason_ERROR_REASON_WORKSPACE_UNUSABLE,
			"spec.workspace: "+strconv.Quote(spec.GetWorkspace())+" cannot be used: "+status.Convert(err).Message(), "workspace", spec.GetWorkspace())
	}
}

// checkEffort refuses an effort that the agent's model does not take. A fallback model
// gets the nearest one that it takes.
func (s *Server) checkEffort(agent *harnessv1.AgentSpec) error {
	effort := agent.GetReasoning().GetEffort()
	if s.effort == nil || agent.GetModel() == "" || effort == harnessv1.Effort_EFFORT_UNSPECIFIED {
		return nil
	}
	if err := s.effort(agent.GetModel(), effort); err != nil {
		return fault.Invalid("spec.agent.reasoning.effort", "%v", err)
	}
	return nil
}

// checkOverhead refuses a run whose instructions and tools fill its window, which field
// sets. Repair, which knows the rest of the system prompt, checks again.
func (s *Server) checkOverhead(ctx context.Context, field string, spec *harnessv1.RunSpec) error {
	if !gateway.MayFillWindow(spec) {
		return nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	host, err := s.hostTools(ctx)
	if err != nil {
		return err
	}
	if err := gateway.CheckOverhead(spec, host); err != nil {
		return fault.Invalid(field, "%v", err)
	}
	return nil
}

// create appends the first record of run. It compares the request with an existing first
// record.
func (s *Server) create(ctx context.Context, run runlog.Run, r *harnessv1.StartRunRequest, folder *harnessv1.WorkspaceFolder, hooks *callbacks) (existed bool, err error) {
	caller := ctx
	spec, err := s.storeMedia(ctx, run, r.GetSpec())
	if err != nil {
		return false, s.failure(caller, "start", run, err)
	}
	ctx, cancel := s.committing(ctx)
	defer cancel()
	failpoint.Hit(gateway.Writer, "start_received")
	if len(spec.GetGoal().GetInline()) > runlog.MaxInline || len(spec.GetClientTools()) > 0 {
		if err := s.refuseErased(ctx, run); err != nil {
			return false, err
		}
	}
	if text := spec.GetGoal().GetInline(); len(text) > runlog.MaxInline {
		ref, err := s.log.PutBlob(ctx, run, []byte(text))
		if err != nil {
			return false, s.failure(caller, "start", run, err)
		}
		spec = proto.CloneOf(spec)
		spec.Goal = &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
	}
	tools, err := s.putTools(ctx, run, spec.GetClientTools())
	if err != nil {
		return false, s.failure(caller, "start", run, err)
	}
	nonce := s.random()
	rec := gateway.StartRecord(run, r.GetRequestId(), access.Name(ctx), spec, tools, s.now(), &harnessv1.Writer{
		Executor: gateway.Writer, Instance: s.instance, Nonce: nonce,
	})
	trigger := rec.GetStep().GetRepairTrigger()
	trigger.Quality, trigger.Folder = s.quality, folder
	trigger.Entitlements, trigger.Tier = entitlements(ctx, r), access.Tier(ctx)
	trigger.Features, trigger.FeatureConfig = gateway.Features(s.features, run)
	rec.GetStep().GetSnapshot().Trace = runtrace.New(spans.Ref(ctx), spec.GetAgent().GetName(), rec.GetCommitTime().AsTime())
	if hooks != nil {
		if err := s.serveNewHooks(ctx, run, hooks); err != nil {
			return false, s.failure(caller, "answer hooks of", run, err)
		}
	}
	sequence, err := s.log.Append(ctx, rec)
	switch {
	case err == nil:
		failpoint.Hit(gateway.Writer, "started")
		s.runs.apply(runlog.Entry{Run: run, Sequence: sequence, Header: runlog.HeaderOf(rec), Record: rec})
		return false, nil
	case !errors.Is(err, runlog.ErrFenced) && !errors.Is(err, runlog.ErrUnavailable):
		return false, s.failure(caller, "start", run, err)
	}
	at, rerr := s.readCreated(caller, run, errors.Is(err, runlog.ErrFenced))
	switch {
	case rerr != nil && errors.Is(err, runlog.ErrFenced):
		return false, s.failure(caller, "start", run, rerr)
	case rerr != nil:
		return false, because(err, codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_LOG_UNAVAILABLE,
			"it is not known whether run "+run.String()+" was started; retry with the same request_id, or with run_id "+run.ID,
			"namespace", run.Namespace, "run_id", run.ID)
	}
	s.runs.apply(at)
	if w := at.Record.GetWriter(); w.GetNonce() == nonce && w.GetInstance() == s.instance {
		return false, nil
	}
	if !gateway.Same(run, at.Record.GetStep().GetRepairTrigger().GetSpec(), spec) {
		return false, fault.New(codes.AlreadyExists, harnessv1.ErrorReason_ERROR_REASON_RUN_EXISTS,
			"run "+run.String()+" was started by another request; choose another run_id", "namespace", run.Namespace, "run_id", run.ID)
	}
	return true, nil
}

// refuseErased returns an error for the name of a run that is being erased: blobs that are
// stored before the log of a new run begins would be deleted with the former one.
func (s *Server) refuseErased(ctx context.Context, run runlog.Run) error {
	if _, err := s.view(ctx, run); isExpired(err) {
		return err
	}
	return nil
}

// readCreated reads the first record of a run whose creation was refused or got no answer. If
// a run that is known to exist is not found, the replica lags, and readCreated reads
// again.
func (s *Server) readCreated(ctx context.Context, run runlog.Run, exists bool) (runlog.Entry, error) {
	ctx, cancel := s.committing(ctx)
	defer cancel()
	for {
		v, err := s.view(ctx, run)
		switch {
		case err == nil:
			return s.first(ctx, run, v)
		case !exists || !errors.Is(err, runlog.ErrNotFound):
			return runlog.Entry{}, err
		}
		select {
		case <-ctx.Done():
			return runlog.Entry{}, errors.Join(runlog.ErrUnavailable, context.Cause(ctx))
		case <-time.After(lagPause):
		}
	}
}

// first returns the first record of a run.
func (s *Server) first(ctx context.Context, run runlog.Run, v runlog.View) (runlog.Entry, error) {
	e := v.Newest
	if sequence := v.Step.Record.GetStep().GetSnapshot().GetFirstSequence(); sequence != 0 && v.Newest.Header.Version > 1 {
		var err error
		if e, err = s.log.Read(ctx, run, sequence); err != nil {
			return e, err
		}
	}
	err := s.walk(ctx, e, func(at runlog.Entry) (bool, error) {
		e = at
		return at.Header.Version > 1, nil
	})
	return e, err
}

// executorsFor is how long the existence of an executor is cached.
const executorsFor = 10 * time.Second

// executors knows which executors have a consumer. An executor that was found is cached;
// a missing one is looked up each time.
type executors struct {
	log runlog.Consumers
	now func() time.Time

	mu    sync.Mutex
	names []string
	at    time.Time
}

func (x *executors) missing(ctx context.Context, workflow []string) (string, error) {
	x.mu.Lock()
	names, at := x.names, x.at
	x.mu.Unlock()
	if age := x.now().Sub(at); age >= 0 && age < executorsFor && absent(workflow, names) == "" {
		return "", nil
	}
	names, err := x.log.Executors(ctx)
	if err != nil {
		return "", err
	}
	x.mu.Lock()
	x.names, x.at = names, x.now()
	x.mu.Unlock()
	return absent(workflow, names), nil
}

func absent(workflow, names []string) string {
	for _, name := range workflow {
		if !slices.Contains(names, name) {
			return name
		}
	}
	return ""
}
