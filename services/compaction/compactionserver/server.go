// Package compactionserver runs compaction as an executor and serves it over
// gRPC. It counts tokens exactly when the decision asks for it, which it does
// only near a threshold.
package compactionserver

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/compaction"
)

// Log is what a Server needs of a run log.
type Log interface {
	runlog.Reader
	runlog.BlobReader
}

// Server is the compaction executor and its gRPC form.
type Server struct {
	harnessv1.UnimplementedCompactionServiceServer
	log Log
}

// New returns a compaction worker.
func New(log Log) *Server { return &Server{log: log} }

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterCompactionServiceServer(r, s)
}

// Compact returns what compaction would commit for a step, and commits nothing.
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

// observe counts the tokens of the messages that the provider has not reported, images
// by the model's formula in the built-in catalogue. It reads the log backwards, up to the
// first of them.
func (s *Server) observe(ctx context.Context, task *executor.Task, key string) (*harnessv1.Observation, error) {
	if key != compaction.KeyTokens {
		return nil, fmt.Errorf("compaction has no observation %q", key)
	}
	snapshot := task.Step().GetSnapshot()
	reported := snapshot.GetTokenBudget().GetReportedMessages()
	left := snapshot.GetMessageCount() - min(reported, snapshot.GetMessageCount())
	count, formula := 0, catalogue.Lookup(snapshot.GetModel()).ImageTokens
	for e := task.Entry; left > 0; {
		for _, m := range e.Record.GetAppended() {
			if m.GetId() <= reported {
				continue
			}
			left--
			whole, err := s.inline(ctx, task.Run, m)
			if err != nil {
				return nil, err
			}
			count += tokens.Message(snapshot.GetModel(), whole) + int(media.MessageTokens(whole, formula)) //nolint:gosec // of at most 256 parts
		}
		before := runlog.TowardsAppended(e.Record)
		if before == 0 {
			break
		}
		var err error
		if e, err = s.log.Read(ctx, task.Run, before); err != nil {
			return nil, err
		}
		if e.Record == nil {
			return nil, e.Err
		}
	}
	return &harnessv1.Observation{Key: key, Value: &harnessv1.Observation_Tokens{Tokens: uint32(count)}}, nil
}

// inline returns a copy of a message in which all texts are inline.
func (s *Server) inline(ctx context.Context, run runlog.Run, m *harnessv1.Message) (*harnessv1.Message, error) {
	m = proto.CloneOf(m)
	contents := []*harnessv1.Content{m.GetContent()}
	for _, c := range m.GetToolCalls() {
		contents = append(contents, c.GetArguments())
	}
	for _, c := range contents {
		b := c.GetBlob()
		if b == nil {
			continue
		}
		data, err := s.log.Blob(ctx, run, b.GetDigest())
		if err != nil {
			return nil, err
		}
		c.Value = &harnessv1.Content_Inline{Inline: string(data)}
	}
	return m, nil
}
