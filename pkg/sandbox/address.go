package sandbox

import "net/netip"

// Blocks of addresses, by the registries of special-purpose addresses of IANA (RFC 6890 and
// later).
var (
	special = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
		"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
		"168.63.129.16/32", // the platform of Azure, seen by its machines only
		"2001::/23", "2001:db8::/32", "3fff::/20",
	)
	// global are all public addresses of IPv6; nat64 and sixToFour contain one of IPv4.
	global    = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}

// Public reports whether an address is one of the public internet. Loopback, link-local,
// private, shared, unique-local, multicast and reserved ones are not, neither as such nor
// within an address of IPv6: mapped, or for a translation such as NAT64.
func Public(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	a = a.Unmap()
	if bytes := a.AsSlice(); nat64.Contains(a) {
		a = netip.AddrFrom4([4]byte(bytes[12:16]))
	} else if sixToFour.Contains(a) {
		a = netip.AddrFrom4([4]byte(bytes[2:6]))
	}
	for _, block := range special {
		if block.Contains(a) {
			return false
		}
	}
	return a.Is4() || global.Contains(a)
}
