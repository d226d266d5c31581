package frontdoor_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

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
	limited := frontdoor.Limit(in, 2, slog.New(slog.NewTextHandler(&log, nil)))
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
