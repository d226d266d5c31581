package files

import (
	"context"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/disk"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/workspace"
)

// Check describes a file. Only a regular file inside the workspace exists; for others
// the response has the reason. The error is UNAVAILABLE if the file cannot be read to its
// end in time.
func (f *Files) Check(ctx context.Context, req *harnessv1.CheckFileRequest) (*harnessv1.CheckFileResponse, error) {
	if err := workspace.CheckPath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if req.GetPath() == "" {
		return nil, fault.Invalid("path", "must not be empty")
	}
	w, err := f.Open(req.GetWorkspace())
	if err != nil {
		return &harnessv1.CheckFileResponse{Why: "the workspace cannot be used: " + disk.Reason(err)}, nil
	}
	defer w.Close()
	limit := int(min(req.GetTextBytes(), toolhost.CheckTextBytes))
	ctx, cancel := context.WithTimeout(ctx, f.limits.Timeout)
	defer cancel()
	file, err := w.Digest(ctx, req.GetPath(), limit, math.MaxInt64)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, toolhost.Unavailable("the file could not be read to its end in time; send the request again or check a smaller one", err)
	default:
		return &harnessv1.CheckFileResponse{Why: toolhost.Clip(strings.ReplaceAll(disk.Reason(err), "\n", " "), 256)}, nil
	}
	text := validText(file.Head, limit)
	return &harnessv1.CheckFileResponse{
		Exists: true, Digest: file.SHA256, Size: uint64(file.Size), //nolint:gosec // not negative
		Text: text, Truncated: file.Size > int64(len(file.Head)) || len(text) < len(file.Head),
	}, nil
}

// validText returns the head of a file as valid UTF-8 of at most limit bytes. Invalid
// bytes are replaced.
func validText(head []byte, limit int) string {
	// A character that the end of the head cuts in two is left out, not replaced.
	for i := len(head) - 1; i >= 0 && i >= len(head)-utf8.UTFMax; i-- {
		if utf8.RuneStart(head[i]) {
			if len(head) == limit && !utf8.FullRune(head[i:]) {
				head = head[:i]
			}
			break
		}
	}
	text := strings.ToValidUTF8(string(head), "\uFFFD")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}
