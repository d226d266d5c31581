package toolhostserver

import (
	"context"
	"runtime"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
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
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	w, err := s.openWorkspace(req.GetWorkspace())
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	defer w.Close()
	listing, err := w.Listing(s.config.Limits.ListingEntries)
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	r, err := git.Find(w.Dir)
	if err != nil {
		return nil, workspace.Unusable(req.GetWorkspace(), err)
	}
	return &harnessv1.DescribeWorkspaceResponse{Problem: s.commands.Problem(ctx, w.Dir, req.GetSandbox()), Environment: &harnessv1.Environment{
		WorkingDirectory: w.Dir,
		Platform:         runtime.GOOS + "/" + runtime.GOARCH,
		Listing:          listing,
		InstructionFiles: s.instructions(ctx, r),
		Tools:            s.tools.Specs(),
		Skills:           s.skills(r, req.GetSkillFolders(), req.GetUserSkills()),
	}}, ctx.Err()
}
