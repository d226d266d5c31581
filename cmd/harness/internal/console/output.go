package console

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

func isBrokenPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrClosedPipe)
}

// Emit writes lines of text or of JSON to stdout. What no text and no JSON of this program
// has, because a terminal might obey it, becomes an escape of JSON.
func Emit(out io.Writer, lines []byte) error { return EmitRaw(out, content.EscapeJSON(lines)) }

// EmitRaw writes lines to stdout, whose reader may have gone away.
func EmitRaw(out io.Writer, line []byte) error {
	_, err := out.Write(append(line, '\n'))
	if errors.Is(err, os.ErrClosed) || isBrokenPipe(err) {
		return nil
	}
	return err
}
