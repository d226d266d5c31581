package model

import "context"

type runKey struct{}

// WithRun returns a context for requests of a run, NAMESPACE/RUN.
func WithRun(ctx context.Context, run string) context.Context {
	return context.WithValue(ctx, runKey{}, run)
}

// RunOf returns the run of WithRun, empty if the context has none.
func RunOf(ctx context.Context) string {
	run, _ := ctx.Value(runKey{}).(string)
	return run
}

type readKey struct{}

// WithRead returns a context for a request. A provider calls read once it has read something of
// the answer: not for what services send before the first piece, or while the model thinks. It
// may call it several times.
func WithRead(ctx context.Context, read func()) context.Context {
	return context.WithValue(ctx, readKey{}, read)
}

// ReadOf returns the function of WithRead, one that does nothing if the context has none.
func ReadOf(ctx context.Context) (read func()) {
	if read, ok := ctx.Value(readKey{}).(func()); ok {
		return read
	}
	return func() {}
}
