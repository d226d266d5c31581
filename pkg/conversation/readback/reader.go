package readback

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Reader reads messages of one run.
type Reader struct {
	// Text returns the whole text of a content. With runlog.ErrNotFound the call has failed.
	// Required.
	Text func(ctx context.Context, c *harnessv1.Content) (string, error)
	// Count returns the tokens of a text: at most one for each byte. Required.
	Count func(text string) int
	// Tokens is the number of tokens that a result may have.
	Tokens int
}

// Result is what a model is sent as the result of a call.
type Result struct {
	Text string
	// Media are the images and documents whose lines are in the text of a page.
	Media []*harnessv1.Media
	// Failed is true if the call was wrong. The text tells the model how to correct it.
	Failed bool
}

// Read answers a request. messages are those of the run, in order from m1.
func (r *Reader) Read(ctx context.Context, messages []*harnessv1.Message, request Request) (Result, error) {
	first, last, err := parseRef(request.Ref, len(messages))
	if err != nil {
		return failed("%v.", err), nil
	}
	s := newSpan(messages, request.Ref, first, last)
	offset := max(request.Offset, 0)
	if size := s.size(); offset >= size {
		return failed("offset %d: %s has %d bytes; use a smaller offset.", offset, s.ref, size), nil
	}
	limit := r.Tokens * usualBytes
	if request.Limit > 0 {
		limit = min(limit, request.Limit)
	}
	var result Result
	if request.Pattern == "" {
		result, err = r.page(ctx, s, offset, limit)
	} else {
		result, err = r.search(ctx, s, request.Pattern, offset, limit)
	}
	if errors.Is(err, runlog.ErrNotFound) {
		return failed("%s cannot be read back: a part of it is missing. Read or run its source again.", s.ref), nil
	}
	return result, err
}

func failed(format string, a ...any) Result {
	return Result{Text: fmt.Sprintf(format, a...), Failed: true}
}

const (
	// usualBytes is the largest usual number of bytes a token.
	usualBytes = 5
	// leastBytes are shown at least, so that following the offsets ends.
	leastBytes = 64
)

// fits reports whether a text is not too long for a result, and else its tokens. Bytes bound
// tokens, so short texts are not counted.
func (r *Reader) fits(text string) (tokens int, ok bool) {
	if len(text) <= r.Tokens {
		return 0, true
	}
	tokens = r.Count(text)
	return tokens, tokens <= r.Tokens
}

// page returns the text of a span from an offset on: as much as fits.
func (r *Reader) page(ctx context.Context, s *span, offset, limit int) (Result, error) {
	for {
		text, files, err := r.part(ctx, s, offset, limit)
		if err != nil {
			return Result{}, err
		}
		tokens, ok := r.fits(text)
		if ok || limit <= leastBytes {
			return Result{Text: text, Media: files.attached}, nil
		}
		limit = max(leastBytes, min(limit*r.Tokens/tokens, limit-limit/16))
	}
}

// part returns up to limit bytes of the text of a span from an offset on, with a heading for
// each message, and where to continue. It ends before a file for which there is no room.
func (r *Reader) part(ctx context.Context, s *span, offset, limit int) (string, *files, error) {
	var b strings.Builder
	attached := &files{room: uint64(max(r.Tokens, 0))}
	start, next, more := 0, offset, false // start of the message in the span's text
	for id := s.first; id <= s.last; id++ {
		m := s.messages[id-1]
		size := sizeOf(m)
		if start+size <= offset {
			start += size
			continue
		}
		if more = next-offset >= limit; more {
			break
		}
		text, err := r.text(ctx, m)
		if err != nil {
			return "", nil, err
		}
		from := runeStart(text, next-start)
		to := lineEnd(text, from, min(len(text), from+limit-(next-offset)))
		if end := attached.add(m, from, to); end < to {
			if more = end <= from; more {
				break
			}
			to = end
		}
		b.WriteString(s.heading(id, from, to, len(text)))
		writeLines(&b, strings.ToValidUTF8(text[from:to], "\uFFFD"))
		next = start + to
		if more = to < len(text); more {
			break
		}
		start += size
	}
	if more {
		fmt.Fprintf(&b, "[More is left. Continue with ref %s, offset %d.]", s.ref, next)
	}
	attached.reportTooLarge(&b)
	return strings.TrimSuffix(b.String(), "\n"), attached, nil
}

// writeLines writes a text, and ends its last line.
func writeLines(b *strings.Builder, text string) {
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}

// runeStart returns the first index from at on at which a rune begins.
func runeStart(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return min(at, len(text))
}

// runeEnd returns the last index up to at at which a rune ends: after from by at least one
// rune.
func runeEnd(text string, from, at int) int {
	if at >= len(text) {
		return len(text)
	}
	for end := at; end > from; end-- {
		if utf8.RuneStart(text[end]) {
			return end
		}
	}
	return runeStart(text, from+1)
}

// lineEnd returns where a part of a text ends that begins at from and may end at to: after
// its last line if that leaves out less than half of it, else after a rune.
func lineEnd(text string, from, to int) int {
	if to >= len(text) {
		return len(text)
	}
	if i := strings.LastIndexByte(text[from:to], '\n'); i >= (to-from)/2 {
		return from + i + 1
	}
	return runeEnd(text, from, to)
}
