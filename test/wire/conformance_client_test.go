//go:build wire

package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// The suite starts this binary as the client of each scenario, with its name in this variable and
// the address of its server as the last argument.
const scenarioVariable = "MCP_CONFORMANCE_SCENARIO"

// programVariable names the program that the client of a scenario runs.
const programVariable = "CONFORMANCE_HARNESS"

func TestMain(m *testing.M) {
	name, given := os.LookupEnv(scenarioVariable)
	if !given {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "conformance-")
	if err == nil {
		c := &conformanceClient{program: os.Getenv(programVariable), dir: dir, answer: `{"confirmed":true}`}
		err = os.Setenv("XDG_CONFIG_HOME", dir) // where a mesh notes its key
		err = errors.Join(err, c.do(name, os.Args[len(os.Args)-1]), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// conformanceClient is a person with the program harness, whose model makes the calls that a scenario expects.
type conformanceClient struct {
	program, dir string
	file         string   // with the server
	at           []string // the mesh, if it is another process
	answer       string   // to each question
	private      []string // hosts that the operator of that allows
}

// mcpCall is a call of a tool of the server, which is called s.
type mcpCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// scenarioContext is what the suite tells the client of some scenarios.
type scenarioContext struct {
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret"`
	ToolCalls    []mcpCall `json:"toolCalls"`
}

// scenarioCalls has the calls of scenarios whose tools are not those of scenarioContext. A scenario that
// is not here calls each tool of the server.
var scenarioCalls = map[string][]mcpCall{
	"initialize":               {},
	"request-metadata":         {},
	"json-schema-ref-no-deref": {},
	"tools_call":               {{"add_numbers", map[string]any{"a": 5, "b": 3}}},
	"sse-retry":                {{"test_reconnection", nil}},
	"http-standard-headers":    {{"test_headers", nil}, {"list_resources", nil}, {"read_resource", map[string]any{"uri": "file:///path/to/file%20name.txt"}}},
	"sep-2322-client-request-state": {
		{"test_mrtr_echo_state", nil}, {"test_mrtr_no_state", nil}, {"test_mrtr_unrelated", nil}, {"test_mrtr_no_result_type", nil},
	},
}

func (c *conformanceClient) do(scenario, url string) error {
	var told scenarioContext
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &told); err != nil {
			return err
		}
	}
	server := map[string]any{"url": url}
	if told.ClientID != "" {
		server["oauth"] = map[string]any{"client_id": told.ClientID, "client_secret": "${CONFORMANCE_SECRET}"}
		if err := os.Setenv("CONFORMANCE_SECRET", told.ClientSecret); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": server}})
	if err != nil {
		return err
	}
	c.file = filepath.Join(c.dir, "mcp.json")
	if err := os.WriteFile(c.file, data, 0o600); err != nil {
		return err
	}
	if strings.HasPrefix(scenario, "auth/") {
		return c.signedIn()
	}
	calls, known := scenarioCalls[scenario]
	switch {
	case told.ToolCalls != nil:
		calls = told.ToolCalls
	case !known:
		if calls, err = c.eachTool(); err != nil {
			return err
		}
	}
	if scenario == "elicitation-sep1034-client-defaults" { // its call runs while the question waits
		c.answer = "{}"
		_, err = c.served(func() (string, error) { return c.run(calls) })
		return err
	}
	_, err = c.run(calls)
	return err
}

// signedIn signs in and calls the tool of the server. While the run reports that a person has to sign in, it does both
// again, up to three times. Authorization servers on loopback are private hosts that the operator of a mesh has to allow.
func (c *conformanceClient) signedIn() error {
	for signIns := 0; signIns < 3; {
		said, err := c.served(func() (string, error) {
			said, err := c.login()
			if err != nil {
				return said, err
			}
			signIns++
			return c.run([]mcpCall{{Name: "test-tool"}})
		})
		host := refusedHost.FindStringSubmatch(said)
		switch {
		case host != nil && !slices.Contains(c.private, host[1]):
			c.private = append(c.private, host[1])
		case err != nil || strings.Contains(said, "[data from the server s]"):
			return err
		case !strings.Contains(said, "type harness mcp login"):
			return errors.New("the call failed, and no sign-in is missing")
		}
	}
	return errors.New("a sign-in is missing after three")
}

var refusedHost = regexp.MustCompile(`//(localhost:\d+)/\S* dial tcp: only the ports 80 and 443 are allowed`)

// served calls do while a mesh serves the data directory.
func (c *conformanceClient) served(do func() (string, error)) (string, error) {
	args := []string{"serve", "--data", c.data(), "--listen", "127.0.0.1:0", "--scripts", c.dir}
	for _, host := range c.private {
		args = append(args, "--sandbox-private-host", host)
	}
	cmd := exec.Command(c.program, args...)
	printed, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	cmd.Stdout = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	said, ready := "", false
	lines := bufio.NewScanner(printed)
	for !ready && lines.Scan() {
		said += lines.Text() + "\n"
		if m := gatewayReady.FindStringSubmatch(lines.Text()); m != nil {
			ready, c.at = true, []string{"--server", m[1]}
		}
	}
	defer func() { c.at = nil }()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, printed)
	}()
	if err = errors.New("the mesh does not start: " + said); ready {
		said, err = do()
	}
	stopped := cmd.Process.Signal(syscall.SIGTERM)
	<-drained
	return said, errors.Join(err, stopped, cmd.Wait())
}

