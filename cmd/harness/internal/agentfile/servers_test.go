package agentfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/agentfile"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

const foreign = `{"mcpServers": {
	"git": {"type": "stdio", "command": "git-server", "args": ["-v"], "env": {"TOKEN": "${TOKEN}"}, "alwaysAllow": ["x"]},
	"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${T}"}},
	"off": {"command": "x", "disabled": true}
}, "inputs": []}`

// TestServers: a list, a mapping of names, and the file of another program mean the same.
func TestServers(t *testing.T) {
	read := func(path string) ([]byte, error) {
		if path != ".mcp.json" {
			return nil, fs.ErrNotExist
		}
		return []byte(foreign), nil
	}
	for name, c := range map[string]struct{ text, want string }{
		"a mapping": {"mcp:\n  git: {command: g, args: [-v], env: {A: 1}, network: all, shared: true, timeout: 5s}",
			`name: "git" command: "g" args: "-v" env { key: "A" value: "1" } network { mode: SANDBOX_NETWORK_MODE_ALL } shared: true timeout { seconds: 5 }`},
		"a list":            {"mcp:\n  - {name: web, url: 'http://localhost:1/mcp', network: [a.example]}", `name: "web" url: "http://localhost:1/mcp" network { mode: SANDBOX_NETWORK_MODE_HOSTS hosts: "a.example" }`},
		"tool services":     {"mcp: {git: {command: g}}\ntool_services:\n  billing: 127.0.0.1:9000\n  pay: {grpc: 'pay.example:1', trust: hints, idempotent: [look], headers: {authorization: 'Bearer ${T}'}}", `name: "git" command: "g"|name: "billing" grpc: "127.0.0.1:9000"|name: "pay" grpc: "pay.example:1" trust: "hints" idempotent: "look" headers { key: "authorization" value: "Bearer ${T}" }`},
		"a list of these":   {"tool_services: [{name: pay, grpc: 'pay.example:1', timeout: 5s}]", `name: "pay" grpc: "pay.example:1" timeout { seconds: 5 }`},
		"another program's": {"mcp: .mcp.json", `name: "git" command: "git-server" args: "-v" env { key: "TOKEN" value: "${TOKEN}" }|name: "web" url: "https://example.com/mcp" headers { key: "Authorization" value: "Bearer ${T}" }`},
		"a sign-in": {"mcp:\n  - {name: web, url: 'https://example.com/mcp', oauth: {client_id: me, client_secret: '${S}', scopes: [a, b]}}",
			`name: "web" url: "https://example.com/mcp" oauth { client_id: "me" client_secret: "${S}" scopes: "a" scopes: "b" }`},
	} {
		file, err := agentfile.Parse("agent.yaml", []byte(c.text), read)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, text := range strings.Split(c.want, "|") {
			want := &harnessv1.McpServer{}
			if err := prototext.Unmarshal([]byte(text), want); err != nil {
				t.Fatal(err)
			}
			if len(file.Agent.GetMcp()) <= i || !proto.Equal(file.Agent.GetMcp()[i], want) {
				t.Errorf("%s: got %v, want %v", name, file.Agent.GetMcp(), want)
			}
		}
	}
	for text, want := range map[string]string{
		"mcp:\n  a: {command: x, url: 'http://x/'}":                    "leave out one of them",
		"mcp:\n  a: {command: [x, y], args: [z]}":                      "leave out args",
		"mcp:\n  a: {args: [z], command: [x, y]}":                      "leave out args",
		"mcp:\n  a: {command: []}":                                     "expected a program",
		"mcp:\n  a: {command: x, policy: never}":                       "expected one of",
		"mcp:\n  a: {command: x, load: eager}":                         "expected one of",
		"mcp:\n  a: {command: x, policy: allow}\n  a__b: {command: x}": "rename one of them",
		"mcp:\n  a: {}":                                              "neither command nor url",
		"mcp:\n  a: {comand: x}":                                     "unknown field",
		"mcp:\n  'a b': {command: x}":                                "must match",
		"mcp:\n  a: {url: 'ftp://x'}":                                "must be http:// or https://",
		"mcp:\n  a: {command: x, trust: all}":                        "must be hints",
		"mcp: missing.json":                                          "cannot be read",
		"mcp:\n  - {name: a, command: x}\n  - {name: a, command: x}": "duplicate server",
		"skills: 3":                                                                  "skills",
		"mcp:\n  a: {grpc: 'x:1'}":                                                   "below tool_services",
		"tool_services:\n  a: {command: x}":                                          "missing grpc",
		"tool_services: 3":                                                           "expected a list of services",
		"tool_services:\n  a: x":                                                     "must be HOST:PORT",
		"tool_services:\n  mcp: 'x:1'":                                               "another name",
		"tool_services:\n  mcp_x: 'x:1'":                                             "another name",
		"tool_services:\n  a: {grpc: 'x:1', command: y}":                             "leave out one of them",
		"tool_services:\n  a: {grpc: 'x:1', network: none}":                          "only a server with command",
		"tool_services:\n  a: {host: true}":                                          "unknown field",
		"mcp: {a: {command: x}}\ntool_services: {a: 'x:1'}":                          "duplicate server",
		"tools: [{name: billing__pay, policy: deny}]\ntool_services: {a: 'x:1:2'}":   "must be HOST:PORT",
		"mcp:\n  a: {url: 'https://x/', oauth: {client_id: a, client_secret: open}}": "must be a variable",
	} {
		if _, err := agentfile.Parse("agent.yaml", []byte(text), read); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestServersOfAFileWithComments: such files of other programs are read, and their errors name the line.
func TestServersOfAFileWithComments(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"line comments":     {"// the servers\n{\"mcpServers\": { // all\n\t\"git\": {\"command\": \"g\"} // it's \"one\"\n}}", `name: "git" command: "g"`},
		"block comments":    {"/* the\n servers */ {\"mcpServers\": {\"git\": {/* \"command\": \"x\", */ \"command\": \"g\"}}}/**/", `name: "git" command: "g"`},
		"trailing commas":   {"{\"mcpServers\": {\"git\": {\"command\": \"g\", \"args\": [\"-v\",],},},}", `name: "git" command: "g" args: "-v"`},
		"no comments":       {`{"mcpServers": {"web": {"url": "https://example.com//a/*b*/", "headers": {"A": "\"//"}}}}`, `name: "web" url: "https://example.com//a/*b*/" headers { key: "A" value: "\"//" }`},
		"a byte order mark": {"\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t// one\r\n\t\t\"git\": {\"command\": \"g\"},\r\n\t}\r\n}\r\n", `name: "git" command: "g"`},
		"an open comment":   {"{\"mcpServers\": {\"git\": {\"command\": \"g\"}}} /* end", `name: "git" command: "g"`},
		"single quotes":     {"{'mcpServers': {'web': {'url': 'https://example.com'}}} // it's", `name: "web" url: "https://example.com"`},
		"YAML":              {"mcpServers:\n  web: {url: https://example.com//a}\n", `name: "web" url: "https://example.com//a"`},
	} {
		want := &harnessv1.McpServer{}
		if err := prototext.Unmarshal([]byte(c.want), want); err != nil {
			t.Fatal(err)
		}
		read := func(string) ([]byte, error) { return []byte(c.text), nil }
		file, err := agentfile.Parse("agent.yaml", []byte("mcp: .mcp.json"), read)
		if err != nil || len(file.Agent.GetMcp()) != 1 || !proto.Equal(file.Agent.GetMcp()[0], want) {
			t.Errorf("%s: %v %v", name, file, err)
		}
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		flag, err := agentfile.Parse("agent.yaml", []byte("name: a"), agentfile.Read)
		if err != nil {
			t.Fatal(err)
		}
		if err := flag.LoadServers(path); err != nil || len(flag.Agent.GetMcp()) != 1 || !proto.Equal(flag.Agent.GetMcp()[0], want) {
			t.Errorf("%s, by a flag: %v %v", name, flag.Agent, err)
		}
	}
	read := func(string) ([]byte, error) { return []byte("/* a\n b */\n{\"mcpServers\": {\"git\": [3]}}"), nil }
	if _, err := agentfile.Parse("agent.yaml", []byte("mcp: .mcp.json"), read); err == nil || !strings.Contains(err.Error(), ".mcp.json:3:") {
		t.Errorf("the line of an error: %v", err)
	}
}

// TestLock: the pins next to an agent file are those of its servers; a damaged file is an error.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent.yaml")
	load := func(lock string) (*agentfile.File, error) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte("mcp:\n  a: {command: x}\n  b: {command: y}"), 0o600), os.WriteFile(agentfile.LockPath(path), []byte(lock), 0o600)); err != nil {
			t.Fatal(err)
		}
		file, err := agentfile.Load(path, agentfile.Read)
		if err != nil {
			t.Fatal(err)
		}
		return file, file.LoadLock(path)
	}
	file, err := load(`{"a": {"t": "digest"}, "gone": {"t": "digest"}}`)
	if err != nil || file.Agent.GetMcp()[0].GetPins()["t"] != "digest" || file.Agent.GetMcp()[1].GetPins() != nil {
		t.Errorf("%v %v", file.Agent, err)
	}
	if _, err := load(`{`); err == nil || !strings.Contains(err.Error(), "harness mcp lock") {
		t.Errorf("%v", err)
	}
}

