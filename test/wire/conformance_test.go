//go:build wire

package wire

import (
	"encoding/json"
	"flag"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/program"
)

var every = flag.Bool("every", false, "run every scenario of the conformance suite of MCP, instead of those in quick")

// quick are the scenarios of a client that run without -every.
var quick = []string{
	"initialize 2025-11-25", "sse-retry 2025-11-25", "auth/metadata-default 2025-11-25",
	"tools_call 2026-07-28", "sep-2322-client-request-state 2026-07-28", "http-custom-headers 2026-07-28", "auth/scope-step-up 2026-07-28",
	"auth/iss-wrong-issuer 2026-07-28",
}

// exemption is a scenario, at both versions or at the one that its key names, that does not apply or has checks that do not.
type exemption struct {
	reason string
	// checks are the ones that fail; empty: the scenario does not run.
	checks []string
}

// timed are checks of the suite that compare times, whose result is not looked at.
var timed = []string{"client-sse-retry-timing"}

const (
	noMachineSignIn = "a person signs in, or the header of a token is in the settings; no other grant is supported"
	noSkills        = "skills are folders; those of servers are not supported"
)

var exemptClient = map[string]exemption{
	"json-schema-2020-12-preservation":      {reason: "a model is shown the converted schema of a tool, and no person the original"},
	"auth/basic-cimd":                       {"there is no public address for the metadata of a client: it registers", []string{"cimd-client-id-used"}},
	"sse-retry":                             {"a stream that ends during a call is not resumed: the end of the call is unknown", []string{"client-sse-last-event-id"}},
	"sep-2322-client-request-state":         {"another process continues the call; its connection numbers requests from the start", []string{"sep-2322-client-jsonrpc-id-different"}},
	"auth/client-credentials-jwt":           {reason: noMachineSignIn},
	"auth/client-credentials-basic":         {reason: noMachineSignIn},
	"auth/enterprise-managed-authorization": {reason: noMachineSignIn},
	"auth/dpop":                             {reason: noMachineSignIn},
	"auth/dpop-nonce":                       {reason: noMachineSignIn},
	"auth/wif-jwt-bearer":                   {reason: noMachineSignIn},
	"sep-2640-client-no-prefetch":           {reason: noSkills},
	"sep-2640-client-verify-digest":         {reason: noSkills},
	"sep-2640-client-verify-size":           {reason: noSkills},
	"sep-2640-client-verify-frontmatter":    {reason: noSkills},
}

// scenario is one of the suite at one version of the protocol.
type scenario struct{ name, version string }

var (
	sectionLine  = regexp.MustCompile(`^(Server|Client|Authorization server) scenarios`)
	scenarioLine = regexp.MustCompile(`^  - (\S+) \[(.*)\]$`)
)

// suite runs the program of the suite.
func suite(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	cli := filepath.Join("node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	if _, err := os.Stat(cli); err != nil {
		t.Fatalf("%v (npm ci in test/wire installs it)", err)
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{"--import", "./suite.mjs", cli}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// scenarios returns those of one side that are not exempt, at both versions of the protocol. Each of the suite runs or is
// exempt: one that a new version of the suite has runs, too.
func scenarios(t *testing.T, side string, exempt map[string]exemption) (run []scenario) {
	t.Helper()
	listed, err := suite(t, nil, "list")
	if err != nil {
		t.Fatalf("%v: %s", err, listed)
	}
	section, known := "", map[string]bool{}
	for line := range strings.SplitSeq(listed, "\n") {
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			section = m[1]
		}
		m := scenarioLine.FindStringSubmatch(line)
		if m == nil || section != side {
			continue
		}
		known[m[1]] = true
		e, exempted := exempt[m[1]]
		if exempted && e.checks == nil {
			continue
		}
		versions := strings.Split(m[2], ",")
		for _, v := range []string{oldProtocol, newProtocol} {
			known[m[1]+" "+v] = true
			if e, ok := exempt[m[1]+" "+v]; slices.Contains(versions, v) && (!ok || e.checks != nil) {
				run = append(run, scenario{m[1], v})
			}
		}
		if !slices.Contains(versions, oldProtocol) && !slices.Contains(versions, newProtocol) && m[2] != "2025-03-26" {
			t.Errorf("%s [%s] is neither run nor exempt", m[1], m[2])
		}
	}
	for name := range exempt {
		if !known[name] {
			t.Errorf("the suite has no scenario %s", name)
		}
	}
	if len(run) == 0 {
		t.Fatalf("no scenarios: %s", listed)
	}
	return run
}

// check runs a scenario, and fails unless exactly the exempt checks fail.
func (s scenario) check(t *testing.T, exempt []string, env []string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	printed, err := suite(t, env, append(args, "--scenario", s.name, "--spec-version", s.version, "-o", dir)...)
	var checks []struct{ ID, Status, ErrorMessage string }
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, werr error) error {
		if werr != nil || d.Name() != "checks.json" {
			return werr
		}
		data, rerr := os.ReadFile(path)
		if rerr != nil {
			return rerr
		}
		return json.Unmarshal(data, &checks)
	})
	var passed int
	var failed []string
	for _, c := range checks {
		switch {
		case c.Status == "SUCCESS":
			passed++
		case (c.Status == "FAILURE" || c.Status == "WARNING") && !slices.Contains(timed, c.ID) && !slices.Contains(failed, c.ID):
			failed = append(failed, c.ID)
		}
	}
	slices.Sort(failed)
	if !slices.Equal(failed, exempt) || passed == 0 {
		t.Errorf("%d checks passed, failed: %q, want %q: %v\n%s", passed, failed, exempt, err, printed)
	}
	if strings.Contains(printed, "CLIENT EXITED WITH ERROR") || strings.Contains(printed, "CLIENT TIMED OUT") {
		t.Errorf("%s", printed)
	}
}

