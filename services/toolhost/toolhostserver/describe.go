package toolhostserver

import (
	"context"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// DescribeHost returns the tools, the id of the ledger, and how far commands can be
// confined.
func (s *Server) DescribeHost(ctx context.Context, _ *harnessv1.DescribeHostRequest) (*harnessv1.DescribeHostResponse, error) {
	return &harnessv1.DescribeHostResponse{Tools: s.tools.Specs(), LedgerId: s.ledger.ID, Sandbox: s.Sandbox(ctx), Services: s.servers.Services()}, nil
}

// Sandbox returns how far commands can be confined. It finds it out by trying, once.
func (s *Server) Sandbox(ctx context.Context) *harnessv1.SandboxSupport {
	_, support := s.commands.Find(ctx)
	return support
}

// DescribeWorkspace checks a workspace and describes it.
func (s *Server) DescribeWorkspace(ctx context.Context, req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
	// A worktree that this host has made is in no folder of a token, and its path has no link.
	made := s.worktrees.Has(req.GetWorkspace())
	if made {
		req = proto.CloneOf(req)
		req.WithoutLinks = true
	}
	environment, err := s.files.Describe(ctx, req)
	if err != nil {
		return nil, err
	}
	if made {
		environment.Folder.Roots = req.GetRoots()
	}
	environment.Tools = s.tools.Specs()
	problem := s.commands.Problem(ctx, environment.GetWorkingDirectory(), req.GetSandbox())
	return &harnessv1.DescribeWorkspaceResponse{Problem: problem, Environment: environment}, ctx.Err()
}

// CheckFile describes a file. Only a regular file inside the workspace exists; for others
// the response has the reason. The error is UNAVAILABLE if the file cannot be read to its
// end in time.
func (s *Server) CheckFile(ctx context.Context, req *harnessv1.CheckFileRequest) (*harnessv1.CheckFileResponse, error) {
	return s.files.Check(ctx, req)
}
