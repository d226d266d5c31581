package gatewayserver

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

// give brings an input to a run. Reads end with the caller; once the input is to be
// stored, the rest is done whether or not the caller waits for it.
func (s *Server) give(ctx context.Context, run runlog.Run, item *harnessv1.InboxItem) (a input.Admission, err error) {
	refused, err := s.admitInput(ctx, run, item)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			refused()
		}
	}()
	stage, cancel := s.bounded(ctx)
	defer cancel()
	b := &submitter{s: s, run: run, item: item}
	submission, action := gateway.Submission{Item: item}.Start()
	for {
		switch a := action.(type) {
		case gateway.Reply:
			if a.Err == nil && urgent(item) {
				s.poke(run)
			}
			return a.Admission, a.Err
		case gateway.Reject:
			return 0, fmt.Errorf("submission: %T cannot follow", a.Result)
		case gateway.AppendInput:
			stage, cancel = s.committing(ctx)
			defer cancel()
		}
		submission, action = submission.Next(b.result(stage, action))
	}
}

// urgent reports whether the worker of a run is to read an input immediately: what ends its
// turn or changes which calls of the turn start, and a message, for which a run that waits
// for a summary ends its wait.
func urgent(item *harnessv1.InboxItem) bool {
	return item.GetInterrupt() != nil || item.GetCancel() != nil || item.GetModeChange() != nil || item.GetUserMessage() != nil
}

// poke tells the worker of a run to read its inbox. An input that is sent again
// pokes again: the first poke may have been lost.
func (s *Server) poke(run runlog.Run) {
	if err := s.log.Poke(run); err != nil {
		s.logger.Warn("poke failed; the worker finds the input when it next reads the inbox", "namespace", run.Namespace, "run", run.ID, "error", err)
	}
}

// submitter carries out the actions of a gateway.Submission.
type submitter struct {
	s    *Server
	run  runlog.Run
	item *harnessv1.InboxItem
	view runlog.View // that was read last
}

func (b *submitter) result(ctx context.Context, a gateway.SubmissionAction) gateway.SubmissionResult {
	result, err := b.do(ctx, a)
	if err != nil {
		return gateway.SubmissionFailed{Err: err}
	}
	return result
}

func (b *submitter) do(ctx context.Context, a gateway.SubmissionAction) (gateway.SubmissionResult, error) {
	switch a := a.(type) {
	case gateway.ReadRun:
		view, err := b.s.view(ctx, b.run)
		if err != nil {
			return nil, err
		}
		return b.readState(ctx, view)
	case gateway.Confirm:
		view, newer, err := b.s.fresher(ctx, b.run, b.view)
		if err != nil {
			return nil, err
		}
		if !newer {
			return gateway.RunConfirmed{}, nil
		}
		return b.readState(ctx, view)
	case gateway.AppendInput:
		return b.append(ctx, a.After)
	case gateway.ReadInputs:
		items, err := b.s.waiting(ctx, b.run, a.After, a.UpTo)
		return gateway.InputsRead{Items: items}, err
	}
	return nil, fmt.Errorf("submission: unsupported action %T", a)
}

func (b *submitter) readState(ctx context.Context, view runlog.View) (gateway.SubmissionResult, error) {
	b.view = view
	state, err := b.s.runState(ctx, view, b.item)
	return gateway.RunRead{RunState: state}, err
}

// append stores the input, with media and a text over runlog.MaxInline in blobs.
func (b *submitter) append(ctx context.Context, after uint64) (gateway.SubmissionResult, error) {
	_, files := input.MediaOf(b.item)
	stored, err := b.s.putMedia(ctx, b.run, files)
	if err != nil {
		return nil, err
	}
	ctx, cancel := b.s.committing(ctx)
	defer cancel()
	item := input.WithMedia(b.item, stored)
	item.MaxInputTokens = b.s.windowWith(item, b.view.Step.Record.GetStep())
	item.Time, item.Traceparent = timestamppb.New(b.s.now()), b.s.sender(ctx)
	for _, content := range []*harnessv1.Content{item.GetUserMessage().GetContent(), item.GetToolAnswer().GetResult(), item.GetApproval().GetArguments()} {
		if len(content.GetInline()) <= runlog.MaxInline {
			continue
		}
		ref, err := b.s.log.PutBlob(ctx, b.run, []byte(content.GetInline()))
		if err != nil {
			return nil, err
		}
		content.Value = &harnessv1.Content_Blob{Blob: ref}
	}
	sequence, existed, err := b.s.log.AppendInbox(ctx, b.run, item, after)
	if err != nil {
		return nil, err
	}
	failpoint.Hit(gateway.Writer, "input_stored")
	b.s.runs.saw(b.run, sequence)
	return gateway.InputStored{Sequence: sequence, Existed: existed}, nil
}
