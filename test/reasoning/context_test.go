package reasoning_test

import "context"

// tContext returns the context of a test; a *rapid.T has one only of the check.
func tContext(t failer) context.Context {
	if c, ok := t.(interface{ Context() context.Context }); ok {
		return c.Context()
	}
	return context.Background()
}
