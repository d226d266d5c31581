package verify

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// The mesh of a rendering works on loopback: the NATS servers with its nats.conf, the
// provisioning job and a process for each role, with the arguments and the
// environment that the kubelet would give them. Only what names a machine is
// replaced: addresses by those of loopback, mounted paths by directories.
//
// The dev overlay has one server and plain connections. The prod overlay has a
// cluster of three, TLS with certificates of the names that cert-manager issues them
// for, and tokens. Both have a NATS user for each role.
func TestTheRenderedMeshBecomesReady(t *testing.T) {
	for _, overlay := range []string{"dev", "everything"} {
		t.Run(overlay, func(t *testing.T) {
			m := startMesh(t, overlay)
			m.probeNATS()
			if overlay == "everything" {
				t.Run("the scaler looks at consumers that provisioning makes", m.scaler)
				t.Run("the password of the tool host opens no run", m.passwords)
			}
			for _, w := range m.r.roles() {
				m.start(w)
			}
			for _, p := range m.processes {
				p.awaitReady(t)
			}
			for _, p := range m.processes {
				m.probe(p)
			}
			m.work()
			for _, p := range m.processes {
				p.stop(t)
				for line := range strings.Lines(p.all()) {
					// The client deletes a consumer that ends by itself.
					if strings.Contains(line, "ermissions Violation") && !strings.Contains(line, "$JS.API.CONSUMER.DELETE.") {
						t.Errorf("%s needs what its user may not do: %s", p.name, line)
					}
				}
			}
		})
	}
}

