package jetstream

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// oneLine fails unless err is one line of text.
func oneLine(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 400 {
		t.Fatalf("not an error of one line: %q", err)
	}
}

// contains fails unless err is one line that contains all words.
func contains(t *testing.T, err error, words ...string) {
	t.Helper()
	oneLine(t, err)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// admin returns a connection that creates what Provision would not create.
func admin(t *testing.T, e *EmbeddedServer) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(e.server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func TestProvisionTwice(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	cfg := Config{InProcess: e.server}
	if _, err := Open(t.Context(), cfg); err != nil {
		contains(t, err, "not provisioned", "harness provision")
	} else {
		t.Fatal("opened what was not provisioned")
	}
	for _, layout := range []Layout{{Partitions: 3}, {Partitions: 3}, {Partitions: 3, Executors: []string{"custom", "custom", "turn"}}} {
		if err := Provision(t.Context(), cfg, layout); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Partitions() != 3 {
		t.Errorf("%d partitions", l.Partitions())
	}
	names, err := l.Executors(t.Context())
	if got := strings.Join(names, " "); err != nil || got != "compaction custom inference repair stopdecision turn" {
		t.Errorf("executors %s (%v)", got, err)
	}
	for _, n := range []int{1, 2, 4} {
		contains(t, Provision(t.Context(), cfg, Layout{Partitions: n}), "3 partitions", "--partitions 3")
	}
	for _, name := range []string{"", "a.b", "*", "park", "end", "inference", strings.Repeat("x", 65)} {
		contains(t, Provision(t.Context(), cfg, Layout{Partitions: 3, Executors: []string{name}}), "executor")
	}
}

// TestProvisionAgainAfterInterruption checks that an interrupted installation is
// completed by the next one.
func TestProvisionAgainAfterInterruption(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	js := admin(t, e)
	layout := Layout{Partitions: 3, Replicas: 1, MaxBytes: 1 << 20}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// It ended after two of the three partitions.
	for p := 2; p > 0; p-- {
		for _, cfg := range streams(p, layout) {
			if _, err := js.CreateStream(ctx, cfg); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := Provision(t.Context(), Config{InProcess: e.server}, layout); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Config{InProcess: e.server})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if l.Partitions() != 3 {
		t.Fatalf("%d partitions", l.Partitions())
	}
}

// TestStreamsRefused checks that Provision and Open refuse streams with which the log
// could lose records, and name them.
func TestStreamsRefused(t *testing.T) {
	t.Parallel()
	e := start(t, EmbeddedConfig{})
	js := admin(t, e)
	cfg := Config{InProcess: e.server}
	if err := Provision(t.Context(), cfg, Layout{}); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		stream int // of a partition, in the order of streams
		change func(*jetstream.StreamConfig)
		says   string
	}{
		"age":     {0, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "maximum age"},
		"roll-up": {0, func(c *jetstream.StreamConfig) { c.AllowRollup = true }, "roll-up"},
		"schedules": {0, func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules, c.AllowRollup, c.Discard = true, true, jetstream.DiscardOld
		}, "schedules"},
		"discard old":     {0, func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }, "discards old"},
		"work queue":      {0, func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }, "keep by limits"},
		"no direct get":   {0, func(c *jetstream.StreamConfig) { c.AllowDirect = false }, "direct"},
		"per subject":     {0, func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 5 }, "per subject"},
		"memory":          {0, func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }, "memory"},
		"no ack":          {0, func(c *jetstream.StreamConfig) { c.NoAck = true }, "acknowledge"},
		"blobs that age":  {1, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "maximum age"},
		"timers that age": {2, func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }, "maximum age"},
	} {
		t.Run(what, func(t *testing.T) {
			bad := streams(0, Layout{Replicas: 1, MaxBytes: 1 << 20})[c.stream]
			c.change(&bad)
			if err := js.DeleteStream(t.Context(), bad.Name); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateStream(t.Context(), bad); err != nil {
				t.Fatal(err)
			}
			contains(t, Provision(t.Context(), cfg, Layout{}), bad.Name, c.says)
			_, err := Open(t.Context(), cfg)
			contains(t, err, bad.Name, c.says)
			if err := js.DeleteStream(t.Context(), bad.Name); err != nil {
				t.Fatal(err)
			}
			if err := Provision(t.Context(), cfg, Layout{}); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		if err := js.DeleteStream(t.Context(), timersStream(0)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(t.Context(), cfg)
		contains(t, err, timersStream(0), "harness provision")
	})
	if err := checkStream(jetstream.StreamConfig{Name: "RUNS_0"}); err == nil { // mirrors have no subjects
		t.Error("a stream without anything was taken")
	}
}

func TestJetStreamOff(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{DontListen: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("not ready")
	}
	_, err = Open(t.Context(), Config{InProcess: s})
	contains(t, err, "JetStream", "switched off")
	contains(t, Provision(t.Context(), Config{InProcess: s}, Layout{}), "JetStream", "switched off")
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	const wait = 300 * time.Millisecond
	for _, address := range []string{mute.Addr().String(), closed.Addr().String(), "nowhere.invalid:4222"} {
		begun := time.Now()
		_, err := Open(t.Context(), Config{URL: "nats://" + address, Wait: wait})
		contains(t, err, "cannot reach NATS", address)
		if took := time.Since(begun); took > 20*wait {
			t.Errorf("%s: took %v, was to take %v", address, took, wait)
		}
	}
}

// TestURLs checks that invalid URLs are refused immediately, without showing a
// password.
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nats://::not a url::", "nats://me:s3 cret@host:4222", "nats://me:s3%zzcret@host", "nats://", "nats://ok:4222,nats://me:s3,cret@host:99x"} {
		_, err := Open(t.Context(), Config{URL: text, Wait: time.Minute})
		contains(t, err, "NATS URL is not valid", "nats://HOST:4222")
		for _, secret := range []string{"s3", "cret"} {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q shows a password", err)
			}
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"x", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536"} {
		_, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), Listen: address})
		contains(t, err, "listen address", address)
	}
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	open(t, e, Config{}, Layout{})
	l, err := Open(t.Context(), Config{URL: e.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var ready atomic.Bool
	ready.Store(true)
	stop, err := l.Announce("gateway", []string{"gateway.here"}, func() *harnessv1.Presence {
		return &harnessv1.Presence{Role: "gateway", Address: "127.0.0.1:1", Ready: ready.Load(), Instance: "i"}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway", "gateway.here"} {
		if at, err := l.Locate(t.Context(), name); err != nil || at.GetAddress() != "127.0.0.1:1" {
			t.Errorf("%s: %v, %v", name, at, err)
		}
	}
	ready.Store(false)
	_, err = l.Locate(t.Context(), "gateway")
	contains(t, err, "gateway")
	if all, err := l.Presences(t.Context()); err != nil || len(all) != 1 || all[0].GetInstance() != "i" || all[0].GetReady() {
		t.Errorf("%v, %v", all, err)
	}
	stop()
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = l.Locate(t.Context(), "gateway")
	contains(t, err, "gateway")
	// An alias is nothing that can be started.
	_, err = l.Locate(t.Context(), "toolhost.place.8af8")
	contains(t, err, "role toolhost and the name place.8af8")
	contains(t, err, "`harness serve --roles toolhost`")
	if other := start(t, EmbeddedConfig{}); other.URL() != "" {
		t.Errorf("a server without a listener is at %s", other.URL())
	}
}
