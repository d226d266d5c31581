package dial

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// Timeout bounds a request of Client with its redirects and its body.
const Timeout = 30 * time.Second

// Client returns an HTTP client whose connections, those of redirects included, are the
// dialer's. No proxy of the environment is used. Fields of a request that are not for another
// host, such as credentials, are named in secret: a redirect to another host, to another port
// or from HTTPS to HTTP is sent without them, and without Authorization and Cookie.
func (d *Dialer) Client(secret ...string) *http.Client {
	return &http.Client{
		Timeout: Timeout,
		Transport: &http.Transport{
			DialContext: d.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: dialTimeout,
			IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			switch {
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			case next.URL.Scheme != "http" && next.URL.Scheme != "https":
				return fmt.Errorf("a redirect to the scheme %q", next.URL.Scheme)
			case next.URL.User != nil:
				return errors.New("a redirect to an address with credentials")
			}
			// Once a redirect has left the host, a later one does not return its credentials.
			for _, from := range via {
				if !SameOrigin(from.URL, next.URL) {
					for _, field := range append([]string{"Authorization", "Cookie", "Proxy-Authorization", "Www-Authenticate"}, secret...) {
						next.Header.Del(field)
					}
					next.Header.Del("Referer") // its address can have a secret
					break
				}
			}
			return nil
		},
	}
}

// SameOrigin reports whether two addresses have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}
