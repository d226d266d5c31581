package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog/jetstream"
	"github.com/harnessmesh/harnessmesh/pkg/transport/access"
	"github.com/harnessmesh/harnessmesh/pkg/transport/localkey"
	"github.com/harnessmesh/harnessmesh/pkg/transport/roledoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
)

// TestPlanOfRoles: the credentials of the callers of roles, by configuration.
func TestPlanOfRoles(t *testing.T) {
	key, certificates, open, tokens := rolePlan{key: true}, rolePlan{certificates: true}, rolePlan{open: true}, rolePlan{}
	for name, c := range map[string]struct {
		place rolePlace
		want  rolePlan
	}{
		"a role on loopback":                    {rolePlace{shared: true, loopback: true}, key},
		"a role on loopback, without a mesh":    {rolePlace{loopback: true}, key},
		"a role on loopback, open":              {rolePlace{shared: true, loopback: true, open: true}, open},
		"a role elsewhere, insecure":            {rolePlace{shared: true}, open},
		"a role elsewhere, insecure and open":   {rolePlace{shared: true, open: true}, open},
		"a role elsewhere, with a named key":    {rolePlace{shared: true, named: true}, key},
		"certificates":                          {rolePlace{shared: true, mutual: true}, certificates},
		"certificates on loopback":              {rolePlace{shared: true, mutual: true, loopback: true}, certificates},
		"certificates, open":                    {rolePlace{shared: true, mutual: true, loopback: true, open: true}, certificates},
		"one process":                           {rolePlace{gateway: true, loopback: true}, tokens},
		"one process, open":                     {rolePlace{gateway: true, loopback: true, open: true}, tokens},
		"one process, with certificates":        {rolePlace{gateway: true, mutual: true}, tokens},
		"one process, with a named key":         {rolePlace{gateway: true, named: true}, tokens},
		"a gateway with roles in a mesh":        {rolePlace{gateway: true, shared: true, loopback: true}, key},
		"the same, open":                        {rolePlace{gateway: true, shared: true, loopback: true, open: true}, open},
		"the same elsewhere, insecure":          {rolePlace{gateway: true, shared: true}, open},
		"the same elsewhere, with certificates": {rolePlace{gateway: true, shared: true, mutual: true}, certificates},
	} {
		if got := planRoles(c.place); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// methodsOfRoles are all methods of a process with all roles, of which one is called over
// the gateway only.
func methodsOfRoles(t *testing.T) []string {
	t.Helper()
	var methods []string
	for _, desc := range []grpc.ServiceDesc{
		harnessv1.ToolHostService_ServiceDesc, harnessv1.RepairService_ServiceDesc, harnessv1.CompactionService_ServiceDesc, harnessv1.TurnService_ServiceDesc,
		harnessv1.StopDecisionService_ServiceDesc, harnessv1.InferenceService_ServiceDesc,
	} {
		for _, m := range desc.Methods {
			methods = append(methods, "/"+desc.ServiceName+"/"+m.MethodName)
		}
	}
	if len(methods) < 12 {
		t.Fatalf("methods: %v", methods)
	}
	return methods
}

// invoke calls a method with an empty message. A refusal of the service itself counts as
// reached.
func invoke(t *testing.T, conn *grpc.ClientConn, method string) error {
	t.Helper()
	err := conn.Invoke(t.Context(), method, &emptypb.Empty{}, &emptypb.Empty{})
	switch status.Code(err) {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.Unavailable:
		return err
	}
	return nil
}

func dialPlain(t *testing.T, address, token string) *grpc.ClientConn {
	t.Helper()
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(access.Bearer(token, true)))
	}
	conn, err := grpc.NewClient(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// expectCodes calls every method of every role.
func expectCodes(t *testing.T, what string, conn *grpc.ClientConn, want codes.Code) {
	t.Helper()
	for _, method := range methodsOfRoles(t) {
		if err := invoke(t, conn, method); status.Code(err) != want {
			t.Errorf("%s: %s: %v, want %s", what, method, err, want)
		}
	}
}

// TestRolesAreCalledAtTheGateway: in one process they have the gateway's address, and its
// key or a token of all namespaces admits to them.
func TestRolesAreCalledAtTheGateway(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tokens")
	if err := os.WriteFile(file, []byte("token-of-every-namespace\ntoken-of-one-namespace default\ntoken-without-commands * may=approve\ntoken-of-some-folders. * roots=/srv\ntoken-of-a-provider... * providers=openai\ntoken-of-all-rights... * may=commands,hooks,checks,scripts,approve\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := access.Open(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg Config
		// admitted and refused are tokens; an empty one means none.
		admitted, refused []string
		// bounded are tokens that admit to the gateway alone.
		bounded []string
	}{
		"key": {Config{}, []string{"KEY"}, []string{"", "harness-key-of-another", "token-of-every-namespace"}, nil},
		"tokens": {Config{Tokens: tokens}, []string{"token-of-every-namespace", "token-of-all-rights..."}, []string{"", "KEY"},
			[]string{"token-of-one-namespace", "token-without-commands", "token-of-some-folders.", "token-of-a-provider..."}},
		"open": {Config{OpenLoopback: true}, []string{""}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Roles, c.cfg.Confined = []string{workflow.AllRoles}, func() bool { return true }
			g := startGateway(t, c.cfg)
			for _, role := range workflow.Roles() {
				if g.Addr(role) != g.Addr(workflow.Gateway) {
					t.Errorf("%s is at %s", role, g.Addr(role))
				}
			}
			for _, token := range c.admitted {
				if token == "KEY" {
					token = g.key(t)
				}
				expectCodes(t, "admitted", dialPlain(t, g.Addr(workflow.Gateway), token), codes.OK)
			}
			for _, token := range c.refused {
				if token == "KEY" {
					token = g.key(t)
				}
				expectCodes(t, "refused", dialPlain(t, g.Addr(workflow.Gateway), token), codes.Unauthenticated)
			}
			for _, token := range c.bounded {
				conn := dialPlain(t, g.Addr(workflow.Gateway), token)
				expectCodes(t, token, conn, codes.PermissionDenied)
				if _, err := harnessv1.NewToolHostServiceClient(conn).ExecuteTool(t.Context(), &harnessv1.ExecuteToolRequest{Namespace: "default"}); status.Code(err) != codes.PermissionDenied {
					t.Errorf("%s: a request that names a namespace: %v", token, err)
				}
				if _, err := harnessv1.NewGatewayServiceClient(conn).ListRuns(t.Context(), &harnessv1.ListRunsRequest{}); err != nil {
					t.Errorf("%s: the gateway: %v", token, err)
				}
			}
			health := healthv1.NewHealthClient(dialPlain(t, g.Addr(workflow.Gateway), ""))
			for _, service := range append(workflow.Roles(), "") {
				if r, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{Service: service}); err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
					t.Errorf("health of %q: %v, %v", service, r.GetStatus(), err)
				}
			}
		})
	}
}

