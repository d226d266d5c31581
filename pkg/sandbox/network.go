package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// Short names of the networks.
const (
	networkNone  = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_NONE
	networkAll   = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
	networkHosts = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS
)

// MaxHosts bounds the hosts of a network, and those of a call.
const MaxHosts = 100

// Host is a host that commands may reach.
type Host struct {
	// Name is the name in lower case, without a dot at its end. If Below is set, it means
	// every name below it instead.
	Name  string
	Below bool
	// Port is 0 for the ports 80 and 443.
	Port uint16
}

// matches reports whether h is the host with a name that NormalName has returned, at a port.
func (h Host) matches(name string, port uint16) bool {
	if h.Port != port && (h.Port != 0 || port != 80 && port != 443) {
		return false
	}
	if h.Below {
		return strings.HasSuffix(name, "."+h.Name)
	}
	return name == h.Name
}

// Matches reports whether one of hosts is the host with a name that NormalName has returned,
// at a port.
func Matches(hosts []Host, name string, port uint16) bool {
	return slices.ContainsFunc(hosts, func(h Host) bool { return h.matches(name, port) })
}

// NormalName returns the name of a host in lower case and without the dot at its end. It
// returns false for a text that is no name, such as an address in any notation.
func NormalName(name string) (string, bool) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name, validName(name)
}

// ParseHost parses NAME, NAME:PORT, *.NAME or *.NAME:PORT. The error names the accepted forms.
func ParseHost(text string) (Host, error) {
	if isAddress(text) {
		return Host{}, fmt.Errorf("%q is an address: name the host, because its address can change", text)
	}
	name, port, hasPort := strings.Cut(text, ":")
	h := Host{Name: strings.ToLower(name)}
	if hasPort {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return h, fmt.Errorf("%q has no port from 1 to 65535 after the colon", text)
		}
		h.Port = uint16(n)
	}
	if below, ok := strings.CutPrefix(h.Name, "*."); ok {
		h.Name, h.Below = below, true
	}
	switch {
	case h.Name == "*":
		return h, fmt.Errorf("%q is every host: use the network all", text)
	case strings.HasSuffix(h.Name, "."):
		return h, fmt.Errorf("%q ends with a dot: leave it out", text)
	case !validName(h.Name):
		return h, fmt.Errorf("%q is no name of a host: write example.com, example.com:8443 or *.example.com, and names with other letters in their xn-- form", text)
	case h.Below && !strings.Contains(h.Name, "."):
		return h, fmt.Errorf("%q is a whole top-level domain: name the hosts that are needed", text)
	}
	return h, nil
}

// isAddress reports whether a text is an address, with or without brackets and port.
func isAddress(text string) bool {
	if _, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return true
	}
	_, err := netip.ParseAddrPort(text)
	return err == nil
}

// validName reports whether a name in lower case is that of a host. Underscores are allowed,
// because hosts have them. The last label is no number: resolvers take such names for
// addresses, as in 127.1 or 0x7f000001.
func validName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	var last string
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
		for _, c := range label {
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
				return false
			}
		}
		last = label
	}
	return strings.Trim(last, "0123456789") != "" && (!strings.HasPrefix(last, "0x") || strings.Trim(last[2:], "0123456789abcdef") != "")
}

// Hosts returns the hosts that a configuration names, nil if its network is not HOSTS. It
// leaves out what Validate refuses.
func Hosts(c *harnessv1.SandboxConfig) []Host {
	if c.GetNetwork().GetMode() != networkHosts {
		return nil
	}
	var hosts []Host
	for _, text := range c.GetNetwork().GetHosts() {
		if h, err := ParseHost(text); err == nil {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// WithHosts returns a configuration with more hosts. A network that has all of them is not
// changed.
func WithHosts(c *harnessv1.SandboxConfig, hosts []string) *harnessv1.SandboxConfig {
	if len(hosts) == 0 || c.GetNetwork().GetMode() == networkAll {
		return c
	}
	more := &harnessv1.SandboxConfig{}
	if c != nil {
		more = proto.CloneOf(c)
	}
	more.Network = &harnessv1.SandboxNetwork{Mode: networkHosts, Hosts: slices.Concat(c.GetNetwork().GetHosts(), hosts)}
	return more
}

// Missing returns the hosts of a call that commands cannot reach with a configuration at the
// level full. The error names the one that is none.
func Missing(c *harnessv1.SandboxConfig, hosts []string) ([]string, error) {
	reached := Hosts(c)
	var missing []string
	for _, text := range hosts {
		h, err := ParseHost(text)
		if err != nil {
			return nil, err
		}
		if c.GetNetwork().GetMode() != networkAll && !slices.ContainsFunc(reached, h.in) {
			missing = append(missing, text)
		}
	}
	return missing, nil
}

// in reports whether all that h matches is matched by wider.
func (h Host) in(wider Host) bool {
	if h.Port != wider.Port && (wider.Port != 0 || h.Port != 80 && h.Port != 443) {
		return false
	}
	if wider.Below {
		return strings.HasSuffix(h.Name, "."+wider.Name) || h.Below && h.Name == wider.Name
	}
	return !h.Below && h.Name == wider.Name
}

func validateNetwork(n *harnessv1.SandboxNetwork) error {
	hosts := n.GetMode() == networkHosts
	switch {
	case harnessv1.SandboxNetworkMode_name[int32(n.GetMode())] == "":
		return fault.Invalid("network.mode", "unknown mode %d: expected NONE, ALL or HOSTS", n.GetMode())
	case hosts && len(n.GetHosts()) == 0:
		return fault.Invalid("network.hosts", "no host is named: name hosts, or use none")
	case !hosts && len(n.GetHosts()) > 0:
		return fault.Invalid("network.hosts", "hosts are only for the mode HOSTS")
	case len(n.GetHosts()) > MaxHosts:
		return fault.Invalid("network.hosts", "%d hosts exceed the limit of %d", len(n.GetHosts()), MaxHosts)
	}
	for i, text := range n.GetHosts() {
		if _, err := ParseHost(text); err != nil {
			return fault.Invalid(fmt.Sprintf("network.hosts[%d]", i), "%v", err)
		}
	}
	return nil
}
