package toolhostserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// CheckFile looks at a file. What is no regular file inside the workspace does not
// exist; UNAVAILABLE when one that is there cannot be read to its end in time.
func (s *Server) CheckFile(ctx context.Context, req *harnessv1.CheckFileRequest) (*harnessv1.CheckFileResponse, error) {
	if err := checkWorkspacePath(req.GetWorkspace()); err != nil {
		return nil, err
	}
	if req.GetPath() == "" {
		return nil, fault.Invalid("path", "names no file")
	}
	w, err := openWorkspace(req.GetWorkspace())
	if err != nil {
		return &harnessv1.CheckFileResponse{Why: "the workspace cannot be used: " + plain(err)}, nil
	}
	defer w.close()
	limit := int(min(req.GetTextBytes(), toolhost.CheckTextBytes))
	ctx, release := context.WithTimeout(ctx, s.config.Limits.Timeout)
	defer release()
	found, err := w.look(ctx, req.GetPath(), limit, math.MaxInt64)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, unavailable("the file could not be read to its end in time; send the request again or check a smaller one", err)
	default:
		return &harnessv1.CheckFileResponse{Why: toolhost.Clip(strings.ReplaceAll(plain(err), "\n", " "), 256)}, nil
	}
	text := validText(found.head, limit)
	return &harnessv1.CheckFileResponse{
		Exists: true, Digest: found.digest, Size: uint64(found.size),
		Text: text, Truncated: found.size > int64(len(found.head)) || len(text) < len(found.head),
	}, nil
}

// validText is what of the head of a file is UTF-8, the rest replaced, within limit
// bytes.
func validText(head []byte, limit int) string {
	// A letter that the end of the head cuts in two is left out, not replaced.
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

// contents is what was read of a file, all of it from one pass.
type contents struct {
	head   []byte
	size   int64
	digest string // SHA-256 in lower-case hexadecimal
}

// look reads a regular file of at most most bytes to its end and keeps its first
// limit bytes.
func (w *workspace) look(ctx context.Context, path string, limit int, most int64) (contents, error) {
	f, _, err := w.openRegular(path)
	if err != nil {
		return contents{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	buffer := make([]byte, 64<<10)
	var c contents
	for {
		if err := ctx.Err(); err != nil {
			return contents{}, err
		}
		n, err := f.Read(buffer)
		hash.Write(buffer[:n])
		if c.size += int64(n); c.size > most {
			return contents{}, errors.New("is too large")
		}
		c.head = append(c.head, buffer[:min(n, limit-len(c.head))]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return contents{}, err
		}
	}
	c.digest = hex.EncodeToString(hash.Sum(nil))
	return c, nil
}
