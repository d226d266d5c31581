package toolhostserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestRedirectsOfServers: those that keep the method are followed, at most five, and no other host
// gets the headers.
func TestRedirectsOfServers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status, times int
		elsewhere     bool
		ready         bool
	}{
		"kept, 307":            {http.StatusTemporaryRedirect, 1, false, true},
		"kept, 308":            {http.StatusPermanentRedirect, 5, false, true},
		"too many":             {http.StatusPermanentRedirect, 6, false, false},
		"another method":       {http.StatusFound, 1, false, false},
		"moved":                {http.StatusMovedPermanently, 1, false, false},
		"to a private address": {http.StatusTemporaryRedirect, 1, true, false},
		"the result elsewhere": {http.StatusSeeOther, 1, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{})
			handler := h.handler()
			other := httptest.NewServer(handler) // no file and no operator names it
			t.Cleanup(other.Close)
			t.Cleanup(other.CloseClientConnections)
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var n int
				_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
				switch {
				case r.Header.Get("Authorization") != "Bearer secret":
					w.WriteHeader(http.StatusForbidden)
				case c.elsewhere:
					http.Redirect(w, r, other.URL, c.status)
				case n < c.times:
					http.Redirect(w, r, fmt.Sprintf("/%d", n+1), c.status)
				default:
					handler.ServeHTTP(w, r)
				}
			}))
			t.Cleanup(web.Close)
			t.Cleanup(web.CloseClientConnections)
			t.Cleanup(h.endServers)
			server := &harnessv1.McpServer{Name: "web", Url: web.URL + "/0", Headers: map[string]string{"Authorization": "Bearer secret"}}
			d := h.described(server)[0]
			if ready := d.GetState() == harnessv1.McpServerState_MCP_SERVER_STATE_READY; ready != c.ready {
				t.Fatalf("%v", d)
			}
			if !c.ready {
				return
			}
			if r := h.execute(h.serverCall(server, "append", `{"line":"one"}`)); r.GetIsError() || h.read("lines") != "one\n" {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestOtherHostsGetNoHeaders: neither those of the settings, nor the address of the server, and the
// first host gets none back by way of another.
func TestOtherHostsGetNoHeaders(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var received []string
	var returned atomic.Bool
	var back atomic.Pointer[string]
	other := site(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		received = append(received, fmt.Sprint(r.Header))
		mu.Unlock()
		http.Redirect(w, r, *back.Load(), http.StatusTemporaryRedirect)
	})
	first := site(t, func(w http.ResponseWriter, r *http.Request) {
		returned.CompareAndSwap(false, r.URL.Path == "/back")
		http.Redirect(w, r, "http://"+other, http.StatusTemporaryRedirect)
	})
	address := "http://" + first + "/back"
	back.Store(&address)
	h := newHost(t, Config{SandboxPrivateHosts: []string{first, other}})
	defer h.endServers()
	server := &harnessv1.McpServer{Name: "web", Url: "http://" + first + "/?key=secret", Headers: map[string]string{"X-Key": "secret"}}
	resp, err := h.DescribeServers(context.Background(), &harnessv1.DescribeServersRequest{
		Namespace: "n", RunId: "r", FirstSequence: 7, Servers: []*harnessv1.McpServer{server}, Wait: durationpb.New(20 * time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(received, "\n"); len(received) == 0 || strings.Contains(got, "secret") || returned.Load() {
		t.Errorf("the other host received %s, the first again %v: %v", got, returned.Load(), resp)
	}
}
