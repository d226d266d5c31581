package wire

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// envProxyTest makes the test binary a client that requests the address in it.
const envProxyTest = "HARNESS_TEST_WIRE_GET"

func TestMain(m *testing.M) {
	if base := os.Getenv(envProxyTest); base != "" {
		os.Exit(getAndPrint(base))
	}
	goleak.VerifyTestMain(m)
}

func client(t *testing.T, s *httptest.Server) *Client {
	t.Helper()
	return NewClient(parse(t, s.URL+"/v1"), http.Header{"X-Api-Key": {"secret"}, "Authorization": {"Bearer secret"}}, s.Client())
}

func parse(t *testing.T, address string) *url.URL {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

func TestPostSendsJSON(t *testing.T) {
	var got *http.Request
	var body string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, body = r, string(raw)
		_, _ = io.WriteString(w, " {} ")
	})
	for base, path := range map[string]string{"": "/chat", "/": "/chat", "/v1": "/v1/chat", "/a/v1/?q=1#f": "/a/v1/chat"} {
		c := NewClient(parse(t, s.URL+base), http.Header{"X-Api-Key": {"secret"}}, s.Client())
		res, err := c.Post(t.Context(), "chat", map[string]string{"a": "<&>"})
		if err != nil {
			t.Fatal(err)
		}
		first, err := res.Peek()
		rest, errAll := res.ReadAll()
		res.Close()
		if err != nil || errAll != nil || first != '{' || string(rest) != "{} " {
			t.Errorf("read %q, %q, %v, %v", first, rest, err, errAll)
		}
		if got.Method != http.MethodPost || got.RequestURI != path || body != `{"a":"<&>"}` {
			t.Errorf("base %q: received %s %s %s, want POST %s", base, got.Method, got.RequestURI, body, path)
		}
		want := http.Header{
			"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}, "Content-Length": {"11"},
			"Content-Type": {"application/json"}, "User-Agent": {userAgent}, "X-Api-Key": {"secret"},
		}
		if fmt.Sprint(got.Header) != fmt.Sprint(want) {
			t.Errorf("headers %v, want %v", got.Header, want)
		}
	}
}

func TestPostSendsRawJSONByteForByte(t *testing.T) {
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = string(raw)
	})
	const body = "{ \"a\" :\n1,\"b\":\"<\u2028>\" }"
	res, err := client(t, s).Post(t.Context(), "chat", json.RawMessage(body))
	if err != nil {
		t.Fatal(err)
	}
	res.Close()
	if got != body {
		t.Errorf("received %q, want %q", got, body)
	}
}

func TestRefusalsAreStatusErrors(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.CopyN(w, endless{"x"}, maxErrorBody+100)
	})
	_, err := client(t, s).Get(t.Context(), "models")
	var refused *StatusError
	if !errors.As(err, &refused) || refused.Status != 429 || refused.Header.Get("Retry-After") != "7" || len(refused.Body) != maxErrorBody {
		t.Fatalf("error %v with %d bytes", err, len(refused.Body))
	}
}

func TestBodiesAreBounded(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.CopyN(w, endless{"x"}, MaxBody+1) })
	res, err := client(t, s).Get(t.Context(), "models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if _, err := res.ReadAll(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

func TestRedirectsStayWithTheHost(t *testing.T) {
	var other []string
	elsewhere := serve(t, func(_ http.ResponseWriter, r *http.Request) { other = append(other, r.URL.Path) })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/moved":
			http.Redirect(w, r, "/v2/moved", http.StatusPermanentRedirect)
		case "/v1/away":
			http.Redirect(w, r, elsewhere.URL+"/v1/away?key=1", http.StatusTemporaryRedirect)
		case "/v1/loop":
			http.Redirect(w, r, "/v1/loop", http.StatusTemporaryRedirect)
		default:
			body, _ := io.ReadAll(r.Body)
			_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Api-Key"), body)
		}
	})
	c := client(t, s)
	res, err := c.Post(t.Context(), "moved", 1)
	if err != nil {
		t.Fatal(err)
	}
	body, err := res.ReadAll()
	res.Close()
	if err != nil || string(body) != "POST /v2/moved secret 1" {
		t.Errorf("within the host: %q, %v", body, err)
	}
	_, err = c.Post(t.Context(), "away", 1)
	var redirect *RedirectError
	if !errors.As(err, &redirect) || redirect.Location != elsewhere.URL {
		t.Errorf("to another host: error %v", err)
	}
	if len(other) != 0 {
		t.Errorf("the other host received %v", other)
	}
	if _, err := c.Post(t.Context(), "loop", 1); err == nil || errors.As(err, &redirect) {
		t.Errorf("a loop: error %v", err)
	}
}

