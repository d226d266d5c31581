// Package compactionserver runs compaction as an executor and serves it over
// gRPC. It counts tokens exactly when the decision asks for it, which it does
// only near a threshold.
package compactionserver

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// Server is the compaction executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedCompactionServiceServer
	log runlog.Log
}

// New makes a compaction worker.
func New(log runlog.Log) *Server { return &Server{log: log} }

// Register adds the gRPC form to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterCompactionServiceServer(r, s)
}

// Compact maps a step to what compaction would commit.
func (s *Server) Compact(_ context.Context, req *harnessv1.CompactRequest) (*harnessv1.CompactResponse, error) {
	out, err := compaction.Decide(req.GetInput())
	if err != nil {
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.CompactResponse{Output: out}, nil
}

// Run executes compaction until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: compaction.Name, Decide: compaction.Decide, Observe: s.observe})
}

// messageFraming is what frames a message, in tokens.
const messageFraming = 4

// observe counts the tokens that the provider has not reported.
func (s *Server) observe(ctx context.Context, task *executor.Task, key string) (*harnessv1.Observation, error) {
	if key != compaction.NeedTokens {
		return nil, fmt.Errorf("compaction does not observe %q", key)
	}
	snapshot := task.Step().GetSnapshot()
	entries, err := runlog.Back(ctx, s.log, task.Entry, 0)
	if err != nil {
		return nil, err
	}
	_, name, _ := strings.Cut(snapshot.GetModel(), ":")
	count := 0
	for _, e := range entries {
		for _, m := range e.Record.GetAppended() {
			if m.GetId() <= snapshot.GetTokenBudget().GetReportedMessages() {
				continue
			}
			n, err := s.count(ctx, task.Run, name, m)
			if err != nil {
				return nil, err
			}
			count += n + messageFraming
		}
	}
	if snapshot.GetTokenBudget().GetReportedTokens() == 0 {
		count += int(snapshot.GetTokenBudget().GetToolBytes()) / 4
	}
	return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Tokens{Tokens: uint32(count)}}, nil //nolint:gosec // far below
}

func (s *Server) count(ctx context.Context, run runlog.Run, model string, m *harnessv1.Message) (int, error) {
	contents := []*harnessv1.Content{m.GetContent()}
	n := 0
	for _, c := range m.GetToolCalls() {
		n += tokens.Count(model, c.GetName())
		contents = append(contents, c.GetArguments())
	}
	for _, c := range contents {
		text := c.GetInline()
		if b := c.GetBlob(); b != nil {
			data, err := s.log.Blob(ctx, run, b.GetDigest())
			if err != nil {
				return 0, err
			}
			text = string(data)
		}
		n += tokens.Count(model, text)
	}
	return n, nil
}
