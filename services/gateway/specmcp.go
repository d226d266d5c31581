package gateway

import (
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/input"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
)

// Bounds of servers, and of the parts of one.
const (
	maxServers       = 64
	maxServerArgs    = 64
	maxServerEnv     = 64
	maxServerHeaders = 32
	maxServerTools   = 256
	maxServerPins    = 2000
	maxServerText    = 8 << 10 // bytes of an argument, a value or an address
	maxClientID      = 2 << 10
	maxScopes        = 64
)

var (
	serverName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,40}$`) })
	variableName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })
	secretForm   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`) })
	scopeForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\x21\x23-\x5b\x5d-\x7e]{1,256}$`) }) // RFC 6749, section 3.3
	headerName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$") })
)

// checkServers refuses servers of tools that cannot be used.
func checkServers(servers []*harnessv1.McpServer) error {
	const field = "spec.agent.mcp"
	if len(servers) > maxServers {
		return fault.Invalid(field, "%d servers: at most %d", len(servers), maxServers)
	}
	names := map[string]bool{}
	for i, server := range servers {
		if err := fault.In(input.At(field, i), checkServer(server)); err != nil {
			return err
		}
		if names[server.GetName()] {
			return fault.Invalid(input.At(field, i)+".name", "duplicate server %q", server.GetName())
		}
		names[server.GetName()] = true
	}
	for i, server := range servers {
		for n, other := range servers {
			if n != i && server.GetPolicy() != harnessv1.ToolDecision_TOOL_DECISION_UNSPECIFIED && strings.HasPrefix(mcptool.Prefix(other), mcptool.Prefix(server)) {
				return fault.Invalid(input.At(field, i)+".policy", "the names of the tools of the server %s begin like those of %s: rename one of them", other.GetName(), server.GetName())
			}
		}
	}
	return nil
}

// checkSkills refuses folders of skills that no tool host could read.
func checkSkills(folders []string) error {
	const field, most = "spec.agent.skills", 16
	if len(folders) > most {
		return fault.Invalid(field, "%d folders: at most %d", len(folders), most)
	}
	for i, folder := range folders {
		if !path.IsAbs(folder) || strings.ContainsRune(folder, 0) {
			return fault.Invalid(input.At(field, i), "%q is not an absolute path", content.Clip(folder, 200))
		}
	}
	return nil
}

func checkServer(s *harnessv1.McpServer) error {
	switch {
	case !serverName().MatchString(s.GetName()):
		return fault.Invalid("name", "invalid name %q: must match [A-Za-z0-9_-]{1,40}", content.Clip(s.GetName(), 80))
	case s.GetHost() && s.GetCommand()+s.GetUrl()+s.GetGrpc() == "":
		return nil // of a spec that was read from a run: it is added again
	case s.GetCommand() == "" && s.GetUrl() == "" && s.GetGrpc() == "":
		return fault.Invalid("command", "the server %s has neither command nor url nor grpc: set one of them", s.GetName())
	case s.GetCommand() != "" && s.GetUrl() != "":
		return fault.Invalid("url", "the server %s has command and url: leave out one of them", s.GetName())
	case s.GetGrpc() != "" && s.GetCommand()+s.GetUrl() != "":
		return fault.Invalid("grpc", "the server %s has grpc, and command or url: leave out one of them", s.GetName())
	case s.GetCommand() != "" && len(s.GetHeaders()) > 0:
		return fault.Invalid("headers", "only a server with url or grpc has headers")
	case s.GetCommand() == "" && len(s.GetArgs())+len(s.GetEnv()) > 0:
		return fault.Invalid("args", "only a server with command has args and env")
	case s.GetGrpc() != "" && s.GetNetwork() != nil:
		return fault.Invalid("network", "only a server with command has a network")
	case s.GetTrust() != "" && s.GetTrust() != mcptool.TrustHints:
		return fault.Invalid("trust", "unknown trust %q: must be hints, or left out", content.Clip(s.GetTrust(), 80))
	case s.GetTimeout() != nil && (s.GetTimeout().CheckValid() != nil || s.GetTimeout().AsDuration() <= 0):
		return fault.Invalid("timeout", "must be more than 0")
	case len(s.GetTools()) > maxServerTools, len(s.GetIdempotent()) > maxServerTools, len(s.GetPins()) > maxServerPins:
		return fault.Invalid("tools", "at most %d names of tools, and %d pins", maxServerTools, maxServerPins)
	}
	if s.GetGrpc() != "" {
		if err := CheckToolService(s); err != nil {
			return err
		}
	}
	if err := checkServerTexts(s); err != nil {
		return err
	}
	if err := fault.In("oauth", checkOAuth(s)); err != nil {
		return err
	}
	if s.GetNetwork() != nil {
		return sandbox.Validate(&harnessv1.SandboxConfig{Network: s.GetNetwork()})
	}
	return nil
}

func checkServerTexts(s *harnessv1.McpServer) error {
	usable := func(text string) bool { return len(text) <= maxServerText && !strings.ContainsRune(text, 0) }
	if !usable(s.GetCommand()) {
		return fault.Invalid("command", "must have at most %d bytes, without NUL", maxServerText)
	}
	if len(s.GetArgs()) > maxServerArgs || len(s.GetEnv()) > maxServerEnv || len(s.GetHeaders()) > maxServerHeaders {
		return fault.Invalid("args", "at most %d arguments, %d variables and %d headers", maxServerArgs, maxServerEnv, maxServerHeaders)
	}
	for i, arg := range s.GetArgs() {
		if !usable(arg) {
			return fault.Invalid(input.At("args", i), "must have at most %d bytes, without NUL", maxServerText)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.GetEnv())) {
		if !variableName().MatchString(name) || !usable(s.GetEnv()[name]) {
			return fault.Invalid("env", "invalid variable %q: its name must match [A-Za-z_][A-Za-z0-9_]*, its value have at most %d bytes, without NUL", content.Clip(name, 80), maxServerText)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.GetHeaders())) {
		if !headerName().MatchString(name) || !usable(s.GetHeaders()[name]) || strings.ContainsAny(s.GetHeaders()[name], "\r\n") {
			return fault.Invalid("headers", "invalid header %q", content.Clip(name, 80))
		}
	}
	if s.GetUrl() == "" {
		return nil
	}
	if strings.Contains(s.GetUrl(), "${") && usable(s.GetUrl()) {
		return nil // it is known when its variables are
	}
	u, err := url.Parse(s.GetUrl())
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || !usable(s.GetUrl()) {
		return fault.Invalid("url", "invalid address %q: must be http:// or https:// with a host, and without a password, which belongs into headers", content.Clip(s.GetUrl(), 200))
	}
	return nil
}

// checkOAuth refuses settings of a sign-in that cannot be used.
func checkOAuth(s *harnessv1.McpServer) error {
	o := s.GetOauth()
	switch {
	case o == nil:
		return nil
	case s.GetUrl() == "":
		return fault.Invalid("client_id", "only a server with url has a sign-in")
	case len(o.GetClientId()) > maxClientID || strings.ContainsFunc(o.GetClientId(), unicode.IsControl):
		return fault.Invalid("client_id", "must have at most %d bytes, without control characters", maxClientID)
	case o.GetClientSecret() != "" && !secretForm().MatchString(o.GetClientSecret()):
		return fault.Invalid("client_secret", "must be a variable, such as ${CLIENT_SECRET}: settings are recorded")
	case o.GetClientSecret() != "" && o.GetClientId() == "":
		return fault.Invalid("client_id", "missing: client_secret is that of a client")
	case len(o.GetScopes()) > maxScopes:
		return fault.Invalid("scopes", "%d scopes: at most %d", len(o.GetScopes()), maxScopes)
	}
	for i, scope := range o.GetScopes() {
		if !scopeForm().MatchString(scope) {
			return fault.Invalid(input.At("scopes", i), "invalid scope %q: expected visible ASCII characters without quotes, spaces and backslashes", content.Clip(scope, 80))
		}
	}
	return nil
}

// CheckSignIn refuses a server at which no person can sign in.
func CheckSignIn(subject *harnessv1.SignInSubject) error {
	server := subject.GetServer()
	if err := fault.In("server", checkServer(server)); err != nil {
		return err
	}
	if server.GetUrl() == "" {
		return fault.Invalid("server.url", "missing: only a server with url has a sign-in")
	}
	if len(subject.GetVariables()) > maxServerEnv {
		return fault.Invalid("variables", "%d variables: at most %d", len(subject.GetVariables()), maxServerEnv)
	}
	for name, value := range subject.GetVariables() {
		if !variableName().MatchString(name) || len(value) > maxServerText {
			return fault.Invalid("variables", "invalid variable %q", content.Clip(name, 80))
		}
	}
	return nil
}
