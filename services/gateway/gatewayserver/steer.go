package gatewayserver

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/approval"
	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// SendInput sends a run a message, an answer, a change of mode or a request for a new
// plan.
func (s *Server) SendInput(ctx context.Context, r *harnessv1.SendInputRequest) (*harnessv1.SendInputResponse, error) {
	item := &harnessv1.InboxItem{Id: r.GetRequestId()}
	switch in := r.GetInput().(type) {
	case *harnessv1.SendInputRequest_UserMessage:
		item.Input = &harnessv1.InboxItem_UserMessage{UserMessage: in.UserMessage}
	case *harnessv1.SendInputRequest_Approval:
		item.Input = &harnessv1.InboxItem_Approval{Approval: in.Approval}
	case *harnessv1.SendInputRequest_ToolAnswer:
		item.Input = &harnessv1.InboxItem_ToolAnswer{ToolAnswer: in.ToolAnswer}
	case *harnessv1.SendInputRequest_ModeChange:
		item.Input = &harnessv1.InboxItem_ModeChange{ModeChange: in.ModeChange}
	case *harnessv1.SendInputRequest_ModelChange:
		item.Input = &harnessv1.InboxItem_ModelChange{ModelChange: in.ModelChange}
	case *harnessv1.SendInputRequest_Feedback:
		item.Input = &harnessv1.InboxItem_Feedback{Feedback: in.Feedback}
	case *harnessv1.SendInputRequest_Replan:
		item.Input = &harnessv1.InboxItem_Replan{Replan: in.Replan}
	}
	id, admission, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), item)
	if err != nil {
		return nil, err
	}
	return &harnessv1.SendInputResponse{RequestId: id, Existed: admission == input.Existed}, nil
}

// InterruptRun stops what a run is doing and parks it.
func (s *Server) InterruptRun(ctx context.Context, r *harnessv1.InterruptRunRequest) (*harnessv1.InterruptRunResponse, error) {
	id, _, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), &harnessv1.InboxItem{
		Id:    r.GetRequestId(),
		Input: &harnessv1.InboxItem_Interrupt{Interrupt: &harnessv1.Interrupt{Reason: r.GetReason()}},
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.InterruptRunResponse{RequestId: id}, nil
}

// ResumeRun resumes a parked or cancelled run.
func (s *Server) ResumeRun(ctx context.Context, r *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	id, admission, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), &harnessv1.InboxItem{
		Id:    r.GetRequestId(),
		Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: r.GetBudgets(), Model: r.GetModel()}},
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.ResumeRunResponse{RequestId: id, AlreadyRunning: admission == input.Unneeded}, nil
}

// CancelRun stores a cancel in the inbox of a run. A worker ends the run.
func (s *Server) CancelRun(ctx context.Context, r *harnessv1.CancelRunRequest) (*harnessv1.CancelRunResponse, error) {
	id, _, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), &harnessv1.InboxItem{
		Id:    r.GetRequestId(),
		Input: &harnessv1.InboxItem_Cancel{Cancel: &harnessv1.Cancel{Reason: r.GetReason()}},
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.CancelRunResponse{RequestId: id}, nil
}

// input validates an input, generates its id if it has none, and sends it to the run.
func (s *Server) input(ctx context.Context, namespace, runID string, item *harnessv1.InboxItem) (id string, a input.Admission, err error) {
	run, err := gateway.Run(namespace, runID)
	if err != nil {
		return "", 0, err
	}
	if err := input.Check(item); err != nil {
		return "", 0, err
	}
	if err := s.checkModel(input.ModelOf(item)); err != nil {
		return "", 0, err
	}
	if item, err = acceptInput(item); err != nil {
		return "", 0, err
	}
	if item.GetId() == "" {
		item.Id = gateway.InputID(s.random())
	}
	item.Caller, item.NoApprovals = access.Name(ctx), !access.Approves(ctx)
	failpoint.Hit(gateway.Writer, "input_received")
	if a, err = s.give(ctx, run, item); err != nil {
		a, err = s.giveBelow(ctx, run, item, err)
	}
	return item.GetId(), a, s.failure(ctx, "give an input to", run, err)
}

// checkModel refuses a model that the run could not use.
func (s *Server) checkModel(field, model string) error {
	if model == "" || s.model == nil {
		return nil
	}
	if err := s.model(model); err != nil {
		return fault.Invalid(field, "%v", err)
	}
	return nil
}

// windowWith returns the input window that the item's model gives a run; 0 if the run's
// stays.
func (s *Server) windowWith(item *harnessv1.InboxItem, step *harnessv1.Step) uint32 {
	_, model := input.ModelOf(item)
	if model == "" {
		return 0
	}
	snapshot, spec := step.GetSnapshot(), step.GetRepairTrigger().GetSpec()
	before, window := snapshot.GetModel(), snapshot.GetConfig().GetContext().GetMaxInputTokens()
	if spec != nil { // repair has not processed the new run
		before, window = spec.GetAgent().GetModel(), spec.GetConfig().GetContext().GetMaxInputTokens()
	}
	return input.WindowWith(window, s.catalogue.Lookup(before).Window, s.catalogue.Lookup(model).Window)
}

