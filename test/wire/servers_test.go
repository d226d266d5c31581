//go:build wire

package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver"
)

// toolHost is a tool host with a workspace, which calls servers of tools by other people.
type toolHost struct {
	*toolhostserver.Server
	t       *testing.T
	dir     string
	sandbox *harnessv1.SandboxConfig
	calls   int
}

func newToolHost(t *testing.T) *toolHost {
	t.Helper()
	s, err := toolhostserver.New(toolhostserver.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	packages, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	return &toolHost{Server: s, t: t, dir: t.TempDir(), sandbox: &harnessv1.SandboxConfig{Read: []string{packages}}}
}

// serverFile returns the file of a server of this folder's packages.
func serverFile(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js"))
	if err == nil {
		_, err = os.Stat(file)
	}
	if err != nil {
		t.Fatalf("%v (npm ci in test/wire installs it)", err)
	}
	return file
}

// overPipes returns the settings of a server on standard input and output.
func overPipes(t *testing.T, name string, args ...string) *harnessv1.McpServer {
	t.Helper()
	return &harnessv1.McpServer{Name: name, Command: "node", Args: append([]string{serverFile(t, name)}, args...)}
}

// overHTTP starts server-everything over streamable HTTP and returns its settings.
func overHTTP(t *testing.T) *harnessv1.McpServer {
	t.Helper()
	return serveHTTP(t, "everything", "listening on port", func(port string) *exec.Cmd {
		cmd := exec.Command("node", serverFile(t, "everything"), "streamableHttp")
		cmd.Env = append(os.Environ(), "PORT="+port)
		return cmd
	})
}

// serveHTTP starts a server over streamable HTTP at a port, waits until it has printed that it is
// ready, and returns its settings.
func serveHTTP(t *testing.T, name, ready string, command func(port string) *exec.Cmd) *harnessv1.McpServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil { // it cannot be given a listener
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(strconv.Itoa(port))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed at the end
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = log.Close()
	})
	awaitPrinted(t, log.Name(), ended, func(text string) bool { return strings.Contains(text, ready) })
	return &harnessv1.McpServer{Name: name, Url: fmt.Sprintf("http://127.0.0.1:%d/mcp", port)}
}

// awaitPrinted waits until what a program writes into a file is what the test waits for.
func awaitPrinted(t *testing.T, file string, ended <-chan struct{}, enough func(text string) bool) {
	t.Helper()
	for ctx, tick := t.Context(), time.NewTicker(20*time.Millisecond); ; {
		written, _ := os.ReadFile(file)
		if enough(string(written)) {
			return
		}
		select {
		case <-tick.C:
		case <-ended:
			t.Fatalf("it has ended: %s", written)
		case <-ctx.Done():
			t.Fatalf("it is not ready: %s", written)
		}
	}
}

