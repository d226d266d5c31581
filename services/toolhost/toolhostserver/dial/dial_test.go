package dial

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
)

// forbidden has an address of each kind that is refused.
var forbidden = map[string]string{
	"loopback": "127.0.0.1", "loopback of IPv6": "::1", "link-local": "169.254.169.254", "link-local of IPv6": "fe80::1", "private": "10.1.2.3",
	"private 172": "172.16.0.1", "private 192": "192.168.1.1", "CGNAT": "100.64.0.1", "unique-local": "fd00::1", "multicast": "224.0.0.1",
	"multicast of IPv6": "ff02::1", "mapped": "::ffff:127.0.0.1", "mapped private": "::ffff:10.0.0.1", "NAT64": "64:ff9b::7f00:1", "local NAT64": "64:ff9b:1::a00:1",
	"6to4": "2002:7f00:1::", "unspecified": "0.0.0.0", "unspecified of IPv6": "::",
}

func resolveTo(address string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(address)}, nil
	}
}

func TestAddressesThatAreNotPublicAreRefused(t *testing.T) {
	for kind, address := range forbidden {
		d := &Dialer{Resolve: resolveTo(address)}
		if got, err := d.Addresses(t.Context(), "name.test", 443); !errors.Is(err, ErrNotPublic) {
			t.Errorf("%s: a name for it: %v, %v", kind, got, err)
		}
		if got, err := d.Addresses(t.Context(), address, 80); !errors.Is(err, ErrNotPublic) {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
		d.Allowed = []sandbox.Host{{Name: "name.test"}}
		if got, err := d.Addresses(t.Context(), "name.test", 443); err != nil || len(got) != 1 {
			t.Errorf("%s: allowed: %v, %v", kind, got, err)
		}
		if got, err := d.Addresses(t.Context(), "other.test", 443); err == nil {
			t.Errorf("%s: a host that is not allowed: %v", kind, got)
		}
	}
	for _, host := range []string{"127.1", "0x7f000001", "2130706433", "0177.0.0.1", "127.0.0.1%lo", "a b", ""} {
		d := &Dialer{Resolve: resolveTo("127.0.0.1")}
		if got, err := d.Addresses(t.Context(), host, 80); err == nil {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestPortsOtherThanThoseOfTheWebNeedTheirHostAllowed(t *testing.T) {
	d := &Dialer{Resolve: resolveTo("1.1.1.1"), Allowed: []sandbox.Host{{Name: "a.test", Port: 8080}}}
	for target, want := range map[string]bool{"a.test:8080": true, "a.test:443": true, "a.test:22": false, "b.test:8080": false, "b.test:80": true, "1.1.1.1:25": false} {
		host, text, _ := net.SplitHostPort(target)
		port, _ := strconv.Atoi(text)
		if _, err := d.Addresses(t.Context(), host, uint16(port)); (err == nil) != want || err != nil && !errors.Is(err, ErrPort) {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// site is a server of this machine, reachable as allowed.test.
func site(t *testing.T, handler http.HandlerFunc) (*Dialer, string) {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	port, _ := strconv.Atoi(u.Port())
	return &Dialer{Resolve: resolveTo("127.0.0.1"), Allowed: []sandbox.Host{{Name: "allowed.test", Port: uint16(port)}}}, "allowed.test:" + u.Port()
}

// A server whose name has a public address when it is checked and another one later reaches
// nothing: it is resolved once, and what it returned is dialled.
func TestANameIsResolvedOnce(t *testing.T) {
	var calls atomic.Int32
	d, host := site(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	d.Resolve = func(context.Context, string) ([]netip.Addr, error) {
		if calls.Add(1) > 1 {
			return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	response, err := d.Client().Get("http://" + host)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if calls.Load() != 1 {
		t.Errorf("%d look-ups", calls.Load())
	}
}

func TestRedirectsReachNothingForbidden(t *testing.T) {
	for kind, address := range forbidden {
		reached := false
		d, host := site(t, func(w http.ResponseWriter, r *http.Request) {
			reached = reached || r.URL.Path == "/secret"
			http.Redirect(w, r, "http://"+net.JoinHostPort(address, "80")+"/secret", http.StatusFound)
		})
		response, err := d.Client().Get("http://" + host)
		if err == nil {
			_ = response.Body.Close()
		}
		if !errors.Is(err, ErrNotPublic) || reached {
			t.Errorf("%s: %v, reached %t", kind, err, reached)
		}
	}
	for _, to := range []string{"file:///etc/passwd", "gopher://allowed.test", "http://other.test:22/", "http://user:pass@HOST/ok"} {
		d, host := site(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/ok" {
				http.Redirect(w, r, strings.Replace(to, "HOST", r.Host, 1), http.StatusFound)
			}
		})
		if response, err := d.Client().Get("http://" + host); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s was followed", to)
		}
	}
}

func TestRedirectsAreBoundedAndTakeNoCredentialsToAnotherHost(t *testing.T) {
	var requests atomic.Int32
	d, host := site(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	if response, err := d.Client().Get("http://" + host); err == nil || !strings.Contains(err.Error(), "more than 5 redirects") {
		_ = response.Body.Close()
		t.Errorf("endless redirects: %v", err)
	}
	if requests.Load() != maxRedirects+1 {
		t.Errorf("%d requests", requests.Load())
	}

	seen := make(chan http.Header, 3)
	d, host = site(t, nil)
	_, port, _ := net.SplitHostPort(host)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		switch r.URL.Path {
		case "/":
			http.Redirect(w, r, "/same", http.StatusFound)
		case "/same":
			http.Redirect(w, r, "http://sub.allowed.test:"+port+"/other", http.StatusFound)
		}
	}))
	defer server.Close()
	u, _ := url.Parse(server.URL)
	number, _ := strconv.Atoi(u.Port())
	port = u.Port()
	d.Allowed = []sandbox.Host{{Name: "allowed.test", Port: uint16(number)}, {Name: "allowed.test", Below: true, Port: uint16(number)}}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://allowed.test:"+port+"/", nil)
	for _, field := range []string{"Authorization", "Cookie", "X-Api-Key"} {
		request.Header.Set(field, "secret")
	}
	response, err := d.Client("X-Api-Key").Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	for i, want := range []string{"secret", "secret", ""} {
		header := <-seen
		for _, field := range []string{"Authorization", "Cookie", "X-Api-Key"} {
			if got := header.Get(field); got != want {
				t.Errorf("request %d: %s is %q, want %q", i, field, got, want)
			}
		}
	}
}
