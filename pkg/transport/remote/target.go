package remote

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

var hostShape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$`)
})

// Check returns an error if a target is not HOST:PORT, where HOST is a name, an IPv4
// address or an IPv6 address in brackets.
func Check(target string) error {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return fmt.Errorf("%s is not HOST:PORT, such as 127.0.0.1:7700", strconv.Quote(target))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || port[0] == '0' {
		return fmt.Errorf("%s has no port from 1 to 65535 after the colon", strconv.Quote(target))
	}
	named := target[0] != '[' && hostShape().MatchString(host) && !strings.Contains(host, "..")
	if !named && net.ParseIP(host) == nil {
		return fmt.Errorf("%s has no host before the colon", strconv.Quote(target))
	}
	return nil
}

// Local reports whether a target is on this machine: localhost or an address of loopback.
// Another name is not local, whatever it resolves to: its meaning may change.
func Local(target string) bool {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// AllowList has the targets that specs from outside may name, as the operator wrote them.
type AllowList []string

// maxShown bounds a target in an error, in bytes.
const maxShown = 300

// Check returns an error for a target that is not allowed, with what to do.
func (a AllowList) Check(target string) error {
	if slices.ContainsFunc(a, func(t string) bool { return strings.EqualFold(t, target) }) {
		return nil
	}
	return fmt.Errorf("%q is no service that runs of this gateway may call: use one that it allows, or start it with --allow-target HOST:PORT", content.Cut(target, maxShown))
}
