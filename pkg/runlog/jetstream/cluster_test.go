package jetstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster is three NATS servers in this process, whose routes run over links that
// can be held and cut.
type cluster struct {
	nodes    [3]*node
	accounts []string

	mu   sync.Mutex
	next int
}

// node is a member of a cluster. It has another server after a restart.
type node struct {
	index int
	conf  string
	// in are the links from the other nodes to this one, by the other's index.
	in [3]*link

	mu     sync.Mutex
	server *server.Server
}

func (n *node) name() string { return fmt.Sprint("n", n.index) }

// running returns the node's server, nil while it is down.
func (n *node) running() *server.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server
}

// startCluster starts three servers with separate accounts and waits until they have a
// leader. They stop with the test.
func startCluster(t testing.TB, accounts ...string) *cluster {
	t.Helper()
	return startClusterOn(t, t.TempDir, "", accounts...)
}

// startClusterOn is startCluster with data directories and with further settings of
// JetStream.
func startClusterOn(t testing.TB, data func() string, settings string, accounts ...string) *cluster {
	t.Helper()
	c := &cluster{accounts: accounts}
	for i := range c.nodes {
		c.nodes[i] = &node{index: i}
	}
	for _, to := range c.nodes {
		for from := range c.nodes {
			if from != to.index {
				to.in[from] = newLink(t, to)
			}
		}
	}
	var users strings.Builder
	for _, a := range accounts {
		fmt.Fprintf(&users, "  %s {jetstream: enabled, users: [{user: %s, password: secret}]}\n", a, a)
	}
	for _, n := range c.nodes {
		dir := data()
		var routes []string
		for _, other := range c.nodes {
			if other != n {
				routes = append(routes, "nats://"+other.in[n.index].listener.Addr().String())
			}
		}
		n.conf = filepath.Join(dir, "nats.conf")
		// No server listens at the advertised address: all routes use the links.
		text := fmt.Sprintf(`server_name: %s
listen: "127.0.0.1:-1"
jetstream {store_dir: %q%s}
cluster {name: mesh, listen: "127.0.0.1:-1", advertise: "127.0.0.1:1", routes: [%s]}
system_account: SYS
accounts {
  SYS {users: [{user: sys, password: secret}]}
%s}
`, n.name(), dir, settings, strings.Join(routes, ", "), users.String())
		if err := os.WriteFile(n.conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		var stopping sync.WaitGroup
		for _, n := range c.nodes {
			stopping.Go(n.stop)
		}
		stopping.Wait()
		for _, l := range c.links() {
			l.close()
		}
	})
	for _, n := range c.nodes {
		n.start(t)
	}
	c.await(t, "a leader with three servers", func() bool {
		for _, n := range c.nodes {
			if s := n.running(); s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(c.nodes) {
				return true
			}
		}
		return false
	})
	return c
}

func (c *cluster) links() []*link {
	var all []*link
	for _, n := range c.nodes {
		for _, l := range n.in {
			if l != nil {
				all = append(all, l)
			}
		}
	}
	return all
}

// start starts the node's server with its stored data.
func (n *node) start(t testing.TB) {
	t.Helper()
	options, err := server.ProcessConfigFile(n.conf)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	options.JetStreamMaxStore = 1 << 50
	options.DisableJetStreamBanner = true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	n.mu.Lock()
	n.server = s
	n.mu.Unlock()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatalf("server %s is not ready", n.name())
	}
}

// stop shuts the node's server down and waits for it.
func (n *node) stop() {
	n.mu.Lock()
	s := n.server
	n.server = nil
	n.mu.Unlock()
	if s != nil {
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// await waits until the cluster is in a state that it does not announce.
func (c *cluster) await(t testing.TB, what string, reached func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !reached() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("after a minute there is still not %s", what)
		}
	}
}

// InProcessConn connects to the running servers in turn.
func (c *cluster) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	first := c.next
	c.next++
	c.mu.Unlock()
	for i := range c.nodes {
		if s := c.nodes[(first+i)%len(c.nodes)].running(); s != nil {
			if conn, err := s.InProcessConn(); err == nil {
				return conn, nil
			}
		}
	}
	return nil, errors.New("no server runs")
}

// config configures a connection to an account through a provider of connections.
func config(account string, to nats.InProcessConnProvider, timeout time.Duration) Config {
	return Config{
		InProcess: to, Timeout: timeout, Wait: 30 * time.Second,
		Options: []nats.Option{nats.UserInfo(account, "secret"), nats.ReconnectWait(20 * time.Millisecond)},
	}
}

// provision creates an account's streams with three replicas.
func (c *cluster) provision(account string, layout Layout) error {
	layout.Replicas, layout.MaxBytes = len(c.nodes), 256<<20
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return Provision(ctx, config(account, c, 0), layout)
}

// remove deletes an account's streams, to free their resources.
func (c *cluster) remove(t testing.TB, account string) {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(c), nats.UserInfo(account, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for info := range js.ListStreams(context.Background()).Info() {
		if err := js.DeleteStream(context.Background(), info.Config.Name); err != nil {
			t.Log(err)
		}
	}
}

// open opens an account's log, through the whole cluster or the given provider.
func (c *cluster) open(t testing.TB, account string, to nats.InProcessConnProvider, timeout time.Duration) *Log {
	t.Helper()
	l, err := Open(context.Background(), config(account, to, timeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// leader returns the node that leads a stream; nil between two leaders.
func (c *cluster) leader(account, stream string) *node {
	for _, n := range c.nodes {
		if s := n.running(); s != nil && s.JetStreamIsStreamLeader(account, stream) {
			return n
		}
	}
	return nil
}

// awaitLeader waits until a stream has a leader other than not.
func (c *cluster) awaitLeader(t testing.TB, account, stream string, not *node) *node {
	t.Helper()
	var leader *node
	c.await(t, "a leader of "+stream, func() bool {
		leader = c.leader(account, stream)
		return leader != nil && leader != not
	})
	return leader
}

// hold delays, until release, the replication traffic from other nodes to this one: a
// leader learns of no replica that stored anything, a follower stores nothing.
func (c *cluster) hold(n *node) (release func()) {
	var held []*gate
	for _, other := range c.nodes {
		if other != n {
			held = append(held, &n.in[other.index].there, &other.in[n.index].back)
		}
	}
	for _, g := range held {
		g.hold()
	}
	return func() {
		for _, g := range held {
			g.release()
		}
	}
}

// cut closes a node's routes and prevents new ones until restore.
func (c *cluster) cut(n *node) (restore func()) {
	var restores []func()
	for _, other := range c.nodes {
		if other != n {
			restores = append(restores, n.in[other.index].cut(), other.in[n.index].cut())
		}
	}
	return func() {
		for _, restore := range restores {
			restore()
		}
	}
}
