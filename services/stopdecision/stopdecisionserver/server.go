// Package stopdecisionserver runs the stop decision as an executor and serves
// it over gRPC: post a state, get the decision.
package stopdecisionserver

import (
	"context"

	"google.golang.org/grpc"

	"github.com/harnessmesh/harnessmesh/pkg/executor"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/stopdecision"
)

// Server is the stop decision.
type Server struct {
	harnessv1.UnimplementedStopDecisionServiceServer
}

// New makes a stop decision worker.
func New() *Server { return &Server{} }

// Register adds the gRPC form to a server.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	harnessv1.RegisterStopDecisionServiceServer(r, s)
}

// Decide maps a step to what the stop decision would commit.
func (s *Server) Decide(_ context.Context, req *harnessv1.DecideRequest) (*harnessv1.DecideResponse, error) {
	out, err := stopdecision.Decide(req.GetInput())
	if err != nil {
		return nil, fault.Invalid("input", "%v", err)
	}
	return &harnessv1.DecideResponse{Output: out}, nil
}

// Run executes stop decisions until ctx ends.
func (s *Server) Run(ctx context.Context, cfg executor.Config) error {
	return executor.Run(ctx, cfg, &executor.Pure{ExecutorName: stopdecision.Name, Decide: stopdecision.Decide})
}
