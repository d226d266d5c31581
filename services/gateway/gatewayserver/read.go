package gatewayserver

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway"
)

const (
	// chunk bounds the bytes of a blob in one message.
	chunk = 64 << 10
	// maxConversation bounds a conversation that is sent in one message, in bytes.
	maxConversation = 64 << 20
)

// walk visits records backwards, starting with e, until visit returns false or there are
// no more.
func (s *Server) walk(ctx context.Context, e runlog.Entry, visit func(runlog.Entry) (more bool, err error)) error {
	for {
		if e.Record == nil {
			return unreadable(e)
		}
		more, err := visit(e)
		if err != nil || !more || e.Header.Version <= 1 {
			return err
		}
		version := e.Header.Version
		if e, err = s.log.Read(ctx, e.Run, e.Record.GetPrevSequence()); err != nil {
			return fmt.Errorf("version %d: %w", version-1, lost(err))
		}
		if e.Header.Version != version-1 {
			return fmt.Errorf("sequence %d has version %d of %s, expected %d", e.Sequence, e.Header.Version, e.Run, version-1)
		}
	}
}

// lost converts a missing record inside a log to a separate error: the run exists, but
// its log is incomplete.
func lost(err error) error {
	if errors.Is(err, runlog.ErrNotFound) {
		return fmt.Errorf("the log is incomplete: %v", err) //nolint:errorlint // hides ErrNotFound on purpose
	}
	return err
}

// GetRun returns the current status of a run.
func (s *Server) GetRun(ctx context.Context, r *harnessv1.GetRunRequest) (*harnessv1.GetRunResponse, error) {
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return nil, err
	}
	resp, err := s.getRun(ctx, run)
	return resp, s.failure(ctx, "read", run, err)
}

func (s *Server) getRun(ctx context.Context, run runlog.Run) (*harnessv1.GetRunResponse, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx, run)
	if err != nil {
		return nil, err
	}
	first, err := s.first(ctx, run, v)
	if err != nil {
		return nil, err
	}
	resp := &harnessv1.GetRunResponse{
		Run:  gateway.RunOf(v.Step, v.Newest.Header.Version),
		Spec: first.Record.GetStep().GetRepairTrigger().GetSpec(),
	}
	resp.Run.Children = gateway.ChildrenOf(v.Step.Record.GetStep().GetSnapshot())
	resp.Run.TraceIds = gateway.TracesOf(v.Step.Record.GetStep().GetSnapshot())
	if v.Quiescent() {
		resp.Result = s.resultOf(ctx, v.Step)
	}
	items, err := s.waiting(ctx, run, v.Step.Record.GetStep().GetSnapshot().GetInboxCursor(), v.InboxSequence)
	resp.Waiting = gateway.WaitingOf(items)
	return resp, err
}

// blobs returns a reader of a run's blobs, for the parts of its state that are stored
// there.
func (s *Server) blobs(ctx context.Context, run runlog.Run) func(*harnessv1.BlobRef) ([]byte, error) {
	return func(ref *harnessv1.BlobRef) ([]byte, error) { return s.log.Blob(ctx, run, ref.GetDigest()) }
}

// resultOf returns the result of a run that is parked or has ended at a step, with the
// place of its conversation, the whole arguments of calls that a person decides about, and
// what runs below wait for; nil at any other record.
func (s *Server) resultOf(ctx context.Context, e runlog.Entry) *harnessv1.HarnessResult {
	r := s.storedResult(ctx, e)
	if r == nil {
		return nil
	}
	r = proto.CloneOf(r)
	r.Transcript = gateway.TranscriptPath(e.Run.Namespace, e.Run.ID)
	if len(r.GetPending()) > 0 {
		r.Pending = s.whole(ctx, e.Run).calls(r.GetPending())
	}
	if err := s.withTree(ctx, e, r); err != nil {
		s.logger.Warn("what the runs below wait for is left out of a result", "namespace", e.Run.Namespace, "run", e.Run.ID, "error", err)
	}
	return r
}

// storedResult returns the result as it is stored. Deliverables and contract are left out if
// they cannot be read: the status matters more.
func (s *Server) storedResult(ctx context.Context, e runlog.Entry) *harnessv1.HarnessResult {
	if !gateway.Lacking(e) {
		return gateway.ResultOf(e)
	}
	whole := e
	whole.Record = proto.CloneOf(e.Record)
	if err := runstate.UnpackLedgers(whole.Record.GetStep().GetSnapshot(), s.blobs(ctx, e.Run)); err != nil {
		s.logger.Warn("deliverables left out of a result", "namespace", e.Run.Namespace, "run", e.Run.ID, "error", err)
		return gateway.ResultOf(e)
	}
	return gateway.ResultOf(whole)
}

