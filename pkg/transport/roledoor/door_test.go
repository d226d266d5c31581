package roledoor_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

// host answers every call.
type host struct {
	harnessv1.UnimplementedToolHostServiceServer
}

func (host) ExecuteTool(context.Context, *harnessv1.ExecuteToolRequest) (*harnessv1.ExecuteToolResponse, error) {
	return &harnessv1.ExecuteToolResponse{}, nil
}

func (host) DescribeHost(context.Context, *harnessv1.DescribeHostRequest) (*harnessv1.DescribeHostResponse, error) {
	return &harnessv1.DescribeHostResponse{}, nil
}

func serve(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(options...)
	harnessv1.RegisterToolHostServiceServer(s, host{})
	healthv1.RegisterHealthServer(s, health.NewServer())
	reflection.Register(s)
	served := make(chan struct{})
	go func() { defer close(served); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-served })
	return l.Addr().String()
}

// caller is a client of a tool host.
type caller struct {
	t    *testing.T
	conn *grpc.ClientConn
}

func dial(t *testing.T, address string, creds credentials.TransportCredentials) caller {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return caller{t, conn}
}

func (c caller) execute(authorization ...string) error {
	ctx := metadata.NewOutgoingContext(c.t.Context(), metadata.MD{"authorization": authorization})
	_, err := harnessv1.NewToolHostServiceClient(c.conn).ExecuteTool(ctx, &harnessv1.ExecuteToolRequest{})
	return err
}

func (c caller) describe() error {
	_, err := harnessv1.NewToolHostServiceClient(c.conn).DescribeHost(c.t.Context(), &harnessv1.DescribeHostRequest{})
	return err
}

func (c caller) health() error {
	_, err := healthv1.NewHealthClient(c.conn).Check(c.t.Context(), &healthv1.HealthCheckRequest{})
	return err
}

func (c caller) reflect() error {
	stream, err := reflectionv1.NewServerReflectionClient(c.conn).ServerReflectionInfo(c.t.Context())
	if err != nil {
		return err
	}
	_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	_, err = stream.Recv()
	return err
}

const key = "harness-key-of-a-test"

// TestCallNeedsATokenOfTheMesh: the key or the token derived from it for this process. A
// token for another process, or for another life of this one, does not admit.
func TestCallNeedsATokenOfTheMesh(t *testing.T) {
	started := time.Now()
	own := roledoor.Token(key, "mine", started)
	door := roledoor.New(roledoor.Config{Tokens: []string{key, own}, Where: "the key of FILE"})
	c := dial(t, serve(t, door.ServerOptions()...), insecure.NewCredentials())
	for name, call := range map[string]struct {
		authorization []string
		reason        string
	}{
		"none":                       {nil, "TOKEN_MISSING"},
		"two":                        {[]string{"Bearer " + own, "Bearer " + own}, "TOKEN_MISSING"},
		"basic":                      {[]string{"Basic " + own}, "TOKEN_MISSING"},
		"empty":                      {[]string{"Bearer "}, "TOKEN_UNKNOWN"},
		"another key":                {[]string{"Bearer " + roledoor.Token(key+"x", "mine", started)}, "TOKEN_UNKNOWN"},
		"another process":            {[]string{"Bearer " + roledoor.Token(key, "others", started)}, "TOKEN_UNKNOWN"},
		"another life":               {[]string{"Bearer " + roledoor.Token(key, "mine", started.Add(1))}, "TOKEN_UNKNOWN"},
		"own token":                  {[]string{"Bearer " + own}, ""},
		"own token, scheme in lower": {[]string{"bearer " + own}, ""},
		"key":                        {[]string{"Bearer " + key}, ""},
	} {
		err := c.execute(call.authorization...)
		if (err == nil) != (call.reason == "") || fault.ReasonOf(err) != call.reason || err != nil && status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "send the key of FILE") && !strings.Contains(err.Error(), "with the key of FILE") || strings.Contains(err.Error(), key)) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	if err := c.health(); err != nil {
		t.Errorf("health: %v", err)
	}
	if err := c.reflect(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("reflection: %v", err)
	}
}

// TestZeroConfigAdmitsNoCaller, and an open one admits every caller.
func TestZeroConfigAdmitsNoCaller(t *testing.T) {
	closed := dial(t, serve(t, roledoor.New(roledoor.Config{}).ServerOptions()...), insecure.NewCredentials())
	for _, header := range []string{"", "Bearer ", "Bearer " + key} {
		if err := closed.execute(header); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%q: %v", header, err)
		}
	}
	open := dial(t, serve(t, roledoor.New(roledoor.Config{Open: true}).ServerOptions()...), insecure.NewCredentials())
	if err := open.execute(); err != nil {
		t.Error(err)
	}
}

func naming(roles ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, role := range roles {
			u, err := url.Parse(roledoor.URI(role))
			if err != nil {
				panic(err)
			}
			c.URIs = append(c.URIs, u)
		}
	}
}

// certificates are the credentials of a client with a certificate.
func certificates(t *testing.T, ca *certtest.CA, pair certtest.Pair) credentials.TransportCredentials {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}})
}

