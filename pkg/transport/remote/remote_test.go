package remote_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a HookService that answers with its name.
type service struct {
	harnessv1.UnimplementedHookServiceServer
	name string
	// hold, if not nil, blocks each call; arrived receives a value for each call.
	hold    chan struct{}
	arrived chan struct{}
}

func (s *service) HandleHook(ctx context.Context, _ *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	if s.hold != nil {
		s.arrived <- struct{}{}
		select {
		case <-s.hold:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	return &harnessv1.HandleHookResponse{Verdict: &harnessv1.HookVerdict{Reason: s.name}}, nil
}

// serve serves s until stop and counts its connections.
func serve(t *testing.T, address string, s *service) (target string, accepted func() int, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	counted := &countingListener{Listener: l}
	server := grpc.NewServer()
	harnessv1.RegisterHookServiceServer(server, s)
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(counted) })
	stop = sync.OnceFunc(func() {
		server.Stop()
		served.Wait()
	})
	t.Cleanup(stop)
	return l.Addr().String(), counted.count, stop
}

type countingListener struct {
	net.Listener
	mu sync.Mutex
	n  int
}

func (c *countingListener) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
	}
	return conn, err
}

func (c *countingListener) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func newPool(t *testing.T) *remote.Pool {
	p := &remote.Pool{}
	t.Cleanup(p.Close)
	return p
}

// ask asks the service of a target for its name.
func ask(t *testing.T, p *remote.Pool, target string) (string, error) {
	t.Helper()
	conn, err := p.Dial(target)
	if err != nil {
		return "", err
	}
	resp, err := harnessv1.NewHookServiceClient(conn).HandleHook(t.Context(), &harnessv1.HandleHookRequest{})
	return resp.GetVerdict().GetReason(), err
}

func TestCheckWantsHostAndPort(t *testing.T) {
	for _, good := range []string{"localhost:1", "127.0.0.1:65535", "[::1]:7700", "hooks.example.com:80", "a_b.svc.cluster.local:9", "host.:1"} {
		if err := remote.Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "localhost", ":80", "localhost:", "localhost:0", "localhost:65536", "localhost:08", "localhost:http", "http://localhost:80", "unix:/tmp/x",
		"unix:///tmp/x:1", "dns:///localhost:80", "::1:80", "a b:80", "a/b:80", "a..b:80", "-a:80", "a:80/x", "a@b:80", "[x]:80", "a:80\n", strings.Repeat("a", 300) + ":80",
	} {
		err := remote.Check(bad)
		if err == nil {
			t.Errorf("%q is taken", bad)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %q", bad, err)
		}
		if _, err := (&remote.Pool{}).Dial(bad); err == nil {
			t.Errorf("%q is dialled", bad)
		}
	}
}

func TestConnectionIsKeptByTarget(t *testing.T) {
	a, ofA, _ := serve(t, "127.0.0.1:0", &service{name: "a"})
	b, ofB, _ := serve(t, "127.0.0.1:0", &service{name: "b"})
	p := newPool(t)
	for range 3 {
		for target, want := range map[string]string{a: "a", b: "b"} {
			if got, err := ask(t, p, target); err != nil || got != want {
				t.Fatalf("%s: %q, %v", target, got, err)
			}
		}
	}
	if ofA() != 1 || ofB() != 1 {
		t.Fatalf("%d and %d connections", ofA(), ofB())
	}
}

