package meshtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/harnessmesh/harnessmesh/pkg/failpoint"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/program"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// Roles are the roles of a mesh.
var Roles = workflow.Roles()

// Config configures a mesh.
type Config struct {
	// NATS configures its NATS servers.
	NATS NATSConfig
	// Replicas of each stream. Default 1.
	Replicas int
	// Partitions is the number of partitions. Default 1.
	Partitions int
	// Takeover time. Default 1 s, because tests wait for it.
	Takeover time.Duration
	// Workers is the number of turn workers. Default 1.
	Workers int
	// Credentials are USER:PASSWORD of the bus, which NATS.Extra names too. Empty: none.
	Credentials string
	// Users are the credentials of roles that have their own, USER:PASSWORD by role.
	Users map[string]string
	// Without lists roles that are not started.
	Without []string
	// Env is added to the environment of every process, NAME=VALUE.
	Env []string
}

// Mesh is a running mesh.
type Mesh struct {
	// Bus is the mesh's NATS.
	Bus *NATS

	tb      testing.TB
	bin     Binaries
	env     []string
	dir     string
	gateway string            // HOST:PORT, the same after a restart
	creds   string            // file with the credentials of the bus; empty: none
	users   map[string]string // files with those of roles

	mu        sync.Mutex
	processes map[string]*Process // by name: the role, with a number from the second on
	log       *jetstream.Log
	conn      *grpc.ClientConn
}

// Start starts NATS, provisions it, and starts a process for each role. It returns when
// all are ready.
func Start(tb testing.TB, bin Binaries, cfg Config) *Mesh {
	tb.Helper()
	program.Rely(tb)
	if cfg.Takeover == 0 {
		cfg.Takeover = runlog.MinTakeover
	}
	m := &Mesh{
		tb: tb, bin: bin, env: cfg.Env, dir: tb.TempDir(), processes: map[string]*Process{}, users: map[string]string{},
		Bus: StartNATS(tb, bin, cfg.NATS), gateway: fmt.Sprintf("127.0.0.1:%d", freePorts(tb, 1)[0]),
	}
	if cfg.Credentials != "" {
		m.creds = m.Write("nats.creds", cfg.Credentials)
	}
	for role, user := range cfg.Users {
		m.users[role] = m.Write(role+".creds", user)
	}
	m.Harness(append(m.bus("provision", ""), "--nats-wait", "30s", "--max-bytes", fmt.Sprint(8<<30),
		"--partitions", fmt.Sprint(max(cfg.Partitions, 1)), "--replicas", fmt.Sprint(max(cfg.Replicas, 1)), "--takeover", cfg.Takeover.String())...)
	var names []string
	for _, role := range Roles {
		skip := false
		for _, w := range cfg.Without {
			skip = skip || w == role
		}
		if !skip {
			names = append(names, role)
		}
	}
	for i := 2; i <= cfg.Workers; i++ {
		names = append(names, fmt.Sprintf("turn-%d", i))
	}
	for _, name := range names {
		m.Start(name)
	}
	for _, name := range names {
		m.AwaitReady(name)
	}
	return m
}

// Option changes how a process is started.
type Option func(*launch)

type launch struct{ env, args []string }

// Arm arms a failpoint: ROLE.POINT=ACTION[@N].
func Arm(spec string) Option {
	return func(l *launch) { l.env = append(l.env, failpoint.Variable+"="+spec) }
}

// Env adds variables to the environment, NAME=VALUE.
func Env(variables ...string) Option {
	return func(l *launch) { l.env = append(l.env, variables...) }
}

// Args adds arguments to `harness serve`.
func Args(args ...string) Option { return func(l *launch) { l.args = append(l.args, args...) } }

// Start starts a process, or restarts it if it has ended. The name is the role's, with
// -2, -3 and so on for further ones. It does not wait until the process is ready.
func (m *Mesh) Start(name string, options ...Option) *Process {
	m.tb.Helper()
	role, _, _ := strings.Cut(name, "-")
	listen := "127.0.0.1:0"
	if name == workflow.Gateway {
		listen = m.gateway
	}
	l := launch{env: slices.Clone(m.env), args: append(m.bus("serve", role), "--roles", role, "--nats-wait", "60s", "--listen", listen, "--data", m.Data(name), "--scripts", os.TempDir())}
	for _, o := range options {
		o(&l)
	}
	p := run(m.tb, name, environment(append(l.env, m.config())...), m.bin.Harness, l.args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.processes[name] = p
	return p
}

// bus returns the arguments of a command that connects to the bus as a role does.
func (m *Mesh) bus(command, role string) []string {
	args := []string{command, "--nats", m.Bus.URL()}
	if creds := cmp.Or(m.users[role], m.creds); creds != "" {
		args = append(args, "--nats-creds", creds)
	}
	return args
}

// config returns the variable with the configuration folder of the mesh's user, in which
// clients find the gateway's key.
func (m *Mesh) config() string { return "XDG_CONFIG_HOME=" + filepath.Join(m.dir, "config") }

// Data returns a process's data directory.
func (m *Mesh) Data(name string) string { return filepath.Join(m.dir, name) }

// Process returns the newest process of a name.
func (m *Mesh) Process(name string) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.processes[name]
}

