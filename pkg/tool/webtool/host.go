package webtool

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// MaxURL bounds an address, in bytes.
const MaxURL = 8 << 10

// Site is the host of an address.
type Site struct {
	// Name is a name in lower case, or an IP address in its canonical form.
	Name string
	// Port is that of the address, or of its scheme.
	Port   uint16
	Secure bool
}

// String returns the host as rules have it: without the port if it is 80 or 443.
func (s Site) String() string {
	if s.Port == 80 || s.Port == 443 {
		return s.Name
	}
	if strings.Contains(s.Name, ":") {
		return "[" + s.Name + "]:" + strconv.Itoa(int(s.Port))
	}
	return s.Name + ":" + strconv.Itoa(int(s.Port))
}

// In reports whether one of hosts matches the host, a pattern such as *.NAME included.
func (s Site) In(hosts []sandbox.Host) bool { return sandbox.Matches(hosts, s.Name, s.Port) }

// Of returns the host of an address.
func Of(u *url.URL) (Site, error) {
	s := Site{Port: 80, Secure: u.Scheme == "https"}
	if s.Secure {
		s.Port = 443
	}
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return s, fmt.Errorf("the port %q is none from 1 to 65535", content.Clip(text, 80))
		}
		s.Port = uint16(n)
	}
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil && a.Zone() == "" {
		s.Name = a.Unmap().String()
		return s, nil
	}
	name, ok := sandbox.NormalName(host)
	if !ok {
		return s, fmt.Errorf("%q is no name of a host: write names with other letters in their xn-- form", content.Clip(host, 80))
	}
	s.Name = name
	return s, nil
}

// ParseURL parses an address that a model or a file names: http:// or https://, with a host and
// without credentials. The error is one line that can follow the address.
func ParseURL(text string) (*url.URL, Site, error) {
	if len(text) > MaxURL {
		return nil, Site{}, fmt.Errorf("the address has more than %d bytes", MaxURL)
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, Site{}, errors.New("the address cannot be parsed")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, Site{}, errors.New("the address must begin with http:// or https://")
	case u.Host == "":
		return nil, Site{}, errors.New("the address has no host")
	case u.User != nil:
		return nil, Site{}, errors.New("the address must have no user and no password")
	}
	site, err := Of(u)
	return u, site, err
}

// ParseHost parses NAME, NAME:PORT, *.NAME, *.NAME:PORT, or an IP address with or without a port.
func ParseHost(text string) (sandbox.Host, error) {
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil && a.Zone() == "" {
		return sandbox.Host{Name: a.Unmap().String()}, nil
	}
	if a, err := netip.ParseAddrPort(text); err == nil && a.Addr().Zone() == "" && a.Port() > 0 {
		return sandbox.Host{Name: a.Addr().Unmap().String(), Port: a.Port()}, nil
	}
	return sandbox.ParseHost(text)
}
