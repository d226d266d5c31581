package egress_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/command/egress"
)

// TestMain looks for goroutines that are left. One of the HTTP server may still wait for a
// client whose request was too long.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

var loopback = []netip.Addr{netip.MustParseAddr("127.0.0.1")}

// proxyBed is a proxy that is served.
type proxyBed struct {
	*egress.Proxy
	t       *testing.T
	address string
	stop    func()
}

// serve serves a proxy until the end of the test.
func serve(t *testing.T, config egress.Config) *proxyBed {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := egress.New(config)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Serve(l)
	}()
	r := &proxyBed{Proxy: p, t: t, address: l.Addr().String(), stop: func() {
		_ = l.Close()
		<-ended
	}}
	t.Cleanup(r.stop)
	return r
}

// reach serves a proxy to hosts, all of which are servers of this test at loopback.
func reach(t *testing.T, hosts ...string) *proxyBed {
	t.Helper()
	return serve(t, egress.Config{Hosts: parse(t, hosts...), Private: parse(t, hosts...), Resolve: func(context.Context, string) ([]netip.Addr, error) { return loopback, nil }})
}

func parse(t *testing.T, texts ...string) []sandbox.Host {
	t.Helper()
	hosts := make([]sandbox.Host, len(texts))
	for i, text := range texts {
		var err error
		if hosts[i], err = sandbox.ParseHost(text); err != nil {
			t.Fatal(err)
		}
	}
	return hosts
}

// dial connects to the proxy.
func (r *proxyBed) dial() *client {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return &client{t: r.t, TCPConn: conn.(*net.TCPConn), reader: bufio.NewReader(conn)}
}

type client struct {
	*net.TCPConn
	t      *testing.T
	reader *bufio.Reader
}

func (c *client) send(format string, arguments ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.TCPConn, format, arguments...); err != nil {
		c.t.Fatal(err)
	}
}

// response reads a response with its body. A CONNECT that succeeds has none.
func (c *client) response(method string) (int, string) {
	c.t.Helper()
	resp, err := http.ReadResponse(c.reader, &http.Request{Method: method})
	if err != nil {
		c.t.Fatal(err)
	}
	if method == "CONNECT" && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, "" // the tunnel follows
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// read reads n bytes.
func (c *client) read(n int) string {
	c.t.Helper()
	data := make([]byte, n)
	if _, err := io.ReadFull(c.reader, data); err != nil {
		c.t.Fatal(err)
	}
	return string(data)
}

// rest reads until the end.
func (c *client) rest() string {
	c.t.Helper()
	data, err := io.ReadAll(c.reader)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		c.t.Fatal(err)
	}
	return string(data)
}

// origin serves requests and returns its port.
func origin(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// listen accepts connections for handle, and returns its port.
func listen(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handle(conn.(*net.TCPConn))
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func hello(w http.ResponseWriter, r *http.Request) {
	_, _ = fmt.Fprintf(w, "%s %s%s", r.Method, r.Host, r.URL.Path)
}

// TestEachRequestIsDecided: neither an earlier request of a connection, nor the Host header,
// nor the credentials before a host make another host reachable.
func TestEachRequestIsDecided(t *testing.T) {
	var foreign atomic.Int32
	port := origin(t, func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Host, "good.test") {
			foreign.Add(1)
		}
		hello(w, r)
	})
	p := reach(t, "good.test:"+port)
	c := p.dial()
	// All in one write, as a smuggler would.
	c.send("GET http://good.test:%[1]s/1 HTTP/1.1\r\nHost: evil.test\r\n\r\n"+
		"GET http://evil.test:%[1]s/2 HTTP/1.1\r\nHost: good.test:%[1]s\r\n\r\n"+
		"POST http://GOOD.test.:%[1]s/3 HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"+
		"GET http://good.test:%[1]s@evil.test:%[1]s/4 HTTP/1.1\r\nHost: good.test\r\n\r\n"+
		"GET http://127.0.0.1:%[1]s/5 HTTP/1.1\r\nHost: good.test\r\n\r\n"+
		"GET /6 HTTP/1.1\r\nHost: good.test:%[1]s\r\n\r\n"+
		"GET https://good.test:%[1]s/7 HTTP/1.1\r\nHost: good.test\r\n\r\n", port)
	for _, want := range []struct {
		status int
		body   string
	}{
		{200, "GET good.test:" + port + "/1"}, {403, "evil.test"}, {200, "POST GOOD.test.:" + port + "/3"}, {403, "evil.test"}, {403, "names no host"}, {400, "http://"}, {400, "http://"},
	} {
		if status, body := c.response("GET"); status != want.status || !strings.Contains(body, want.body) {
			t.Errorf("got %d %s, want %d %s", status, body, want.status, want.body)
		}
	}
	if foreign.Load() > 1 { // GOOD.test. is another spelling of the name
		t.Errorf("%d requests to other hosts arrived", foreign.Load())
	}
	if note := p.Refused().Text(); !strings.Contains(note, `evil.test:`+port+`: it is not among the hosts`) || !strings.Contains(note, "127.0.0.1:"+port) {
		t.Errorf("the result has %q", note)
	}
}

