package toolhostserver

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// DescribeServers starts the servers of a run that are not running, waits for them, and
// returns the tools that they list.
func (s *Server) DescribeServers(ctx context.Context, req *harnessv1.DescribeServersRequest) (*harnessv1.DescribeServersResponse, error) {
	return s.servers.Describe(ctx, req)
}

// StartServerSignIn begins a sign-in at a server.
func (s *Server) StartServerSignIn(ctx context.Context, req *harnessv1.StartServerSignInRequest) (*harnessv1.StartServerSignInResponse, error) {
	return s.servers.StartSignIn(ctx, req)
}

// FinishServerSignIn completes a sign-in.
func (s *Server) FinishServerSignIn(ctx context.Context, req *harnessv1.FinishServerSignInRequest) (*harnessv1.FinishServerSignInResponse, error) {
	return s.servers.FinishSignIn(ctx, req)
}

// DescribeServerSignIn returns whether there is a token for a server.
func (s *Server) DescribeServerSignIn(_ context.Context, req *harnessv1.DescribeServerSignInRequest) (*harnessv1.DescribeServerSignInResponse, error) {
	return s.servers.DescribeSignIn(req)
}

// EndServerSignIn removes the token for a server.
func (s *Server) EndServerSignIn(ctx context.Context, req *harnessv1.EndServerSignInRequest) (*harnessv1.EndServerSignInResponse, error) {
	return s.servers.EndSignIn(ctx, req)
}
