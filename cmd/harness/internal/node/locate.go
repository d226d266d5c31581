package node

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// locator finds the address of a role by asking on the bus.
type locator func(ctx context.Context, role string) (*harnessv1.Presence, error)

// dialRole connects to a role of another process: where it is is asked on the
// bus, and asked again when the connection breaks.
func dialRole(role string, locate locator) (*grpc.ClientConn, error) {
	return grpc.NewClient("mesh:///"+role, dialOptions(
		grpc.WithResolvers(&meshResolver{locate: locate}),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)...)
}

// meshResolver resolves mesh:///ROLE.
type meshResolver struct{ locate locator }

// Scheme is mesh.
func (*meshResolver) Scheme() string { return "mesh" }

// Build starts looking for the role.
func (m *meshResolver) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &roleResolver{role: target.Endpoint(), locate: m.locate, conn: conn, stop: cancel, ask: make(chan struct{}, 1)}
	r.ask <- struct{}{}
	r.running.Go(func() { r.run(ctx) })
	return r, nil
}

// roleResolver keeps one role's address up to date.
type roleResolver struct {
	role    string
	locate  locator
	conn    resolver.ClientConn
	ask     chan struct{}
	stop    context.CancelFunc
	running sync.WaitGroup
}

// askPause keeps a connection that breaks again and again from flooding the bus.
const askPause = 100 * time.Millisecond

func (r *roleResolver) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.ask:
		}
		found, err := r.locate(ctx, r.role)
		if err != nil {
			r.conn.ReportError(err)
			r.ResolveNow(resolver.ResolveNowOptions{}) // nobody else asks for what has never been found
		} else {
			_ = r.conn.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{{Addr: found.GetAddress()}}}}})
		}
		timer := time.NewTimer(askPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// ResolveNow asks again.
func (r *roleResolver) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.ask <- struct{}{}:
	default:
	}
}

// Close stops looking.
func (r *roleResolver) Close() {
	r.stop()
	r.running.Wait()
}
