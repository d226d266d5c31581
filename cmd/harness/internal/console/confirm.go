package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a question on stderr and returns whether the person answers y or yes on in. A signal ends it
// immediately: the error is ErrSignal. in must not be read after that.
func (a *Console) Confirm(ctx context.Context, in *bufio.Reader, question string) (bool, error) {
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	_, _ = fmt.Fprint(a.Err, question+" [y/N] ")
	type reply struct {
		line string
		err  error
	}
	read := make(chan reply, 1)
	go func() { // ends with the process if there is no answer
		line, err := in.ReadString('\n')
		read <- reply{line, err}
	}()
	select {
	case r := <-read:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return false, r.err
		}
		answer := strings.ToLower(strings.TrimSpace(r.line))
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		_, _ = fmt.Fprintln(a.Err)
		return false, context.Cause(ctx)
	}
}
