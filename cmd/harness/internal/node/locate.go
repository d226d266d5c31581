package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
)

// locator returns the process that serves a role, which it finds over the bus.
type locator func(ctx context.Context, role string) (*harnessv1.Presence, error)

// dialRole connects to a role of another process. It looks up the address on the bus,
// and again when the connection breaks. secure verifies the announced host; nil means no
// TLS. token returns what admits to a process; nil means nothing.
func dialRole(role string, locate locator, secure credentials.TransportCredentials, token func(*harnessv1.Presence) string, more ...grpc.DialOption) (*grpc.ClientConn, error) {
	m := &meshResolver{locate: locate, secure: secure != nil, token: token, first: make(chan struct{})}
	if secure == nil {
		secure = insecure.NewCredentials()
	}
	return grpc.NewClient("mesh:///"+role, append(dialOptions(
		grpc.WithResolvers(m),
		grpc.WithChainUnaryInterceptor(m.meant),
		grpc.WithTransportCredentials(secure),
		// Keepalive detects a hung or vanished process, backoff finds a returned one
		// soon, and idle connections keep the address.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithIdleTimeout(0),
	), more...)...)
}

// meshResolver resolves mesh:///ROLE.
type meshResolver struct {
	locate locator
	secure bool
	token  func(*harnessv1.Presence) string
	found  atomic.Pointer[harnessv1.Presence]
	built  atomic.Pointer[roleResolver]
	first  chan struct{} // closed when the role has been found once
	once   sync.Once
	why    atomic.Pointer[error] // it was not found when it was last looked for
}

// firstWait bounds the wait for a role that was never found.
const firstWait = time.Second

// meantFor returns the process that a call is meant for.
func (m *meshResolver) meantFor(ctx context.Context, cc *grpc.ClientConn) (*harnessv1.Presence, error) {
	cc.Connect() // an idle connection does not look
	wait := time.NewTimer(firstWait)
	defer wait.Stop()
	select {
	case <-m.first:
		return m.found.Load(), nil
	case <-wait.C:
		if why := m.why.Load(); why != nil {
			return nil, notStarted((*why).Error())
		}
		return nil, notStarted(cc.Target() + " has not been found yet")
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// instanceKey is the header with the process that a call is meant for.
const instanceKey = "harness-instance"

// meant adds to each call the process that it is meant for: on arrival another process
// may have the address.
func (m *meshResolver) meant(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	p, err := m.meantFor(ctx, cc)
	if err != nil {
		return err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, instanceKey, p.GetInstance())
	if m.token != nil {
		if token := m.token(p); token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
		}
	}
	var reached peer.Peer
	err = invoke(ctx, method, req, reply, cc, append(opts, grpc.Peer(&reached))...)
	switch status.Code(err) {
	case codes.Unimplemented, codes.Unauthenticated: // no process of this mesh has the address any more, or it has another key
		err = notStarted(cc.Target() + ": " + status.Convert(err).Message())
	case codes.Unavailable:
		if reached.Addr == nil && fault.ReasonOf(err) == "" { // it never left this process
			err = notStarted(tlsfiles.Reason(status.Convert(err).Message()))
		}
	default:
		return err
	}
	if r := m.built.Load(); r != nil {
		r.ResolveNow(resolver.ResolveNowOptions{})
	}
	return err
}

// lookUp calls locate and records why it found nothing.
func (m *meshResolver) lookUp(ctx context.Context, role string) (*harnessv1.Presence, error) {
	p, err := m.locate(ctx, role)
	if err != nil {
		m.why.Store(&err)
	}
	return p, err
}

func (m *meshResolver) record(p *harnessv1.Presence) {
	m.found.Store(p)
	m.once.Do(func() { close(m.first) })
}

// notStarted returns the error of a call that was not started, so that it may be sent
// elsewhere.
func notStarted(text string) error {
	st, _ := fault.Status(fault.New(codes.Unavailable, harnessv1.ErrorReason_ERROR_REASON_NOT_STARTED, text))
	return st.Err()
}

// onlyAddressed refuses calls that are addressed to another process. The caller looks that
// process up again.
func onlyAddressed(instance string) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if other := metadata.ValueFromIncomingContext(ctx, instanceKey); len(other) > 0 && other[0] != instance {
			return nil, notStarted(fmt.Sprintf("this is %s, and the call is meant for %s", instance, other[0]))
		}
		return handle(ctx, req)
	}
}

// Scheme returns mesh.
func (*meshResolver) Scheme() string { return "mesh" }

// Build starts to look for the role.
func (m *meshResolver) Build(target resolver.Target, conn resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	ctx, cancel := context.WithCancel(context.Background())
	r := &roleResolver{role: target.Endpoint(), locate: m.lookUp, secure: m.secure, found: m.record, conn: conn, stop: cancel, ask: make(chan struct{}, 1)}
	m.built.Store(r)
	r.ask <- struct{}{}
	r.running.Go(func() { r.run(ctx) })
	return r, nil
}

// roleResolver keeps the address of a role up to date.
type roleResolver struct {
	role    string
	locate  locator
	secure  bool
	found   func(*harnessv1.Presence)
	conn    resolver.ClientConn
	ask     chan struct{}
	stop    context.CancelFunc
	running sync.WaitGroup
}

// askPause keeps a connection that breaks repeatedly from flooding the bus.
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
			r.ResolveNow(resolver.ResolveNowOptions{}) // gRPC does not ask again for a role that was never found
		} else {
			r.found(found)
			at := resolver.Address{Addr: found.GetAddress()}
			if r.secure {
				at.ServerName = found.GetAddress() // what its certificate has to name
			}
			_ = r.conn.UpdateState(resolver.State{Endpoints: []resolver.Endpoint{{Addresses: []resolver.Address{at}}}})
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

// ResolveNow looks the role up again.
func (r *roleResolver) ResolveNow(resolver.ResolveNowOptions) {
	select {
	case r.ask <- struct{}{}:
	default:
	}
}

// Close stops the lookups.
func (r *roleResolver) Close() {
	r.stop()
	r.running.Wait()
}
