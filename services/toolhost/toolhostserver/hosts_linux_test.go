package toolhostserver

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// web is a server of the outside, over HTTP and TLS, with the host whose commands reach it.
type web struct {
	*host
	plain, secure string // the ports
	authority     string // path of a file with the certificate, in the workspace
}

// newWeb starts a web server, and a host that resolves each name below .test to it.
func newWeb(t *testing.T, handler http.HandlerFunc) *web {
	t.Helper()
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	w := &web{plain: portOf(t, plain.URL), secure: portOf(t, secure.URL)}
	w.host = newHost(t, Config{SandboxPrivateHosts: []string{
		"example.com:" + w.plain, "example.com:" + w.secure, "other.test:" + w.plain, "asked.test:" + w.plain,
	}, resolve: func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}})
	w.authority = filepath.Join(w.dir, "authority.pem")
	w.write("authority.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})))
	if levels := w.levels(); levels[len(levels)-1] != sandbox.Full {
		t.Fatal("this machine cannot give commands a network of their own, which the test needs: install bubblewrap")
	}
	return w
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// reaching is a network of named hosts.
func reaching(hosts ...string) *harnessv1.SandboxConfig {
	return &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, Hosts: hosts}}
}

func hello(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprintf(w, "hello from %s\n", r.Host) }

// TestCommandsReachNamedHosts and no others, whatever they try.
func TestCommandsReachNamedHosts(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	w := newWeb(t, hello)
	cfg := reaching("example.com:"+w.plain, "example.com:"+w.secure)
	for name, c := range map[string]struct{ line, want string }{
		"a request":          {"curl -sS http://example.com:" + w.plain, "hello from example.com:" + w.plain},
		"TLS":                {"curl -sS --cacert authority.pem https://example.com:" + w.secure, "hello from example.com:" + w.secure},
		"a tunnel":           {"curl -sS -p http://example.com:" + w.plain, "hello from"},
		"SOCKS":              {"curl -sS --proxy socks5h://127.0.0.1:61080 http://example.com:" + w.plain, "hello from"},
		"another host":       {"curl -sS http://other.test:" + w.plain, `refused other.test:` + w.plain + `: it is not among the hosts of the network. If the task needs it, call run_command again with hosts: ["other.test:` + w.plain + `"]`},
		"another over SOCKS": {"curl -sS --proxy socks5h://127.0.0.1:61080 http://other.test:" + w.plain, "[The sandbox refused other.test:" + w.plain},
		"another port":       {"curl -sS http://example.com", `["example.com"]`},
		"an address":         {"curl -sS http://127.0.0.1:" + w.plain + " --noproxy ''", "refused 127.0.0.1:" + w.plain + ": it names no host"},
		"a private address":  {"curl -sS http://private.test", "[The sandbox refused private.test:80: it has no public address"},
		"no proxy":           {"curl -sS --noproxy '*' --resolve example.com:" + w.plain + ":127.0.0.1 http://example.com:" + w.plain, "curl: (7)"},
		"no variables":       {"env -i curl -sS http://example.com:" + w.plain, "curl: (6)"},
		"variables":          {"env | grep -ic ^[a-z]*_proxy=", "8\n"},
	} {
		t.Run(name, func(t *testing.T) {
			allowed := cfg
			if name == "a private address" {
				allowed = reaching("private.test")
			}
			resp := w.confined(sandbox.Full, allowed, c.line)
			if !strings.Contains(resp.GetResult(), c.want) || !strings.HasPrefix(c.want, "hello") && strings.Contains(resp.GetResult(), "hello from") {
				t.Errorf("%s\n%s", c.line, resp.GetResult())
			}
		})
	}
}

// TestAnApprovedHostIsReached by the same command: for the call alone, with a network of hosts
// and without one.
func TestAnApprovedHostIsReached(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	w := newWeb(t, hello)
	line := "curl -sS http://asked.test:" + w.plain
	for name, cfg := range map[string]*harnessv1.SandboxConfig{"hosts": reaching("example.com"), "none": nil} {
		req := w.request(tools.RunCommand, "", map[string]any{"command": line, "hosts": []string{"asked.test:" + w.plain}})
		req.Confinement = &harnessv1.Confinement{Level: sandbox.Full, Config: cfg, Hosts: []string{"asked.test:" + w.plain}}
		expect(t, w.execute(req), done, false, "hello from asked.test")
		if resp := w.confined(sandbox.Full, cfg, line); strings.Contains(resp.GetResult(), "hello from") {
			t.Errorf("%s: the next call has it too: %s", name, resp.GetResult())
		}
		// The argument alone opens nothing.
		req = w.request(tools.RunCommand, "", map[string]any{"command": line, "hosts": []string{"asked.test:" + w.plain}})
		req.Confinement = &harnessv1.Confinement{Level: sandbox.Full, Config: cfg}
		if resp := w.execute(req); strings.Contains(resp.GetResult(), "hello from") {
			t.Errorf("%s: the argument is enough: %s", name, resp.GetResult())
		}
	}
}

