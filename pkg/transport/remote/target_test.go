package remote_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/remote"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

// elsewhere is the address of another machine, by the documentation of RFC 5737.
const elsewhere = "192.0.2.1:7700"

// from returns an option with which all connections lead to one listener.
func from(address string) []grpc.DialOption {
	return []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	})}
}

// serveTLS serves a HookService with a certificate.
func serveTLS(t *testing.T, pair certtest.Pair) string {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	harnessv1.RegisterHookServiceServer(server, &service{name: "secure"})
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() { server.Stop(); served.Wait() })
	return l.Addr().String()
}

// TestOtherMachinesAreCalledOverTLS and verified: nothing is sent to a server in plaintext,
// or with a certificate that is not trusted. This machine is called in plaintext.
func TestOtherMachinesAreCalledOverTLS(t *testing.T) {
	ca := certtest.New(t)
	id, err := tlsfiles.Load(tlsfiles.Files{CA: ca.File, Services: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	plain, accepted, _ := serve(t, "127.0.0.1:0", &service{name: "plain"})
	trusted, misnamed := serveTLS(t, ca.Issue([]string{"192.0.2.1"})), serveTLS(t, ca.Issue([]string{"192.0.2.2"}))
	foreign := serveTLS(t, certtest.New(t).Issue([]string{"192.0.2.1"}))
	for name, c := range map[string]struct {
		listener, target string
		tls              credentials.TransportCredentials
		want             string // the service's name, or a part of the error
	}{
		"trusted":        {trusted, elsewhere, id.ClientCredentials(), "secure"},
		"plaintext":      {plain, elsewhere, id.ClientCredentials(), elsewhere + " does not speak TLS"},
		"another host":   {misnamed, elsewhere, id.ClientCredentials(), "names 192.0.2.2 and not 192.0.2.1"},
		"a foreign CA":   {foreign, elsewhere, id.ClientCredentials(), "pass that CA's file with --target-ca"},
		"the system's":   {trusted, elsewhere, nil, "is signed by a CA that is not trusted"},
		"this machine":   {plain, "127.0.0.2:7700", id.ClientCredentials(), "plain"},
		"by name":        {plain, "LOCALHOST:7700", nil, "plain"},
		"this machine 6": {plain, "[::1]:7700", nil, "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			before := accepted()
			pool := &remote.Pool{Options: from(c.listener), TLS: c.tls}
			t.Cleanup(pool.Close)
			got, err := ask(t, pool, c.target)
			if err != nil {
				got = remote.Reason(err)
			}
			if !strings.Contains(got, c.want) || strings.Contains(got, "handshake") || c.listener == plain && accepted() == before {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestLocalIsLoopback: a name that may resolve to another machine is not local.
func TestLocalIsLoopback(t *testing.T) {
	for target, want := range map[string]bool{
		"localhost:1": true, "127.1.2.3:1": true, "[::1]:1": true, "[::ffff:127.0.0.1]:1": true,
		"localhost.example:1": false, "localhost.:1": false, "10.0.0.1:1": false, "[fe80::1]:1": false, "0.0.0.0:1": false, "localhost": false,
	} {
		if remote.Local(target) != want {
			t.Errorf("%s: local is not %v", target, want)
		}
	}
}

func TestTargetsAreAllowedByName(t *testing.T) {
	allowed := remote.AllowList{"hooks.example:7700", "[::1]:80"}
	for _, target := range []string{"hooks.example:7700", "Hooks.Example:7700", "[::1]:80"} {
		if err := allowed.Check(target); err != nil {
			t.Error(err)
		}
	}
	for _, target := range []string{"hooks.example:7701", "x.hooks.example:7700", "hooks.example.:7700", "127.0.0.1:80", ""} {
		if err := allowed.Check(target); err == nil || !strings.Contains(err.Error(), "--allow-target") || !strings.Contains(err.Error(), `"`+target+`"`) {
			t.Errorf("%s: %v", target, err)
		}
	}
}
