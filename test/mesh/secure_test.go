package mesh

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
	"github.com/harnessmesh/harnessmesh/test/kit/keytest"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// identity returns the flags of a process of a mesh with certificates.
func identity(p certtest.Pair, ca *certtest.CA) meshtest.Option {
	return meshtest.Args("--tls-cert", p.Cert, "--tls-key", p.Key, "--tls-ca", ca.File)
}

// with runs a command against a gateway.
func with(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin.Harness, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func healthOf(t *testing.T, address, service string, creds credentials.TransportCredentials) (healthv1.HealthCheckResponse_ServingStatus, error) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	r, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: service})
	return r.GetStatus(), err
}

// contractOfFiles is checked on the tool host: a file, its text and a command.
const contractOfFiles = `required_outputs:
  - {id: made, description: It is made, predicate: {type: FILE_EXISTS, path: made.txt}}
  - {id: checked, description: It is checked, predicate: {type: COMMAND_SUCCEEDS, command: grep -q made made.txt}}
`

// TestSystemMeshWithCertificatesAndTokens checks that a run works, that other clients are
// refused, that replaced files take effect without a restart, and that a waiting role
// gives the reason.
func TestSystemMeshWithCertificatesAndTokens(t *testing.T) {
	t.Parallel()
	ca, foreign := certtest.New(t), certtest.New(t)
	here := []string{"127.0.0.1"}
	m := meshtest.Start(t, bin, meshtest.Config{Without: meshtest.Roles})
	tokens := m.Write("tokens", "token-of-everybody-0\ntoken-of-one-team-00 team\n")
	pairs := map[string]certtest.Pair{}
	for _, role := range meshtest.Roles {
		pairs[role] = ca.Issue(here, certtest.Role(role))
		options := []meshtest.Option{identity(pairs[role], ca)}
		switch role {
		case "gateway":
			options = append(options, meshtest.Args("--tokens", tokens))
		case "turn":
			options = append(options, meshtest.Args("--probe", "127.0.0.1:0"))
		}
		m.Start(role, options...)
	}
	probe, _ := m.Process("turn").Line("probe addr=")
	for _, role := range meshtest.Roles {
		m.AwaitReady(role)
	}

	// A run from the command line.
	script := m.Write("script.yaml", "turns:\n  - {calls: [{name: run_command, arguments: {command: echo made > made.txt}}]}\n  - {text: Made., calls: [{name: work_complete, arguments: {summary: made}}]}\n")
	contract := m.Write("contract.yaml", contractOfFiles)
	token, team := m.Write("token", "token-of-everybody-0\n"), m.Write("team", "token-of-one-team-00")
	workspace := t.TempDir()
	to := func(token string, more ...string) []string {
		return append([]string{"--server", m.Gateway(), "--tls-ca", ca.File, "--token-file", token}, more...)
	}
	out, err := with(t, append([]string{"run", "--workspace", workspace, "--model", "script:" + script, "--contract", contract, "--yolo", "--run-id", "r"}, to(token, "make it")...)...)
	if _, made := os.Stat(filepath.Join(workspace, "made.txt")); err != nil || made != nil {
		t.Fatalf("%v, %v: %s", err, made, out)
	}
	// Each token sees its own namespace.
	if out, err := with(t, append([]string{"list"}, to(token, "--namespace", "*")...)...); err != nil || !strings.Contains(out, "r ") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := with(t, append([]string{"list"}, to(team, "--namespace", "*")...)...); err != nil || !strings.Contains(out, "no runs") {
		t.Errorf("%v: %s", err, out)
	}
	refused(t, []string{"the token is not for namespace", "team"}, append([]string{"show", "r"}, to(team)...)...)
	refused(t, []string{"a token is missing", "--token-file"}, "show", "r", "--server", m.Gateway(), "--tls-ca", ca.File)
	refused(t, []string{"does not know this token", "--token-file"}, append([]string{"show", "r"}, to(m.Write("wrong", "token-of-nobody-0000"))...)...)
	refused(t, []string{"does not answer without TLS", "--tls"}, "show", "r", "--server", m.Gateway())
	refused(t, []string{"a CA that is not trusted", "--tls-ca"}, "show", "r", "--server", "https://"+m.Gateway())

	// gRPC and HTTP on the gateway's port, as clients in other languages use them.
	trust := &tls.Config{RootCAs: ca.Pool()}
	conn, err := grpc.NewClient(m.Gateway(), grpc.WithTransportCredentials(credentials.NewTLS(trust)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	authorized := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer token-of-everybody-0")
	for ctx, want := range map[context.Context]codes.Code{t.Context(): codes.Unauthenticated, authorized: codes.OK} {
		_, err := harnessv1.NewGatewayServiceClient(conn).GetRun(ctx, &harnessv1.GetRunRequest{RunId: "r"})
		stream, _ := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
		_ = stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
		if _, reflected := stream.Recv(); status.Code(err) != want || status.Code(reflected) != want {
			t.Errorf("got %v and %v, expected %s", err, reflected, want)
		}
	}
	if s, err := healthOf(t, m.Gateway(), "", credentials.NewTLS(trust)); err != nil || s != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health of the gateway: %s, %v", s, err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, ForceAttemptHTTP2: true}}
	for path, want := range map[string]int{"/": http.StatusOK, "/v1/runs/r": http.StatusUnauthorized} {
		r, err := web.Get("https://" + m.Gateway() + path) //nolint:noctx // loopback, in a test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		_ = r.Body.Close()
		if r.StatusCode != want || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	web.CloseIdleConnections()

	// A role admits only clients with a certificate of the mesh.
	toolhost, _ := m.Process("toolhost").Line("ready role=toolhost addr=")
	if _, err := healthOf(t, toolhost, "", insecure.NewCredentials()); err == nil {
		t.Error("the tool host answers without TLS")
	}
	if _, err := healthOf(t, toolhost, "", credentials.NewTLS(trust)); err == nil {
		t.Error("the tool host answers without a certificate")
	}
	for pair, want := range map[certtest.Pair]bool{foreign.Issue(here): false, ca.Issue(nil, certtest.Expired): false, ca.Issue(nil): true} {
		cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		creds := credentials.NewTLS(&tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}})
		if _, err := healthOf(t, toolhost, "", creds); (err == nil) != want {
			t.Errorf("the tool host answers %v", err)
		}
	}

	// The tokens are replaced while the gateway runs.
	m.Write("tokens", "token-of-the-next-year\n")
	refused(t, []string{"does not know this token"}, append([]string{"show", "r"}, to(token)...)...)
	m.Write("token", "token-of-the-next-year\n")
	if out, err := with(t, append([]string{"show", "r"}, to(token)...)...); err != nil {
		t.Errorf("%v: %s", err, out)
	}

	// An expired certificate keeps a role from being ready, in every place that shows
	// it. A new one fixes that without a restart.
	turn := m.Process("turn")
	plain := func(service string, want healthv1.HealthCheckResponse_ServingStatus) func() bool {
		return func() bool {
			got, err := healthOf(t, probe, service, insecure.NewCredentials())
			return err == nil && got == want
		}
	}
	ready := plain("", healthv1.HealthCheckResponse_SERVING)
	waittest.Eventually(t, "the probe reports that turn is ready", ready)
	ca.Reissue(pairs["turn"], here, certtest.Role("turn"), certtest.Expired)
	line, ok := turn.Line(`waiting role=turn reason="the certificate `)
	if !ok || !strings.Contains(line, "has expired on") || !strings.Contains(line, "replace it") {
		t.Errorf("turn reports %q", line)
	}
	waittest.Eventually(t, "the probe reports that turn is not ready", plain("", healthv1.HealthCheckResponse_NOT_SERVING))
	if !plain("turn", healthv1.HealthCheckResponse_NOT_SERVING)() || !plain("alive", healthv1.HealthCheckResponse_SERVING)() {
		t.Error("the probe does not distinguish turn from its process")
	}
	out, err = with(t, "doctor", "--nats", m.Bus.URL())
	if err == nil || !strings.Contains(out, "problem:") || !strings.Contains(out, "has expired on") {
		t.Errorf("doctor: %v\n%s", err, out)
	}
	ca.Reissue(pairs["turn"], here, certtest.Role("turn"))
	waittest.Eventually(t, "the probe reports that turn is ready again", ready)

	// Roles that need a tool host report that its certificate does not match.
	m.Process("toolhost").Kill()
	m.Start("toolhost", identity(foreign.Issue(here), foreign))
	waittest.Eventually(t, "repair says whom it does not trust", func() bool {
		return strings.Contains(m.Process("repair").Stderr(), "is signed by a CA that is not trusted")
	})
	m.Process("toolhost").Kill()
	m.Start("toolhost", identity(pairs["toolhost"], ca))
	waittest.Eventually(t, "repair is ready again", func() bool {
		lines := strings.Split(m.Process("repair").Stderr(), "\n")
		return strings.HasPrefix(lines[len(lines)-1], "ready role=repair")
	})
	for _, role := range []string{"turn", "gateway"} {
		if code := m.Process(role).Terminate(); code != 0 {
			t.Errorf("%s ends with %d", role, code)
		}
	}
	for _, role := range meshtest.Roles {
		said := m.Process(role).Stderr()
		if strings.Contains(said, "token-of") {
			t.Errorf("%s shows a token:\n%s", role, said)
		}
		// Each call of a role is one that its certificate admits to.
		if strings.Contains(said, "may not call") {
			t.Errorf("%s is refused:\n%s", role, said)
		}
	}
}

// TestOpenAddressRequiresProtection checks that an address beyond loopback requires
// TLS, tokens and certificates, each by its name, and that unusable files are refused
// at the start.
func TestOpenAddressRequiresProtection(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	mesh, expired, elsewhere := ca.Issue([]string{"127.0.0.1"}), ca.Issue(nil, certtest.Expired), ca.Issue([]string{"turn.mesh"})
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("short\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := meshtest.StartNATS(t, bin, meshtest.NATSConfig{})
	if out, err := with(t, "provision", "--nats", bus.URL(), "--max-bytes", "2000000"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tlsOf := func(p certtest.Pair, more ...string) []string {
		return append([]string{"--tls-cert", p.Cert, "--tls-key", p.Key}, more...)
	}
	open := func(args ...string) []string {
		return append([]string{"serve", "--data", t.TempDir(), "--listen", "0.0.0.0:0"}, args...)
	}
	turn := append([]string{"--roles", "turn", "--nats", bus.URL(), "--advertise", "10.0.0.7"}, tlsOf(mesh)...)
	for _, c := range []struct{ words, args []string }{
		{[]string{"--listen", "--tls-cert and --tls-key, --tokens (", "--insecure"}, open()},
		{[]string{"set --tokens ("}, open(tlsOf(mesh)...)},
		{[]string{"set --tls-cert and --tls-key ("}, open("--tokens", tokens)},
		{[]string{"set --tls-ca ("}, open(turn...)},
		{[]string{"set --tls-cert and --tls-key, --tokens, --tls-ca ("}, open("--nats", bus.URL(), "--advertise", "10.0.0.7")},
		{[]string{"--tokens", "line 1", "at least 16"}, open(tlsOf(mesh, "--tokens", tokens)...)},
		{[]string{"names 127.0.0.1 and not 10.0.0.7", "--advertise"}, open(append(turn, "--tls-ca", ca.File)...)},
		{[]string{"has expired on", "replace it"}, serve(t, "turn", bus.URL(), tlsOf(expired)...)},
		{[]string{"names turn.mesh and not 127.0.0.1"}, serve(t, "turn", bus.URL(), tlsOf(elsewhere, "--tls-ca", ca.File)...)},
		{[]string{"--tls-cert and --tls-key must be set together"}, serve(t, "turn", bus.URL(), "--tls-cert", mesh.Cert)},
		{[]string{"--tls-ca", "--tls-cert and --tls-key too"}, serve(t, "turn", bus.URL(), "--tls-ca", ca.File)},
		{[]string{"--tokens: only the gateway"}, serve(t, "turn", bus.URL(), "--tokens", tokens)},
		{[]string{"--probe", "address"}, serve(t, "turn", bus.URL(), "--probe", "nowhere")},
	} {
		refused(t, c.words, c.args...)
	}
}

// TestSystemBusWithTLS uses a CA and a client certificate, and checks that mistakes and
// missing permissions are named.
func TestSystemBusWithTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	server, client := ca.Issue([]string{"localhost"}), ca.Issue(nil)
	bus := meshtest.StartNATS(t, bin, meshtest.NATSConfig{Extra: `
		tls { cert_file: "` + server.Cert + `", key_file: "` + server.Key + `", ca_file: "` + ca.File + `", verify: true }
		authorization { users: [
			{user: all, password: all},
			{user: role, password: role, permissions: {publish: ["hm.>", "$JS.API.>", "$JS.ACK.>", "_INBOX.>"], subscribe: ["hm.>", "_INBOX.>"]}},
			{user: little, password: little, permissions: {publish: {deny: "$JS.API.>"}}} ] }`})
	by := func(user, host string) string {
		return "nats://" + user + ":" + user + "@" + host + strings.TrimPrefix(bus.URL(), "nats://127.0.0.1")
	}
	cert := []string{"--nats-cert", client.Cert, "--nats-key", client.Key}
	trusted := append([]string{"--nats-ca", ca.File}, cert...)
	provision := func(url string, more ...string) []string {
		return append([]string{"provision", "--max-bytes", "2000000", "--nats", url}, more...)
	}
	refused(t, []string{"CA that is not trusted here", "--nats-ca"}, provision(by("all", "localhost"), cert...)...)
	refused(t, []string{"does not match", "127.0.0.1", "--nats"}, provision(by("all", "127.0.0.1"), trusted...)...)
	refused(t, []string{"requires a certificate", "--nats-cert"}, provision(by("all", "localhost"), "--nats-ca", ca.File)...)
	refused(t, []string{"--nats-ca", "nowhere"}, provision(by("all", "localhost"), "--nats-ca", "nowhere")...)
	refused(t, []string{"--nats-cert and --nats-key belong together"}, provision(by("all", "localhost"), "--nats-cert", client.Cert)...)
	refused(t, []string{"refuses the credentials"}, provision(by("nobody", "localhost"), trusted...)...)
	refused(t, []string{"does not let this user", "$JS.API", "docs/security.md"}, provision(by("little", "localhost"), trusted...)...)
	if out, err := with(t, provision(by("all", "localhost"), trusted...)...); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	refused(t, []string{"does not let this user", "$JS.API"}, append(serve(t, "compaction", by("little", "localhost")), trusted...)...)
	if out, err := with(t, append([]string{"doctor", "--nats", by("all", "localhost")}, trusted...)...); err == nil || !strings.Contains(out, "no process has the role gateway") {
		t.Errorf("%v: %s", err, out)
	}
	// The permissions in docs/security.md are enough for a run.
	mesh, stop := context.WithCancel(t.Context())
	defer stop()
	data := t.TempDir()
	node := exec.CommandContext(mesh, bin.Harness, append(append([]string{"serve", "--nats", by("role", "localhost"), "--listen", "127.0.0.1:0", "--data", data, "--scripts", os.TempDir()}, trusted...), "--log-level", "warn")...)
	node.Env = append(os.Environ(), "XDG_CONFIG_HOME="+data)
	said, err := node.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	address := ""
	read := bufio.NewScanner(said)
	for address == "" && read.Scan() {
		lines = append(lines, read.Text())
		address, _ = strings.CutPrefix(read.Text(), "ready role=gateway addr=")
		if !strings.Contains(read.Text(), "ready role=gateway") {
			address = ""
		}
	}
	script := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(script, []byte("turns:\n  - {calls: [{name: list_directory, arguments: {}}]}\n  - {text: Seen., calls: [{name: work_complete, arguments: {summary: seen}}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := with(t, "run", "--server", address, "--token-file", keytest.File(data), "--workspace", t.TempDir(), "--model", "script:"+script, "look")
	_ = node.Process.Signal(syscall.SIGTERM)
	for read.Scan() {
		lines = append(lines, read.Text())
	}
	if ended := node.Wait(); err != nil || ended != nil || strings.Contains(strings.ToLower(strings.Join(lines, "\n")), "permission") {
		t.Errorf("%v, %v: %s\n%s", err, ended, out, strings.Join(lines, "\n"))
	}
	plain := meshtest.StartNATS(t, bin, meshtest.NATSConfig{})
	refused(t, []string{"does not speak TLS", "--nats-ca"}, provision(plain.URL(), "--nats-ca", ca.File)...)
}