// GetState returns the state of a run at a version, with all parts, wherever they are
// stored.
func (s *Server) GetState(ctx context.Context, r *harnessv1.GetStateRequest) (*harnessv1.GetStateResponse, error) {
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return nil, err
	}
	v, version, err := s.upTo(ctx, run, r.GetVersion())
	if err != nil {
		return nil, s.failure(ctx, "read", run, err)
	}
	resp := &harnessv1.GetStateResponse{Version: version}
	err = s.walk(ctx, v.Step, func(e runlog.Entry) (bool, error) {
		if step := e.Record.GetStep(); step != nil && e.Header.Version <= version {
			resp.Snapshot, resp.StepVersion = step.GetSnapshot(), e.Header.Version
			return false, nil
		}
		return true, nil
	})
	if err == nil && runstate.HasPackedParts(resp.GetSnapshot()) {
		resp.Snapshot = proto.CloneOf(resp.GetSnapshot())
		if err = runstate.Unpack(resp.GetSnapshot(), s.blobs(ctx, run)); err != nil {
			err = fmt.Errorf("version %d: %w", resp.GetStepVersion(), lost(err))
		}
	}
	if err != nil {
		return nil, s.failure(ctx, "read", run, err)
	}
	return resp, nil
}

// GetConversation returns the conversation of a run up to a version, without opaque
// parts.
func (s *Server) GetConversation(ctx context.Context, r *harnessv1.GetConversationRequest) (*harnessv1.GetConversationResponse, error) {
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return nil, err
	}
	v, version, err := s.upTo(ctx, run, r.GetVersion())
	if err != nil {
		return nil, s.failure(ctx, "read", run, err)
	}
	var newestFirst []*harnessv1.Message
	size := 0
	err = s.walk(ctx, v.Newest, func(e runlog.Entry) (bool, error) {
		if e.Header.Version > version {
			return true, nil
		}
		for _, m := range slices.Backward(e.Record.GetAppended()) {
			m = opaque.Without(m)
			if size += proto.Size(m); size > maxConversation {
				return false, input.TooLarge("conversation", size, maxConversation, "bytes")
			}
			newestFirst = append(newestFirst, m)
		}
		return true, nil
	})
	if err != nil {
		return nil, s.failure(ctx, "read", run, err)
	}
	slices.Reverse(newestFirst)
	return &harnessv1.GetConversationResponse{Messages: newestFirst}, nil
}

// upTo reads a run and resolves version 0 to the newest.
func (s *Server) upTo(ctx context.Context, run runlog.Run, version uint64) (runlog.View, uint64, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx, run)
	if err != nil {
		return v, 0, err
	}
	newest := v.Newest.Header.Version
	if version > newest {
		return v, 0, fault.New(codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_NOT_STORED,
			fmt.Sprintf("run %s has no version %d; its newest is %d", run, version, newest), "version", fmt.Sprint(version))
	}
	if version == 0 {
		version = newest
	}
	return v, version, nil
}

// GetBlob returns the bytes of a BlobRef.
func (s *Server) GetBlob(r *harnessv1.GetBlobRequest, stream grpc.ServerStreamingServer[harnessv1.GetBlobResponse]) error {
	ctx := stream.Context()
	run, err := gateway.Run(r.GetNamespace(), r.GetRunId())
	if err != nil {
		return err
	}
	if err := input.CheckDigest(r.GetDigest()); err != nil {
		return err
	}
	if _, err := s.view(ctx, run); err != nil {
		return s.failure(ctx, "read", run, err)
	}
	data, err := s.log.Blob(ctx, run, r.GetDigest())
	if errors.Is(err, runlog.ErrNotFound) {
		return because(err, codes.NotFound, harnessv1.ErrorReason_ERROR_REASON_NOT_STORED,
			"run "+run.String()+" has no blob "+r.GetDigest(), "digest", r.GetDigest())
	}
	if err != nil {
		return s.failure(ctx, "read", run, err)
	}
	for part := range slices.Chunk(data, chunk) {
		if err := stream.Send(&harnessv1.GetBlobResponse{Chunk: part}); err != nil {
			return err
		}
	}
	return nil
}
