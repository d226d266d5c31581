package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/toolhost"
)

// mesh is this node's view of the mesh: what it announces about its roles, whether they
// are ready, and the other processes.
//
// A role that is not ready reports why on stderr, in its announcement and as NOT_SERVING
// in its health. Executors start once no other process prevents it, and continue
// whatever happens later: the log keeps them correct, readiness only informs people and
// load balancers.
type mesh struct {
	n       *Node
	started time.Time
	// ledger is the ledger of the tool host in this process, empty without one.
	// toolHost calls any tool host.
	ledger   string
	toolHost *toolHosts

	roles   []*role
	stop    context.CancelFunc
	watched sync.WaitGroup

	inference *inferenceWorkers

	mu      sync.Mutex
	leaving bool
	foreign string // why the others forbid work; empty when they do not
}

// role is a role of this node.
type role struct {
	*roleSpec
	*service
	address string
	server  *roleServer

	mu     sync.Mutex
	said   bool
	reason string // why it is not ready; empty when it is
}

func newMesh(n *Node) *mesh {
	m := &mesh{
		n: n, started: time.Now(), stop: func() {},
		inference: &inferenceWorkers{inside: slices.Contains(n.cfg.Roles, workflow.Inference), now: time.Now},
	}
	if m.shared() {
		m.inference.locate = func(ctx context.Context) error {
			_, err := n.log.Locate(ctx, workflow.Inference)
			return err
		}
	}
	return m
}

// add records a role and its address.
func (m *mesh) add(spec *roleSpec, s *service, address string, server *roleServer) {
	m.n.addresses[spec.name] = address
	m.mu.Lock()
	defer m.mu.Unlock()
	m.roles = append(m.roles, &role{roleSpec: spec, service: s, address: address, server: server, reason: "it is starting"})
}

// shared reports whether other processes can be in the mesh.
func (m *mesh) shared() bool { return m.n.cfg.NATS != "" }

// meet reads the other processes before this node joins, and refuses a name or ledger
// that one of them has.
func (m *mesh) meet(ctx context.Context) error {
	if !m.shared() {
		return nil
	}
	others, err := m.n.log.Presences(ctx)
	if err != nil {
		return err
	}
	for _, p := range others {
		switch {
		case p.GetInstance() == m.n.instance:
			return fmt.Errorf("--instance: a process named %s already exists in the mesh (%s at %s): stop it, or use another name", p.GetInstance(), p.GetRole(), p.GetAddress())
		case m.ledger != "" && p.GetLedgerId() == m.ledger:
			return fmt.Errorf("the tool host %s at %s has the same ledger: %s is a copy of its data directory; use another --data", p.GetInstance(), p.GetAddress(), m.n.cfg.Data)
		case m.ledger != "" && toolhost.Replaces(m.ledger, p.GetLedgerId()):
			return fmt.Errorf("the tool host %s at %s has the same host name and directory with another ledger: each would count as the other's successor; use another --data", p.GetInstance(), p.GetAddress())
		}
	}
	m.foreign = conflict(others)
	m.inference.record(others)
	return nil
}

// conflict returns why records of this program and of the others cannot be mixed. In a
// rolling upgrade all processes read the new format before any writes it.
func conflict(others []*harnessv1.Presence) string {
	for _, p := range others {
		who := fmt.Sprintf("%s %s at %s", p.GetRole(), p.GetInstance(), p.GetAddress())
		switch {
		case p.GetWritesSchema() > runlog.Schema:
			return fmt.Sprintf("%s writes records of schema %d and this program reads up to %d: upgrade this one", who, p.GetWritesSchema(), runlog.Schema)
		case p.GetReadsSchema() < runlog.Schema:
			return fmt.Sprintf("%s reads records up to schema %d and this program writes %d: upgrade that one first", who, p.GetReadsSchema(), runlog.Schema)
		}
	}
	return ""
}

// Intervals at which the roles of this node and the other processes are checked.
const (
	assessEvery  = 500 * time.Millisecond
	refreshEvery = 5 * time.Second
)

