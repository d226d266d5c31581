package gatewayserver

import (
	"context"
	"runtime"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func TestARepeatedCallJoinsThePendingOne(t *testing.T) {
	c := newCallbacks()
	req := &harnessv1.HookRequest{IdempotencyKey: "k"}
	answers := make(chan *harnessv1.HookAnswer, 2)
	call := func() {
		answer, err := c.call(t.Context(), req)
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}
	go call()
	if got := <-c.asked; got != req {
		t.Fatalf("asked %v", got)
	}
	go call()
	for callers := 1; callers < 2; runtime.Gosched() {
		c.mu.Lock()
		callers = c.open["k"].callers
		c.mu.Unlock()
	}
	want := &harnessv1.HookAnswer{IdempotencyKey: "k", Verdict: &harnessv1.HookVerdict{}}
	if err := c.answer(want); err != nil {
		t.Fatal(err)
	}
	if one, other := <-answers, <-answers; one != want || other != want {
		t.Fatalf("got %v and %v", one, other)
	}
	if len(c.open) != 0 {
		t.Fatalf("%d calls are left", len(c.open))
	}
}

func TestATimedOutCallIsForgotten(t *testing.T) {
	c := newCallbacks()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.call(ctx, &harnessv1.HookRequest{IdempotencyKey: "k"})
		ended <- err
	}()
	<-c.asked
	cancel()
	if err := <-ended; err == nil {
		t.Fatal("it has an answer")
	}
	if err := c.answer(&harnessv1.HookAnswer{IdempotencyKey: "k", Error: "late"}); err == nil || len(c.open) != 0 {
		t.Fatalf("a late answer is accepted; %d are open", len(c.open))
	}
}
