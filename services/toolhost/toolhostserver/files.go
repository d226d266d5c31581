package toolhostserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// sniff is how much of a file is looked at to see whether it is text, bytes.
const sniff = 8000

func (s *Server) readFile(ctx context.Context, w *workspace, a arguments) effect {
	f, info, err := w.openRegular(a.Path)
	if err != nil {
		return refused(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, int(min(max(info.Size(), 512), 64<<10)))
	if start, _ := r.Peek(min(sniff, r.Size())); bytes.IndexByte(start, 0) >= 0 {
		return failed(fmt.Sprintf("%s: is a binary file of %d bytes; look at it with a command such as file or xxd.", a.Path, info.Size()))
	}
	first := max(int(a.Offset), 1)
	page := page{skip: first - 1, lines: int(a.Limit), limit: s.config.Limits.ReadBytes}
	if err := page.read(ctx, r); err != nil {
		if ctx.Err() != nil {
			return effect{interrupted: true}
		}
		return refused(a.Path, err)
	}
	text := toolhost.Readable(page.text.String())
	switch {
	case page.taken == 0 && page.passed == 0:
		return effect{text: "[The file is empty.]"}
	case page.taken == 0 && page.passed < first:
		return failed(fmt.Sprintf("%s: has %d lines; offset %d is beyond its end.", a.Path, page.passed, first))
	case page.cutLine:
		return effect{text: joinLines(text, fmt.Sprintf(
			"[Line %d is longer than a read returns and was cut here. See the rest of it with a command such as cut -c. Lines after it: offset %d.]",
			first+page.taken-1, first+page.taken))}
	case page.more:
		return effect{text: joinLines(text, fmt.Sprintf("[The file goes on. Continue with offset %d.]", first+page.taken))}
	}
	return effect{text: text}
}

// page is a range of lines of a file that fits into a result.
type page struct {
	// Lines to pass over, lines to take (0 = all), bytes to take at most.
	skip, lines, limit int

	text strings.Builder
	// Lines passed over and taken.
	passed, taken int
	// There is more in the file; the last line was cut.
	more, cutLine bool
}

func (p *page) read(ctx context.Context, r *bufio.Reader) error {
	for ctx.Err() == nil {
		line, err := p.next(ctx, r)
		if len(line) > 0 && p.take(line) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// next reads a line and returns as much of it as a page could hold, and a byte
// more. It is valid until the next call.
func (p *page) next(ctx context.Context, r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	line = append([]byte(nil), line...)
	for errors.Is(err, bufio.ErrBufferFull) && ctx.Err() == nil {
		var part []byte
		part, err = r.ReadSlice('\n')
		line = append(line, part[:min(len(part), max(0, p.limit+1-len(line)))]...)
	}
	return line, err
}

// take adds a line and says whether the page is full.
func (p *page) take(line []byte) (full bool) {
	room := p.limit - p.text.Len()
	switch {
	case p.passed < p.skip:
		p.passed++
		return false
	case p.lines > 0 && p.taken == p.lines, p.taken > 0 && len(line) > room:
		p.more = true
		return true
	}
	p.taken++
	if len(line) > room {
		p.text.Write(line[:room])
		p.cutLine = true
		return true
	}
	p.text.Write(line)
	return false
}

func (s *Server) writeFile(ctx context.Context, w *workspace, a arguments) effect {
	rel, interrupted, err := s.replace(ctx, w, a.Path, a.Content)
	if interrupted {
		return effect{interrupted: true}
	}
	if err != nil {
		return refused(a.Path, err)
	}
	return effect{
		text:    fmt.Sprintf("Wrote %s: %d bytes, %d lines.", a.Path, len(a.Content), countLines(a.Content)),
		changed: []string{rel},
	}
}

func (s *Server) editFile(ctx context.Context, w *workspace, a arguments) effect {
	f, info, err := w.openRegular(a.Path)
	if err != nil {
		return refused(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	limit := s.config.Limits.FileBytes
	if info.Size() > int64(limit) {
		return failed(fmt.Sprintf("%s: has %d bytes; edit_file changes files of up to %d. Use a command such as sed.", a.Path, info.Size(), limit))
	}
	content, err := io.ReadAll(io.LimitReader(f, int64(limit)))
	if err != nil {
		return refused(a.Path, err)
	}
	edited, line, err := toolhost.ReplaceOnce(string(content), a.Old, a.New)
	if err != nil {
		return failed(fmt.Sprintf("%s: %s.", a.Path, err))
	}
	rel, interrupted, err := s.replace(ctx, w, a.Path, edited)
	if interrupted {
		return effect{interrupted: true}
	}
	if err != nil {
		return refused(a.Path, err)
	}
	return effect{
		text:    fmt.Sprintf("Edited %s at line %d: %d lines became %d.", a.Path, line, countLines(a.Old), countLines(a.New)),
		changed: []string{rel},
	}
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// replace puts content in the place of a file in one step: who reads it, also
// after a kill at any moment, finds the old or the new one. Permissions and, as
// far as allowed, owner stay. It returns the file's name below the workspace.
func (s *Server) replace(ctx context.Context, w *workspace, path, content string) (rel string, interrupted bool, err error) {
	if strings.HasSuffix(path, "/") {
		return "", false, errors.New("names a folder, not a file")
	}
	// A link is written through, never replaced.
	if rel, err = w.resolve(path); err != nil {
		return "", false, err
	}
	mode := fs.FileMode(0o666)
	old, err := w.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := w.root.MkdirAll(filepath.Dir(rel), 0o777); err != nil {
			return "", false, err
		}
	case err != nil:
		return "", false, err
	case old.IsDir():
		return "", false, errors.New("is a folder")
	case !old.Mode().IsRegular():
		return "", false, errors.New("is not a regular file")
	case old.Mode().Perm()&0o222 == 0:
		return "", false, errors.New("is read-only")
	default:
		mode = old.Mode().Perm()
	}
	name := filepath.Join(filepath.Dir(rel), ".harness-"+randomHex(6)+".tmp")
	if err := s.writeNew(w, name, content, mode, old); err != nil {
		return "", false, errors.Join(err, ignoreMissing(w.root.Remove(name)))
	}
	if ctx.Err() != nil {
		return "", true, w.root.Remove(name)
	}
	if err := w.root.Rename(name, rel); err != nil {
		return "", false, errors.Join(err, ignoreMissing(w.root.Remove(name)))
	}
	return rel, false, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeNew makes a file; old is what it is to replace, if there is such.
func (s *Server) writeNew(w *workspace, name, content string, mode fs.FileMode, old fs.FileInfo) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if old != nil {
		if stat, ok := old.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(stat.Uid), int(stat.Gid)) // allowed to some only
		}
		err = errors.Join(err, f.Chmod(mode))
	}
	if s.config.Sync {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}
