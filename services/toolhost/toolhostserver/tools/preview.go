package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// maxDiff bounds the diff of a preview, in bytes.
const maxDiff = 1 << 20

// Previews returns what calls would change in a workspace, which open opens.
func Previews(open func() (*workspace.Workspace, error), limits toolhost.Limits, calls []*harnessv1.ProposedCall) []*harnessv1.CallPreview {
	if len(calls) == 0 {
		return nil
	}
	previews := make([]*harnessv1.CallPreview, len(calls))
	w, err := open()
	if err == nil {
		defer w.Close()
	}
	for i, call := range calls {
		p := &harnessv1.CallPreview{}
		previews[i] = p
		switch {
		case changers[call.GetTool()] == nil:
		case err != nil:
			p.Note = "the workspace cannot be used: " + disk.Reason(err)
		default:
			file, err := preview(w, limits, call.GetTool(), call.GetArguments())
			if err != nil {
				p.Note = content.Line(err.Error(), content.MaxPreview)
			} else {
				p.Files = []*harnessv1.FilePreview{file}
			}
		}
	}
	return previews
}

// preview returns what a call would change in its file. The error is why that cannot be
// shown.
func preview(w *workspace.Workspace, limits toolhost.Limits, name, arguments string) (*harnessv1.FilePreview, error) {
	c, err := changeOf(w, limits, name, arguments)
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

// ChangedSince returns why a call does not run that would change other lines than those that a
// person was shown; empty if it would change the same.
func ChangedSince(w *workspace.Workspace, limits toolhost.Limits, req *harnessv1.ExecuteToolRequest) string {
	for _, shown := range req.GetShown() {
		now, err := preview(w, limits, req.GetTool(), req.GetArguments())
		if err == nil && now.GetPath() == shown.GetPath() && now.GetHunks() == shown.GetHunks() && (now.GetBefore() == "") == (shown.GetBefore() == "") {
			continue
		}
		return fmt.Sprintf("%s: not written, because the file has changed since a person was shown this change. Read it again and make the call again.", shown.GetPath())
	}
	return ""
}
