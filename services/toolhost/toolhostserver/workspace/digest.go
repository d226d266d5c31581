package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
)

// Digest describes a file's content. All of it comes from one pass over the file.
type Digest struct {
	// Head is the beginning of the content.
	Head []byte
	// Size of the whole content in bytes.
	Size int64
	// SHA256 of the whole content in lower-case hexadecimal.
	SHA256 string
}

// Digest reads a regular file to its end and keeps its first head bytes. It returns an
// error for a file of more than limit bytes.
func (w *Workspace) Digest(ctx context.Context, path string, head int, limit int64) (Digest, error) {
	f, _, err := w.OpenRegular(path)
	if err != nil {
		return Digest{}, err
	}
	defer func() { _ = f.Close() }()
	hash := sha256.New()
	buffer := make([]byte, 64<<10)
	var d Digest
	for {
		if err := ctx.Err(); err != nil {
			return Digest{}, err
		}
		n, err := f.Read(buffer)
		hash.Write(buffer[:n])
		if d.Size += int64(n); d.Size > limit {
			return Digest{}, errors.New("is too large")
		}
		d.Head = append(d.Head, buffer[:min(n, head-len(d.Head))]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Digest{}, err
		}
	}
	d.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return d, nil
}
