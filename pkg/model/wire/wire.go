// Package wire is the HTTP client of the model providers: it posts JSON and
// reads JSON or server-sent events. A wire is the protocol that a model
// service speaks over HTTP, such as OpenAI's chat completions; this package
// knows what all wires have in common and nothing of models.
//
// Invariants:
//   - One call sends one request; nothing is retried here.
//   - Every read is bounded: a refusal by maxErrorBody, a whole body by
//     MaxBody, an event by MaxEvent.
//   - Neither the credentials nor the body of a request reach another host: a
//     redirect to one is an error, as is one from https to http.
//   - The environment is read for one purpose: HTTPS_PROXY, HTTP_PROXY and
//     NO_PROXY apply, unless the caller passes its own http.Client.
//
// How it fails: a response with a status of 400 or more is a *StatusError, a
// refused redirect a *RedirectError, a connection that fails a *url.Error. The
// errors do not contain the request's headers.
package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// MaxBody bounds a body that ReadAll reads, in bytes.
const MaxBody = 32 << 20

// userAgent names this program to the service.
const userAgent = "harnessmesh"

// LargeBytes is the size from which a body or an event is large.
const LargeBytes = 1 << 20

// ErrTooLarge is returned for a body above MaxBody or an event above MaxEvent.
var ErrTooLarge = errors.New("response exceeds the size limit")

// Client sends requests to one service. It is safe for concurrent use.
type Client struct {
	base   url.URL
	header http.Header
	http   *http.Client
}

// NewClient returns a client of the service at base, whose query and fragment
// are ignored. header is sent with every request, credentials included. A nil
// client stands for a new one with the proxies of the environment, HTTP/2 and no
// timeout; a timeout of the client would cut long streams.
func NewClient(base *url.URL, header http.Header, client *http.Client) *Client {
	if client == nil {
		client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	own := *client
	own.CheckRedirect = checkRedirect
	return &Client{
		base:   url.URL{Scheme: base.Scheme, User: base.User, Host: base.Host, Path: strings.TrimRight(base.Path, "/") + "/"},
		header: header.Clone(), http: &own,
	}
}

// Host returns the host and port of the service.
func (c *Client) Host() string { return c.base.Host }

// Address returns the address of a path, without credentials.
func (c *Client) Address(path string) string {
	return c.base.Scheme + "://" + c.base.Host + c.base.Path + path
}

// Close closes idle connections. The client can still be used.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get requests path, which is relative to the base address.
func (c *Client) Get(ctx context.Context, path string) (*Response, error) {
	return c.do(ctx, http.MethodGet, path, nil)
}

// Post sends body as JSON. A *Body is sent as it was written, and released once the
// service has begun to answer; a json.RawMessage is sent byte for byte.
func (c *Client) Post(ctx context.Context, path string, body any) (*Response, error) {
	b, ok := body.(*Body)
	if !ok {
		b = &Body{}
		if err := b.Encode(body); err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
	}
	defer b.release()
	return c.do(ctx, http.MethodPost, path, b)
}

func (c *Client) do(ctx context.Context, method, path string, body *Body) (*Response, error) {
	address := c.base
	address.Path += path
	req, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
	if err != nil {
		return nil, err
	}
	if body != nil {
		if req.Body, err = body.reader(); err != nil {
			return nil, err
		}
		req.GetBody, req.ContentLength = body.reader, int64(body.Len())
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(req) //nolint:bodyclose // Response.Close and refusal close it
	if err != nil {
		return nil, err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return nil, refusal(res)
	}
	return &Response{Status: res.StatusCode, Header: res.Header, body: bufio.NewReader(res.Body), closer: res.Body}, nil
}

// Response is a successful response whose body is not read yet. The caller
// closes it.
type Response struct {
	// Status is the HTTP status, below 400.
	Status int
	// Header of the response.
	Header http.Header
	// Large is called before more than LargeBytes of one body or of one event are read. Its
	// error ends the read. Nil: they are read.
	Large func() error

	body   *bufio.Reader
	closer io.Closer
}

// Close ends the response; unread bytes are dropped.
func (r *Response) Close() { _ = r.closer.Close() }

// Peek returns the first byte of the body that is neither white space nor a
// byte order mark, and leaves it unread. '{' begins JSON, '<' a web page; the
// content type is not consulted, because servers send wrong ones.
func (r *Response) Peek() (byte, error) {
	skipMark(r.body)
	for {
		b, err := r.body.ReadByte()
		if err != nil {
			return 0, err
		}
		if !strings.ContainsRune(" \t\r\n", rune(b)) {
			return b, r.body.UnreadByte()
		}
	}
}

// ReadAll reads the rest of the body. It returns ErrTooLarge past MaxBody.
func (r *Response) ReadAll() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r.body, LargeBytes))
	if err == nil && len(b) == LargeBytes && r.Large != nil {
		err = r.Large()
	}
	if err != nil {
		return nil, err
	}
	if len(b) < LargeBytes {
		return b, nil
	}
	chunks, n := [][]byte{b}, len(b)
	for { // a body that is refused needs no more than its bytes
		last := &chunks[len(chunks)-1]
		if len(*last) == cap(*last) {
			chunks = append(chunks, make([]byte, 0, LargeBytes))
			last = &chunks[len(chunks)-1]
		}
		m, err := r.body.Read((*last)[len(*last):cap(*last)])
		*last, n = (*last)[:len(*last)+m], n+m
		switch {
		case n > MaxBody:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return bytes.Join(chunks, nil), nil
		case err != nil:
			return nil, err
		}
	}
}

// Events reads the rest of the body as server-sent events.
func (r *Response) Events() *Events {
	e := newEvents(r.body)
	e.large = r.Large
	return e
}

// RedirectError is a redirect that was not followed.
type RedirectError struct {
	// Location is the scheme and host that the server named.
	Location string
}

// Error names the location.
func (e *RedirectError) Error() string {
	return "the server redirects to " + e.Location + ", which would receive the key and the request"
}

const maxRedirects = 10

// checkRedirect follows redirects within a host, also from http to https.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	sameHost := req.URL.Host == first.Host && req.URL.Scheme == first.Scheme
	upgrade := req.URL.Hostname() == first.Hostname() && first.Scheme == "http" && req.URL.Scheme == "https"
	if !sameHost && !upgrade {
		return &RedirectError{Location: req.URL.Scheme + "://" + req.URL.Host}
	}
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	return nil
}