// TestCertificateAdmitsToTheMethodsOfItsRoles, and a refusal names both roles and the
// method. A certificate without a role admits, with one warning.
func TestCertificateAdmitsToTheMethodsOfItsRoles(t *testing.T) {
	ca := certtest.New(t)
	server, err := tls.LoadX509KeyPair(pairOf(ca.Issue([]string{"127.0.0.1"})))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	door := roledoor.New(roledoor.Config{Certificates: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	creds := credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{server}, ClientCAs: ca.Pool(), ClientAuth: tls.VerifyClientCertIfGiven})
	address := serve(t, append(door.ServerOptions(), grpc.Creds(creds))...)
	for name, c := range map[string]struct {
		roles             []string
		execute, describe bool
	}{
		"turn":               {[]string{"turn"}, true, true},
		"gateway":            {[]string{"gateway"}, false, true},
		"compaction":         {[]string{"compaction"}, false, false},
		"several":            {[]string{"compaction", "turn"}, true, true},
		"an executor":        {[]string{"my-executor"}, false, false},
		"an empty role":      {[]string{""}, false, false},
		"a part of a role":   {[]string{"tur"}, false, false},
		"a role with a path": {[]string{"turn/x"}, false, false},
	} {
		client := dial(t, address, certificates(t, ca, ca.Issue(nil, naming(c.roles...))))
		for method, call := range map[string]struct {
			err error
			may bool
		}{"ExecuteTool": {client.execute(), c.execute}, "DescribeHost": {client.describe(), c.describe}} {
			want := codes.OK
			if !call.may {
				want = codes.PermissionDenied
			}
			if status.Code(call.err) != want {
				t.Errorf("%s calls %s: %v", name, method, call.err)
			}
			for _, word := range append(c.roles, "toolhost", "harness.v1.ToolHostService/"+method) {
				if !call.may && !strings.Contains(status.Convert(call.err).Message(), word) {
					t.Errorf("%s calls %s: %v does not name %q", name, method, call.err, word)
				}
			}
		}
		if err := client.reflect(); err != nil {
			t.Errorf("%s: reflection: %v", name, err)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log has %s", &log)
	}
	plain := dial(t, address, certificates(t, ca, ca.Issue(nil, func(c *x509.Certificate) {
		c.URIs = []*url.URL{{Scheme: "spiffe", Host: "mesh", Path: "/turn"}}
	})))
	for range 3 {
		if err := plain.execute(); err != nil {
			t.Errorf("without a role: %v", err)
		}
	}
	if n := strings.Count(log.String(), "names no role"); n != 1 {
		t.Errorf("%d warnings: %s", n, &log)
	}
	none := dial(t, address, credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()}))
	if err := none.execute(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("without a certificate: %v", err)
	}
}

func pairOf(p certtest.Pair) (cert, key string) { return p.Cert, p.Key }

// TestCertificateOfAServerIsForItsRole, of a process for all of its roles.
func TestCertificateOfAServerIsForItsRole(t *testing.T) {
	cert := func(roles ...string) *x509.Certificate {
		c := &x509.Certificate{}
		naming(roles...)(c)
		return c
	}
	for name, c := range map[string]struct {
		cert   *x509.Certificate
		serves []string
		fails  bool
	}{
		"without roles":   {cert(), []string{"toolhost", "turn"}, false},
		"its role":        {cert("toolhost"), []string{"toolhost"}, false},
		"more":            {cert("toolhost", "turn"), []string{"toolhost"}, false},
		"another":         {cert("turn"), []string{"toolhost"}, true},
		"one of them":     {cert("turn"), []string{"turn", "toolhost"}, true},
		"all, twice":      {cert("turn", "toolhost", "turn"), []string{"turn", "toolhost"}, false},
		"a similar name":  {cert("toolhosts"), []string{"toolhost"}, true},
		"another's sense": {cert("gateway"), []string{"toolhost"}, true},
	} {
		if err := roledoor.CheckOwn(c.cert, c.serves); (err != nil) != c.fails {
			t.Errorf("%s: own: %v", name, err)
		}
		err := roledoor.CheckServer(c.cert, "toolhost")
		if (err != nil) != c.fails {
			t.Errorf("%s: server: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), roledoor.URI("toolhost")) {
			t.Errorf("%s: %v does not name the URI", name, err)
		}
	}
}

// TestPathOfTheKeyIsLoggedOnce, with the first refusal, and is in none.
func TestPathOfTheKeyIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	door := roledoor.New(roledoor.Config{
		Tokens: []string{"key"}, Where: "the key", File: "/home/a/mesh.key", Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	c := dial(t, serve(t, door.ServerOptions()...), insecure.NewCredentials())
	for _, authorization := range [][]string{nil, {"Bearer other"}, {"Bearer other"}} {
		if err := c.execute(authorization...); status.Code(err) != codes.Unauthenticated || strings.Contains(err.Error(), "/home") {
			t.Errorf("%v: %v", authorization, err)
		}
	}
	if n := strings.Count(log.String(), "key_file=/home/a/mesh.key"); n != 1 {
		t.Errorf("%d times in\n%s", n, log.String())
	}
}
