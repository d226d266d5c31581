package signin

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/harnessmesh/harnessmesh/pkg/content"
)

// maxPage bounds the address that a person opens, in bytes. Browsers and the programs that start them
// take no more everywhere.
const maxPage = 16 << 10

// page returns the address that a person opens: the authorization endpoint with the parameters of a request. It consists
// of characters that neither a terminal nor a shell within quotes interprets.
//
// The endpoint is of the site of the issuer or of the token endpoint. Otherwise the metadata of one server could send the
// person to the page of another, and receive the code that this one returns (mix-up, RFC 9700, section 4.4). It is on this
// machine or on a private address only where requests may go there too, because a browser opens it with the rights of the
// person's network.
func (s *SignIns) page(ctx context.Context, a Account, d *discovery, request url.Values) (string, error) {
	endpoint := d.server.AuthorizationEndpoint
	if err := secure(endpoint); err != nil {
		return "", err
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Fragment != "" {
		return "", errors.New("the address at which a person signs in cannot be used")
	}
	for name := range u.Query() {
		if request.Has(name) {
			return "", fmt.Errorf("the address at which a person signs in has the parameter %s already", name)
		}
	}
	if !sameSite(endpoint, d.server.Issuer) && !sameSite(endpoint, d.server.TokenEndpoint) {
		return "", fmt.Errorf("its authorization server %s has persons sign in at %s, and would send the code of that site to %s",
			hostOf(d.server.Issuer), hostOf(endpoint), hostOf(d.server.TokenEndpoint))
	}
	if u.Scheme == "http" || !public(u.Hostname()) {
		_, port, _ := strings.Cut(origin(u), u.Hostname()+":")
		number, _ := strconv.ParseUint(port, 10, 16)
		if _, err := s.config.Dialer(a.Address, a.Local).Addresses(ctx, u.Hostname(), uint16(number)); err != nil {
			return "", fmt.Errorf("the address at which a person signs in is at %s: %w", hostOf(endpoint), err)
		}
	}
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += request.Encode()
	address := escaped(u.String())
	if len(address) > maxPage {
		return "", fmt.Errorf("the address at which a person signs in has %d bytes, expected at most %d: set oauth.scopes to fewer scopes", len(address), maxPage)
	}
	return address, nil
}

// escaped returns an address whose bytes other than those that an address needs are percent-encoded.
func escaped(address string) string {
	const kept = "-._~:/?#[]@!&*+,;=%"
	var b strings.Builder
	for _, c := range []byte(address) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(kept, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}

// public reports whether a host is a name that DNS resolves. Browsers take one that ends with a number for an address.
func public(host string) bool {
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(host), "."), ".")
	last := labels[len(labels)-1]
	return last != "" && last != "localhost" && (last[0] < '0' || last[0] > '9') && !strings.Contains(last, ":")
}

// sameSite reports whether two addresses have the same origin, or names below the same registered domain.
func sameSite(one, other string) bool {
	a, err := url.Parse(one)
	if err != nil {
		return false
	}
	b, err := url.Parse(other)
	if err != nil {
		return false
	}
	if origin(a) == origin(b) {
		return true
	}
	if !public(a.Hostname()) || !public(b.Hostname()) { // other programs listen at other ports
		return false
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(a.Hostname()))
	if err != nil {
		return strings.EqualFold(a.Hostname(), b.Hostname())
	}
	of, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(b.Hostname()))
	return err == nil && of == site
}

// covers reports whether a resource is a server or a part of its host that has the server. Many
// servers publish their host, or write a slash at the end or leave it out.
func covers(resource, address string) bool {
	r, err := url.Parse(resource)
	if err != nil {
		return false
	}
	a, err := url.Parse(address)
	if err != nil {
		return false
	}
	if !strings.EqualFold(r.Scheme, a.Scheme) || origin(r) != origin(a) || r.User != nil || r.Fragment != "" || r.RawQuery != "" && r.RawQuery != a.RawQuery {
		return false
	}
	above := strings.TrimSuffix(r.Path, "/") + "/"
	return strings.HasPrefix(strings.TrimSuffix(a.Path, "/")+"/", above)
}

// origin returns host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// secure returns an error for an address to which no credential is sent: one without TLS, unless it
// is on this machine.
func secure(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return errors.New("an address of the sign-in cannot be used")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("a sign-in at %s needs https", hostOf(address))
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// hostOf returns the host of an address, for messages: the rest may have a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "(no host)"
	}
	return content.Line(content.Clean(u.Host), 200)
}

// sameIssuer reports whether two identifiers are of one authorization server.
func sameIssuer(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }
