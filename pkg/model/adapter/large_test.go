package adapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestFewAnswersAreLarge: while eight answers above a MiB are received, another one is not
// read further. It can be cancelled, and is read once one of the eight has ended.
func TestFewAnswersAreLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("reads answers of megabytes")
	}
	const largest, pieces = 8, 5
	c := wires["chat"]
	whole := strings.Repeat("x", 2<<20)
	piece := fmt.Sprintf(c.pieces[0], strings.Repeat("x", 1<<20/(pieces-1)))
	// receive receives an answer of more than a MiB, and calls then before its end.
	receive := func(ctx context.Context, then func()) (*model.Response, error) {
		s := &service{next: func(n int) (string, time.Duration) {
			switch {
			case n == 0:
				return c.begin, 0
			case n <= pieces:
				return piece, 0
			case n == pieces+1:
				then()
			}
			return c.complete[n-pieces-1], 0
		}}
		p, err := c.open(&http.Client{Transport: s})
		if err != nil {
			t.Fatal(err)
		}
		return p.Complete(ctx, modeltest.Conversation(true), nil)
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range largest {
		all.Go(func() {
			if _, err := receive(t.Context(), func() { arrived <- struct{}{}; <-release }); err != nil {
				t.Error(err)
			}
		})
	}
	for range largest {
		<-arrived
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := receive(ctx, func() { t.Error("one more large answer was read") }); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one: %v", err)
	}
	for name, body := range map[string]string{
		"in one body":  `{"choices":[{"message":{"content":"` + whole + `"},"finish_reason":"stop"}]}`,
		"in one event": "data: " + fmt.Sprintf(c.pieces[0], whole) + "\n\ndata: " + c.complete[0] + "\n\ndata: [DONE]\n\n",
	} {
		p, err := c.open(&http.Client{Transport: plain(body)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Complete(ctx, modeltest.Conversation(true), nil); !errors.Is(err, context.Canceled) {
			t.Errorf("the one %s: %v", name, err)
		}
	}
	close(release)
	if _, err := receive(t.Context(), func() {}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	all.Wait()
}
