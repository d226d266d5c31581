package node

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/harnessmesh/harnessmesh/pkg/transport/frontdoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
)

// front is the only TCP server of a node, for all of its roles.
type front struct {
	address string // by which others call it
	server  *roleServer
}

// register adds a role to the local server and, if the node listens on TCP, to the front.
func (n *Node) register(ctx context.Context, spec *roleSpec, service *service) error {
	local := n.local.all[0]
	service.register(local.grpc)
	if n.cfg.Listen == "" {
		n.mesh.add(spec, service, "unix:"+n.local.socket, local)
		return nil
	}
	if n.front == nil {
		if err := n.openFront(ctx); err != nil {
			return err
		}
	}
	service.register(n.front.server.grpc)
	n.mesh.add(spec, service, n.front.address, n.front.server)
	return nil
}

// openFront listens at Config.Listen.
func (n *Node) openFront(ctx context.Context) error {
	if err := n.checkCertificate(); err != nil {
		return err
	}
	plan := planRoles(n.rolePlace())
	roles, err := n.roleDoor(ctx, plan)
	if err != nil {
		return err
	}
	listener, err := listenOn("--listen", n.cfg.Listen)
	if err != nil {
		return err
	}
	n.unserved = append(n.unserved, listener)
	limits := frontdoor.Limits{Peer: n.cfg.PeerConnections, Total: frontdoor.Room(), Yield: n.serves(workflow.Gateway)}
	limited := frontdoor.Limit(listener, limits, n.cfg.Logger)
	at, err := n.advertised(listener.Addr().String())
	if err != nil {
		return err
	}
	n.front = &front{address: at}
	if n.serves(workflow.Gateway) {
		clients := tlsfiles.AnyClient
		if plan.certificates {
			clients = tlsfiles.KnownClient
		}
		n.front.server = n.openDoor(limited, roles, clients)
	} else {
		n.front.server = n.openRoles(limited, roles)
	}
	n.local.all = append(n.local.all, n.front.server)
	return nil
}

// openRoles serves the roles of a node without a gateway.
func (n *Node) openRoles(listener net.Listener, roles *roledoor.Door) *roleServer {
	options := slices.Concat(roles.ServerOptions(), n.telemetry.ServerOptions(), n.connectionOptions())
	if n.cfg.TLS != nil {
		options = append(options, grpc.Creds(n.cfg.TLS.ServerCredentials(n.cfg.TLS.Mutual(), n.cfg.Logger)))
	}
	s := newRoleServer(n.cfg.Logger, n.instance, n.observed.metrics, options...)
	n.pending = append(n.pending, func() { s.serve(listener) })
	return s
}

// pingEvery is how long a peer may be silent before it is pinged, and pingTimeout how long
// it may take to answer: calls of one that has gone without a word end then.
const (
	pingEvery   = 2 * time.Minute
	pingTimeout = 20 * time.Second
)

// connectionOptions end connections over TCP that have no call, or no peer any more, and bound the
// headers of a call, which are received before its token is checked.
func (n *Node) connectionOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: n.cfg.IdleTimeout, Time: pingEvery, Timeout: pingTimeout}),
		grpc.MaxHeaderListSize(maxHeaders),
	}
}

func (n *Node) serves(role string) bool { return slices.Contains(n.cfg.Roles, role) }

// called reports whether other processes call services of roles here.
func (n *Node) called() bool {
	return n.mesh.shared() && slices.ContainsFunc(n.cfg.Roles, func(role string) bool { return role != workflow.Gateway })
}

// advertised returns the address by which others reach a listener.
func (n *Node) advertised(address string) (string, error) {
	if n.cfg.Advertise == "" {
		return address, nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("--advertise: %w", err)
	}
	return net.JoinHostPort(n.cfg.Advertise, port), nil
}

// checkCertificate checks that the certificate of this process names its host and, if it
// names roles, those of this process.
func (n *Node) checkCertificate() error {
	if n.cfg.TLS == nil || !n.mesh.shared() {
		return nil
	}
	if n.cfg.TLS.Mutual() {
		if err := roledoor.CheckOwn(n.cfg.TLS.Leaf(), n.cfg.Roles); err != nil {
			return fmt.Errorf("--tls-cert: %w", err)
		}
	}
	if !n.called() {
		return nil
	}
	host := n.cfg.Advertise
	if host == "" {
		var err error
		if host, _, err = net.SplitHostPort(n.cfg.Listen); err != nil {
			return fmt.Errorf("--listen: %q: expected HOST:PORT, such as 127.0.0.1:7447", n.cfg.Listen)
		}
	}
	return n.cfg.TLS.Check(host)
}

// dialCredentials are the credentials of a connection to a role in another process; nil
// without TLS.
func (n *Node) dialCredentials(role string) credentials.TransportCredentials {
	if n.cfg.TLS == nil {
		return nil
	}
	return n.cfg.TLS.ClientCredentials(serverCheck(role))
}
