package sandbox_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

func hosts(names ...string) *harnessv1.SandboxConfig {
	return &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_HOSTS, Hosts: names}}
}

// TestHostsMatch by name and port.
func TestHostsMatch(t *testing.T) {
	for _, c := range []struct {
		host, name string
		port       uint16
		want       bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "example.com", 80, true},
		{"Example.COM", "EXAMPLE.com.", 443, true},
		{"example.com", "example.com", 8443, false},
		{"example.com", "a.example.com", 443, false},
		{"example.com", "badexample.com", 443, false},
		{"example.com", "example.com.evil.org", 443, false},
		{"example.com:8443", "example.com", 8443, true},
		{"example.com:8443", "example.com", 443, false},
		{"example.com:443", "example.com", 80, false},
		{"*.example.com", "a.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", "badexample.com", 443, false},
		{"*.example.com:22", "a.example.com", 22, true},
		{"*.example.com:22", "a.example.com", 443, false},
		{"xn--bcher-kva.example", "XN--bcher-kva.example", 443, true},
		{"localhost", "localhost", 80, true},
	} {
		h, err := sandbox.ParseHost(c.host)
		if err != nil {
			t.Fatal(err)
		}
		name, valid := sandbox.NormalName(c.name)
		if got := valid && sandbox.Matches([]sandbox.Host{{Name: "other.org"}, h}, name, c.port); got != c.want {
			t.Errorf("%s matches %s:%d: got %v", c.host, c.name, c.port, got)
		}
	}
}

// TestParseHostSaysWhatToWrite for what names no host.
func TestParseHostSaysWhatToWrite(t *testing.T) {
	for text, want := range map[string]string{
		"": "no name", "*": "network all", "*:443": "network all", "*.com": "top-level", "10.0.0.1": "address", "10.0.0.1:80": "address", "::1": "address", "[::1]": "address",
		"[::1]:443": "address", "::ffff:1.2.3.4": "address", "127.1": "no name", "0x7f000001": "no name", "2130706433": "no name", "example.com.": "dot", "example.com.:443": "dot",
		"example.com:": "port", "example.com:0": "port", "example.com:65536": "port", "example.com:+80": "port", "example.com:80:90": "port", "http://example.com": "port",
		"bücher.example": "xn--", "a..b": "no name", "-a.example": "no name", "a b.example": "no name", "a.*.example": "no name", "**.example.com": "no name",
		"a\x00.example": "no name", "a/b.example": "no name", "user@example.com": "no name", strings.Repeat("a", 64) + ".example": "no name", strings.Repeat("a.", 130) + "example": "no name",
	} {
		if h, err := sandbox.ParseHost(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v, want %q", text, h, err, want)
		}
	}
}

// TestNormalNameTakesNoAddress in any notation that a resolver knows.
func TestNormalNameTakesNoAddress(t *testing.T) {
	for _, text := range []string{"127.0.0.1", "127.0.0.1.", "127.1", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "a.0x7F", "0x", "2130706433", "::1", "[::1]", "::ffff:127.0.0.1", "fe80::1%lo", "", ".", "a..", "a\r\nb", "é.example"} {
		if name, ok := sandbox.NormalName(text); ok {
			t.Errorf("%q is the name %q", text, name)
		}
	}
	if name, ok := sandbox.NormalName("A_b.Example."); !ok || name != "a_b.example" {
		t.Errorf("got %q, %v", name, ok)
	}
}