// runState returns the state of a run in a view, with its inbox and, for an answer, the
// calls that its turn has announced.
func (s *Server) runState(ctx context.Context, v runlog.View, item *harnessv1.InboxItem) (input.State, error) {
	run, step := v.Newest.Run, v.Step.Record.GetStep()
	waiting, err := s.waiting(ctx, run, step.GetSnapshot().GetInboxCursor(), v.InboxSequence)
	if err != nil {
		return input.State{}, err
	}
	state := input.State{Run: run, Step: step, Quiescent: v.Quiescent(), Waiting: waiting, Now: s.now(), Priced: s.priced}
	if item.GetModeChange() != nil {
		state.Modes, err = s.modes(ctx, run, step)
		return state, err
	}
	if a := item.GetApproval(); approval.Needed(a) {
		if state.Asked, err = s.asked(ctx, run, step.GetSnapshot(), a.GetCallId()); err != nil {
			return state, err
		}
	}
	if a := item.GetToolAnswer(); a != nil {
		if state.Question, err = s.question(ctx, run, step.GetSnapshot(), a.GetCallId()); err != nil {
			return state, err
		}
	}
	if call, _ := input.Answers(item); call == "" || v.Newest.Sequence == v.Step.Sequence {
		return state, nil
	}
	journal, err := runlog.Back(ctx, s.log, v.Newest, v.Step.Header.Version)
	for _, e := range journal {
		journal := e.Record.GetJournal()
		if r := journal.GetModelResponded(); r != nil && !r.GetUnjudged() {
			state.Announced = r.GetCalls()
		}
		if j := journal.GetCallsJudged(); j != nil {
			state.Announced = j.GetCalls()
		}
	}
	return state, err
}

// asked returns a call that waits, with the texts that an approval is checked with; nil if the
// call does not wait.
func (s *Server) asked(ctx context.Context, run runlog.Run, snapshot *harnessv1.Snapshot, callID string) (*approval.Call, error) {
	for _, call := range runstate.AwaitedCalls(snapshot) {
		if call.GetCallId() != callID {
			continue
		}
		definition, err := s.definitions.Load(ctx, run, snapshot)
		if err != nil {
			return nil, err
		}
		c := &approval.Call{Snapshot: snapshot, Pending: call, Policy: definition.Policy}
		if c.Arguments, err = s.text(ctx, run, call.GetArguments()); err != nil {
			return nil, err
		}
		if t := approval.Tool(snapshot, call); t != nil {
			schema, err := s.text(ctx, run, t.GetParametersSchema())
			if err != nil {
				return nil, err
			}
			c.Tool = approval.Spec(t, schema)
		}
		return c, nil
	}
	return nil, nil
}

// question returns the question of a server that a call waits with, with its texts; nil if no such
// question waits.
func (s *Server) question(ctx context.Context, run runlog.Run, snapshot runstate.SharedFields, callID string) (*harnessv1.ServerQuestion, error) {
	for _, call := range runstate.AwaitedCalls(snapshot) {
		if call.GetCallId() != callID || call.GetQuestion() == nil {
			continue
		}
		q := proto.CloneOf(call.GetQuestion())
		for _, r := range q.GetRequests() {
			if r.Schema == nil {
				continue
			}
			form, err := s.text(ctx, run, r.GetSchema())
			if err != nil {
				return nil, err
			}
			r.Schema = content.Inline(form)
		}
		return q, nil
	}
	return nil, nil
}

// text reads a text of a run.
func (s *Server) text(ctx context.Context, run runlog.Run, c *harnessv1.Content) (string, error) {
	ref := c.GetBlob()
	if ref == nil {
		return c.GetInline(), nil
	}
	data, err := s.log.Blob(ctx, run, ref.GetDigest())
	return string(data), err
}

// modes returns the agent's custom modes. Until repair has processed a new run, they are
// in its spec.
func (s *Server) modes(ctx context.Context, run runlog.Run, step *harnessv1.Step) ([]*harnessv1.ModeSpec, error) {
	if spec := step.GetRepairTrigger().GetSpec(); spec != nil {
		return spec.GetAgent().GetModes(), nil
	}
	definition := step.GetSnapshot().GetDefinition()
	if definition == nil {
		return nil, nil
	}
	definition, err := runstate.UnpackPart(definition, s.blobs(ctx, run))
	return definition.GetModes(), err
}

// agents returns the agent's sub-agents. Until repair has processed a new run, they are in its spec.
func (s *Server) agents(ctx context.Context, run runlog.Run, step *harnessv1.Step) ([]*harnessv1.SubAgent, error) {
	if spec := step.GetRepairTrigger().GetSpec(); spec != nil {
		return spec.GetAgent().GetAgents(), nil
	}
	if step.GetSnapshot().GetDefinition() == nil {
		return nil, nil
	}
	definition, err := s.definitions.Load(ctx, run, step.GetSnapshot())
	if err != nil {
		return nil, err
	}
	return definition.Agents, nil
}

// waiting reads the items in (after, upTo], at most a few more than an inbox may have.
// upTo is the sequence of an item.
func (s *Server) waiting(ctx context.Context, run runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	var items []*harnessv1.InboxItem
	for after < upTo && len(items) < input.MaxWaiting+input.MaxUrgent {
		page, err := s.log.Inbox(ctx, run, after, upTo)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		after = page[len(page)-1].GetSequence()
		items = append(items, slices.DeleteFunc(page, input.Forged)...)
	}
	return items, nil
}

// receipt returns the outcome of an input on a Run stream.
func receipt(id string, err error, log func(error)) *harnessv1.InputReceipt {
	r := &harnessv1.InputReceipt{RequestId: id}
	if err == nil {
		return r
	}
	st, known := fault.Status(err)
	if !known {
		log(err)
	}
	r.Error = st.Message()
	var refusal *fault.Error
	if errors.As(err, &refusal) {
		r.Reason = fault.ReasonName(refusal.Reason)
	}
	return r
}
