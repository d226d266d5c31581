package egress

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
)

func (p *Proxy) newHTTP() *http.Server {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.RawQuery = r.In.URL.RawQuery
		},
		Transport:     roundTripper{p},
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { fail(w, err) },
	}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !p.startRequest() {
				return
			}
			defer p.requests.Done()
			switch {
			case r.Method == http.MethodConnect:
				p.serveConnect(w, r)
			case r.URL.Scheme != "http" || r.URL.Host == "":
				http.Error(w, "This is the proxy of a sandbox: send CONNECT HOST:PORT, or the URL with http:// and the host.", http.StatusBadRequest)
			default:
				_ = http.NewResponseController(w).EnableFullDuplex()
				forward.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: greetTimeout, IdleTimeout: keepTimeout, MaxHeaderBytes: maxHeaderBytes,
		Protocols: protocols, ErrorLog: log.New(io.Discard, "", 0),
	}
}

// newTransport returns what sends requests with absolute URLs. It dials as tunnels do.
func (p *Proxy) newTransport() *http.Transport {
	return &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			name, port, err := splitTarget(address)
			if err != nil {
				return nil, err
			}
			host, err := p.connect(ctx, name, port)
			if err != nil {
				return nil, err // not a nil *hostConnection
			}
			return host, nil
		},
		DisableCompression: true, IdleConnTimeout: keepTimeout, MaxResponseHeaderBytes: maxHeaderBytes, ForceAttemptHTTP2: false,
	}
}

// roundTripper decides about each request, also about one that takes an open connection.
type roundTripper struct{ *Proxy }

// RoundTrip sends a request to the host of its URL.
func (p roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	port := r.URL.Port()
	if port == "" {
		port = "80"
	}
	name, number, err := splitTarget(net.JoinHostPort(r.URL.Hostname(), port))
	if err != nil {
		return nil, err
	}
	normal, err := p.decide(name, number)
	if err != nil {
		return nil, err
	}
	r.URL.Host = net.JoinHostPort(normal, port)
	return p.upstream.RoundTrip(r)
}

// errTarget is a target that is not HOST:PORT.
var errTarget = errors.New("the target must be HOST:PORT")

// splitTarget returns the host and the port of HOST:PORT.
func splitTarget(target string) (string, uint16, error) {
	name, text, err := net.SplitHostPort(target)
	if err != nil {
		return "", 0, errTarget
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return "", 0, errTarget
	}
	return name, uint16(port), nil
}

// serveConnect makes a tunnel.
func (p *Proxy) serveConnect(w http.ResponseWriter, r *http.Request) {
	name, port, err := splitTarget(r.RequestURI)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	host, err := p.connect(r.Context(), name, port)
	if err != nil {
		fail(w, err)
		return
	}
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = host.Close()
		fail(w, err)
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_, _ = conn.Close(), host.Close()
		return
	}
	tunnel(conn.(*connection), buffer.Reader, host)
}

// fail answers a request that could not be served.
func fail(w http.ResponseWriter, err error) {
	var refusal *Refusal
	if errors.As(err, &refusal) {
		http.Error(w, refusal.Error(), http.StatusForbidden)
		return
	}
	http.Error(w, "The proxy of the sandbox: "+err.Error()+".", http.StatusBadGateway)
}
