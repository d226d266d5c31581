package toolhostserver

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// maxDiff bounds the diff of a preview, in bytes.
const maxDiff = 1 << 20

// previews returns what calls would change in a workspace.
func (s *Server) previews(dir string, calls []*harnessv1.ProposedCall) []*harnessv1.CallPreview {
	if len(calls) == 0 {
		return nil
	}
	previews := make([]*harnessv1.CallPreview, len(calls))
	w, err := s.openWorkspace(dir)
	if err == nil {
		defer w.Close()
	}
	for i, call := range calls {
		p := &harnessv1.CallPreview{}
		previews[i] = p
		switch {
		case !tools.Changes(call.GetTool()):
		case err != nil:
			p.Note = "the workspace cannot be used: " + disk.Reason(err)
		default:
			file, err := s.filePreview(w, call.GetTool(), call.GetArguments())
			if err != nil {
				p.Note = content.Line(err.Error(), content.MaxPreview)
			} else {
				p.Files = []*harnessv1.FilePreview{file}
			}
		}
	}
	return previews
}

// filePreview returns what a call would change in its file. The error is why that cannot be
// shown.
func (s *Server) filePreview(w *workspace.Workspace, name, arguments string) (*harnessv1.FilePreview, error) {
	c, err := tools.ChangeOf(w, s.config.Limits, name, arguments)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(c.Before) || strings.ContainsRune(c.Before, 0) {
		return nil, fmt.Errorf("%s is no text, so what changes cannot be shown", c.Path)
	}
	diff, hunks := toolhost.Diff(c.Before, c.After)
	if len(diff) > maxDiff {
		return nil, fmt.Errorf("%s: the diff has %d bytes, too many to show", c.Path, len(diff))
	}
	file := &harnessv1.FilePreview{Path: c.Path, Diff: content.Inline(diff), Hunks: hunks}
	if c.Exists {
		file.Before = content.Digest([]byte(c.Before))
	}
	return file, nil
}

// changedSince returns why a call does not run that would change other lines than those that a
// person was shown; empty if it would change the same.
func (s *Server) changedSince(w *workspace.Workspace, req *harnessv1.ExecuteToolRequest) string {
	for _, shown := range req.GetShown() {
		now, err := s.filePreview(w, req.GetTool(), req.GetArguments())
		if err == nil && now.GetPath() == shown.GetPath() && now.GetHunks() == shown.GetHunks() && (now.GetBefore() == "") == (shown.GetBefore() == "") {
			continue
		}
		return fmt.Sprintf("%s: not written, because the file has changed since a person was shown this change. Read it again and make the call again.", shown.GetPath())
	}
	return ""
}
