package repairserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/agent"
	"github.com/harnessmesh/harnessmesh/pkg/agent/hook/hookcaller"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/executor/interrupt"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/services/repair"
)

// bind returns the decision for one task and what fetches its observations.
func (s *Server) bind(ctx context.Context, task *executor.Task) (executor.Decide, executor.ObserveNeeds, error) {
	var definition *agent.Definition
	var err error
	if spec := task.Step().GetRepairTrigger().GetSpec(); spec != nil {
		definition, err = s.definitions.LoadSpec(ctx, task.Run, spec)
	} else {
		definition, err = s.definitions.Load(ctx, task.Run, task.Step().GetSnapshot())
	}
	if err != nil {
		return nil, nil, err
	}
	before := task.Step().GetSnapshot()
	o := &observer{
		s: s, task: task, definition: definition, limit: &agent.OutcomeLimit{},
		read: &harnessv1.Snapshot{InboxCursor: before.GetInboxCursor(), DrainedItems: before.GetDrainedItems()},
	}
	decide := func(in *harnessv1.StepInput) (*harnessv1.StepOutput, error) {
		return repair.DecideWith(in, definition, o.conversation)
	}
	return decide, o.observe, nil
}

// observer fetches the observations of one decision.
type observer struct {
	s          *Server
	task       *executor.Task
	definition *agent.Definition
	limit      *agent.OutcomeLimit
	read       *harnessv1.Snapshot // the cursor after the items that the decision has read

	conversation *conversation.Conversation // once it is read
	worktree     *harnessv1.WorktreeState   // once it is made
}

func (o *observer) observe(ctx context.Context, needs *harnessv1.Needs) ([]*harnessv1.Observation, error) {
	var observed []*harnessv1.Observation
	waits := func(key string) bool { return strings.HasPrefix(key, repair.NeedWait) }
	if len(needs.GetHooks()) > 0 || slices.ContainsFunc(needs.GetKeys(), waits) {
		// An interrupt or a cancel that arrives while hooks are called, after the items
		// of this decision, stops the calls: the next decision takes it in.
		watched, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		_, stop := o.s.interrupts.Inbox(watched, cancel, o.task.Run, o.read)
		defer stop()
		ctx = watched
	}
	for _, key := range needs.GetKeys() {
		value, err := o.fetch(ctx, needs, key)
		if err != nil {
			return nil, fmt.Errorf("observe %s: %w", key, err)
		}
		value.Key = key
		o.read.InboxCursor = max(o.read.GetInboxCursor(), value.GetInbox().GetCursor())
		observed = append(observed, value)
	}
	return observed, nil
}

// first returns the sequence of the run's first record.
func (o *observer) first() uint64 {
	if first := o.task.Step().GetSnapshot().GetFirstSequence(); first != 0 {
		return first
	}
	return o.task.Entry.Sequence
}

func (o *observer) fetch(ctx context.Context, needs *harnessv1.Needs, key string) (*harnessv1.Observation, error) {
	spec := o.task.Step().GetRepairTrigger().GetSpec()
	for _, request := range needs.GetHooks() {
		if request.GetIdempotencyKey() == key {
			return o.callHook(ctx, request)
		}
	}
	for _, job := range needs.GetJobs() {
		if agent.KeyJob+job.GetKey() == key {
			return o.s.jobs.Observe(ctx, o.task.Run, o.first(), job)
		}
	}
	if key == repair.NeedProfile || strings.HasPrefix(key, repair.NeedFeedback) {
		return o.s.profiles.Observe(ctx, o.task.Run.Namespace, needs.GetProfile())
	}
	if strings.HasPrefix(key, runstate.KeyHeld) {
		return o.s.background.ObserveHeld(ctx, o.task.Run, o.task.Step().GetSnapshot(), key)
	}
	if strings.HasPrefix(key, repair.NeedWait) {
		return o.checkWait(ctx, key)
	}
	if name, ok := strings.CutPrefix(key, repair.NeedContext); ok {
		return &harnessv1.Observation{Value: &harnessv1.Observation_Context{Context: o.s.context(ctx, o.task.Run, spec, name)}}, nil
	}
	if digest, ok := strings.CutPrefix(key, repair.NeedText); ok {
		data, err := o.s.log.Blob(ctx, o.task.Run, digest)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Value: &harnessv1.Observation_Context{Context: &harnessv1.ContextText{Text: content.Inline(string(data))}}}, nil
	}
	switch key {
	case repair.NeedInbox:
		batch, err := o.s.inbox(ctx, o.task)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Value: &harnessv1.Observation_Inbox{Inbox: batch}}, nil
	case repair.NeedParent:
		return o.seeParent(ctx)
	case runstate.KeyBackground:
		return o.s.background.Observe(ctx, o.task.Run, o.task.Step().GetSnapshot())
	case repair.NeedConversation:
		return o.readConversation(ctx)
	case repair.NeedMcp:
		seen, err := o.seeServers(ctx)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Value: &harnessv1.Observation_Mcp{Mcp: seen}}, nil
	case repair.NeedWorktree:
		made, err := o.makeWorktree(ctx)
		if err != nil {
			return nil, err
		}
		return &harnessv1.Observation{Value: &harnessv1.Observation_Worktree{Worktree: made}}, nil
	case repair.NeedEnvironment:
		trigger := o.task.Step().GetRepairTrigger()
		workspace, found, err := o.workspace(ctx)
		if err != nil {
			return nil, err
		}
		environment, err := o.s.environment(ctx, &harnessv1.DescribeWorkspaceRequest{
			Workspace: workspace, WithoutLinks: found, Roots: trigger.GetFolder().GetRoots(), SkillFolders: o.definition.Skills, UserSkills: access.IsPerson(trigger.GetCaller()),
		})
		if err != nil {
			return nil, err
		}
		if found && environment.GetFolder() != nil {
			environment.Folder.Roots = trigger.GetFolder().GetRoots()
		}
		return &harnessv1.Observation{Value: &harnessv1.Observation_Environment{Environment: environment}}, nil
	case repair.NeedFolder:
		return o.seeFolder(ctx)
	}
	return nil, fmt.Errorf("unknown observation %q", key)
}