func TestWebOfAFile(t *testing.T) {
	const text = `name: a
model: script:x.yaml
web:
  fetch: true
  search: {backend: searxng, url: "http://search.internal"}
  allow: [search.internal]
  credentials: [{host: api.example.com, headers: {Authorization: "Bearer ${TOKEN}"}}]
tools: [{name: http_request, policy: allow, host: api.example.com}]
`
	file, err := agentfile.Parse("agent.yaml", []byte(text), func(string) ([]byte, error) { return nil, fs.ErrNotExist })
	if err != nil {
		t.Fatal(err)
	}
	want := &harnessv1.Web{
		Fetch: true, Search: &harnessv1.WebSearch{Backend: "searxng", Url: "http://search.internal"}, Allow: []string{"search.internal"},
		Credentials: []*harnessv1.WebCredential{{Host: "api.example.com", Headers: map[string]string{"Authorization": "Bearer ${TOKEN}"}}},
	}
	if !proto.Equal(file.Agent.GetWeb(), want) || file.Agent.GetTools()[0].GetHost() != "api.example.com" {
		t.Errorf("%v", file.Agent)
	}
}

// TestSignInOfAnotherProgram: its client and scopes count, and its further keys do not matter.
func TestSignInOfAnotherProgram(t *testing.T) {
	const text = `{"mcpServers": {"web": {"url": "https://example.com/mcp", "oauth": {"clientId": "me", "callbackPort": 1, "scopes": ["a"]}}}}`
	file, err := agentfile.Parse("agent.yaml", []byte("mcp: x.json"), func(string) ([]byte, error) { return []byte(text), nil })
	if err != nil {
		t.Fatal(err)
	}
	if got, want := file.Agent.GetMcp()[0].GetOauth(), (&harnessv1.McpOAuth{ClientId: "me", Scopes: []string{"a"}}); !proto.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
