package frontdoor_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/harnessmesh/harnessmesh/pkg/transport/frontdoor"
)

// from is a connection of a peer.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// arrivals is a listener to which connections arrive.
type arrivals chan net.Conn

func (a arrivals) Accept() (net.Conn, error) {
	conn, ok := <-a
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (arrivals) Close() error   { return nil }
func (arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// TestConnectionsOfAPeerAreBounded: connections beyond the bound are closed, others are
// accepted, and a closed connection counts no longer.
func TestConnectionsOfAPeerAreBounded(t *testing.T) {
	var log bytes.Buffer
	in := make(arrivals, 100)
	limited := frontdoor.Limit(in, frontdoor.Limits{Peer: 2}, slog.New(slog.NewTextHandler(&log, nil)))
	// arrive returns the other end of a connection.
	arrive := func(ip string) net.Conn {
		here, there := net.Pipe()
		in <- from{here, &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}}
		return there
	}
	accept := func(ip string) net.Conn {
		t.Helper()
		conn, err := limited.Accept()
		if err != nil || conn.RemoteAddr().(*net.TCPAddr).IP.String() != ip {
			t.Fatalf("%v, %v, want one of %s", conn, err, ip)
		}
		return conn
	}
	closed := func(conn net.Conn) {
		t.Helper()
		if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Fatalf("the connection is open: %v", err)
		}
	}
	arrive("10.0.0.1")
	arrive("10.0.0.1")
	first, _ := accept("10.0.0.1"), accept("10.0.0.1")
	third, fourth := arrive("10.0.0.1"), arrive("::ffff:10.0.0.1")
	arrive("10.0.0.2")
	accept("10.0.0.2")
	closed(third)
	closed(fourth)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // counts once
	arrive("10.0.0.1")
	fifth := arrive("10.0.0.1")
	arrive("2001:db8:0:1::1")
	accept("10.0.0.1")
	accept("2001:db8:0:1::1")
	closed(fifth)
	arrive("2001:db8:0:1::2") // of the same network
	refused := arrive("2001:db8:0:1::3")
	arrive("2001:db8:0:2::1")
	accept("2001:db8:0:1::2")
	accept("2001:db8:0:2::1")
	closed(refused)
	for range 3 { // connections of this machine's sockets are not bounded
		here, _ := net.Pipe()
		in <- from{here, &net.UnixAddr{Name: "socket"}}
		if _, err := limited.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	close(in)
	if _, err := limited.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if strings.Count(log.String(), "10.0.0.1/32") != 1 || strings.Count(log.String(), "2001:db8:0:1::/64") != 1 {
		t.Errorf("log:\n%s", &log)
	}
}

// TestConnectionsWithoutACallLeaveFirst: for a new one of the same peer, and, where all places are
// taken, of any. Those with a call stay, and then a new one is refused.
func TestConnectionsWithoutACallLeaveFirst(t *testing.T) {
	t.Parallel()
	in := make(arrivals, 100)
	limited := frontdoor.Limit(in, frontdoor.Limits{Peer: 3, Total: 4, Yield: true}, slog.New(slog.DiscardHandler))
	port := 0
	arrive := func(ip string) (here net.Conn, address string) {
		here, there := net.Pipe()
		port++
		at := &net.TCPAddr{IP: net.ParseIP(ip), Port: port}
		in <- from{there, at}
		return here, at.String()
	}
	accept := func() net.Conn {
		t.Helper()
		conn, err := limited.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	closed := func(conn net.Conn) bool {
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, err := conn.Read(make([]byte, 1))
		return errors.Is(err, io.EOF)
	}
	check := func(what string, conn net.Conn, want bool) {
		t.Helper()
		if got := closed(conn); got != want {
			t.Errorf("%s: closed is %v", what, got)
		}
	}
	first, _ := arrive("10.0.0.1")
	second, secondAt := arrive("10.0.0.1")
	third, _ := arrive("10.0.0.1")
	for range 3 {
		accept()
	}
	limited.Proven(secondAt)
	limited.Proven(secondAt)
	limited.Proven("10.0.0.9:1") // not known
	fourth, fourthAt := arrive("10.0.0.1")
	accept()
	check("the oldest without a call", first, true)
	check("one with a call", second, false)
	limited.Proven(fourthAt)
	fifth, fifthAt := arrive("10.0.0.1")
	fifthConn := accept()
	check("the oldest without a call", third, true)
	limited.Proven(fifthAt)
	refused, _ := arrive("10.0.0.1")
	other, _ := arrive("10.0.0.2") // the last place of all
	accept()
	check("one of a peer whose connections all have calls", refused, true)
	newest, newestAt := arrive("10.0.0.3")
	accept()
	check("the oldest of all without a call", other, true)
	limited.Proven(newestAt)
	if err := fifthConn.Close(); err != nil {
		t.Fatal(err)
	}
	after, _ := arrive("10.0.0.4")
	accept()
	for name, conn := range map[string]net.Conn{"second": second, "fourth": fourth, "newest": newest, "after": after} {
		check(name, conn, false)
	}
	check("fifth", fifth, true)
}
