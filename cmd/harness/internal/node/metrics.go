package node

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/telemetry"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// observation is what this node exposes about itself: its instruments and the address
// that serves them.
type observation struct {
	metrics *telemetry.Metrics // nil if metrics are neither served nor sent
	log     *telemetry.Log     // nil with it
	address string             // empty without Config.Metrics
}

// headerTime bounds the time to receive a request's header.
const headerTime = 5 * time.Second

// observe creates the instruments if Config.Metrics or the environment asks for them,
// and serves them immediately, so that readers see why the node is not ready yet.
func (n *Node) observe(ctx context.Context) error {
	if !n.telemetry.SendsMetrics() && n.cfg.Metrics == "" {
		return nil
	}
	var err error
	var listener net.Listener
	var registry *prometheus.Registry
	if n.cfg.Metrics != "" {
		if _, _, err := net.SplitHostPort(n.cfg.Metrics); err != nil {
			return fmt.Errorf("--metrics: %q: expected HOST:PORT, such as 127.0.0.1:9464", n.cfg.Metrics)
		}
		if listener, err = listenOn("--metrics", n.cfg.Metrics); err != nil {
			return err
		}
		n.unserved = append(n.unserved, listener) // until serveMetrics has it
		registry = prometheus.NewRegistry()
	}
	provider, err := n.telemetry.NewMeterProvider(ctx, registry)
	if err != nil {
		return err
	}
	n.closers = append(n.closers, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, telemetry.FlushTime)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			n.cfg.Logger.Warn("metrics of the last moments are lost", "error", err)
		}
		return nil
	})
	m, err := telemetry.NewMetrics(provider.Meter("github.com/harnessmesh/harnessmesh"))
	if err != nil {
		return err
	}
	n.observed.metrics = m
	if err := m.ObserveProcess(cmp.Or(n.cfg.Program, "dev"), n.mesh.ready); err != nil {
		return err
	}
	if listener != nil {
		n.serveMetrics(listener, m.Handler(registry, n.mesh.reasons, n.mesh.warnings))
	}
	return nil
}

// serveMetrics serves until the node stops.
func (n *Node) serveMetrics(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with the server, which reports nothing else
	}()
	n.closers = append(n.closers, func(context.Context) error {
		err := server.Close()
		<-served
		return err
	})
	n.observed.address = listener.Addr().String()
	if n.cfg.Stderr != nil {
		_, _ = fmt.Fprintf(n.cfg.Stderr, "metrics addr=%s\n", n.observed.address)
	}
}

// watchLog counts the records that are stored through the log after the call.
func (n *Node) watchLog() error {
	m := n.observed.metrics
	if m == nil {
		return nil
	}
	n.observed.log = telemetry.NewLog(n.log, m)
	n.closers = append(n.closers, func(context.Context) error {
		n.observed.log.Close()
		return nil
	})
	return m.ObserveConnection(func() telemetry.BusCounters {
		c := n.log.Counts()
		return telemetry.BusCounters{
			Connected: n.log.Connected() == nil, Reconnects: c.Reconnects,
			Conflicts: c.Conflicts, ConflictsReplicated: c.ConflictsReplicated, Unanswered: c.Unanswered,
			Landed: c.Landed, Resent: c.Resent, Stale: c.Stale,
		}
	})
}

// runs returns the log for the roles.
func (n *Node) runs() runlog.Log {
	if n.observed.log != nil {
		return n.observed.log
	}
	return n.log
}

// watchMesh exposes what only one role should: the number of runs and the status of the
// bus. It is the gateway, because it sees executors that no process serves.
func (n *Node) watchMesh(gateway *gatewayserver.Server) error {
	m := n.observed.metrics
	m.Writes(context.Background(), workflow.Gateway)
	err := m.ObserveRuns(func() []telemetry.RunsState {
		var all []telemetry.RunsState
		for _, c := range gateway.Counts() {
			all = append(all, telemetry.RunsState{Status: telemetry.StatusName(c.Status), Reason: c.Reason, Count: uint64(max(c.Runs, 0))})
		}
		return all
	})
	if err != nil {
		return err
	}
	return m.ObserveBus(func(ctx context.Context) (telemetry.BusState, error) {
		streams, consumers, err := n.log.Status(ctx)
		var state telemetry.BusState
		for _, c := range consumers {
			state.Consumers = append(state.Consumers, telemetry.ConsumerState{
				Executor: c.Name, Pending: c.Pending, AckPending: c.AckPending, Redelivered: c.Redelivered, Waiting: c.Waiting,
			})
		}
		for _, s := range streams {
			state.Streams = append(state.Streams, telemetry.StreamState{Name: s.Name, Size: s.Size, Limit: s.Limit})
		}
		return state, err
	})
}

// reasons returns why each role of this node waits; empty for a ready role.
func (m *mesh) reasons() map[string]string {
	all := map[string]string{}
	for _, name := range m.n.cfg.Roles {
		all[name] = "it is starting"
	}
	m.mu.Lock()
	roles := m.roles
	m.mu.Unlock()
	for _, r := range roles {
		r.mu.Lock()
		all[r.name] = r.reason
		r.mu.Unlock()
	}
	return all
}

// ready returns which roles of this node are ready; for a bridge also its executor.
func (m *mesh) ready() map[string]bool {
	all := map[string]bool{}
	for name, reason := range m.reasons() {
		all[name] = reason == ""
		if name == workflow.Bridge {
			all[m.n.cfg.Executor] = reason == "" // as consumers name it
		}
	}
	return all
}
