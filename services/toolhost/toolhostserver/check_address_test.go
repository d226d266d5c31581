package toolhostserver

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestCheckAddress: the status of a GET, under the rules for addresses; a redirect leaves no host.
func TestCheckAddress(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	other := site(t, func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	host := site(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://"+other+"/", http.StatusFound)
		case "/key":
			if r.Header.Get("X-Key") != "secret" || r.Method != http.MethodGet {
				w.WriteHeader(http.StatusForbidden)
			}
		}
	})
	h := newHost(t, Config{})
	check := func(address string, web *harnessv1.WebCall) (*harnessv1.CheckAddressResponse, error) {
		return h.CheckAddress(context.Background(), &harnessv1.CheckAddressRequest{Namespace: "n", RunId: "r", FirstSequence: 7, Url: address, Web: web})
	}
	named := local(host, other)
	named.Web.Credentials = []*harnessv1.WebCredential{{Host: host, Headers: map[string]string{"X-Key": "secret"}}}
	named.Hosts = nil
	for path, want := range map[string]uint32{"/": 200, "/busy": 503, "/moved": 200, "/away": 302, "/key": 200} {
		if r, err := check("http://"+host+path, named); err != nil || r.GetStatus() != want || r.GetError() != "" {
			t.Errorf("%s: %v, %v, want %d", path, r, err, want)
		}
	}
	if reached.Load() != 0 {
		t.Error("a redirect led to another host")
	}
	token := local(host)
	token.Local = false
	if r, err := check("http://"+host, token); err != nil || r.GetStatus() != 0 || !strings.Contains(r.GetError(), "only the ports 80 and 443") {
		t.Errorf("an address that only a local person may name: %v, %v", r, err)
	}
	if r, err := check("http://127.0.0.1:1/", &harnessv1.WebCall{Web: &harnessv1.Web{Fetch: true, Allow: []string{"127.0.0.1:1"}}, Local: true}); err != nil || r.GetError() == "" {
		t.Errorf("a host that is away: %v, %v", r, err)
	}
	if r, err := check("http://"+host, nil); err == nil {
		t.Errorf("without web tools: %v", r)
	}
}