// TestConnectTargets that are no host, or another one.
func TestConnectTargets(t *testing.T) {
	port := origin(t, hello)
	p := reach(t, "good.test:"+port, "*.sub.test:"+port)
	for target, want := range map[string]int{
		"good.test:" + port: 200, "GOOD.TEST.:" + port: 200, "a.sub.test:" + port: 200, "sub.test:" + port: 403, "good.test:443": 403, "127.0.0.1:" + port: 403, "[::1]:" + port: 403,
		"[::ffff:127.0.0.1]:" + port: 403, "127.1:" + port: 403, "2130706433:" + port: 403, "0x7f000001:" + port: 403, "localhost:" + port: 403, "good.test": 400, "good.test:0": 400,
		"good.test:99999": 400, "good.test.evil.test:" + port: 403, "good.test@evil.test:" + port: 403,
	} {
		c := p.dial()
		c.send("CONNECT %s HTTP/1.1\r\nHost: good.test:%s\r\n\r\n", target, port)
		status, body := c.response("CONNECT")
		if status != want {
			t.Errorf("%s: got %d %s, want %d", target, status, body, want)
		}
		if status == 200 {
			c.send("GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			if _, body := c.response("GET"); body != "GET h/x" {
				t.Errorf("%s: the tunnel returned %q", target, body)
			}
		}
	}
}

// TestAddressesAreChecked: they are resolved once, and what is not public is not dialled.
func TestAddressesAreChecked(t *testing.T) {
	reached := make(chan struct{}, 10)
	port := origin(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{} })
	number, _ := strconv.ParseUint(port, 10, 16)
	var lookups atomic.Int32
	p := serve(t, egress.Config{
		Hosts: []sandbox.Host{{Name: "rebound.test", Port: uint16(number)}}, Private: parse(t, "operators.test:"+port, "rebound.test"),
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			lookups.Add(1)
			return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fe80::1")}, nil
		},
	})
	for _, request := range []string{
		"CONNECT rebound.test:%s HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://rebound.test:%s/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT operators.test:%s HTTP/1.1\r\nHost: x\r\n\r\n", // the run has not named it
	} {
		c := p.dial()
		c.send(request, port)
		if status, body := c.response("CONNECT"); status != http.StatusForbidden {
			t.Errorf("%s: got %d %s", request, status, body)
		}
	}
	if lookups.Load() != 2 || len(reached) > 0 {
		t.Errorf("%d look-ups, %d requests arrived", lookups.Load(), len(reached))
	}
	if note := p.Refused().Text(); !strings.Contains(note, "rebound.test:"+port+": it has no public address") {
		t.Errorf("the result has %q", note)
	}
}

// TestOneLookup: the address that is dialled is the one that was checked.
func TestOneLookup(t *testing.T) {
	port := origin(t, hello)
	var lookups atomic.Int32
	p := serve(t, egress.Config{
		Hosts: parse(t, "good.test:"+port), Private: parse(t, "good.test:"+port),
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if lookups.Add(1) > 1 {
				return nil, errors.New("a second look-up")
			}
			return loopback, nil
		},
	})
	c := p.dial()
	c.send("CONNECT good.test:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	if status, body := c.response("CONNECT"); status != http.StatusOK || lookups.Load() != 1 {
		t.Errorf("got %d %s after %d look-ups", status, body, lookups.Load())
	}
	c = p.dial()
	c.send("CONNECT good.test:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	if status, body := c.response("GET"); status != http.StatusBadGateway || !strings.Contains(body, "cannot be found") {
		t.Errorf("got %d %s", status, body)
	}
}

