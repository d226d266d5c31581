package mesh

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// refused runs the program, which must exit with 1 and one line that contains all
// words.
func refused(t *testing.T, words []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin.Harness, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HARNESS_LOG_LEVEL=error"}
	var refusal strings.Builder
	cmd.Stderr = &refusal
	err := cmd.Run()
	text := strings.TrimSpace(refusal.String())
	if err == nil || cmd.ProcessState.ExitCode() != 1 || strings.Contains(text, "\n") {
		t.Errorf("harness %s: %v, not refused with one line:\n%s", strings.Join(args, " "), err, text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("harness %s: %q does not say %q", strings.Join(args, " "), text, w)
		}
	}
}

// serve returns the arguments of a role that must be refused.
func serve(t *testing.T, role, url string, more ...string) []string {
	return append([]string{"serve", "--roles", role, "--nats", url, "--listen", "127.0.0.1:0", "--data", t.TempDir()}, more...)
}

// TestWrongCredentials checks that a refusal by NATS is one line, without the password.
func TestWrongCredentials(t *testing.T) {
	t.Parallel()
	bus := meshtest.StartNATS(t, bin, meshtest.NATSConfig{Extra: `authorization { user: mesh, password: "s3cret" }`})
	right := strings.Replace(bus.URL(), "nats://", "nats://mesh:s3cret@", 1)
	wrong := strings.Replace(bus.URL(), "nats://", "nats://mesh:gu3ss@", 1)
	words := []string{"refuses the credentials", "--nats-creds"}
	refused(t, words, "provision", "--nats", bus.URL())
	refused(t, words, "provision", "--nats", wrong)
	refused(t, words, serve(t, "turn", wrong)...)
	refused(t, words, "doctor", "--nats", wrong)
	refused(t, []string{"--nats-creds", "nowhere.creds"}, serve(t, "turn", bus.URL(), "--nats-creds", "nowhere.creds")...)
	out, err := exec.Command(bin.Harness, "provision", "--nats", right).CombinedOutput()
	if err != nil || strings.Contains(string(out), "s3cret") {
		t.Errorf("with the right password: %v\n%s", err, out)
	}
	out, _ = exec.Command(bin.Harness, serve(t, "turn", wrong)...).CombinedOutput()
	if strings.Contains(string(out), "gu3ss") {
		t.Errorf("the password is shown: %s", out)
	}
}

// TestSystemNoJetStream covers a server without JetStream, and one that is not provisioned.
func TestSystemNoJetStream(t *testing.T) {
	t.Parallel()
	bus := meshtest.StartNATS(t, bin, meshtest.NATSConfig{NoJetStream: true})
	for _, args := range [][]string{{"provision", "--nats", bus.URL()}, serve(t, "repair", bus.URL())} {
		refused(t, []string{"JetStream is switched off", "nats-server -js"}, args...)
	}
	bare := meshtest.StartNATS(t, bin, meshtest.NATSConfig{})
	refused(t, []string{"not provisioned", "harness provision"}, serve(t, "gateway", bare.URL())...)
}

// TestOtherStreams covers streams that the log cannot use.
func TestOtherStreams(t *testing.T) {
	t.Parallel()
	bus := meshtest.StartNATS(t, bin, meshtest.NATSConfig{})
	provision := func(args ...string) []string {
		return append([]string{"provision", "--nats", bus.URL(), "--max-bytes", "2000000"}, args...)
	}
	if out, err := exec.Command(bin.Harness, provision("--partitions", "3")...).CombinedOutput(); err != nil {
		t.Fatalf("provision: %v\n%s", err, out)
	}
	refused(t, []string{"3 partitions", "--partitions 3"}, provision("--partitions", "2")...)
	refused(t, []string{"--partitions", "expected 1 to"}, provision("--partitions=-1")...)
	refused(t, []string{"--replicas", "1, 3 or 5"}, provision("--replicas", "2")...)
	refused(t, []string{"takeover", "1s"}, provision("--takeover", "100ms")...)
	refused(t, []string{"expected at least 1048576", "--max-bytes"}, provision("--max-bytes", "1")...)
	if err := bus.DeleteStream("RUNS_2"); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"RUNS_0 was created for 3 partitions", "harness provision --partitions 3"}, serve(t, "turn", bus.URL())...)
	if out, err := exec.Command(bin.Harness, provision("--partitions", "3")...).CombinedOutput(); err != nil {
		t.Errorf("provision, to restore it: %v\n%s", err, out)
	}
	for _, c := range []struct {
		set, back func(*jetstream.StreamConfig)
		words     []string
	}{
		{func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, func(c *jetstream.StreamConfig) { c.MaxAge = 0 }, []string{"RUNS_0", "maximum age", "harness provision"}},
		{func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 }, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = -1 }, []string{"RUNS_0", "maximum of messages per subject"}},
		{func(c *jetstream.StreamConfig) { c.AllowRollup = true }, func(c *jetstream.StreamConfig) { c.AllowRollup = false }, []string{"RUNS_0", "roll-up"}},
	} {
		if err := bus.UpdateStream("RUNS_0", c.set); err != nil {
			t.Fatal(err)
		}
		refused(t, c.words, serve(t, "turn", bus.URL())...)
		if err := bus.UpdateStream("RUNS_0", c.back); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOneIdentity checks that a name and a ledger belong to one process at a time.
func TestOneIdentity(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{Without: []string{"repair", "compaction", "stopdecision"}})
	m.Process("turn").Kill()
	m.Start("turn", meshtest.Args("--instance", "worker-1"))
	m.AwaitReady("turn")
	refused(t, []string{"worker-1", "turn", "--instance"}, serve(t, "turn", m.Bus.URL(), "--instance", "worker-1")...)
	refused(t, []string{"--instance", "letters"}, serve(t, "turn", m.Bus.URL(), "--instance", "a b")...)

	// The same data directory is locked by the kernel. A copy of it has the same
	// ledger.
	args := serve(t, "toolhost", m.Bus.URL())
	args[len(args)-1] = m.Data("toolhost")
	refused(t, []string{"in use by process", fmt.Sprint(m.Process("toolhost").PID())}, args...)
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(m.Data("toolhost"))); err != nil {
		t.Fatal(err)
	}
	args[len(args)-1] = copied
	refused(t, []string{"the same ledger", "--data"}, args...)
	if _, err := os.Stat(filepath.Join(copied, "tools")); err != nil {
		t.Error(err) // else nothing was copied
	}
}

