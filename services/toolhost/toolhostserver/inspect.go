package toolhostserver

import (
	"context"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/git"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/ledger"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// InspectWorkspace returns the number of changed files and the current instruction files.
// If git cannot report the changes within two seconds, only changes by calls of the run
// count. A workspace that no longer exists is empty; that is no error.
func (s *Server) InspectWorkspace(ctx context.Context, req *harnessv1.InspectWorkspaceRequest) (*harnessv1.InspectWorkspaceResponse, error) {
	run, err := ledger.RunKey(req.GetNamespace(), req.GetRunId(), req.GetFirstSequence())
	if err != nil {
		return nil, err
	}
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	paths, err := s.ledger.Changes(run)
	if err != nil {
		return nil, ledger.Unreadable(err)
	}
	changed := make(map[string]bool, len(paths))
	for _, path := range paths {
		changed[path] = true
	}
	open := func() (*workspace.Workspace, error) { return s.files.Open(req.GetWorkspace()) }
	resp := &harnessv1.InspectWorkspaceResponse{Previews: tools.Previews(open, s.config.Limits, req.GetProposed())}
	if resp.Background, err = s.backgrounds.States(run, req.GetBackground()); err != nil {
		return nil, err
	}
	if r, err := git.Find(req.GetWorkspace()); err == nil {
		resp.InstructionFiles, resp.Unaccepted = s.files.Instructions(ctx, r)
		if r.Exists && !req.GetInstructionsOnly() {
			s.addGitChanges(ctx, r, changed)
		}
	}
	if !req.GetInstructionsOnly() {
		resp.FilesChanged = uint32(len(changed)) //nolint:gosec // limited by the inspection
	}
	return resp, ctx.Err()
}

func (s *Server) addGitChanges(ctx context.Context, r git.Repository, changed map[string]bool) {
	paths, err := s.git.Changes(ctx, r)
	if err != nil {
		s.log.Debug("git cannot report changes", "error", err, "workspace", r.Workspace)
	}
	for _, path := range paths {
		changed[path] = true
	}
}