// TestHostsAreNotWidened at the level kernel: nothing runs.
func TestHostsAreNotWidened(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	h.levels()
	req := h.request(tools.RunCommand, "", map[string]any{"command": "touch started"})
	req.Confinement = &harnessv1.Confinement{Level: sandbox.Kernel, Hosts: []string{"example.com"}}
	for name, resp := range map[string]*harnessv1.ExecuteToolResponse{
		"of the run": h.confined(sandbox.Kernel, reaching("example.com"), "touch started"), "of the call": h.execute(req),
	} {
		if resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_NOT_CONFINED || !strings.Contains(resp.GetResult(), "named hosts") {
			t.Errorf("%s: got %v", name, resp)
		}
	}
	if _, err := os.Stat(filepath.Join(h.dir, "started")); err == nil {
		t.Error("a command was started")
	}
	cfg := reaching("example.com")
	cfg.Level = sandbox.Kernel
	resp, err := h.DescribeWorkspace(t.Context(), &harnessv1.DescribeWorkspaceRequest{Workspace: h.dir, Sandbox: cfg})
	if problem := resp.GetProblem(); err != nil || problem.GetField() != "sandbox.network" || !strings.Contains(problem.GetMessage(), "level full") {
		t.Errorf("got %v, %v", problem, err)
	}
}

// TestChecksReachNamedHosts, and their error output names the refused ones.
func TestChecksReachNamedHosts(t *testing.T) {
	t.Parallel()
	w := newWeb(t, hello)
	resp, err := w.CheckCommand(t.Context(), &harnessv1.CheckCommandRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Key: "k", Workspace: w.dir, Command: "curl -sS http://example.com:" + w.plain + " && curl -sSf http://other.test",
		Confinement: &harnessv1.Confinement{Config: reaching("example.com:" + w.plain)},
	})
	if err != nil || !strings.Contains(resp.GetOutput(), "hello from example.com") || !strings.Contains(resp.GetErrorOutput(), "[The sandbox refused other.test:80") || resp.GetExitCode() == 0 {
		t.Errorf("got %v, %v", resp, err)
	}
}

// TestToolsOfDevelopersUseTheProxy by their variables: they reach a named host, and fail to
// reach another one.
func TestToolsOfDevelopersUseTheProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	files := t.TempDir()
	repository := filepath.Join(files, "repo.git")
	for _, line := range []string{
		"git init -q --bare -b main " + repository, "git --git-dir " + repository + " update-server-info",
	} {
		if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	for name, text := range map[string]string{
		"example.org/m/@v/v1.0.0.info": `{"Version":"v1.0.0"}`,
		"example.org/m/@v/v1.0.0.mod":  "module example.org/m\n",
		"leftpad/index.html":           `<a href="leftpad-1.0.tar.gz">leftpad-1.0.tar.gz</a>`,
		"package":                      `{"name":"package","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"package","version":"1.2.3","dist":{"tarball":"x","shasum":"x"}}}}`,
	} {
		path := filepath.Join(files, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	w := newWeb(t, http.FileServer(http.Dir(files)).ServeHTTP)
	allowed := reaching("example.com:"+w.plain, "example.com:"+w.secure)
	for tool, c := range map[string]struct{ line, want string }{
		"curl": {"curl -sSf --cacert authority.pem https://HOST:SECURE/package", "1.2.3"},
		"git":  {"git ls-remote http://HOST:PORT/repo.git && echo listed", "listed"},
		"go":   {"GOMODCACHE=$PWD/HOST GOFLAGS='-mod=mod -modcacherw' GONOSUMDB=* GOPROXY=http://HOST:PORT go list -m -json example.org/m@v1.0.0", `"Version": "v1.0.0"`},
		"pip":  {"pip --disable-pip-version-check download --no-deps -q --index-url http://HOST:PORT --trusted-host HOST leftpad==2.0 2>&1", "from versions: 1.0"},
		"npm":  {"npm view package version --registry http://HOST:PORT", "1.2.3"},
		"node": {`node -e 'fetch("http://HOST:PORT/package").then(r => r.text()).then(console.log)' || curl -sSf http://HOST:PORT/package`, "1.2.3"}, // older versions of node know no proxy
	} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Logf("%s is not installed", tool)
			continue
		}
		t.Run(tool, func(t *testing.T) {
			line := strings.NewReplacer("SECURE", w.secure, "PORT", w.plain).Replace(c.line)
			if resp := w.confined(sandbox.Full, allowed, strings.ReplaceAll(line, "HOST", "example.com")); !strings.Contains(resp.GetResult(), c.want) {
				t.Errorf("%s\n%s", line, resp.GetResult())
			}
			if resp := w.confined(sandbox.Full, allowed, strings.ReplaceAll(line, "HOST", "other.test")); strings.Contains(resp.GetResult(), c.want) || !strings.Contains(resp.GetResult(), "[The sandbox refused other.test:") {
				t.Errorf("%s\n%s", line, resp.GetResult())
			}
		})
	}
}

// TestNoOtherWayOut of the network of named hosts.
func TestNoOtherWayOut(t *testing.T) {
	if testing.Short() {
		t.Skip("runs commands at each level")
	}
	t.Parallel()
	w := newWeb(t, hello)
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	for name, line := range map[string]string{
		"TCP":           "timeout 5 bash -c 'exec 3<>/dev/tcp/1.1.1.1/443'",
		"the machine":   "timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/" + w.plain + "'",
		"UDP":           "timeout 5 bash -c 'exec 3<>/dev/udp/1.1.1.1/53 && echo x >&3'",
		"names":         "getent hosts example.com",
		"routes":        "grep -v Iface /proc/net/route",
		"unix sockets":  "test -S " + listener.Addr().String(),
		"the listener":  "ls -l /proc/*/fd | grep socket:",
		"other devices": "ls /sys/class/net | grep -v '^lo$' | grep -v bonding_masters | sed -n '/./{p;q}' | xargs -I{} grep -q {} /proc/net/dev",
	} {
		resp := w.confined(sandbox.Full, reaching("example.com"), line+" && echo the-way-out")
		if strings.Contains(resp.GetResult(), "the-way-out") {
			t.Errorf("%s: %s", name, resp.GetResult())
		}
	}
}
