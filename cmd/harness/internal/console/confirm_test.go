package console_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
)

// TestASignalEndsAQuestion immediately, while its answer is awaited.
func TestASignalEndsAQuestion(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	in, person := io.Pipe()
	defer func() { _ = person.Close() }() // ends the reader
	a := &console.Console{Process: console.Process{Err: io.Discard, Signals: signals}}
	signals <- os.Interrupt
	if yes, err := a.Confirm(context.Background(), bufio.NewReader(in), "Stop?"); yes || !errors.Is(err, console.ErrSignal) {
		t.Errorf("got %t, %v", yes, err)
	}
	for answer, want := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "n\n": false, "\n": false, "": false, "yesterday\n": false} {
		if yes, err := a.Confirm(context.Background(), bufio.NewReader(strings.NewReader(answer)), "Stop?"); yes != want || err != nil {
			t.Errorf("%q: got %t, %v", answer, yes, err)
		}
	}
}
