package access

import (
	"context"
	"errors"
	"reflect"
	"time"

	"google.golang.org/grpc/codes"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// recheck is how often the token of an open stream or HTTP request is looked up again.
const recheck = 2 * time.Second

// holdEnd is the cause of a context that hold has ended. It wraps the error that the client receives.
type holdEnd struct{ error }

// Unwrap returns the error for the client.
func (e holdEnd) Unwrap() error { return e.error }

// endOf returns why hold has ended a context, for the client; nil if it has not.
func endOf(ctx context.Context) error {
	if end, ok := errors.AsType[holdEnd](context.Cause(ctx)); ok {
		return end.error
	}
	return nil
}

// hold returns a context that ends within recheck after the line of a token is removed or
// changed. release has to be called. It refuses more than the token may hold at the same time; ends is set for a
// request that ends or interrupts a run.
func (g *Guard) hold(ctx context.Context, admitted entry, ends bool) (held context.Context, release func(), err error) {
	if g.tokens == nil || g.tokens.file == nil {
		return ctx, func() {}, nil
	}
	leave, err := g.tokens.holders.watch(admitted.caller, ends)
	if err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		ticker := time.NewTicker(recheck)
		defer ticker.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-ticker.C:
			}
			if err := g.tokens.confirm(admitted); err != nil {
				cancel(holdEnd{err})
				return
			}
		}
	}()
	return held, func() {
		cancel(nil)
		<-looked
		leave()
	}, nil
}

// confirm returns an error unless the token of a caller is still valid and has the same line.
func (g *Guard) confirm(admitted entry) error {
	if g.tokens == nil || g.tokens.file == nil {
		return nil
	}
	return g.tokens.confirm(admitted)
}

// confirm returns an error unless the file has the line of a token unchanged.
func (t *Tokens) confirm(admitted entry) error {
	for _, e := range t.entries() {
		switch {
		case e.digest != admitted.digest:
		case reflect.DeepEqual(e.caller, admitted.caller):
			return nil
		default:
			return refuse(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_UNSPECIFIED, "the gateway's --tokens file has another line for this token: connect again")
		}
	}
	return refuse(codes.Unauthenticated, harnessv1.ErrorReason_ERROR_REASON_TOKEN_UNKNOWN, "this token was withdrawn: send "+t.where)
}