// work gives the mesh a run with a command in it and a job, and deletes it, so that each
// role sends NATS every kind of request that it makes.
func (m *mesh) work() {
	m.t.Helper()
	dir := m.t.TempDir()
	script := filepath.Join(dir, "script.yaml")
	write(m.t, script, `turns:
  - {text: I look., calls: [{name: run_command, arguments: {command: "echo seen >seen.txt"}}]}
  - {calls: [{name: work_complete, arguments: {summary: "It is written."}}]}
`)
	var gateway *process
	for _, p := range m.processes {
		if p.name == "gateway" {
			gateway = p
		}
	}
	server := []string{"--server", gateway.said(m.t, "ready role=gateway addr=")}
	if m.authority != nil {
		write(m.t, filepath.Join(dir, "ca.crt"), m.authority.text)
		write(m.t, filepath.Join(dir, "token"), token)
		server = append(server, "--tls-ca", filepath.Join(dir, "ca.crt"), "--token-file", filepath.Join(dir, "token"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	exits := func(args ...string) (string, int) {
		m.t.Helper()
		command := exec.CommandContext(ctx, binary(m.t).path, append(args, server...)...)
		command.Env = []string{"HOME=" + dir}
		out, err := command.CombinedOutput()
		if err != nil && command.ProcessState == nil {
			m.t.Fatalf("harness %s: %v\n%s", args[0], err, out)
		}
		return string(out), command.ProcessState.ExitCode()
	}
	harness := func(args ...string) string {
		m.t.Helper()
		out, code := exits(args...)
		if code != 0 {
			m.t.Fatalf("harness %s ends with %d\n%s", args[0], code, out)
		}
		return out
	}
	harness("run", "--workspace", dir, "--model", "script:"+script, "--yolo", "--output", "json", "Look.")
	if seen, err := os.ReadFile(filepath.Join(dir, "seen.txt")); err != nil || string(seen) != "seen\n" {
		m.t.Errorf("what the command wrote: %q, %v", seen, err)
	}
	var list struct {
		Runs []struct {
			ID     string `json:"run_id"`
			Status string `json:"status"`
		} `json:"runs"`
	}
	if err := json.Unmarshal([]byte(harness("list", "--output", "json")), &list); err != nil || len(list.Runs) != 1 || list.Runs[0].Status != "DONE" {
		m.t.Fatalf("runs %v, %v, want one that is done", list, err)
	}
	m.job(list.Runs[0].ID, dir)
	harness("delete", list.Runs[0].ID)
	if text := harness("list", "--output", "json"); strings.Contains(text, list.Runs[0].ID) {
		m.t.Errorf("the run still exists: %s", text)
	}
	m.forge(dir, harness, exits)
}

// probe sends the requests of the kubelet and of Prometheus.
func (m *mesh) probe(p *process) {
	m.t.Helper()
	w := m.r.workload(p.name)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := grpc.NewClient(p.said(m.t, "probe addr="), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	for _, service := range []string{*w.main().StartupProbe.GRPC.Service, *w.main().LivenessProbe.GRPC.Service, ""} {
		answer, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{Service: service})
		if err != nil || answer.GetStatus() != healthv1.HealthCheckResponse_SERVING {
			m.t.Errorf("the probe of %s for %q: %v, %v", p.name, service, answer.GetStatus(), err)
		}
	}
	text := get(m.t, "http://"+p.said(m.t, "metrics addr=")+"/metrics")
	if !strings.Contains(text, "# TYPE ") {
		m.t.Errorf("%s shows no metrics: %q", p.name, text[:min(len(text), 200)])
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v: %s", url, response.Status, err, body)
	}
	return string(body)
}

// What the scaler looks at is what provisioning makes: each trigger's consumer is on
// its stream, and there is no partition without a trigger.
func (m *mesh) scaler(t *testing.T) {
	js := m.jetstream()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var streams, watched []string
	for name := range js.StreamNames(ctx).Name() {
		if strings.HasPrefix(name, "RUNS_") {
			streams = append(streams, name)
		}
	}
	for _, s := range m.r.scaledObjects {
		for _, trigger := range s.Spec.Triggers {
			watched = append(watched, trigger.Metadata.Stream)
			if _, err := js.Consumer(ctx, trigger.Metadata.Stream, trigger.Metadata.Consumer); err != nil {
				t.Errorf("%s, trigger %s: consumer %s on %s: %v", s.Name, trigger.Name, trigger.Metadata.Consumer, trigger.Metadata.Stream, err)
			}
			if _, err := js.Consumer(ctx, trigger.Metadata.Stream, trigger.Metadata.Consumer+"s"); err == nil {
				t.Errorf("a consumer that was never created exists, so this test proves nothing")
			}
		}
	}
	slices.Sort(watched)
	watched = slices.Compact(watched)
	slices.Sort(streams)
	if !slices.Equal(streams, watched) {
		t.Errorf("streams %v, watched %v", streams, watched)
	}
	for _, name := range streams {
		stream, err := js.Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if got := stream.CachedInfo().Config.Replicas; got != 3 {
			t.Errorf("%s has %d copies", name, got)
		}
	}
	// The scaler reads the same over HTTP.
	var answer struct {
		Accounts []struct {
			Name    string `json:"name"`
			Streams []struct {
				Consumers []struct {
					Name    string `json:"name"`
					Cluster struct {
						Leader string `json:"leader"`
					} `json:"cluster"`
				} `json:"consumer_detail"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	account := m.r.scaledObjects[0].Spec.Triggers[0].Metadata.Account
	if err := json.Unmarshal([]byte(get(t, "http://"+m.servers[0].MonitorAddr().String()+"/jsz?consumers=true&config=true&acc="+account)), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Accounts) != 1 || answer.Accounts[0].Name != account {
		t.Fatalf("accounts %v, want %s", answer.Accounts, account)
	}
	for _, s := range answer.Accounts[0].Streams {
		for _, c := range s.Consumers {
			if !strings.HasPrefix(c.Cluster.Leader, "nats-") {
				t.Errorf("the leader of %s is %q: the scaler looks for it by the name of its pod", c.Name, c.Cluster.Leader)
			}
		}
	}
}

// probeNATS sends the servers the requests of the kubelet.
func (m *mesh) probeNATS() {
	m.t.Helper()
	c := m.r.workload("nats").main()
	for _, s := range m.servers {
		for _, path := range []string{c.StartupProbe.HTTPGet.Path, c.LivenessProbe.HTTPGet.Path, c.ReadinessProbe.HTTPGet.Path} {
			get(m.t, "http://"+s.MonitorAddr().String()+path)
		}
	}
}

// A command that steals the tool host's password can read and write no run with it. An
// inference worker stores results and writes no record.
func (m *mesh) passwords(t *testing.T) {
	record, control, erase := "hm.run.0.default.r-1.log.step.park", "hm.control.default.r-1", "$JS.API.STREAM.DELETE.RUNS_0"
	job, result := "hm.run.0.default.r-1.job.k", "hm.blob.0.default.r-1.as.k"
	for _, c := range []struct {
		user      string
		publishes string
		allowed   bool
	}{
		{"toolhost", record, false},
		{"toolhost", control, false},
		{"toolhost", erase, false},
		{"turn", record, true},
		{"turn", control, false},
		{"turn", erase, false},
		{"inference", record, false},
		{"inference", job, false},
		{"inference", result, true},
		{"inference", erase, false},
	} {
		if denied := m.denied(c.user, func(nc *nats.Conn) error { return nc.Publish(c.publishes, nil) }); denied == c.allowed {
			t.Errorf("%s publishes to %s: denied %v", c.user, c.publishes, denied)
		}
	}
	for user, allowed := range map[string]bool{"toolhost": false, "inference": false, "turn": false, "gateway": true} {
		if denied := m.denied(user, func(nc *nats.Conn) error { _, err := nc.SubscribeSync("hm.live.>"); return err }); denied == allowed {
			t.Errorf("%s listens to records: denied %v", user, denied)
		}
	}
}

// denied reports whether the server refuses what a user does. The server responds in
// order, so its response to that precedes its refusal of something that is forbidden
// to every user.
func (m *mesh) denied(user string, try func(*nats.Conn) error) bool {
	m.t.Helper()
	refusals := make(chan string, 2)
	nc := m.connect(user, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err.Error() }))
	if err := errors.Join(try(nc), nc.Publish("subject.refused", nil)); err != nil {
		m.t.Fatal(err)
	}
	select {
	case first := <-refusals:
		return !strings.Contains(first, "subject.refused")
	case <-time.After(patience):
		m.t.Fatal("NATS permits everything to every user")
		return false
	}
}

// jetstream is a connection as the provisioning user.
func (m *mesh) jetstream() jetstream.JetStream {
	m.t.Helper()
	js, err := jetstream.New(m.connect("provision"))
	if err != nil {
		m.t.Fatal(err)
	}
	return js
}

func (m *mesh) connect(user string, options ...nats.Option) *nats.Conn {
	m.t.Helper()
	options = append(options, nats.UserInfo(user, m.secret("nats-" + user)["password"]), nats.CustomInboxPrefix("_INBOX."+user))
	if m.authority != nil {
		options = append(options, nats.Secure(&tls.Config{RootCAs: m.authority.pool, MinVersion: tls.VersionTLS12}))
	}
	nc, err := nats.Connect(m.servers[0].ClientURL(), options...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(nc.Close)
	return nc
}

// write makes a file below a directory.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