// assessTime returns how often roles are checked, so that a bus that hangs is reported
// within the takeover time.
func (m *mesh) assessTime() time.Duration {
	return min(assessEvery, runlog.TakeoverOf(m.n.log.AckWait())/10)
}

// join announces the roles, starts the work as soon as no other process prevents it, and
// keeps checking.
func (m *mesh) join(ctx context.Context, begin func()) error {
	for _, r := range m.roles {
		if m.shared() && strings.HasPrefix(r.address, "unix:") {
			continue // a socket of this machine is nothing to tell the others
		}
		stop, err := m.n.log.Announce(r.name, r.aliases, func() *harnessv1.Presence { return m.presence(r) })
		if err != nil {
			return err
		}
		m.n.closers = append(m.n.closers, func(context.Context) error {
			stop()
			return nil
		})
	}
	// A role that fails immediately stops the node, which ends this.
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	m.stop = stop
	begun := make(chan struct{})
	m.watched.Go(func() { // separate: a bus that hangs delays its answer
		look := time.NewTicker(refreshEvery)
		defer look.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-look.C:
				m.refresh(watching)
			}
		}
	})
	m.watched.Go(func() {
		assess := time.NewTicker(m.assessTime())
		defer assess.Stop()
		working := m.allowed()
		if working {
			begin()
		}
		m.assess(watching)
		close(begun)
		for {
			select {
			case <-watching.Done():
				return
			case <-assess.C:
			}
			if !working && m.allowed() {
				working = true
				begin()
			}
			m.assess(watching)
		}
	})
	<-begun
	return nil
}

// refresh records whether other processes prevent work.
func (m *mesh) refresh(ctx context.Context) {
	if !m.shared() {
		return
	}
	others, err := m.n.log.Presences(ctx)
	if err != nil {
		return // reported as a separate reason
	}
	foreign := conflict(others)
	m.inference.record(others)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.foreign = foreign
}

func (m *mesh) allowed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.foreign == "" && !m.leaving
}

// presence returns the announcement of a role.
func (m *mesh) presence(r *role) *harnessv1.Presence {
	r.mu.Lock()
	reason := r.reason
	r.mu.Unlock()
	p := &harnessv1.Presence{
		Role: r.name, Instance: m.n.instance, Address: r.address, Ready: reason == "", Reason: reason,
		ReadsSchema: runlog.Schema, WritesSchema: runlog.Schema, Program: m.n.cfg.Program, StartTime: timestamppb.New(m.started),
		LedgerId: r.ledger,
	}
	if r.name == workflow.ToolHost {
		p.Sandbox = m.n.sandbox.found()
	}
	p.Goroutines, p.HeapBytes = load()
	return p
}

