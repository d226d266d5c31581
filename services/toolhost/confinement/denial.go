package confinement

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// Reach is what a command could reach.
type Reach struct {
	// Read are files and folders that it could read, Write those that it could write too.
	Read, Write []string
	// Internet is true if it had network.
	Internet bool
	// Proxy is true if it had a proxy to named hosts, Asks if its call can ask for hosts.
	Proxy, Asks bool
}

// kernels are the folders of the kernel, of which a command has a part.
var kernels = []string{"/dev", "/proc", "/sys"}

// Errors with which the kernel refuses a path, as C libraries and languages write them. An
// exit code does not show why a command failed.
var refusal = regexp.MustCompile(`(?i)permission denied|operation not permitted|read-only file system|no such file or directory|nonexistent|enoent|eacces|eperm|erofs`)

// missing are those of a path that is not there.
var missing = regexp.MustCompile(`(?i)no such file or directory|nonexistent|enoent`)

var absolutePath = regexp.MustCompile("(?:^|[\\s'\"`(=:\\[‘])(/[^\\s'\"`,;)\\]:’]+)")

// noNetwork are errors of programs that have no network.
var noNetwork = regexp.MustCompile(`(?i)could not resolve host|temporary failure in name resolution|name or service not known|network is unreachable|` +
	`getaddrinfo (enotfound|eai_again)|no such host|dial (tcp|udp)[^\n]*operation not permitted|socket: (operation not permitted|address family not supported)`)

// maxDenials bounds the paths that are named.
const maxDenials = 3

// Refused returns a text for the model about paths and hosts that the sandbox has refused to a
// command, guessed from the errors in its output and from its reach; empty for none. outside is
// true if commands can ask to run outside.
func (r Reach) Refused(output string, outside bool) string {
	var hidden, fixed []string
	for line := range strings.Lines(output) {
		if !refusal.MatchString(line) {
			continue
		}
		for _, match := range absolutePath.FindAllStringSubmatch(line, -1) {
			path := filepath.Clean(strings.TrimRight(match[1], ".!?"))
			switch {
			case covers(r.Write, path) || covers(kernels, path) || path == "/" || len(hidden)+len(fixed) == maxDenials:
			case covers(r.Read, path):
				if !missing.MatchString(line) && !slices.Contains(fixed, path) {
					fixed = append(fixed, path)
				}
			case leadsTo(r, path): // a folder above what it reaches
			case !slices.Contains(hidden, path):
				hidden = append(hidden, path)
			}
		}
	}
	var said []string
	if len(hidden) > 0 {
		said = append(said, "The sandbox does not let commands reach "+strings.Join(hidden, ", ")+".")
	}
	if len(fixed) > 0 {
		said = append(said, "In the sandbox commands can read but not change "+strings.Join(fixed, ", ")+".")
	}
	alone := !r.Internet && noNetwork.MatchString(output)
	if alone && !r.Proxy && !r.Asks {
		said = append(said, "Commands of this run have no network.")
	}
	if len(said) > 0 && outside {
		said = append(said, `If the task needs this, repeat the call with unconfined and the reason: a person decides about it.`)
	}
	switch {
	case alone && r.Proxy:
		said = append(said, "Commands of this run reach hosts through the proxy in HTTPS_PROXY alone, and this program did not use it.")
	case alone && r.Asks:
		said = append(said, "Commands of this run have no network. If the task needs it, repeat the call with the hosts: a person decides about it.")
	}
	return strings.Join(said, " ")
}

// leadsTo reports whether something that can be reached is below a path.
func leadsTo(r Reach, path string) bool {
	below := func(folder string) bool { return sandbox.Within(folder, path) }
	return slices.ContainsFunc(r.Read, below) || slices.ContainsFunc(r.Write, below)
}