// bus is a NATS server for nodes of one mesh.
func bus(t *testing.T) string {
	t.Helper()
	e, err := jetstream.StartEmbedded(jetstream.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	if err := Provision(t.Context(), jetstream.Config{URL: e.URL()}, jetstream.Layout{MaxBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	return e.URL()
}

// member is a process of a mesh, as a node.
type member struct {
	*Node
	out     *output
	notices *output
}

func startMember(t *testing.T, cfg Config) *member {
	t.Helper()
	m := &member{out: &output{}, notices: &output{}}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.Confined == nil {
		cfg.Confined = func() bool { return true }
	}
	cfg.Data, cfg.Stderr = t.TempDir(), m.out
	cfg.Notice = func(text string) { _, _ = m.notices.Write([]byte(text + "\n")) }
	n, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	m.Node = n
	return m
}

// TestRolesOfProcessesShareAKey: processes of one machine reach the tool host of another
// one by the key of the mesh, which the first of them made. Other callers do not, and the
// gateway's key and the mesh's are not the same.
func TestRolesOfProcessesShareAKey(t *testing.T) {
	url, key := bus(t), MeshKey{File: filepath.Join(t.TempDir(), "config", MeshKeyFile)}
	gateway := startMember(t, Config{NATS: url, MeshKey: key, Roles: []string{workflow.Gateway, workflow.ToolHost, workflow.Compaction}})
	for _, role := range []string{workflow.ToolHost, workflow.Compaction} {
		if gateway.Addr(role) != gateway.Addr(workflow.Gateway) {
			t.Errorf("%s is at %s", role, gateway.Addr(role))
		}
	}
	turn := startMember(t, Config{NATS: url, MeshKey: key, Roles: []string{workflow.Turn, workflow.Repair, workflow.StopDecision}})
	if turn.Addr(workflow.Turn) != turn.Addr(workflow.Repair) {
		t.Errorf("two addresses: %s, %s", turn.Addr(workflow.Turn), turn.Addr(workflow.Repair))
	}
	if !strings.Contains(turn.out.String(), "ready role=turn") || !strings.Contains(turn.out.String(), "ready role=repair") {
		t.Errorf("the tool host cannot be called:\n%s", turn.out)
	}
	secret, err := localkey.Read(key.File)
	if err != nil {
		t.Fatal(err)
	}
	own, err := localkey.Read(filepath.Join(gateway.cfg.Data, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	describe, decide := harnessv1.ToolHostService_DescribeHost_FullMethodName, harnessv1.StopDecisionService_Decide_FullMethodName
	for name, c := range map[string]struct {
		member *member
		token  string
		method string
		want   codes.Code
	}{
		"the gateway's process, without":                 {gateway, "", describe, codes.Unauthenticated},
		"the gateway's process, another key":             {gateway, localkey.New(), describe, codes.Unauthenticated},
		"the gateway's process, the key of the mesh":     {gateway, secret, describe, codes.OK},
		"the gateway's process, its key":                 {gateway, own, describe, codes.OK},
		"the gateway's process, a token for it":          {gateway, roledoor.Token(secret, gateway.instance, gateway.mesh.started), describe, codes.OK},
		"the gateway's process, a token for the other":   {gateway, roledoor.Token(secret, turn.instance, turn.mesh.started), describe, codes.Unauthenticated},
		"the gateway, the key of the mesh":               {gateway, secret, harnessv1.GatewayService_ListRuns_FullMethodName, codes.Unauthenticated},
		"the gateway, a token of the mesh":               {gateway, roledoor.Token(secret, gateway.instance, gateway.mesh.started), harnessv1.GatewayService_ListRuns_FullMethodName, codes.Unauthenticated},
		"the gateway, its key":                           {gateway, own, harnessv1.GatewayService_ListRuns_FullMethodName, codes.OK},
		"a process without a gateway, without":           {turn, "", decide, codes.Unauthenticated},
		"a process without a gateway, the mesh's key":    {turn, secret, decide, codes.OK},
		"a process without a gateway, the gateway's key": {turn, own, decide, codes.Unauthenticated},
	} {
		if err := invoke(t, dialPlain(t, c.member.Addr(c.member.cfg.Roles[0]), c.token), c.method); status.Code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	if err := invoke(t, dialPlain(t, turn.Addr(workflow.Turn), ""), decide); strings.Contains(err.Error(), filepath.Dir(key.File)) || !strings.Contains(err.Error(), MeshKeyFile) || strings.Contains(err.Error(), secret) {
		t.Errorf("the refusal names the path or the key, or not what to send: %v", err)
	}
}

// TestProcessWithAnotherKeyIsNotReady, and reports why.
func TestProcessWithAnotherKeyIsNotReady(t *testing.T) {
	url, dir := bus(t), t.TempDir()
	startMember(t, Config{NATS: url, MeshKey: MeshKey{File: filepath.Join(dir, "a")}, Roles: []string{workflow.ToolHost}})
	turn := startMember(t, Config{NATS: url, MeshKey: MeshKey{File: filepath.Join(dir, "b")}, Roles: []string{workflow.Turn}})
	if out := turn.out.String(); !strings.Contains(out, "waiting role=turn") || !strings.Contains(out, "does not know the token") || !strings.Contains(out, "--mesh-key") {
		t.Errorf("it reports\n%s", out)
	}
	// A process that requires no key presents the one that others have made.
	caller := startMember(t, Config{NATS: url, MeshKey: MeshKey{File: filepath.Join(dir, "a")}, OpenLoopback: true, Roles: []string{workflow.Repair}})
	if out := caller.out.String(); !strings.Contains(out, "ready role=repair") {
		t.Errorf("it reports\n%s", out)
	}
	if err := invoke(t, dialPlain(t, caller.Addr(workflow.Repair), ""), harnessv1.RepairService_Repair_FullMethodName); err != nil {
		t.Errorf("--open-loopback: %v", err)
	}
}

// TestKeyOfTheMeshThatCommandsCanReadIsSaid once, by a process that serves roles.
func TestKeyOfTheMeshThatCommandsCanReadIsSaid(t *testing.T) {
	url := bus(t)
	for confined, want := range map[bool]int{true: 0, false: 1} {
		m := startMember(t, Config{NATS: url, MeshKey: MeshKey{File: filepath.Join(t.TempDir(), "k")}, Roles: []string{workflow.ToolHost}, Confined: func() bool { return confined }})
		if n := strings.Count(m.notices.String(), "they can read the key of the mesh"); n != want {
			t.Errorf("confined %v: %d notices: %s", confined, n, m.notices)
		}
	}
}

// TestKeyOfTheMeshThatOthersCanReadIsRenewed at a start, and one without a place or that cannot be renewed is refused.
func TestKeyOfTheMeshThatOthersCanReadIsRenewed(t *testing.T) {
	url, file, dir := bus(t), filepath.Join(t.TempDir(), "k"), t.TempDir()
	former := localkey.New()
	if err := os.WriteFile(file, []byte(former), 0o644); err != nil {
		t.Fatal(err)
	}
	m := startMember(t, Config{NATS: url, MeshKey: MeshKey{File: file}, Roles: []string{workflow.Compaction}})
	renewed, err := localkey.Read(file)
	if err != nil || renewed == former {
		t.Fatalf("renewed: %t, %v", renewed != former, err)
	}
	decide := harnessv1.CompactionService_Compact_FullMethodName
	for key, want := range map[string]codes.Code{former: codes.Unauthenticated, renewed: codes.OK} {
		if err := invoke(t, dialPlain(t, m.Addr(workflow.Compaction), key), decide); status.Code(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, c := range map[string]struct {
		key  MeshKey
		want string
	}{"a folder": {MeshKey{File: dir}, "is not a regular file"}, "nowhere": {MeshKey{}, "XDG_CONFIG_HOME"}} {
		n, err := Start(t.Context(), Config{Data: t.TempDir(), NATS: url, Listen: "127.0.0.1:0", MeshKey: c.key, Roles: []string{workflow.Compaction}})
		if err == nil {
			_ = n.Stop(t.Context())
		}
		if err == nil || !strings.Contains(err.Error(), "--mesh-key") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// naming adds the URIs of roles to a certificate.
func naming(roles ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		for _, role := range roles {
			u, _ := url.Parse(roledoor.URI(role))
			c.URIs = append(c.URIs, u)
		}
	}
}

// identity loads a certificate of a mesh.
func identity(t *testing.T, ca *certtest.CA, p certtest.Pair) *tlsfiles.Identity {
	t.Helper()
	id, err := tlsfiles.Load(tlsfiles.Files{Cert: p.Cert, Key: p.Key, CA: ca.File}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestCertificatesCarryRoles: between processes with certificates, at an address of roles
// and at the gateway's.
func TestCertificatesCarryRoles(t *testing.T) {
	natsURL, ca := bus(t), certtest.New(t)
	here := []string{"127.0.0.1"}
	issue := func(roles ...string) certtest.Pair { return ca.Issue(here, naming(roles...)) }
	hosts := map[string]*member{
		"roles": startMember(t, Config{NATS: natsURL, TLS: identity(t, ca, issue("toolhost", "compaction")), Roles: []string{"toolhost", "compaction"}}),
		"gateway": startMember(t, Config{NATS: natsURL, TLS: identity(t, ca, issue("toolhost", "gateway", "compaction")),
			Roles: []string{"toolhost", "compaction", "gateway"}}),
	}
	gatewayKey, err := localkey.Read(filepath.Join(hosts["gateway"].cfg.Data, KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	execute, list := harnessv1.ToolHostService_ExecuteTool_FullMethodName, harnessv1.GatewayService_ListRuns_FullMethodName
	for at, host := range hosts {
		for name, c := range map[string]struct {
			pair certtest.Pair
			want codes.Code
		}{
			"turn": {issue("turn"), codes.OK}, "compaction": {issue("compaction"), codes.PermissionDenied}, "no role": {issue(), codes.OK},
		} {
			cert, err := tls.LoadX509KeyPair(c.pair.Cert, c.pair.Key)
			if err != nil {
				t.Fatal(err)
			}
			conn, err := grpc.NewClient(host.Addr("toolhost"), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}})))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if err := invoke(t, conn, execute); status.Code(err) != c.want {
				t.Errorf("%s at %s: %v, want %s", name, at, err, c.want)
			}
			if err := invoke(t, conn, list); err == nil {
				t.Errorf("%s at %s reads runs with a certificate", name, at)
			}
		}
	}
	// At the gateway's address a caller without a certificate needs a token.
	for token, want := range map[string]codes.Code{"": codes.Unauthenticated, "not-the-key-of-it": codes.Unauthenticated, gatewayKey: codes.OK} {
		options := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()}))}
		if token != "" {
			options = append(options, grpc.WithPerRPCCredentials(access.Bearer(token, false)))
		}
		conn, err := grpc.NewClient(hosts["gateway"].Addr("gateway"), options...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := invoke(t, conn, execute); status.Code(err) != want {
			t.Errorf("without a certificate: %v, want %s", err, want)
		}
	}
}

// TestServerWithTheCertificateOfAnotherRoleIsNotTrusted: a process that has the certificate
// of another role is no tool host, and does not start as one.
func TestServerWithTheCertificateOfAnotherRoleIsNotTrusted(t *testing.T) {
	natsURL, ca := bus(t), certtest.New(t)
	here := []string{"127.0.0.1"}
	wrong := identity(t, ca, ca.Issue(here, naming("compaction")))
	_, err := Start(t.Context(), Config{Data: t.TempDir(), NATS: natsURL, Listen: "127.0.0.1:0", TLS: wrong, Roles: []string{workflow.ToolHost}})
	if err == nil || !strings.Contains(err.Error(), "--tls-cert") || !strings.Contains(err.Error(), roledoor.URI("toolhost")) {
		t.Errorf("it starts: %v", err)
	}
	pair := ca.Issue(here)
	startMember(t, Config{NATS: natsURL, TLS: identity(t, ca, pair), Roles: []string{workflow.ToolHost}})
	ca.Reissue(pair, here, naming("compaction"))
	turn := startMember(t, Config{NATS: natsURL, TLS: identity(t, ca, ca.Issue(here, naming("turn"))), Roles: []string{workflow.Turn}})
	if out := turn.out.String(); !strings.Contains(out, "waiting role=turn") || !strings.Contains(out, "is for the role compaction and not for toolhost") {
		t.Errorf("it reports\n%s", out)
	}
}