// TestConformanceOfClient has the conformance suite of MCP check the tool host: for each of its scenarios it
// starts a server and a client, which is the program with a model that makes the expected calls.
func TestConformanceOfClient(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{programVariable + "=" + program.Path(t)}
	for _, s := range scenarios(t, "Client", exemptClient) {
		if !*every && !slices.Contains(quick, s.name+" "+s.version) {
			continue
		}
		t.Run(s.name+" "+s.version, func(t *testing.T) {
			t.Parallel()
			s.check(t, exemptClient[s.name].checks, env, "client", "--command", self)
		})
	}
}

const (
	noSuchTool    = "is about a tool of the suite's own server"
	noSuchFeature = "is about prompts, resources, logging or completion, which the gateway does not have"
	noQuestions   = "no tool of the gateway asks during a call"
	noSessions    = "there are no sessions"
	noTasks       = "tasks are not supported: a run is started and waited for"
)

var exemptServer = map[string]exemption{
	"server-sse-multiple-streams " + oldProtocol: {reason: noSessions},
	"caching": {noSuchFeature, []string{
		"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints", "sep-2549-resources-templates-list-caching-hints",
	}},
	// The SDK names the server in the result of server/discover itself, where this version of it wants it.
	"server-stateless": {noSuchTool, []string{
		"sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-missing-capability-http-400", "sep-2575-server-identifies-in-result-meta",
		"sep-2575-server-no-log-without-loglevel", "sep-2575-server-rejects-undeclared-capability",
	}},
}

func init() {
	for reason, names := range map[string]string{
		noSuchTool: "tools-call-simple-text tools-call-image tools-call-audio tools-call-embedded-resource tools-call-mixed-content tools-call-with-logging " +
			"tools-call-error tools-call-with-progress json-schema-2020-12 server-sse-polling http-custom-header-server-validation",
		noSuchFeature: "logging-set-level completion-complete resources-list resources-read-text resources-read-binary resources-templates-read resources-subscribe " +
			"resources-unsubscribe sep-2164-resource-not-found prompts-list prompts-get-simple prompts-get-with-args prompts-get-embedded-resource prompts-get-with-image " +
			"sep-2640-skills-directory sep-2640-skills-enumeration sep-2640-skills-manifest",
		noQuestions: "tools-call-sampling tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums input-required-result-basic-elicitation " +
			"input-required-result-basic-sampling input-required-result-basic-list-roots input-required-result-request-state input-required-result-multiple-input-requests " +
			"input-required-result-multi-round input-required-result-missing-input-response input-required-result-non-tool-request input-required-result-result-type " +
			"input-required-result-unsupported-methods input-required-result-tampered-state input-required-result-capability-check input-required-result-ignore-extra-params " +
			"input-required-result-validate-input",
		noSessions: "server-session-lifecycle",
		noTasks: "tasks-lifecycle tasks-capability-negotiation tasks-wire-fields tasks-request-state-removal tasks-mrtr-input tasks-request-headers " +
			"tasks-dispatch-and-envelope tasks-status-notifications tasks-required-task-error tasks-mrtr-composition",
	} {
		for name := range strings.FieldsSeq(names) {
			exemptServer[name] = exemption{reason: reason}
		}
	}
}

// bareRequests are scenarios whose requests cannot be given a header.
var bareRequests = []string{"dns-rebinding-protection", "http-header-validation"}

// newProxy starts a proxy that sends each request where rewrite says.
func newProxy(rewrite func(*httputil.ProxyRequest)) *httptest.Server {
	proxy := &httputil.ReverseProxy{Rewrite: rewrite}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // else the answer's first byte ends the proxy's reading
		proxy.ServeHTTP(w, r)
	}))
}

// TestConformanceOfServer has the conformance suite of MCP check /mcp of a gateway. suite.mjs adds the key of the gateway to
// its requests, a proxy to those where that is not possible; it leaves hosts and origins unchanged.
func TestConformanceOfServer(t *testing.T) {
	dir := t.TempDir()
	address := serveMesh(t, program.Path(t), dir, "--data", filepath.Join(dir, "data"))
	data, err := os.ReadFile(filepath.Join(dir, "data", "gateway.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimSpace(string(data))
	proxy := newProxy(func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: address})
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+key)
	})
	t.Cleanup(proxy.Close)
	t.Cleanup(proxy.CloseClientConnections)
	for _, s := range scenarios(t, "Server", exemptServer) {
		t.Run(s.name+" "+s.version, func(t *testing.T) {
			at := "http://" + address
			if slices.Contains(bareRequests, s.name) {
				at = proxy.URL
			}
			s.check(t, exemptServer[s.name].checks, []string{"CONFORMANCE_TOKEN=" + key}, "server", "--url", at+"/mcp")
		})
	}
	response, err := http.Post("http://"+address+"/mcp", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the key: %s", response.Status)
	}
}

var gatewayReady = regexp.MustCompile(`ready role=gateway addr=(\S+)`)

// serveMesh starts a mesh in one process until the end of the test, and returns the address of its gateway. Its key is noted
// in dir.
func serveMesh(t *testing.T, harness, dir string, args ...string) (address string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(harness, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "XDG_CONFIG_HOME="+dir), log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		_ = log.Close()
	})
	awaitPrinted(t, log.Name(), ended, func(text string) bool {
		if m := gatewayReady.FindStringSubmatch(text); m != nil {
			address = m[1]
		}
		return address != ""
	})
	return address
}
