package meshtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// NATS is a server or a cluster of them.
type NATS struct {
	tb      testing.TB
	bin     string
	servers []*server
}

type server struct {
	name, config    string
	client, monitor string // HOST:PORT
	process         *Process
}

// NATSConfig configures the servers.
type NATSConfig struct {
	// Servers is 1 or 3. Default 1.
	Servers int
	// SyncAlways makes every acknowledged write survive a loss of power.
	SyncAlways bool
	// Dir returns the data directory of each server. Default: a temporary one.
	Dir func() string
	// NoJetStream switches JetStream off.
	NoJetStream bool
	// Extra is added to the configuration of each server.
	Extra string
}

// StartNATS starts servers and waits until they have elected a leader.
func StartNATS(tb testing.TB, bin Binaries, cfg NATSConfig) *NATS {
	tb.Helper()
	n := &NATS{tb: tb, bin: bin.NATS}
	count := max(cfg.Servers, 1)
	ports := freePorts(tb, 3*count)
	var routes []string
	for i := range count {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", ports[3*i+2]))
	}
	for i := range count {
		dir := tb.TempDir()
		store := dir
		if cfg.Dir != nil {
			store = cfg.Dir()
		}
		s := &server{
			name: fmt.Sprintf("nats-%d", i), config: filepath.Join(dir, "nats.conf"),
			client: fmt.Sprintf("127.0.0.1:%d", ports[3*i]), monitor: fmt.Sprintf("127.0.0.1:%d", ports[3*i+1]),
		}
		sync := `"2m"`
		if cfg.SyncAlways {
			sync = "always"
		}
		text := fmt.Sprintf("server_name: %s\nlisten: %s\nhttp: %s\nmax_pending: 256MB\n%s\n", s.name, s.client, s.monitor, cfg.Extra)
		if !cfg.NoJetStream {
			text += fmt.Sprintf("jetstream { store_dir: %q, max_file_store: 1TB, sync_interval: %s }\n", store, sync)
		}
		if count > 1 {
			text += fmt.Sprintf("cluster { name: mesh, listen: 127.0.0.1:%d, routes: [%s] }\n", ports[3*i+2], strings.Join(routes, ", "))
		}
		if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		n.servers = append(n.servers, s)
	}
	for i := range n.servers {
		n.Restart(i)
	}
	for i := range n.servers {
		n.AwaitReady(i)
	}
	return n
}

// freePorts returns ports of this machine without a listener. They are below the range
// that systems assign: otherwise a connection or another process could take one of them
// before it is used.
func freePorts(tb testing.TB, n int) []int {
	tb.Helper()
	const first, last, tries = 10_000, 32_000, 1_000
	var ports []int
	for range tries {
		port := first + rand.IntN(last-first)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	tb.Fatalf("there are no %d free ports from %d to %d", n, first, last)
	return nil
}

// URL returns the URLs of all servers.
func (n *NATS) URL() string {
	var urls []string
	for _, s := range n.servers {
		urls = append(urls, "nats://"+s.client)
	}
	return strings.Join(urls, ",")
}

// Servers returns the number of servers.
func (n *NATS) Servers() int { return len(n.servers) }

// Kill kills a server.
func (n *NATS) Kill(i int) { n.tb.Helper(); n.servers[i].process.Kill() }

// Signal sends a server a signal.
func (n *NATS) Signal(i int, s syscall.Signal) { n.tb.Helper(); n.servers[i].process.Signal(s) }

// PID returns the process id of the ith server.
func (n *NATS) PID(i int) int { return n.servers[i].process.PID() }

// Restart restarts a server that is not running.
func (n *NATS) Restart(i int) {
	n.tb.Helper()
	s := n.servers[i]
	s.process = run(n.tb, s.name, environment(), n.bin, "-c", s.config)
}

// SetClock sets how far the clock of a server is ahead, in whole seconds. The server is that of program.ShiftedNATS.
func (n *NATS) SetClock(i int, ahead time.Duration) {
	n.tb.Helper()
	s := n.servers[i]
	file := filepath.Join(filepath.Dir(s.config), "clock")
	if err := errors.Join(os.WriteFile(file+".new", fmt.Append(nil, int(ahead.Seconds())), 0o600), os.Rename(file+".new", file)); err != nil {
		n.tb.Fatal(err)
	}
	waittest.Eventually(n.tb, "the clock of "+s.name+" is set", func() bool {
		var v struct {
			Now time.Time `json:"now"`
		}
		return n.ask(i, "/varz", &v) == nil && (time.Until(v.Now)-ahead).Abs() < time.Minute
	})
}

// AwaitReady waits until a server reports that JetStream works.
func (n *NATS) AwaitReady(i int) {
	n.tb.Helper()
	s := n.servers[i]
	waittest.Eventually(n.tb, s.name+" is ready", func() bool {
		if s.process.Ended() {
			n.tb.Fatalf("%s has ended", s.name)
		}
		return n.ask(i, "/healthz", nil) == nil
	})
}

// ask queries a server's monitoring address.
func (n *NATS) ask(i int, path string, into any) error {
	r, err := http.Get("http://" + n.servers[i].monitor + path) //nolint:noctx // loopback, in a test
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, r.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(r.Body).Decode(into)
}

// Leader returns the server that leads a stream; -1 if none is known.
func (n *NATS) Leader(stream string) int {
	for i := range n.servers {
		for _, s := range n.streams(i) {
			if s.Name != stream {
				continue
			}
			for j, other := range n.servers {
				if s.Cluster.Leader == other.name {
					return j
				}
			}
		}
	}
	return -1
}

type streamDetail struct {
	Name    string `json:"name"`
	Cluster struct {
		Leader string `json:"leader"`
	} `json:"cluster"`
}

func (n *NATS) streams(i int) []streamDetail {
	var info struct {
		Accounts []struct {
			Streams []streamDetail `json:"stream_detail"`
		} `json:"account_details"`
	}
	if n.servers[i].process.Ended() || n.ask(i, "/jsz?streams=true&accounts=true", &info) != nil {
		return nil
	}
	var all []streamDetail
	for _, a := range info.Accounts {
		all = append(all, a.Streams...)
	}
	return all
}

// stream changes a stream without the log.
func (n *NATS) stream(name string, change func(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) error) error {
	nc, err := nats.Connect(n.URL())
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	s, err := js.Stream(ctx, name)
	if err != nil {
		return err
	}
	return change(ctx, js, s.CachedInfo().Config)
}

// DeleteStream deletes a stream.
func (n *NATS) DeleteStream(name string) error {
	return n.stream(name, func(ctx context.Context, js jetstream.JetStream, _ jetstream.StreamConfig) error {
		return js.DeleteStream(ctx, name)
	})
}

// UpdateStream changes the settings of a stream.
func (n *NATS) UpdateStream(name string, change func(*jetstream.StreamConfig)) error {
	return n.stream(name, func(ctx context.Context, js jetstream.JetStream, cfg jetstream.StreamConfig) error {
		change(&cfg)
		_, err := js.UpdateStream(ctx, cfg)
		return err
	})
}
