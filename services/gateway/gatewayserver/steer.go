package gatewayserver

import (
	"context"
	"errors"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// SendInput gives a run a message, an answer, another mode of work or the wish for
// another plan.
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
	case *harnessv1.SendInputRequest_Replan:
		item.Input = &harnessv1.InboxItem_Replan{Replan: in.Replan}
	}
	id, admission, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), item)
	if err != nil {
		return nil, err
	}
	return &harnessv1.SendInputResponse{RequestId: id, Existed: admission == gateway.Existed}, nil
}

// InterruptRun has what a run is doing killed and the run parked.
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

// ResumeRun lets a parked or cancelled run go on.
func (s *Server) ResumeRun(ctx context.Context, r *harnessv1.ResumeRunRequest) (*harnessv1.ResumeRunResponse, error) {
	id, admission, err := s.input(ctx, r.GetNamespace(), r.GetRunId(), &harnessv1.InboxItem{
		Id:    r.GetRequestId(),
		Input: &harnessv1.InboxItem_Resume{Resume: &harnessv1.Resume{Budgets: r.GetBudgets()}},
	})
	if err != nil {
		return nil, err
	}
	return &harnessv1.ResumeRunResponse{RequestId: id, AlreadyRunning: admission == gateway.Unneeded}, nil
}

// CancelRun ends a run for good.
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

// input checks an input, makes up its id where it has none, and gives it to the run.
func (s *Server) input(ctx context.Context, namespace, runID string, item *harnessv1.InboxItem) (id string, a gateway.Admission, err error) {
	run, err := gateway.Run(namespace, runID)
	if err != nil {
		return "", 0, err
	}
	if err := gateway.CheckInput(item); err != nil {
		return "", 0, err
	}
	if item.GetId() == "" {
		item.Id = gateway.InputID(s.random())
	}
	failpoint.Hit(gateway.Writer, "input_received")
	a, err = s.give(ctx, run, item)
	return item.GetId(), a, failure(ctx, "give an input to", run, err)
}

// standing is what a view shows of a run, with what waits in its inbox and, for an
// answer, the calls that its turn has announced.
func (s *Server) standing(ctx context.Context, v runlog.View, item *harnessv1.InboxItem) (gateway.Standing, error) {
	run, step := v.Newest.Run, v.Step.Record.GetStep()
	waiting, err := s.waiting(ctx, run, step.GetSnapshot().GetInboxCursor(), v.InboxSequence)
	if err != nil {
		return gateway.Standing{}, err
	}
	standing := gateway.Standing{Run: run, Step: step, Rests: v.Quiescent(), Waiting: waiting, Now: s.now()}
	if item.GetModeChange() != nil {
		standing.Modes, err = s.modes(ctx, run, step)
		return standing, err
	}
	if call, _ := gateway.Answers(item); call == "" || v.Newest.Sequence == v.Step.Sequence {
		return standing, nil
	}
	journal, err := runlog.Back(ctx, s.log, v.Newest, v.Step.Header.Version)
	for _, e := range journal {
		journal := e.Record.GetJournal()
		if r := journal.GetModelResponded(); r != nil && !r.GetUnjudged() {
			standing.Announced = r.GetCalls()
		}
		if j := journal.GetCallsJudged(); j != nil {
			standing.Announced = j.GetCalls()
		}
	}
	return standing, err
}

// modes are the agent's own modes. Before repair has looked at a run they stand in
// what it was started with.
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

// waiting reads the items in (after, upTo], at most a little more than may wait.
// upTo is the sequence of an item.
func (s *Server) waiting(ctx context.Context, run runlog.Run, after, upTo uint64) ([]*harnessv1.InboxItem, error) {
	var items []*harnessv1.InboxItem
	for after < upTo && len(items) < gateway.MaxWaiting+gateway.MaxUrgent {
		page, err := s.log.Inbox(ctx, run, after, upTo)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		items = append(items, page...)
		after = page[len(page)-1].GetSequence()
	}
	return items, nil
}

// receipt says what became of an input on a Run stream.
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
