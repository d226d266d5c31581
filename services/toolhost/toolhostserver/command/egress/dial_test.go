package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// TestDialledAddresses are the public ones of a host that are not this machine's.
func TestDialledAddresses(t *testing.T) {
	const public, other, own = "1.1.1.1", "2606:4700::1111", "8.8.8.8"
	for _, c := range []struct{ resolved, want []string }{
		{[]string{public, other}, []string{public, other}},
		{[]string{"10.0.0.1", public, "::1", "::ffff:127.0.0.1"}, []string{public}},
		{[]string{own, "::ffff:" + own, other}, []string{other}},
		{[]string{own}, nil},
		{nil, nil},
	} {
		p := New(Config{Resolve: func(context.Context, string) ([]netip.Addr, error) { return addresses(c.resolved), nil }})
		p.own = func() ([]net.Addr, error) {
			return []net.Addr{&net.IPNet{IP: net.ParseIP(own), Mask: net.CIDRMask(24, 32)}}, nil
		}
		got, err := p.dialer().Addresses(t.Context(), "example.com", 443)
		if len(got) != len(c.want) || (err == nil) != (len(c.want) > 0) {
			t.Errorf("%v: got %v, %v", c.resolved, got, err)
			continue
		}
		for i, a := range addresses(c.want) {
			if got[i] != a {
				t.Errorf("%v: got %v", c.resolved, got)
			}
		}
		p.config.Private = []sandbox.Host{{Name: "example.com"}}
		if got, _ := p.dialer().Addresses(t.Context(), "example.com", 443); len(got) != len(c.resolved) {
			t.Errorf("%v: for the operator's host got %v", c.resolved, got)
		}
	}
	p := New(Config{Resolve: func(context.Context, string) ([]netip.Addr, error) { return addresses([]string{public}), nil }})
	p.own = func() ([]net.Addr, error) { return nil, errors.New("no netlink") }
	if got, err := p.dialer().Addresses(t.Context(), "example.com", 443); err == nil {
		t.Errorf("without knowing this machine's: %v", got)
	}
}

func addresses(texts []string) []netip.Addr {
	all := make([]netip.Addr, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParseAddr(text)
	}
	return all
}