// TestPublicAddresses in each family, and in forms that contain others.
func TestPublicAddresses(t *testing.T) {
	for text, want := range map[string]bool{
		"1.1.1.1": true, "93.184.216.34": true, "2606:4700::1111": true, "64:ff9b::101:101": true, "::ffff:1.1.1.1": true, "2002:101:101::1": true, "172.32.0.1": true, "100.128.0.1": true,
		"0.0.0.0": false, "10.1.2.3": false, "100.64.0.1": false, "100.100.100.200": false, "127.0.0.1": false, "127.255.0.1": false, "169.254.169.254": false, "172.16.0.1": false,
		"172.31.255.255": false, "192.0.0.192": false, "192.168.1.1": false, "198.18.0.1": false, "203.0.113.5": false, "224.0.0.1": false, "255.255.255.255": false, "168.63.129.16": false,
		"::": false, "::1": false, "::7f00:1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b::a9fe:a9fe": false, "64:ff9b:1::101:101": false,
		"2002:7f00:1::": false, "2002:a00:1::1": false, "2001::1": false, "2001:db8::1": false, "fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fec0::1": false, "ff02::1": false,
		"2606:4700::1111%eth0": false, "3fff::1": false, "5f00::1": false,
	} {
		if got := sandbox.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if sandbox.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

// TestHostsNeedNamespaces: at other levels they are refused, not widened.
func TestHostsNeedNamespaces(t *testing.T) {
	c := hosts("example.com")
	for _, level := range []harnessv1.SandboxLevel{sandbox.Kernel, sandbox.Off} {
		if got, err := sandbox.Choose(&harnessv1.SandboxSupport{Level: level, Reason: "bubblewrap is not installed"}, c); err == nil || !strings.Contains(err.Error(), "bubblewrap is not installed") {
			t.Errorf("%s: got %v, %v", sandbox.Name(level), got, err)
		}
		c.Level = level // the host has more
		if got, err := sandbox.Choose(&harnessv1.SandboxSupport{Level: sandbox.Full}, c); err == nil || !strings.HasPrefix(err.Error(), "sandbox.network: ") {
			t.Errorf("%s: got %v, %v", sandbox.Name(level), got, err)
		}
		c.Level = sandbox.Auto
	}
	if got, err := sandbox.Choose(&harnessv1.SandboxSupport{Level: sandbox.Full}, c); err != nil || got != sandbox.Full {
		t.Errorf("got %v, %v", got, err)
	}
	if !sandbox.Asks(sandbox.Full, c) || sandbox.Asks(sandbox.Full, nil) {
		t.Error("a command with network does not ask, or one without does")
	}
}

// TestValidateHosts names the one that is none.
func TestValidateHosts(t *testing.T) {
	many := make([]string, sandbox.MaxHosts+1)
	for i := range many {
		many[i] = "example.com"
	}
	open := hosts("example.com")
	open.Network.Mode = harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL
	for want, c := range map[string]*harnessv1.SandboxConfig{
		"network.hosts: no host is named":         hosts(),
		"network.hosts[1]: \"1.2.3.4\" is an":     hosts("example.com", "1.2.3.4"),
		"network.hosts: hosts are only":           open,
		"network.hosts: 101 hosts exceed the lim": hosts(many...),
	} {
		if err := sandbox.Validate(c); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
	if err := sandbox.Validate(hosts("example.com", "*.example.org:8443")); err != nil {
		t.Error(err)
	}
}

// TestHostsOfACall are missing unless the run has them.
func TestHostsOfACall(t *testing.T) {
	asked := []string{"example.com", "a.example.org", "example.org:8443", "*.example.org", "b.example.org:8443"}
	all := &harnessv1.SandboxConfig{Network: &harnessv1.SandboxNetwork{Mode: harnessv1.SandboxNetworkMode_SANDBOX_NETWORK_MODE_ALL}}
	for _, c := range []struct {
		cfg  *harnessv1.SandboxConfig
		want []string
	}{
		{nil, asked}, {all, nil}, {hosts("example.com", "*.example.org"), []string{"example.org:8443", "b.example.org:8443"}},
		{hosts("example.com:443", "a.example.org", "*.example.org:8443"), []string{"example.com", "example.org:8443", "*.example.org"}},
	} {
		if got, err := sandbox.Missing(c.cfg, asked); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, %v", c.cfg, got, err)
		}
	}
	if _, err := sandbox.Missing(nil, []string{"1.2.3.4"}); err == nil {
		t.Error("an address is a host")
	}
	cfg := hosts("example.com")
	if got := sandbox.Hosts(sandbox.WithHosts(cfg, []string{"a.org:22"})); len(got) != 2 || got[1] != (sandbox.Host{Name: "a.org", Port: 22}) || len(cfg.GetNetwork().GetHosts()) != 1 {
		t.Errorf("got %v of %v", got, cfg)
	}
	if got := sandbox.Hosts(sandbox.WithHosts(nil, []string{"a.org"})); len(got) != 1 || sandbox.WithHosts(all, asked) != all || sandbox.WithHosts(nil, nil) != nil {
		t.Errorf("got %v", got)
	}
}