func (c *conformanceClient) data() string { return filepath.Join(c.dir, "data") }

var signInAddress = regexp.MustCompile(`^https?://\S+\?\S*$`)

// login signs in, and returns what the command printed. The browser agrees immediately and follows the redirect of
// the authorization server.
func (c *conformanceClient) login() (string, error) {
	cmd := exec.Command(c.program, "mcp", "login", "s", "--mcp", c.file, "--no-browser", "--data", c.data(), "--wait", "20s")
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", err
	}
	defer in.Close()
	printed, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	cmd.Stdout = os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	said, visited := "", error(nil)
	for lines := bufio.NewScanner(io.TeeReader(printed, os.Stderr)); lines.Scan(); {
		said += lines.Text() + "\n"
		if signInAddress.MatchString(lines.Text()) {
			response, err := http.Get(lines.Text())
			if visited = err; err == nil {
				_ = response.Body.Close()
			}
		}
	}
	return said, errors.Join(visited, cmd.Wait())
}

// eachTool returns a call of each tool of the server.
func (c *conformanceClient) eachTool() (calls []mcpCall, err error) {
	cmd := exec.Command(c.program, "mcp", "list", "--mcp", c.file, "--output", "json", "--data", c.data())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var servers []struct{ Tools []string }
	if err := json.Unmarshal(out, &servers); err != nil {
		return nil, err
	}
	for _, name := range servers[0].Tools {
		calls = append(calls, mcpCall{strings.TrimPrefix(name, "mcp__s__"), map[string]any{"region": "us-west1"}})
	}
	return calls, nil
}

// run runs an agent whose model makes the calls, one in each turn, and answers what the server asks. It returns the
// events of the run.
func (c *conformanceClient) run(calls []mcpCall) (events string, err error) {
	type entry map[string]any
	turns := []entry{}
	for _, call := range calls {
		given := map[string]any{}
		for key, value := range call.Arguments {
			if value != nil { // a model that reads the schema leaves null out
				given[key] = value
			}
		}
		turns = append(turns, entry{"calls": []entry{{"name": "mcp__s__" + call.Name, "arguments": given}}})
	}
	turns = append(turns, entry{"calls": []entry{{"name": "work_complete", "arguments": entry{"summary": "done"}}}})
	script, err := json.Marshal(entry{"turns": turns})
	if err != nil {
		return "", err
	}
	file := filepath.Join(c.dir, "script.yaml")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return "", err
	}
	mesh := c.at
	if mesh == nil {
		mesh = []string{"--data", c.data()}
	}
	args := []string{"run", "--mcp", c.file, "--workspace", c.dir, "--model", "script:" + file, "--yolo", "go"}
	for range 10 {
		cmd := exec.Command(c.program, append(append(args, mesh...), "--output", "jsonl")...)
		cmd.Stderr = os.Stderr
		printed, err := cmd.Output()
		events += string(printed)
		result := lastResult.FindStringSubmatch(events)
		if result == nil || result[2] != "PARKED" {
			fmt.Fprintln(os.Stderr, events)
			return events, err
		}
		answer := exec.Command(c.program, append([]string{"answer", result[1], c.answer, "--no-resume"}, mesh...)...)
		answer.Stdout, answer.Stderr = os.Stderr, os.Stderr
		if err := answer.Run(); err != nil {
			return events, err
		}
		if args = []string{"resume", result[1]}; c.at != nil { // it continues there
			args = []string{"watch", result[1]}
		}
	}
	return events, errors.New("the run waits for more than ten answers")
}

var lastResult = regexp.MustCompile(`(?s).*"type":"result","run_id":"([^"]+)","status":"([^"]+)"`)
