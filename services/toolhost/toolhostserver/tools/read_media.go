package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// isMedia reports whether a file that begins with head is an image or a PDF document. A
// text that mentions the header of a PDF is none.
func isMedia(head []byte) bool {
	kind := media.TypeOf(head)
	return kind != "" && (kind != media.PDF || bytes.HasPrefix(head, []byte("%PDF-")) || isBinary(head))
}

// readMedia returns an image or a document for the model to see. Its text has the exact
// size, so that a changed file has another result.
func readMedia(ctx context.Context, path string, r io.Reader) Result {
	data, err := io.ReadAll(io.LimitReader(r, media.MaxData+1))
	if ctx.Err() != nil {
		return Result{Interrupted: true}
	}
	if err != nil {
		return pathFailed(path, err)
	}
	m, data, err := media.CheckContext(ctx, path, data)
	if ctx.Err() != nil {
		return Result{Interrupted: true}
	}
	if err != nil {
		return Failed(fmt.Sprintf("%s: %v.", path, err))
	}
	m.Data = data
	return Result{
		Text:  fmt.Sprintf("%s %s, %d bytes", m.GetType(), media.Extent(m), len(data)),
		Media: []*harnessv1.Media{m},
	}
}
