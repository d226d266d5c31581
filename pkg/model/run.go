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
