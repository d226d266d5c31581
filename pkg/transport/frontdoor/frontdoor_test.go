package frontdoor_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/harnessmesh/harnessmesh/pkg/transport/frontdoor"
	"github.com/harnessmesh/harnessmesh/pkg/transport/tlsfiles"
	"github.com/harnessmesh/harnessmesh/test/kit/certtest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// open serves health over gRPC and hello over HTTP on one port.
func open(t *testing.T, cfg *tls.Config) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	door := frontdoor.New(l, cfg, slog.New(slog.DiscardHandler))
	rpc := grpc.NewServer(grpc.Creds(tlsfiles.Accepted()))
	healthv1.RegisterHealthServer(rpc, health.NewServer())
	web := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, r.Proto+" "+r.Method+" "+string(body))
	})}
	served := make(chan struct{}, 2)
	go func() { _ = rpc.Serve(door.GRPC()); served <- struct{}{} }()
	go func() { _ = web.Serve(door.HTTP()); served <- struct{}{} }()
	door.Open()
	t.Cleanup(func() {
		door.Close()
		rpc.Stop()
		_ = web.Close()
		<-served
		<-served
	})
	return l.Addr().String()
}

func checkGRPC(t *testing.T, address string, creds credentials.TransportCredentials) {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{})
	if err != nil || r.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("gRPC: %v, %v", r, err)
	}
}

// checkHTTP uses methods that share first letters with the HTTP/2 preface.
func checkHTTP(t *testing.T, url string, client *http.Client) {
	t.Helper()
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, "PROPFIND", "P", "PRIx"} {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Do(r)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		body, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if want := "HTTP/1.1 " + method + " hello"; err != nil || string(body) != want {
			t.Errorf("%s: %q, %v", method, body, err)
		}
	}
	client.CloseIdleConnections()
}

func TestOnePortSpeaksBoth(t *testing.T) {
	t.Parallel()
	address := open(t, nil)
	checkGRPC(t, address, insecure.NewCredentials())
	checkHTTP(t, "http://"+address, &http.Client{Transport: &http.Transport{}})
}

// TestOnePortSpeaksBothOverTLS: to clients that list only h2, only http/1.1, both, as
// browsers and curl do, or nothing.
func TestOnePortSpeaksBothOverTLS(t *testing.T) {
	t.Parallel()
	ca := certtest.New(t)
	pair := ca.Issue([]string{"127.0.0.1"})
	id, err := tlsfiles.Load(tlsfiles.Files{Cert: pair.Cert, Key: pair.Key}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	address := open(t, id.Server(tlsfiles.AnyClient, frontdoor.Protocols...))
	checkGRPC(t, address, credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})) // lists h2
	for name, offers := range map[string][]string{"http/1.1": {"http/1.1"}, "both": {"h2", "http/1.1"}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			checkHTTP(t, "https://"+address, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool(), NextProtos: offers}}})
		})
	}
	// A gRPC client without ALPN is recognised by its first bytes.
	conn, err := tls.Dial("tcp", address, &tls.Config{RootCAs: ca.Pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	frame := make([]byte, 9)
	if _, err := io.ReadFull(conn, frame); err != nil || frame[3] != 4 {
		t.Errorf("%x, %v instead of a SETTINGS frame", frame, err)
	}
	// A client without TLS gets an answer that names what is missing.
	raw, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	_, _ = io.WriteString(raw, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	answer, err := io.ReadAll(raw)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || !strings.Contains(string(answer), "TLS_REQUIRED") {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestSilentClientDelaysNoOther, and does not keep a door from closing.
func TestSilentClientDelaysNoOther(t *testing.T) {
	t.Parallel()
	address := open(t, nil)
	for range 50 {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = silent.Close() })
	}
	checkGRPC(t, address, insecure.NewCredentials())
	checkHTTP(t, "http://"+address, &http.Client{Transport: &http.Transport{}})
}

// TestClientsThatSendNothingAreClosed, with and without TLS.
func TestClientsThatSendNothingAreClosed(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]*tls.Config{"plain": nil, "TLS": {}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		door := frontdoor.New(l, cfg, slog.New(slog.DiscardHandler))
		door.WaitFirst(50 * time.Millisecond)
		door.Open()
		t.Cleanup(door.Close)
		silent, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = silent.Close() }()
		_ = silent.SetReadDeadline(time.Now().Add(waittest.Patience))
		if _, err := silent.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, want the end", name, err)
		}
	}
}