// described returns the tools of a server once it is ready.
func (h *toolHost) described(server *harnessv1.McpServer) map[string]*harnessv1.McpDefinition {
	h.t.Helper()
	resp, err := h.DescribeServers(h.t.Context(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 1, Workspace: h.dir, Servers: []*harnessv1.McpServer{server}, Sandbox: h.sandbox, Local: true,
		Wait: durationpb.New(30 * time.Second),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	d := resp.GetServers()[0]
	if d.GetState() != harnessv1.McpServerState_MCP_SERVER_STATE_READY || len(d.GetLeftOut()) > 0 {
		h.t.Fatalf("%s: %v %s, left out %v", d.GetServer(), d.GetState(), d.GetMessage(), d.GetLeftOut())
	}
	tools := map[string]*harnessv1.McpDefinition{}
	for _, t := range d.GetTools() {
		tools[t.GetTool()] = t
	}
	return tools
}

// call calls a tool with arguments as a model writes them.
func (h *toolHost) call(server *harnessv1.McpServer, tool, arguments string) *harnessv1.ExecuteToolResponse {
	h.t.Helper()
	d := h.described(server)[tool]
	if d == nil {
		h.t.Fatalf("%s does not have the tool %s", server.GetName(), tool)
	}
	h.calls++
	resp, err := h.ExecuteTool(h.t.Context(), &harnessv1.ExecuteToolRequest{
		Namespace: "n", RunId: "r", FirstSequence: 1, Workspace: h.dir, CallId: fmt.Sprint("call-", h.calls),
		Tool: "mcp__" + server.GetName() + "__" + tool, Arguments: arguments,
		Mcp: &harnessv1.McpCall{Server: server, Sandbox: h.sandbox, Tool: tool, Schema: d.GetSchema(), Digests: []string{d.GetDigest()}, Local: true},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if resp.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE {
		h.t.Fatalf("%s %s: %v", tool, arguments, resp)
	}
	return resp
}

// TestServerEverything calls each kind of tool of the protocol's reference server, over both
// transports.
func TestServerEverything(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *harnessv1.McpServer{
		"pipes": func(t *testing.T) *harnessv1.McpServer { return overPipes(t, "everything", "stdio") }, "HTTP": overHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			h := newToolHost(t)
			server := start(t)
			const origin = "[data from the server everything] "
			for _, c := range []struct {
				tool, arguments, want string
				failed                bool
				media                 int
			}{
				{"echo", `{"message":"hello"}`, origin + "Echo: hello", false, 0},
				{"get-sum", `{"a":2,"b":40}`, "42", false, 0},
				{"get-sum", `{"a":"two","b":40}`, "The arguments were refused", true, 0},
				// The checksum of a chunk of its image without pixels is wrong.
				{"get-tiny-image", `{}`, "Here's the image you requested", false, 1},
				{"get-structured-content", `{"location":"Chicago"}`, `"humidity":82`, false, 0},
				{"get-annotated-message", `{"messageType":"error"}`, "Error: Operation failed", false, 0},
				{"get-resource-links", `{"count":2}`, "[Resource demo://resource/dynamic/", false, 0},
				{"get-resource-reference", `{"resourceType":"Text","resourceId":1}`, "demo://resource/dynamic/text/1", false, 0},
				{"trigger-long-running-operation", `{"duration":0.2,"steps":2}`, "Long running operation completed", false, 0},
				{"list_resources", `{}`, "demo://resource/dynamic/text/{resourceId}", false, 0},
				{"read_resource", `{"uri":"demo://resource/dynamic/text/7"}`, "Resource 7", false, 0},
				{"read_resource", `{"uri":"demo://resource/none"}`, "The server answered with an error", true, 0},
			} {
				r := h.call(server, c.tool, c.arguments)
				if r.GetIsError() != c.failed || !strings.Contains(r.GetResult(), c.want) || len(r.GetMedia()) != c.media {
					t.Errorf("%s %s: %v", c.tool, c.arguments, r)
				}
			}
			// The server has more tools for clients that let it use their models and their folders.
			for tool := range h.described(server) {
				if strings.Contains(tool, "sampling") || strings.Contains(tool, "roots") {
					t.Errorf("the client has declared what %s needs", tool)
				}
			}
		})
	}
}

// TestServerFilesystem: a server that writes files works in the workspace, and nowhere else.
func TestServerFilesystem(t *testing.T) {
	h := newToolHost(t)
	server := overPipes(t, "filesystem", h.dir)
	inside, outside := filepath.Join(h.dir, "new.txt"), filepath.Join(t.TempDir(), "out.txt")
	write := func(path string) *harnessv1.ExecuteToolResponse {
		arguments, err := json.Marshal(map[string]string{"path": path, "content": "written\n"})
		if err != nil {
			t.Fatal(err)
		}
		return h.call(server, "write_file", string(arguments))
	}
	if r := write(inside); r.GetIsError() {
		t.Errorf("%v", r)
	}
	if data, err := os.ReadFile(inside); err != nil || string(data) != "written\n" {
		t.Errorf("%q, %v", data, err)
	}
	if r := h.call(server, "read_text_file", `{"path":"`+inside+`"}`); r.GetIsError() || !strings.HasPrefix(r.GetResult(), "[data from the server filesystem] written") {
		t.Errorf("%v", r)
	}
	if r := write(outside); !r.GetIsError() {
		t.Errorf("outside of the workspace: %v", r)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("the server has written outside of the workspace")
	}
}

// TestServerMemory: what a server writes into the file that its settings name is there for its next
// process.
func TestServerMemory(t *testing.T) {
	h := newToolHost(t)
	server := overPipes(t, "memory")
	server.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(h.dir, "memory.jsonl")}
	if r := h.call(server, "create_entities", `{"entities":[{"name":"mesh","entityType":"project","observations":["has a ledger"]}]}`); r.GetIsError() {
		t.Fatalf("%v", r)
	}
	if _, err := h.CancelTools(t.Context(), &harnessv1.CancelToolsRequest{Namespace: "n", RunId: "r", FirstSequence: 1, Servers: true}); err != nil {
		t.Fatal(err)
	}
	if r := h.call(server, "search_nodes", `{"query":"ledger"}`); r.GetIsError() || !strings.Contains(r.GetResult(), "has a ledger") {
		t.Errorf("%v", r)
	}
}
