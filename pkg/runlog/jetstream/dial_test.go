package jetstream

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/harnessmesh/harnessmesh/test/kit/nettest"
)

// soon bounds a connection that passes one dead address: two bounds of a dial, and time
// for a busy machine.
const soon = 3 * dialTimeout

// listening starts a provisioned server with a TCP address, HOST:PORT.
func listening(t *testing.T) string {
	t.Helper()
	e := start(t, EmbeddedConfig{Listen: "127.0.0.1:0"})
	open(t, e, Config{}, Layout{})
	return strings.TrimPrefix(e.URL(), "nats://")
}

// TestDeadAddress checks that an address that does not answer next to a live server costs
// one bound of a dial, however long Wait is: at the start, and when the connection to
// another server is lost.
func TestDeadAddress(t *testing.T) {
	for name, dead := range map[string]func(*testing.T) string{
		"drops packets": func(t *testing.T) string { return nettest.NewHole(t).Addr() },
		"is silent":     func(t *testing.T) string { return nettest.Silent(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun := time.Now()
			l, err := Open(t.Context(), Config{
				URL: "nats://" + dead(t) + ",nats://" + listening(t), Wait: time.Minute, Options: []nats.Option{nats.DontRandomize()},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if took := time.Since(begun); took > soon {
				t.Errorf("connected after %v", took)
			}
			// The servers are tried in turn, so the dead one is next.
			begun = time.Now()
			again := make(chan struct{})
			defer l.hookReconnect(func() { close(again) })()
			if err := l.nc.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
			<-again
			if took := time.Since(begun); took > soon {
				t.Errorf("connected again after %v", took)
			}
		})
	}
}

// firstLine is a handler of log records that closes done with the first one.
type firstLine struct {
	slog.Handler
	once *sync.Once
	done chan struct{}
}

func (h firstLine) Handle(ctx context.Context, r slog.Record) error {
	h.once.Do(func() { close(h.done) })
	return h.Handler.Handle(ctx, r)
}

// TestDeadAddressComesBack checks that a process that starts while no server answers
// waits for one and logs that, instead of ending with the first dial.
func TestDeadAddressComesBack(t *testing.T) {
	t.Parallel()
	hole, target := nettest.NewHole(t), listening(t)
	waits := firstLine{Handler: slog.DiscardHandler, once: new(sync.Once), done: make(chan struct{})}
	opened := make(chan error, 1)
	go func() {
		l, err := Open(t.Context(), Config{URL: "nats://" + hole.Addr(), Wait: 10 * dialTimeout, Logger: slog.New(waits)})
		if err == nil {
			l.Close()
		}
		opened <- err
	}()
	select {
	case <-waits.done:
	case err := <-opened:
		t.Fatalf("it ended instead of waiting: %v", err)
	}
	hole.Forward(target)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
}

func (firstLine) Enabled(context.Context, slog.Level) bool { return true }

// TestWaitIsTotal checks that Wait bounds the start as a whole, whatever its parts take.
func TestWaitIsTotal(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	_, err := Open(t.Context(), Config{URL: "nats://" + nettest.Silent(t), Wait: 3 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "cannot reach NATS") {
		t.Fatalf("got %v", err)
	}
	oneLine(t, err)
	if took := time.Since(begun); took > 3*time.Second+2*dialTimeout {
		t.Errorf("took %v", took)
	}
}

// TestDialerOfNames checks that each address of a name gets a part of the time.
func TestDialerOfNames(t *testing.T) {
	t.Parallel()
	_, port, err := net.SplitHostPort(listening(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := dialer{}.Dial("tcp", net.JoinHostPort("localhost", port))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := (dialer{}).Dial("tcp", "localhost"); err == nil {
		t.Error("an address without a port")
	}
}