// readConversation reads the conversation of the run up to the step.
func (o *observer) readConversation(ctx context.Context) (*harnessv1.Observation, error) {
	began := o.s.now()
	c, err := o.s.conversations.Load(ctx, o.task.Step().GetSnapshot().GetFirstSequence(), o.task.Tail())
	if err != nil {
		return nil, err
	}
	o.conversation = c
	return &harnessv1.Observation{Value: &harnessv1.Observation_Conversation{Conversation: &harnessv1.ConversationRead{
		Messages: uint64(len(c.Messages)), Duration: durationpb.New(o.s.now().Sub(began)),
	}}}, nil
}

func (o *observer) callHook(ctx context.Context, request *harnessv1.HookRequest) (*harnessv1.Observation, error) {
	snapshot, spec := o.task.Step().GetSnapshot(), o.task.Step().GetRepairTrigger().GetSpec()
	run, cfg := hookcaller.RunInfo{Workspace: snapshot.GetWorkspace(), FirstSequence: snapshot.GetFirstSequence()}, snapshot.GetConfig()
	if spec != nil {
		workspace, _, err := o.workspace(ctx)
		if err != nil {
			return nil, err
		}
		run, cfg = hookcaller.RunInfo{Workspace: workspace, FirstSequence: o.task.Entry.Sequence}, spec.GetConfig()
	}
	run.Timeout, run.Sandbox = cfg.GetHooks().GetTimeout().AsDuration(), cfg.GetSandbox()
	outcome := o.s.hooks.Call(ctx, o.definition.Hooks.Hook(request.GetHookId()), request, run)
	if err := context.Cause(ctx); err != nil && !interrupt.Stopped(ctx) {
		return nil, err
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Hook{Hook: o.limit.Apply(outcome)}}, nil
}

// contextTimeout bounds a call of a ContextService, and maxContext its text, in bytes.
const (
	contextTimeout = 5 * time.Second
	maxContext     = 64 << 10
)

// context returns the text of a context provider, or its error.
func (s *Server) context(ctx context.Context, run runlog.Run, spec *harnessv1.RunSpec, name string) *harnessv1.ContextText {
	ctx, cancel := context.WithTimeout(ctx, contextTimeout)
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
		return &harnessv1.ContextText{Text: content.Inline(content.Cut(content.Clean(r.GetText()), maxContext))}
	}
	return &harnessv1.ContextText{Error: fmt.Sprintf("context provider %q not found in the agent", name)}
}

// seeFolder finds the folder that is at the workspace of the run now; there may be none.
func (o *observer) seeFolder(ctx context.Context) (*harnessv1.Observation, error) {
	snapshot := o.task.Step().GetSnapshot()
	environment, err := o.s.environment(ctx, &harnessv1.DescribeWorkspaceRequest{Workspace: snapshot.GetWorkspace(), WithoutLinks: snapshot.GetFolder() != nil})
	switch status.Code(err) {
	case codes.OK, codes.InvalidArgument, codes.NotFound: // there is none: the calls report it
	default:
		return nil, err
	}
	return &harnessv1.Observation{Value: &harnessv1.Observation_Environment{Environment: &harnessv1.Environment{Folder: environment.GetFolder()}}}, nil
}

// environment describes a workspace; an empty one has no environment.
func (s *Server) environment(ctx context.Context, req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.Environment, error) {
	if req.GetWorkspace() == "" {
		return &harnessv1.Environment{}, nil
	}
	r, err := s.toolHost.DescribeWorkspace(ctx, req)
	switch status.Code(err) {
	case codes.OK:
		return r.GetEnvironment(), nil
	case codes.InvalidArgument, codes.NotFound:
		return nil, err
	}
	return nil, executor.Retry("tool host", err)
}

// inbox reads the part of the inbox that a decision takes in.
func (s *Server) inbox(ctx context.Context, task *executor.Task) (*harnessv1.InboxBatch, error) {
	switch end := repair.Run(repair.InboxRead{Trigger: task.Entry}, s.on(ctx, executor.Config{}, task.Run)).(type) {
	case repair.Observe:
		return end.Batch, nil
	case repair.Finish:
		if errors.Is(end.Err, repair.ErrUnknownInput) {
			return nil, executor.Retry("inbox", end.Err)
		}
		return nil, end.Err
	default:
		return nil, rejected(end)
	}
}