// load returns the goroutines of this process and the live heap bytes of the last
// garbage collection, 0 before the first.
func load() (goroutines, heap uint64) {
	samples := []metrics.Sample{{Name: "/sched/goroutines:goroutines"}, {Name: "/gc/heap/live:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

// locateTimeout bounds the lookup of a role.
const locateTimeout = time.Second

// assess checks whether the roles of this node are ready and reports changes.
func (m *mesh) assess(ctx context.Context) {
	common := m.common()
	own := map[*role]string{}
	if common == "" {
		own = m.check(ctx)
		common = m.common() // it may have changed during the checks
	}
	serving := map[*roleServer]bool{}
	for _, r := range m.roles {
		reason := cmp.Or(common, own[r])
		m.report(r, reason)
		m.n.probe.set(r.name, reason == "")
		for _, server := range m.n.local.all {
			server.serving(r.name, reason == "")
		}
		if before, ok := serving[r.server]; !ok || before {
			serving[r.server] = reason == ""
		}
	}
	for server := range maps.Keys(serving) {
		server.serving("", serving[server])
	}
	all := !slices.Contains(slices.Collect(maps.Values(serving)), false)
	m.n.local.all[0].serving("", all)
	m.n.probe.set("", all)
}

// check returns why single roles cannot work, beyond what every role needs. It ends
// early if the bus becomes unavailable meanwhile: other processes are found over it.
func (m *mesh) check(ctx context.Context) map[*role]string {
	ctx, cancel := context.WithCancel(ctx)
	watching := time.NewTicker(m.assessTime())
	checked := make(chan map[*role]string, 1)
	go func() { checked <- m.checkRoles(ctx) }()
	defer watching.Stop()
	defer cancel()
	for {
		select {
		case own := <-checked:
			return own
		case <-watching.C:
			if m.common() != "" {
				cancel()
			}
		}
	}
}

func (m *mesh) checkRoles(ctx context.Context) map[*role]string {
	own := map[*role]string{}
	tools := ""
	if m.toolHost.inside == nil && slices.ContainsFunc(m.roles, func(r *role) bool { return r.needsToolHost }) {
		ask, cancel := context.WithTimeout(ctx, 2*locateTimeout)
		if _, err := m.toolHost.DescribeHost(ask, &harnessv1.DescribeHostRequest{}); err != nil && ctx.Err() == nil {
			if tools = "the tool host cannot be called: " + status.Convert(err).Message(); m.shared() {
				if _, missing := m.n.locate(ask, workflow.ToolHost); missing != nil && ask.Err() == nil {
					tools = missing.Error()
				}
			}
		}
		cancel()
	}
	for _, r := range m.roles {
		if r.needsToolHost {
			own[r] = tools
		}
		if own[r] == "" && r.ready != nil {
			ask, cancel := context.WithTimeout(ctx, 2*locateTimeout)
			if err := r.ready(ask); err != nil && ctx.Err() == nil {
				own[r] = err.Error()
			}
			cancel()
		}
	}
	return own
}

// common returns why no role of this node can work; empty for no reason.
func (m *mesh) common() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leaving {
		return "it is stopping"
	}
	if err := m.n.log.Connected(); err != nil {
		return err.Error()
	}
	if err := m.n.log.Trouble(); err != nil {
		return err.Error()
	}
	if m.n.cfg.TLS != nil {
		if err := m.n.cfg.TLS.Trouble(time.Now()); err != nil {
			return err.Error()
		}
	}
	return m.foreign
}

// report records and prints a change.
func (m *mesh) report(r *role, reason string) {
	r.mu.Lock()
	changed := !r.said || reason != r.reason
	r.said, r.reason = true, reason
	r.mu.Unlock()
	if !changed || m.n.cfg.Stderr == nil {
		return
	}
	if reason == "" {
		_, _ = fmt.Fprintf(m.n.cfg.Stderr, "ready role=%s addr=%s\n", r.name, r.address)
		return
	}
	_, _ = fmt.Fprintf(m.n.cfg.Stderr, "waiting role=%s reason=%q\n", r.name, reason)
}

// serving sets the health of a role of a server; empty means all of them.
func (s *roleServer) serving(role string, yes bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if yes {
		status = healthv1.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(role, status)
}

// leave announces that the node accepts no more work.
func (m *mesh) leave() {
	m.mu.Lock()
	m.leaving = true
	m.mu.Unlock()
	m.stop()
	m.watched.Wait()
	for _, r := range m.roles {
		r.mu.Lock()
		r.reason = "it is stopping"
		r.mu.Unlock()
		r.server.health.Shutdown()
		m.n.probe.set(r.name, false)
	}
	m.n.probe.set("", false)
	if m.n.local != nil {
		m.n.local.all[0].health.Shutdown()
	}
}

// locate finds a role, and for the ledger of a lost tool host its successor.
func (n *Node) locate(ctx context.Context, role string) (*harnessv1.Presence, error) {
	p, err := n.log.Locate(ctx, role)
	ledger, isLedger := strings.CutPrefix(role, workflow.ToolHost+".")
	place := toolhost.Place(ledger)
	if err == nil || !isLedger || place == "" || errors.Is(err, runlog.ErrUnavailable) {
		return p, err
	}
	successor, err := n.log.Locate(ctx, placeRole(place))
	if err != nil && !errors.Is(err, runlog.ErrUnavailable) {
		return nil, fmt.Errorf("no tool host with the ledger %s is ready, and none that replaces it: start `harness serve --roles %s` with its --data", ledger, workflow.ToolHost)
	}
	return successor, err
}
