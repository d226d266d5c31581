//go:build wire

package wire

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// The versions of the protocol that servers of today and of the year before speak.
const (
	newProtocol = "2026-07-28"
	oldProtocol = "2025-11-25"
)

// environment returns the interpreter that has the packages of a file of requirements.
func environment(t *testing.T, requirements string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../clients/python/venv.sh", requirements)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("venv.sh: %v", err)
	}
	venv, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(venv, "bin", "python")
}

// python returns the interpreter that has the SDK, and what a sandbox has to show of it.
func python(t *testing.T) (interpreter string, folders []string) {
	t.Helper()
	script, err := filepath.Abs("server.py")
	if err != nil {
		t.Fatal(err)
	}
	interpreter = environment(t, "requirements.txt")
	return interpreter, []string{filepath.Dir(filepath.Dir(interpreter)), script}
}

// TestPythonServer calls the tools and resources of a server of the Python SDK over both transports. Both
// speak the newest version of the protocol.
func TestPythonServer(t *testing.T) {
	interpreter, folders := python(t)
	script := folders[1]
	for name, start := range map[string]func(*testing.T) *harnessv1.McpServer{
		"pipes": func(*testing.T) *harnessv1.McpServer {
			return &harnessv1.McpServer{Name: "python", Command: interpreter, Args: []string{script, "stdio"}}
		},
		"HTTP": func(t *testing.T) *harnessv1.McpServer {
			return serveHTTP(t, "python", "Uvicorn running on", func(port string) *exec.Cmd { return exec.Command(interpreter, script, "http", port) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newToolHost(t)
			h.sandbox.Read = append(h.sandbox.Read, folders...)
			server := start(t)
			const origin = "[data from the server python] "
			for _, c := range []struct {
				tool, arguments, want string
				failed                bool
				media                 int
			}{
				{"protocol", `{}`, origin + "version " + newProtocol, false, 0},
				{"add", `{"a":2}`, `"sum": 42`, false, 0},
				{"add", `{"a":"two"}`, "The arguments were refused", true, 0},
				{"count", `{"to":3}`, origin + "counted to 3", false, 0},
				{"fail", `{}`, "Error executing tool fail", true, 0},
				{"dot", `{}`, origin, false, 1},
				{"list_resources", `{}`, "notes://{day}", false, 0},
				{"read_resource", `{"uri":"notes://monday"}`, origin + "the notes of monday", false, 0},
			} {
				r := h.call(server, c.tool, c.arguments)
				if r.GetIsError() != c.failed || !strings.Contains(r.GetResult(), c.want) || len(r.GetMedia()) != c.media {
					t.Errorf("%s %s: %v", c.tool, c.arguments, r)
				}
			}
		})
	}
}

// TestProtocolVersions: each server is spoken to in the newest version that it has. A pipe between
// the server and the host keeps what the server writes.
func TestProtocolVersions(t *testing.T) {
	interpreter, folders := python(t)
	for _, c := range []struct{ name, line, want string }{
		{"python", interpreter + " " + folders[1] + " stdio", newProtocol},
		{"everything", "node " + serverFile(t, "everything") + " stdio", oldProtocol},
		{"filesystem", "node " + serverFile(t, "filesystem") + " .", oldProtocol},
		{"memory", "node " + serverFile(t, "memory"), oldProtocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newToolHost(t)
			h.sandbox.Read = append(h.sandbox.Read, folders...)
			server := &harnessv1.McpServer{Name: c.name, Command: "sh", Args: []string{"-c", "tee asked | " + c.line + " | tee answered"}}
			h.described(server)
			asked, err := os.ReadFile(filepath.Join(h.dir, "asked"))
			if err != nil {
				t.Fatal(err)
			}
			answered, err := os.ReadFile(filepath.Join(h.dir, "answered"))
			if err != nil {
				t.Fatal(err)
			}
			if got := spoken(string(asked), string(answered)); got != c.want {
				t.Errorf("it is spoken to in %q, want %q:\n%s\n%s", got, c.want, asked, answered)
			}
		})
	}
	t.Run("everything over HTTP", func(t *testing.T) {
		h := newToolHost(t)
		server := overHTTP(t)
		target, err := url.Parse(server.GetUrl())
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		versions := map[string]bool{}
		proxy := newProxy(func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			mu.Lock()
			defer mu.Unlock()
			if v := r.In.Header.Get("Mcp-Protocol-Version"); v != "" && r.In.Method == http.MethodPost {
				versions[v] = true
			}
		})
		t.Cleanup(proxy.Close)
		t.Cleanup(proxy.CloseClientConnections)
		server.Url = proxy.URL + target.Path
		h.call(server, "echo", `{"message":"hello"}`)
		mu.Lock()
		defer mu.Unlock()
		if !versions[oldProtocol] {
			t.Errorf("its calls are in %v, want %s", versions, oldProtocol)
		}
	})
}

var (
	agreedVersion  = regexp.MustCompile(`"result":\{[^\n]*"protocolVersion":\s*"([^"]+)"`)
	requestVersion = regexp.MustCompile(`"method":"tools/list"[^\n]*protocolVersion":\s*"([^"]+)"|protocolVersion":\s*"([^"]+)"[^\n]*"method":"tools/list"`)
)

// spoken returns the version in which the tools were listed: that on which initialize agreed, else
// that of the request itself.
func spoken(asked, answered string) string {
	if m := agreedVersion.FindStringSubmatch(answered); m != nil {
		return m[1]
	}
	if m := requestVersion.FindStringSubmatch(asked); m != nil {
		return m[1] + m[2]
	}
	return ""
}
