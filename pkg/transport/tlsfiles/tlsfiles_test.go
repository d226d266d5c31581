package tlsfiles_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

var quiet = slog.New(slog.DiscardHandler)

func load(t *testing.T, f tlsfiles.Files) *tlsfiles.Identity {
	t.Helper()
	id, err := tlsfiles.Load(f, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// of returns the identity of a certificate in a mesh with one CA.
func of(t *testing.T, ca *certtest.CA, p certtest.Pair) *tlsfiles.Identity {
	return load(t, with(p, ca.File))
}

func with(p certtest.Pair, ca string) tlsfiles.Files {
	return tlsfiles.Files{Cert: p.Cert, Key: p.Key, CA: ca}
}

// serve serves a role with a certificate.
func serve(t *testing.T, creds credentials.TransportCredentials) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(creds))
	healthv1.RegisterHealthServer(s, health.NewServer())
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
	return l.Addr().String()
}

// call calls a role over a new connection.
func call(t *testing.T, address string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err = healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

// TestRolesTrustEachOtherByCertificate: a process that is not trusted gets one line with
// what to do.
func TestRolesTrustEachOtherByCertificate(t *testing.T) {
	t.Parallel()
	ca, foreign := certtest.New(t), certtest.New(t)
	here := []string{"127.0.0.1"}
	good := of(t, ca, ca.Issue(here))
	if err := call(t, serve(t, good.ServerCredentials(true, quiet)), good.ClientCredentials()); err != nil {
		t.Fatal(err)
	}
	named := ca.Issue([]string{"mesh.internal"})
	byName := load(t, tlsfiles.Files{Cert: named.Cert, Key: named.Key, CA: ca.File, Name: "mesh.internal"})
	if err := call(t, serve(t, byName.ServerCredentials(true, quiet)), byName.ClientCredentials()); err != nil {
		t.Errorf("by one name for all: %v", err)
	}
	plain := insecure.NewCredentials()
	for name, c := range map[string]struct {
		server, client credentials.TransportCredentials
		words          []string
	}{
		"another host":           {of(t, ca, ca.Issue([]string{"turn.mesh", "10.1.1.1"})).ServerCredentials(true, quiet), good.ClientCredentials(), []string{"names turn.mesh, 10.1.1.1 and not 127.0.0.1", "--advertise"}},
		"no host":                {of(t, ca, ca.Issue(nil)).ServerCredentials(true, quiet), good.ClientCredentials(), []string{"names no host and not 127.0.0.1"}},
		"an expired server":      {of(t, ca, ca.Issue(here, certtest.Expired)).ServerCredentials(true, quiet), good.ClientCredentials(), []string{"the certificate of 127.0.0.1", "has expired on 20", "replace it"}},
		"a server from tomorrow": {of(t, ca, ca.Issue(here, certtest.NotYet)).ServerCredentials(true, quiet), good.ClientCredentials(), []string{"is not valid before"}},
		"a foreign server":       {of(t, foreign, foreign.Issue(here)).ServerCredentials(true, quiet), good.ClientCredentials(), []string{"a CA that is not trusted", "--tls-ca"}},
		"a foreign client":       {good.ServerCredentials(true, quiet), load(t, with(foreign.Issue(here), ca.File)).ClientCredentials(), []string{"does not trust the CA of this process's certificate"}},
		"an expired client":      {good.ServerCredentials(true, quiet), of(t, ca, ca.Issue(here, certtest.Expired)).ClientCredentials(), []string{"certificate of this process has expired"}},
		"no client certificate":  {good.ServerCredentials(true, quiet), load(t, tlsfiles.Files{CA: ca.File}).ClientCredentials(), []string{"demands a certificate", "--tls-cert"}},
		"a server without TLS":   {plain, good.ClientCredentials(), []string{"does not speak TLS", "--tls-cert"}},
		"a client without TLS":   {good.ServerCredentials(true, quiet), plain, []string{"does not answer without TLS", "--tls"}},
		"a server's certificate": {good.ServerCredentials(true, quiet), of(t, ca, ca.Issue(here, certtest.ServerOnly)).ClientCredentials(), []string{"does not accept the certificate of this process"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := call(t, serve(t, c.server), c.client)
			text, refused := tlsfiles.Explain(status.Convert(err).Message())
			if err == nil || !refused || strings.Contains(text, "\n") {
				t.Fatalf("%v: %q, refused %v", err, text, refused)
			}
			for _, w := range c.words {
				if !strings.Contains(text, w) {
					t.Errorf("%q does not say %q", text, w)
				}
			}
		})
	}
}

// TestRenewedFilesAreUsedByTheNextConnection: certificate and CAs, of servers and of
// clients, without a restart.
func TestRenewedFilesAreUsedByTheNextConnection(t *testing.T) {
	t.Parallel()
	ca, next := certtest.New(t), certtest.New(t)
	here := []string{"127.0.0.1"}
	pair := ca.Issue(here)
	id := of(t, ca, pair)
	address := serve(t, id.ServerCredentials(true, quiet))
	if err := call(t, address, id.ClientCredentials()); err != nil {
		t.Fatal(err)
	}
	ca.Reissue(pair, here, certtest.Expired)
	if err := call(t, address, id.ClientCredentials()); err == nil || !strings.Contains(err.Error(), "has expired") {
		t.Errorf("with a certificate that expires: %v", err)
	}
	if err := id.Trouble(time.Now()); err == nil || !strings.Contains(err.Error(), pair.Cert+" has expired") {
		t.Errorf("the process says %v", err)
	}
	if err := os.WriteFile(pair.Key, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := id.Trouble(time.Now()); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("the process says %v", err)
	}
	next.Reissue(pair, here)
	raw, err := os.ReadFile(next.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ca.File, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(call(t, address, id.ClientCredentials()), id.Trouble(time.Now()), id.Check("127.0.0.1")); err != nil {
		t.Errorf("with another CA: %v", err)
	}
}

// TestUnusableFilesAreRefusedAtStart: the error names the flag.
func TestUnusableFilesAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	ca, foreign := certtest.New(t), certtest.New(t)
	good, other := ca.Issue([]string{"a.mesh"}), ca.Issue([]string{"b.mesh"})
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files tlsfiles.Files
		host  string
		words []string
	}{
		"no certificate":    {tlsfiles.Files{Cert: "nowhere", Key: good.Key}, "", []string{"--tls-cert", "nowhere"}},
		"no key":            {tlsfiles.Files{Cert: good.Cert, Key: "nowhere"}, "", []string{"--tls-key", "nowhere"}},
		"another's key":     {tlsfiles.Files{Cert: good.Cert, Key: other.Key}, "", []string{"--tls-cert, --tls-key", "are not a pair"}},
		"no CA":             {tlsfiles.Files{CA: "nowhere"}, "", []string{"--tls-ca", "nowhere"}},
		"junk for a CA":     {tlsfiles.Files{CA: junk}, "", []string{"--tls-ca", "no PEM certificate"}},
		"another host":      {tlsfiles.Files{Cert: good.Cert, Key: good.Key, CA: ca.File}, "10.0.0.7", []string{"names a.mesh and not 10.0.0.7", "--advertise", "--tls-name"}},
		"not the mesh's CA": {tlsfiles.Files{Cert: good.Cert, Key: good.Key, CA: foreign.File}, "", []string{"--tls-cert", "is not signed by a CA in " + foreign.File}},
		"not for a client":  {with(ca.Issue([]string{"a.mesh"}, certtest.ServerOnly), ca.File), "", []string{"clientAuth"}},
		"expired":           {with(ca.Issue(nil, certtest.Expired), ""), "", []string{"has expired", "replace it"}},
		"from tomorrow on":  {with(ca.Issue(nil, certtest.NotYet), ""), "", []string{"is not valid before", "clock"}},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := tlsfiles.Load(c.files, quiet)
			if err == nil {
				err = id.Check(c.host)
			}
			for _, w := range c.words {
				if err == nil || !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v does not say %q", err, w)
				}
			}
		})
	}
	if err := of(t, ca, good).Check("a.mesh"); err != nil {
		t.Error(err)
	}
	if _, err := tlsfiles.Load(tlsfiles.Files{CA: "nowhere"}, quiet); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