func TestNoProxyIsUsed(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("https_proxy", "http://127.0.0.1:1")
	t.Setenv("NO_PROXY", "")
	target, _, _ := serve(t, "127.0.0.1:0", &service{name: "a"})
	if got, err := ask(t, newPool(t), target); err != nil || got != "a" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestRestartedServerIsFound(t *testing.T) {
	target, _, stop := serve(t, "127.0.0.1:0", &service{name: "first"})
	p := newPool(t)
	if _, err := ask(t, p, target); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := ask(t, p, target); status.Code(err) != codes.Unavailable {
		t.Fatalf("got %v", err)
	}
	serve(t, target, &service{name: "second"})
	for {
		got, err := ask(t, p, target)
		if err == nil {
			if got != "second" {
				t.Fatalf("got %q", got)
			}
			return
		}
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
}

// TestPoolKeepsSixtyFourConnections: idle connections make room, one in use stays.
func TestPoolKeepsSixtyFourConnections(t *testing.T) {
	held := &service{name: "held", hold: make(chan struct{}), arrived: make(chan struct{}, 1)}
	busy, ofBusy, _ := serve(t, "127.0.0.1:0", held)
	plain, ofPlain, _ := serve(t, "0.0.0.0:0", &service{name: "plain"})
	_, port, _ := net.SplitHostPort(plain)
	p := newPool(t)
	answer := make(chan error, 1)
	go func() {
		_, err := ask(t, p, busy)
		answer <- err
	}()
	<-held.arrived
	first := ""
	for i := range remote.MaxConnections {
		target := net.JoinHostPort(net.IPv4(127, 0, 1, byte(i+1)).String(), port)
		if first == "" {
			first = target
		}
		if _, err := ask(t, p, target); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if ofPlain() != remote.MaxConnections {
		t.Fatalf("%d connections", ofPlain())
	}
	if _, err := ask(t, p, first); err != nil || ofPlain() != remote.MaxConnections+1 {
		t.Fatalf("%d connections; the first was to be closed (%v)", ofPlain(), err)
	}
	close(held.hold)
	if err := <-answer; err != nil || ofBusy() != 1 {
		t.Fatalf("the connection in use was closed: %v", err)
	}
}

func TestFullPoolRefusesAnotherTarget(t *testing.T) {
	held := &service{hold: make(chan struct{}), arrived: make(chan struct{}, remote.MaxConnections)}
	address, _, _ := serve(t, "0.0.0.0:0", held)
	_, port, _ := net.SplitHostPort(address)
	p := newPool(t)
	target := func(i int) string { return net.JoinHostPort(net.IPv4(127, 0, 2, byte(i+1)).String(), port) }
	var calls sync.WaitGroup
	for i := range remote.MaxConnections {
		calls.Go(func() {
			if _, err := ask(t, p, target(i)); err != nil {
				t.Error(err)
			}
		})
		<-held.arrived
	}
	if _, err := ask(t, p, target(remote.MaxConnections)); !errors.Is(err, remote.ErrBusy) {
		t.Errorf("got %v", err)
	}
	close(held.hold)
	calls.Wait()
}

func TestClosedPoolRefusesCalls(t *testing.T) {
	target, _, _ := serve(t, "127.0.0.1:0", &service{name: "a"})
	p := newPool(t)
	conn, err := p.Dial(target)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := harnessv1.NewHookServiceClient(conn).HandleHook(t.Context(), &harnessv1.HandleHookRequest{}); !errors.Is(err, remote.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := p.Dial(target); !errors.Is(err, remote.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestReachAcceptsAnyServer(t *testing.T) {
	target, _, stop := serve(t, "127.0.0.1:0", &service{})
	p := newPool(t)
	if err := p.Reach(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	stop()
	err := newPool(t).Reach(t.Context(), target)
	if err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "desc =") {
		t.Fatalf("got %v", err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Reach(ctx, silent.Addr().String()) }()
	taken, err := silent.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Fatalf("got %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{"localhost:80", "[::1]:1", "unix:x:1", "a%b:3"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if remote.Check(target) != nil {
			return
		}
		p := &remote.Pool{}
		defer p.Close()
		conn, err := p.Dial(target)
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // an invalid target is reported before
		err = conn.Invoke(ctx, "/x/y", &harnessv1.HandleHookRequest{}, &harnessv1.HandleHookResponse{})
		if code := status.Code(err); code != codes.Canceled && code != codes.Unavailable {
			t.Fatalf("%q: %v", target, err)
		}
	})
}