// TestHalfClose: a direction of a tunnel ends alone, over HTTP and SOCKS.
func TestHalfClose(t *testing.T) {
	port := listen(t, func(conn *net.TCPConn) {
		sent, _ := io.ReadAll(conn) // ends with the client's direction
		_, _ = fmt.Fprintf(conn, "%d bytes", len(sent))
	})
	p := reach(t, "good.test:"+port)
	for name, open := range map[string]func(*client){
		"HTTP": func(c *client) {
			c.send("CONNECT good.test:%s HTTP/1.1\r\nHost: x\r\n\r\nearly", port) // before the answer
			if status, body := c.response("CONNECT"); status != http.StatusOK {
				t.Fatalf("got %d %s", status, body)
			}
		},
		"SOCKS": func(c *client) {
			number, _ := strconv.ParseUint(port, 10, 16)
			c.send("\x05\x02\x02\x00\x05\x01\x00\x03\x09good.test%searly", binary.BigEndian.AppendUint16(nil, uint16(number)))
			if got := c.read(12); got != "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00" {
				t.Fatalf("got %q", got)
			}
		},
	} {
		c := p.dial()
		open(c)
		c.send("%s", strings.Repeat("x", 1<<20))
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, want := c.rest(), fmt.Sprintf("%d bytes", 1<<20+5); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestStreaming: what a host sends arrives before its response has ended.
func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	port := origin(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "part %d\n", i)
			w.(http.Flusher).Flush()
			select {
			case <-next:
			case <-r.Context().Done():
			}
		}
	})
	c := reach(t, "good.test:"+port).dial()
	c.send("GET http://good.test:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", port)
	resp, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body := bufio.NewReader(resp.Body)
	for i := range 3 {
		if line, err := body.ReadString('\n'); err != nil || line != fmt.Sprintf("part %d\n", i) {
			t.Fatalf("got %q, %v", line, err)
		}
		next <- struct{}{}
	}
}

// TestWhatClientsSend is passed on but for what is for the proxy.
func TestWhatClientsSend(t *testing.T) {
	port := origin(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s accept=%s proxy=%s agent=%s", r.URL.RawQuery, body, r.Header.Get("Accept-Encoding"), r.Header.Get("Proxy-Authorization"), r.Header.Get("User-Agent"))
	})
	c := reach(t, "good.test:"+port).dial()
	c.send("POST http://good.test:%s/?a=1;b=%%zz HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic secret\r\nAccept-Encoding: br\r\nContent-Length: 4\r\n\r\nbody", port)
	if status, body := c.response("POST"); status != http.StatusOK || body != "a=1;b=%zz body accept=br proxy= agent=" {
		t.Errorf("got %d %q", status, body)
	}
}

// TestBounds: a header that is too long, too many connections.
func TestBounds(t *testing.T) {
	p := reach(t, "good.test")
	c := p.dial()
	c.send("GET http://good.test/ HTTP/1.1\r\nHost: x\r\nLong: %s\r\n", strings.Repeat("x", 60<<10))
	_, _ = fmt.Fprintf(c.TCPConn, "More: %s\r\n\r\n", strings.Repeat("x", 60<<10)) // may already be closed
	if got := c.rest(); !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("got %.60q", got)
	}
	p = reach(t, "good.test")
	all := make([]*client, 0, 257)
	for range 256 {
		c := p.dial()
		c.send("\x05\x01\x00")
		if got := c.read(2); got != "\x05\x00" { // it is served
			t.Fatalf("got %q", got)
		}
		all = append(all, c)
	}
	if got := p.dial().rest(); got != "" {
		t.Errorf("got %q", got)
	}
	_ = all[0].Close()
	for { // until the proxy has seen the end
		c := p.dial()
		if _, err := c.Write([]byte("\x05\x01\x00")); err != nil {
			continue
		}
		if n, err := c.reader.Read(make([]byte, 2)); err == nil && n == 2 {
			break
		}
	}
}

// TestTheEnd closes the connections of clients and hosts.
func TestTheEnd(t *testing.T) {
	ended := make(chan struct{})
	port := listen(t, func(conn *net.TCPConn) {
		_, _ = conn.Write([]byte("x"))
		_, _ = io.Copy(io.Discard, conn)
		close(ended)
	})
	waits := origin(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	p := reach(t, "good.test:"+port, "slow.test:"+waits)
	tunnel, idle, request := p.dial(), p.dial(), p.dial()
	tunnel.send("CONNECT good.test:%s HTTP/1.1\r\nHost: x\r\n\r\n", port)
	tunnel.response("CONNECT")
	tunnel.read(1)
	request.send("GET http://slow.test:%s/ HTTP/1.1\r\nHost: x\r\n\r\n", waits)
	p.stop()
	<-ended
	for _, c := range []*client{tunnel, idle} {
		if got := c.rest(); got != "" {
			t.Errorf("got %q", got)
		}
	}
}
