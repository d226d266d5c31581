package tools

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// ReadFile is the name of the tool that reads a file.
const ReadFile = "read_file"

func init() {
	register(10, New(&harnessv1.ToolSpec{
		Name:   ReadFile,
		Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_TOOL_HOST,
		Description: "Read a text file of the workspace. Without offset and limit you get the file from its first line, " +
			"up to a size limit; a note at the end says when the file goes on and which offset to continue with. " +
			"Images (PNG, JPEG, GIF, WebP) and PDF documents are shown to you. " +
			"Use it rather than cat or sed. Read several files with several calls in one response.",
		ParametersSchema: `{"type":"object","properties":{` +
			`"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},` +
			`"offset":{"type":"integer","minimum":1,"maximum":1000000000,"description":"First line to return, counted from 1. Default 1."},` +
			`"limit":{"type":"integer","minimum":1,"maximum":1000000000,"description":"Number of lines to return. Default: all, up to the size limit."}},` +
			`"required":["path"],"additionalProperties":false}`,
		Usage: "Read a file before you change it, and the part around a match before you rely on it. Ask for several files " +
			"with several calls in one response.",
		Annotations: &harnessv1.ToolAnnotations{
			Reads: true, Idempotent: true, ParallelSafe: true,
			Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		},
	}, readFile))
}

type readFileArguments struct {
	Path   string  `json:"path"`
	Offset float64 `json:"offset"`
	Limit  float64 `json:"limit"`
}

func readFile(ctx context.Context, env *Environment, a readFileArguments) Result {
	f, info, err := env.Workspace.OpenRegular(a.Path)
	if err != nil {
		return pathFailed(a.Path, err)
	}
	defer func() { _ = f.Close() }()
	r := bufio.NewReaderSize(f, int(min(max(info.Size(), 512), 64<<10)))
	head, _ := r.Peek(min(textPrefix, r.Size()))
	if isMedia(head) {
		return readMedia(ctx, a.Path, r)
	}
	if isBinary(head) {
		return Failed(fmt.Sprintf("%s: is a binary file of %d bytes; look at it with a command such as file or xxd.", a.Path, info.Size()))
	}
	first := max(int(a.Offset), 1)
	page := page{skip: first - 1, lines: int(a.Limit), limit: env.Limits.ReadBytes}
	if err := page.read(ctx, r); err != nil {
		if ctx.Err() != nil {
			return Result{Interrupted: true}
		}
		return pathFailed(a.Path, err)
	}
	text := toolhost.Readable(page.text.String())
	switch {
	case page.taken == 0 && page.skipped == 0:
		return Result{Text: "[The file is empty.]"}
	case page.taken == 0 && page.skipped < first:
		return Failed(fmt.Sprintf("%s: has %d lines; offset %d is beyond its end.", a.Path, page.skipped, first))
	case page.cutLine:
		return Result{Text: toolhost.AppendLine(text, fmt.Sprintf(
			"[Line %d is longer than a read returns and was cut here. See the rest of it with a command such as cut -c. Lines after it: offset %d.]",
			first+page.taken-1, first+page.taken))}
	case page.more:
		return Result{Text: toolhost.AppendLine(text, fmt.Sprintf("[The file goes on. Continue with offset %d.]", first+page.taken))}
	}
	return Result{Text: text}
}

// page is a range of a file's lines that fits into a result.
type page struct {
	// Lines to skip, lines to take (0 = all), maximum bytes to take.
	skip, lines, limit int

	text strings.Builder
	// Lines skipped and taken.
	skipped, taken int
	// The file has more lines; the last line was cut.
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

// next reads a line and returns at most one byte more of it than a page can have. The
// line is valid until the next call.
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

// take adds a line and reports whether the page is full.
func (p *page) take(line []byte) (full bool) {
	room := p.limit - p.text.Len()
	switch {
	case p.skipped < p.skip:
		p.skipped++
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