// TestSystemOtherSchema checks that a role waits, with the reason, while another process
// writes a newer format or reads only an older one, and continues when that process has
// exited.
func TestSystemOtherSchema(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	for name, c := range map[string]struct {
		reads, writes uint32
		words         []string
	}{
		"newer": {runlog.Schema + 1, runlog.Schema + 1, []string{fmt.Sprintf("writes records of schema %d", runlog.Schema+1), "upgrade this one"}},
		"older": {runlog.Schema - 1, runlog.Schema - 1, []string{fmt.Sprintf("reads records up to schema %d", runlog.Schema-1), "upgrade that one first"}},
	} {
		leave, err := m.Log().Announce("turn", nil, func() *harnessv1.Presence {
			return &harnessv1.Presence{Role: "turn", Instance: name, Address: "127.0.0.1:1", Ready: true, ReadsSchema: c.reads, WritesSchema: c.writes}
		})
		if err != nil {
			t.Fatal(err)
		}
		p := m.Start("compaction-"+name, meshtest.Args("--instance", name+"-mine", "--probe", "127.0.0.1:0"))
		probe, _ := p.Line("probe addr=")
		line, ok := p.Line("waiting role=compaction reason=")
		for _, w := range c.words {
			if !ok || !strings.Contains(line, w) {
				t.Errorf("%s: got %q, want %q", name, line, w)
			}
		}
		if strings.Contains(p.Stderr(), "\nready role=") {
			t.Errorf("%s: ready all the same", name)
		}
		if got, err := healthOf(t, probe, "", insecure.NewCredentials()); err != nil || got != healthv1.HealthCheckResponse_NOT_SERVING {
			t.Errorf("%s: health is %s, %v", name, got, err)
		}
		if out, err := with(t, "doctor", "--nats", m.Bus.URL()); err == nil || !strings.Contains(out, "compaction "+name+"-mine is not ready") || !strings.Contains(out, c.words[0]) {
			t.Errorf("%s: doctor: %v\n%s", name, err, out)
		}
		leave()
		if _, ok := p.Line("ready role=compaction"); !ok {
			t.Errorf("%s: not ready after the other had left", name)
		}
		p.Kill()
	}
}

// TestSystemReadinessIsShown checks that a role that is not ready shows the reason on stderr,
// in its health and to the doctor.
func TestSystemReadinessIsShown(t *testing.T) {
	t.Parallel()
	m := meshtest.Start(t, bin, meshtest.Config{})
	m.Process("toolhost").Kill()
	turn := m.Process("turn")
	address, _ := turn.Line("ready role=turn addr=")
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	health := func() healthv1.HealthCheckResponse_ServingStatus {
		r, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	waittest.Eventually(t, "turn does not serve", func() bool { return health() == healthv1.HealthCheckResponse_NOT_SERVING })
	waittest.Eventually(t, "turn says what it waits for", func() bool {
		lines := strings.Split(turn.Stderr(), "\n")
		return strings.HasPrefix(lines[len(lines)-1], `waiting role=turn reason="no process with the role toolhost is ready`)
	})
	out, err := exec.Command(bin.Harness, "doctor", "--nats", m.Bus.URL()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no process has the role toolhost") || !strings.Contains(string(out), "problem:") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	m.Start("toolhost")
	waittest.Eventually(t, "turn serves again", func() bool { return health() == healthv1.HealthCheckResponse_SERVING })
	waittest.Eventually(t, "the doctor finds nothing", func() bool {
		return exec.Command(bin.Harness, "doctor", "--nats", m.Bus.URL()).Run() == nil
	})
	// The bus stops and restarts.
	m.Bus.Kill(0)
	waittest.Eventually(t, "turn waits for NATS", func() bool { return health() == healthv1.HealthCheckResponse_NOT_SERVING })
	m.Bus.Restart(0)
	m.Bus.AwaitReady(0)
	waittest.Eventually(t, "turn serves once more", func() bool { return health() == healthv1.HealthCheckResponse_SERVING })
}
