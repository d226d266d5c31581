package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// maxMaterial bounds the text on stdin that goes with a goal, in bytes.
	maxMaterial = 256 << 10
	// materialPatience is how long a pipe may take to its first byte: a program that starts this one may
	// leave it open and write nothing.
	materialPatience = 5 * time.Second
)

// SaidWithMaterial returns a goal or message, which errors call what and others call kind: the words, with the
// text on stdin below them, or all of stdin for "-".
func (a *Console) SaidWithMaterial(words []string, what, kind string) (string, error) {
	said, err := a.Said(words, what)
	if err != nil || strings.Join(words, " ") == "-" {
		return said, err
	}
	text, err := a.material(kind)
	if text == "" || err != nil {
		return said, err
	}
	return said + "\n\nThe text on standard input:\n\n" + strings.TrimRight(text, "\n"), nil
}

// material returns the text on stdin for a goal or message that is on the command line, and reports that
// it goes with it; empty on a terminal, for /dev/null, and for a pipe that stays silent. A text
// that is too long, or is none, is an error: it is never left out unsaid.
func (a *Console) material(kind string) (string, error) {
	if a.In == nil {
		return "", nil
	}
	patience := time.Duration(0)
	if f, ok := a.In.(*os.File); ok {
		info, err := f.Stat()
		if err != nil || info.IsDir() || info.Mode()&os.ModeCharDevice != 0 { //nolint:nilerr // without stdin there is no text
			return "", nil
		}
		if !info.Mode().IsRegular() {
			patience = materialPatience
		}
	}
	text, silent, err := readWithin(a.In, patience)
	switch {
	case err != nil:
		return "", fmt.Errorf("standard input: %w", err)
	case silent:
		a.Report("nothing came on standard input within %s: the %s goes without it (< /dev/null ends the wait)", patience, kind)
		return "", nil
	case len(text) > maxMaterial:
		return "", fmt.Errorf("standard input: larger than %d KiB: write it to a file in the workspace, and name the file in the %s", maxMaterial>>10, kind)
	case !utf8.ValidString(text):
		return "", fmt.Errorf("standard input: not UTF-8 text: write it to a file in the workspace and name the file in the %s, or --attach FILE an image or a PDF", kind)
	case strings.TrimSpace(text) == "":
		return "", nil
	default:
		a.Report("standard input (%d bytes) goes with the %s", len(text), kind)
	}
	return text, nil
}

// readWithin reads a text of at most maxMaterial bytes, or one byte more. silent reports that no byte
// came within a time, if that is set; the read then lasts as long as the process.
func readWithin(in io.Reader, patience time.Duration) (text string, silent bool, err error) {
	type part struct {
		data []byte
		err  error
	}
	first, rest := make(chan part, 1), make(chan part, 1)
	go func() {
		buffer := make([]byte, 4096)
		n, err := io.ReadAtLeast(in, buffer, 1)
		first <- part{buffer[:n], err}
		if err != nil {
			return
		}
		data, err := io.ReadAll(io.LimitReader(in, maxMaterial+1-int64(n)))
		rest <- part{data, err}
	}()
	var late <-chan time.Time
	if patience > 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case p := <-first:
		if errors.Is(p.err, io.EOF) {
			return "", false, nil
		}
		if p.err != nil {
			return "", false, p.err
		}
		more := <-rest
		return string(p.data) + string(more.data), false, more.err
	case <-late:
		return "", true, nil
	}
}
