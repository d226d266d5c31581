package toolhostserver

import (
	"context"
	"encoding/binary"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// result is the answer to a call: an ExecuteToolResponse, or a
// CheckCommandResponse for a check.
type result interface {
	proto.Message
	GetOutcome() harnessv1.ToolOutcome
}

// work is a call that may be run.
type work struct {
	// Names the call, and its run, in the ledger.
	key, run string
	// For the log.
	namespace, runID, id string

	facts toolhost.Call
	// refuse answers a call that is not to be run at all; nil from it lets it run.
	refuse func() result
	// perform runs it. The result is not used when it was interrupted: stopped
	// before it had reached its end.
	perform func(ctx context.Context) product
}

// product is what came of a call.
type product struct {
	result      result
	interrupted bool
	// Paths relative to the workspace.
	changed []string
}

// effect is what became of a tool that was run.
type effect struct {
	// What the model reads.
	text    string
	isError bool
	// It was stopped before it had reached its end.
	interrupted bool
	exitCode    *int32
	// Paths relative to the workspace.
	changed []string
}

// failed is the effect of a tool that could not do what was asked.
func failed(text string) effect { return effect{text: text, isError: true} }

// toolWork is the work that a request asks for.
func (s *Server) toolWork(req *harnessv1.ExecuteToolRequest) (*work, error) {
	key, err := callKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence(), req.GetCallId())
	if err != nil {
		return nil, err
	}
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if err := checkTimeout(req.GetTimeout()); err != nil {
		return nil, err
	}
	spec := s.tools.Lookup(req.GetTool())
	return &work{
		key: key, run: strings.TrimSuffix(key, "\x00"+req.GetCallId()),
		namespace: req.GetNamespace(), runID: req.GetRunId(), id: req.GetCallId(),
		facts: toolhost.Call{
			// A tool that does not exist has no effect.
			Idempotent:    spec == nil || spec.GetAnnotations().GetIdempotent(),
			ForeignLedger: s.foreign(req.GetLedgerId()),
		},
		refuse: func() result {
			if err := s.tools.Validate(req.GetTool(), req.GetArguments()); err != nil {
				return done(failed(err.Error()), 0)
			}
			return nil
		},
		perform: func(ctx context.Context) product {
			begin := time.Now()
			e := s.perform(ctx, req)
			e.text = toolhost.Cut(e.text, s.config.Limits.ResultBytes, "Ask for less at a time.")
			return product{result: done(e, time.Since(begin)), interrupted: e.interrupted, changed: e.changed}
		},
	}, nil
}

func checkTimeout(t *durationpb.Duration) error {
	if t != nil && (t.CheckValid() != nil || t.AsDuration() < 0) {
		return fault.Invalid("timeout", "is not a positive duration")
	}
	return nil
}

func done(e effect, took time.Duration) *harnessv1.ExecuteToolResponse {
	return &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: e.text, IsError: e.isError,
		Duration: durationpb.New(took), ExitCode: e.exitCode, FilesChanged: e.changed,
	}
}

// unanswered is the answer to a call that has no result.
func unanswered(key string, o harnessv1.ToolOutcome, took time.Duration) result {
	if isCheck(key) {
		return &harnessv1.CheckCommandResponse{Outcome: o}
	}
	resp := &harnessv1.ExecuteToolResponse{Outcome: o}
	if o == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		resp.Duration = durationpb.New(took)
	}
	return resp
}

// runKey names a run in the ledger. NUL separates; it is in no name.
func runKey(namespace, run string, firstSequence uint64) (string, error) {
	for field, value := range map[string]string{"namespace": namespace, "run_id": run} {
		if err := checkName(field, value); err != nil {
			return "", err
		}
	}
	key := make([]byte, 0, len(namespace)+len(run)+10)
	key = append(key, namespace...)
	key = append(key, 0)
	key = append(key, run...)
	key = append(key, 0)
	return string(binary.BigEndian.AppendUint64(key, firstSequence)), nil
}

func checkName(field, value string) error {
	if value == "" || len(value) > 1024 || strings.ContainsRune(value, 0) {
		return fault.Invalid(field, "has to be 1 to 1024 bytes without NUL")
	}
	return nil
}

// callKey names a call in the ledger: its run, NUL and its id.
func callKey(namespace, run string, firstSequence uint64, id string) (string, error) {
	key, err := runKey(namespace, run, firstSequence)
	if err != nil {
		return "", err
	}
	return key + "\x00" + id, checkName("call_id", id)
}
