package mcpclient

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// follow returns which redirects are followed of requests to a server: those that keep method and
// body, to no less secure scheme. Another host gets no credentials (see requests), and one that
// a redirect has left is not returned to, as it would get them with an address of the other.
func follow(home *url.URL) func(next *http.Request, via []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case next.Method != via[0].Method, next.URL.User != nil, next.URL.Scheme != "https" && next.URL.Scheme != home.Scheme:
			return http.ErrUseLastResponse
		}
		if dial.SameOrigin(next.URL, home) {
			for _, from := range via {
				if !dial.SameOrigin(from.URL, home) {
					return http.ErrUseLastResponse
				}
			}
		}
		next.Header.Del("Referer") // its address can have a secret
		return nil
	}
}
