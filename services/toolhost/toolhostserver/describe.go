package toolhostserver

import (
	"context"
	"runtime"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// DescribeHost returns the tools and the id of the ledger.
func (s *Server) DescribeHost(context.Context, *harnessv1.DescribeHostRequest) (*harnessv1.DescribeHostResponse, error) {
	return &harnessv1.DescribeHostResponse{Tools: s.tools.Specs(), LedgerId: s.ledger.id}, nil
}

// DescribeWorkspace checks a workspace and describes it.
func (s *Server) DescribeWorkspace(ctx context.Context, req *harnessv1.DescribeWorkspaceRequest) (*harnessv1.DescribeWorkspaceResponse, error) {
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	w, err := workspace.Open(req.GetWorkspace())
	if err != nil {
		return nil, workspaceUnusable(req.GetWorkspace(), err)
	}
	defer w.Close()
	listing, err := w.Listing(s.config.Limits.ListingEntries)
	if err != nil {
		return nil, workspaceUnusable(req.GetWorkspace(), err)
	}
	r, err := findRepository(w.Dir)
	if err != nil {
		return nil, workspaceUnusable(req.GetWorkspace(), err)
	}
	return &harnessv1.DescribeWorkspaceResponse{Environment: &harnessv1.Environment{
		WorkingDirectory: w.Dir,
		Platform:         runtime.GOOS + "/" + runtime.GOARCH,
		Listing:          listing,
		InstructionFiles: s.instructions(ctx, r),
		Tools:            s.tools.Specs(),
	}}, ctx.Err()
}
