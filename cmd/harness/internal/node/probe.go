package node

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// probe serves health for supervisors, and nothing else, without TLS and tokens, which
// their probes do not have. The empty service is SERVING if every role is ready, a
// role's name if that role is, and "alive" as long as the process runs.
//
// A nil probe does nothing.
type probe struct {
	server *grpc.Server
	health *health.Server
	served chan struct{}
}

// aliveService is the health of the process itself.
const aliveService = "alive"

// startProbe listens from the start: a process that waits for the bus is alive and not
// ready.
func (n *Node) startProbe() error {
	if n.cfg.Probe == "" {
		return nil
	}
	listener, err := listenOn("--probe", n.cfg.Probe)
	if err != nil {
		return err
	}
	p := &probe{server: grpc.NewServer(), health: health.NewServer(), served: make(chan struct{})}
	healthv1.RegisterHealthServer(p.server, p.health)
	p.set("", false)
	for _, role := range n.cfg.Roles {
		p.set(role, false)
	}
	p.set(aliveService, true)
	go func() {
		defer close(p.served)
		_ = p.server.Serve(listener) // ends with the server, which reports nothing else
	}()
	n.probe = p
	if n.cfg.Stderr != nil {
		_, _ = fmt.Fprintf(n.cfg.Stderr, "probe addr=%s\n", listener.Addr())
	}
	return nil
}

func (p *probe) set(service string, yes bool) {
	if p == nil {
		return
	}
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if yes {
		status = healthv1.HealthCheckResponse_SERVING
	}
	p.health.SetServingStatus(service, status)
}

func (p *probe) stop() {
	if p == nil {
		return
	}
	p.server.Stop()
	<-p.served
}