// Writer returns the process that wrote a record, nil if it does not run now.
func (m *Mesh) Writer(e runlog.Entry) *Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.processes {
		if strings.Contains(e.Record.GetWriter().GetInstance(), fmt.Sprintf("-%d-", p.PID())) {
			return p
		}
	}
	return nil
}

// AwaitReady waits until a process reports that its role is ready.
func (m *Mesh) AwaitReady(name string) {
	m.tb.Helper()
	if _, ok := m.Process(name).Line("ready role="); !ok {
		m.tb.Fatalf("%s ended before it was ready:\n%s", name, m.Process(name).Stderr())
	}
}

// AwaitAlive waits until the newest process of a name is ready.
func (m *Mesh) AwaitAlive(name string) {
	m.tb.Helper()
	waittest.Eventually(m.tb, name+" is alive", func() bool {
		p := m.Process(name)
		return !p.Ended() && strings.Contains("\n"+p.Stderr(), "\nready role=")
	})
}

// Respawn restarts a process each time it ends, until the test ends or stop is called,
// as a supervisor would. options returns those of the nth process, from 2. It is called
// after each end.
func (m *Mesh) Respawn(name string, options func(life int) []Option) (stop func()) {
	quit, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for life := 2; ; life++ {
			select {
			case <-m.Process(name).Done():
			case <-quit:
				return
			}
			if m.Process(name).over.Load() {
				return // the end of the test has killed it, before it calls stop
			}
			var with []Option
			if options != nil {
				with = options(life)
			}
			m.Start(name, with...)
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { close(quit); <-stopped }) }
	m.tb.Cleanup(stop)
	return stop
}

// Harness runs another command of the program to its end and returns its stdout.
func (m *Mesh) Harness(args ...string) string {
	m.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.bin.Harness, args...)
	cmd.Env = environment(m.config())
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		m.tb.Fatalf("harness %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// Gateway returns the gateway's address, HOST:PORT.
func (m *Mesh) Gateway() string { return m.gateway }

// quick makes clients reconnect quickly to a restarted gateway.
var quick = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond},
	MinConnectTimeout: time.Second,
}

// retries has starts of runs sent again while a role that they need is not there, as clients do.
const retries = `{"methodConfig": [{"name": [{"service": "harness.v1.GatewayService", "method": "StartRun"}], "retryPolicy": {
	"maxAttempts": 5, "initialBackoff": "0.2s", "maxBackoff": "2s", "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Client returns a client of the gateway. Its calls wait while the gateway is away.
func (m *Mesh) Client() harnessv1.GatewayServiceClient {
	m.tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == nil {
		var err error
		m.conn, err = grpc.NewClient(m.gateway, grpc.WithTransportCredentials(insecure.NewCredentials()), keytest.With(m.Data(workflow.Gateway)),
			grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(64<<20)), grpc.WithConnectParams(quick),
			grpc.WithDefaultServiceConfig(retries))
		if err != nil {
			m.tb.Fatal(err)
		}
		m.tb.Cleanup(func() { _ = m.conn.Close() })
	}
	return harnessv1.NewGatewayServiceClient(m.conn)
}

// Log returns the run log on the mesh's bus.
func (m *Mesh) Log() *jetstream.Log {
	m.tb.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.log == nil {
		var err error
		m.log, err = jetstream.Open(context.Background(), jetstream.Config{URL: m.Bus.URL(), Credentials: m.creds, Wait: 30 * time.Second, Name: "meshtest"})
		if err != nil {
			m.tb.Fatal(err)
		}
		m.tb.Cleanup(m.log.Close)
	}
	return m.log
}

// Entries returns the whole log of a run.
func (m *Mesh) Entries(run runlog.Run) []runlog.Entry {
	m.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	for {
		view, err := m.Log().View(ctx, run, 0)
		if err == nil {
			var entries []runlog.Entry
			if entries, err = runlog.Back(ctx, m.Log(), view.Newest, 0); err == nil {
				return entries
			}
		}
		if !errors.Is(err, runlog.ErrUnavailable) || ctx.Err() != nil {
			m.tb.Fatalf("read %s: %v", run, err)
		}
	}
}

// Ended returns the whole log of a run that has ended at a version above after. It
// repeats the read if a replica lags.
func (m *Mesh) Ended(run runlog.Run, after int) []runlog.Entry {
	m.tb.Helper()
	var entries []runlog.Entry
	waittest.Eventually(m.tb, run.String()+" has ended", func() bool {
		entries = m.Entries(run)
		last := entries[len(entries)-1]
		return len(entries) > after && last.Record.GetStep().GetTo() == runlog.End
	})
	return entries
}

// Write writes a file into the mesh's directory and returns its path.
func (m *Mesh) Write(name, text string) string {
	m.tb.Helper()
	path := filepath.Join(m.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.tb.Fatal(err)
	}
	return path
}
