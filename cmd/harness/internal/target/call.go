package target

import (
	"context"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/exit"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// GatewayCall are the flags of a command that makes one call.
type GatewayCall struct {
	Target `embed:""`
}

// With connects, and calls do.
func (c *GatewayCall) With(ctx context.Context, a *console.Console, do func(ctx context.Context, client harnessv1.GatewayServiceClient) error) (int, error) {
	if err := c.Check(a); err != nil {
		return exit.Error, err
	}
	session, err := c.Connect(ctx, a, backend.Store)
	if err != nil {
		return console.Before(err)
	}
	defer func() { Disconnect(ctx, a, session) }()
	ctx, stop := a.CancelOnSignal(ctx)
	defer stop()
	if err := do(ctx, session.Client); err != nil {
		return exit.Error, err
	}
	return exit.Done, nil
}