func TestRedirectRules(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"https://a/x", "https://a/y", true},
		{"http://a/x", "https://a/x", true},
		{"http://a:80/x", "https://a:443/x", true},
		{"https://a/x", "http://a/x", false},
		{"https://a/x", "https://b.a/x", false},
		{"https://a/x", "https://a:8443/x", false},
		{"http://a:1/x", "http://a:2/x", false},
	} {
		err := checkRedirect(&http.Request{URL: parse(t, c.to)}, []*http.Request{{URL: parse(t, c.from)}})
		if (err == nil) != c.want {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}

func TestCompressedBodies(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			t.Errorf("gzip is not accepted: %v", r.Header)
		}
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "data: a\n\ndata: b\n\n")
		_ = z.Close()
	})
	res, err := client(t, s).Get(t.Context(), "models")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	events := res.Events()
	for _, want := range []string{"a", "b"} {
		if e, err := events.Next(); err != nil || string(e.Data) != want {
			t.Errorf("got %q and %v, want %q", e.Data, err, want)
		}
	}
}

func TestHTTP2(t *testing.T) {
	var proto string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proto = r.Proto
		w.WriteHeader(http.StatusNoContent)
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := NewClient(parse(t, s.URL), nil, nil)
	transport := c.http.Transport.(*http.Transport)
	transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	res, err := c.Get(t.Context(), "models")
	if err != nil {
		t.Fatal(err)
	}
	res.Close()
	c.Close()
	if proto != "HTTP/2.0" {
		t.Errorf("the server saw %s", proto)
	}
}

// TestProxiesOfTheEnvironment runs the client in a separate process, because
// net/http reads the variables once.
func TestProxiesOfTheEnvironment(t *testing.T) {
	var requested []string
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requested = append(requested, r.Method+" "+r.RequestURI)
		if r.Method == http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = io.WriteString(w, "through the proxy")
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(base string, env ...string) string {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append([]string{envProxyTest + "=" + base}, env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := run("http://models.invalid/v1", "HTTP_PROXY="+proxy.URL); got != "through the proxy" {
		t.Errorf("HTTP_PROXY: %q", got)
	}
	if got := run("https://models.invalid/v1", "HTTPS_PROXY="+proxy.URL); !strings.Contains(got, "Bad Gateway") {
		t.Errorf("HTTPS_PROXY: %q", got)
	}
	if got := run("http://models.invalid/v1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=.invalid"); !strings.HasPrefix(got, "error") {
		t.Errorf("NO_PROXY: %q", got)
	}
	want := []string{"GET http://models.invalid/v1/models", "CONNECT models.invalid:443"}
	if !slices.Equal(requested, want) {
		t.Errorf("the proxy received %q, want %q", requested, want)
	}
}

func getAndPrint(base string) int {
	u, err := url.Parse(base)
	if err != nil {
		return 1
	}
	res, err := NewClient(u, nil, nil).Get(context.Background(), "models")
	if err != nil {
		fmt.Printf("error: %v", err)
		return 0
	}
	defer res.Close()
	body, err := res.ReadAll()
	if err != nil {
		return 1
	}
	_, _ = os.Stdout.Write(body)
	return 0
}
