package toolhostserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// maxRead is how many names of one folder are looked at: a bound of memory.
const maxRead = 50_000

func (s *Server) listDirectory(w *workspace, a arguments) effect {
	if a.Path == "" {
		a.Path = "."
	}
	f, rel, err := w.open(a.Path)
	if err != nil {
		return refused(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	entries, err := f.ReadDir(maxRead)
	switch {
	case errors.Is(err, io.EOF):
		return effect{text: "[The folder is empty.]"}
	case errors.Is(err, syscall.ENOTDIR):
		return failed(a.Path + ": is a file, not a folder; use read_file.")
	case err != nil:
		return refused(a.Path, err)
	}
	slices.SortFunc(entries, func(x, y fs.DirEntry) int { return strings.Compare(x.Name(), y.Name()) })
	var text strings.Builder
	for i, entry := range entries {
		if i == s.config.Limits.Paths {
			fmt.Fprintf(&text, "[%d more; use find_files with a pattern.]\n", len(entries)-i)
			break
		}
		text.WriteString(describeEntry(w, path.Join(rel, entry.Name()), entry))
	}
	return effect{text: text.String()}
}

// describeEntry is a line of a listing. It asks root again rather than the
// entry, which would look outside after a swap of the folder.
func describeEntry(w *workspace, name string, entry fs.DirEntry) string {
	shown := toolhost.Clip(entry.Name(), 255)
	switch {
	case entry.IsDir():
		return shown + "/\n"
	case entry.Type()&fs.ModeSymlink != 0:
		if target, err := w.root.Readlink(name); err == nil {
			return shown + " -> " + toolhost.Clip(target, 255) + "\n"
		}
	case entry.Type().IsRegular():
		if info, err := w.root.Lstat(name); err == nil {
			return fmt.Sprintf("%s  %d\n", shown, info.Size())
		}
	}
	return shown + "\n"
}

// walk calls visit for every file below start, sorted within each folder, until
// visit says no. Links are not followed, .git is left out, and what cannot be
// read is passed over.
func walk(ctx context.Context, w *workspace, start string, visit func(name string, entry fs.DirEntry) bool) error {
	return fs.WalkDir(w.root.FS(), start, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == start:
			return err
		case entry != nil && entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case err != nil || entry.IsDir():
			return nil
		case !visit(name, entry):
			return fs.SkipAll
		}
		return nil
	})
}

func (s *Server) findFiles(ctx context.Context, w *workspace, a arguments) effect {
	glob, err := toolhost.ParseGlob(a.Pattern)
	if err != nil {
		return failed(err.Error() + ".")
	}
	var text strings.Builder
	found, more := 0, false
	err = walk(ctx, w, ".", func(name string, _ fs.DirEntry) bool {
		if !glob.Match(name) {
			return true
		}
		if more = found == s.config.Limits.Paths; more {
			return false
		}
		found++
		text.WriteString(name + "\n")
		return true
	})
	return outcome(ctx, err, &text, found, more, "No file matches.")
}

func (s *Server) searchFiles(ctx context.Context, w *workspace, a arguments) effect {
	re, err := regexp.Compile(a.Pattern)
	if err != nil {
		return failed(fmt.Sprintf("pattern: %s (RE2 syntax).", err))
	}
	start := "."
	if a.Path != "" {
		if start, err = w.resolve(a.Path); err != nil {
			return refused(a.Path, err)
		}
		if _, err := w.root.Stat(start); err != nil {
			return refused(a.Path, err)
		}
	}
	search := search{re: re, limits: s.config.Limits}
	err = walk(ctx, w, start, func(name string, entry fs.DirEntry) bool {
		if entry.Type().IsRegular() {
			search.file(ctx, w, name)
		}
		return !search.more
	})
	if search.large > 0 {
		fmt.Fprintf(&search.text, "[Not searched: %d files of more than %d bytes.]\n", search.large, s.config.Limits.FileBytes)
	}
	return outcome(ctx, err, &search.text, search.found, search.more, "No match.")
}

// outcome is the effect of looking around.
func outcome(ctx context.Context, err error, text *strings.Builder, found int, more bool, none string) effect {
	switch {
	case ctx.Err() != nil:
		return effect{text: text.String(), interrupted: true}
	case err != nil:
		return failed(plain(err) + ".")
	case found == 0:
		return effect{text: none + "\n" + text.String()}
	case more:
		text.WriteString("[There is more; use a narrower pattern or path.]\n")
	}
	return effect{text: text.String()}
}

// search collects the matching lines of files.
type search struct {
	re     *regexp.Regexp
	limits toolhost.Limits
	text   strings.Builder
	buffer bytes.Buffer
	found  int
	// Files that were too large.
	large int
	// A limit was reached.
	more bool
}

func (s *search) file(ctx context.Context, w *workspace, name string) {
	f, err := w.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	if info.Size() > int64(s.limits.FileBytes) {
		s.large++
		return
	}
	s.buffer.Reset()
	if _, err := s.buffer.ReadFrom(io.LimitReader(f, int64(s.limits.FileBytes))); err != nil {
		return
	}
	content := s.buffer.Bytes()
	if bytes.IndexByte(content[:min(len(content), sniff)], 0) >= 0 {
		return
	}
	for number := 1; len(content) > 0 && ctx.Err() == nil; number++ {
		line, rest, _ := bytes.Cut(content, []byte("\n"))
		content = rest
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := s.re.FindIndex(line)
		if at == nil {
			continue
		}
		if s.more = s.found == s.limits.Matches || s.text.Len() > s.limits.ResultBytes/2; s.more {
			return
		}
		s.found++
		fmt.Fprintf(&s.text, "%s:%d: %s\n", name, number, around(line, at, s.limits.LineBytes))
	}
}

// around is the part of a line in which the match is.
func around(line []byte, at []int, limit int) string {
	if len(line) <= limit {
		return toolhost.Readable(string(line))
	}
	from := max(0, min(at[0]-limit/4, len(line)-limit))
	part := toolhost.Clip(strings.ToValidUTF8(string(line[from:]), ""), limit)
	if from > 0 {
		part = "…" + part
	}
	return part
}
