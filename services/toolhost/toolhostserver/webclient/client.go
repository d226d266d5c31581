// Package webclient sends the requests of the web tools, and makes texts for models of the responses.
//
// Every connection is made by package dial. A redirect is followed only to a host that the
// approval of the call covers; the model reads the address of any other one. Credentials come
// from the settings of the agent, go to their host alone, and are replaced where a response
// repeats them.
package webclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/sandbox"
	"github.com/harnessmesh/harnessmesh/pkg/tool/mcptool"
	"github.com/harnessmesh/harnessmesh/pkg/tool/webtool"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/dial"
)

// MaxBody bounds the bytes read of a response, after it was unpacked.
const MaxBody = 5 << 20

// userAgent is what requests say of their sender.
const userAgent = "harnessmesh (agent)"

// Client sends the requests of one call. It is not safe for concurrent use.
type Client struct {
	// Call has the settings of the agent.
	Call *harnessv1.WebCall
	// Operator are the hosts that the operator of the tool host allows to have any address.
	Operator []sandbox.Host
	// Variable returns the value of a variable that the settings name.
	Variable func(name string) (string, bool)

	secrets []string
}

// Request is a request of a model.
type Request struct {
	// Method; empty: GET.
	Method  string
	URL     string
	Headers map[string]string
	Body    string
}

// Response is what a host answered.
type Response struct {
	// URL is the address that answered, after redirects.
	URL    *url.URL
	Status int
	Header http.Header
	// Body has at most MaxBody bytes; Cut reports that there are more, and Broken that the
	// response ended too early.
	Body        []byte
	Cut, Broken bool
	// Moved is the address of a redirect that was not followed; empty if there is none.
	Moved string
}

// Error is why there is no response, for the model.
type Error struct {
	// Text is a sentence.
	Text string
	// Sent reports that the host may have received the request.
	Sent bool
}

func (e *Error) Error() string { return e.Text }

// Send sends a request and reads the response. The error is an *Error.
func (c *Client) Send(ctx context.Context, r Request) (*Response, error) {
	u, site, err := webtool.ParseURL(r.URL)
	if err != nil {
		return nil, &Error{Text: fmt.Sprintf("%s: %s.", content.Clip(r.URL, 200), err)}
	}
	u.Fragment = ""
	headers, err := c.credentials(site)
	if err != nil {
		return nil, &Error{Text: err.Error()}
	}
	request, err := http.NewRequestWithContext(ctx, strings.ToUpper(r.Method), u.String(), strings.NewReader(r.Body))
	if err != nil {
		return nil, &Error{Text: fmt.Sprintf("The method %q cannot be used.", content.Clip(r.Method, 40))}
	}
	request.Header.Set("User-Agent", userAgent)
	for name, value := range r.Headers {
		if !webtool.ValidHeader(name, value) {
			return nil, &Error{Text: fmt.Sprintf("The header %q cannot be set.", content.Clip(name, 80))}
		}
		request.Header.Set(name, value)
	}
	for name, value := range headers {
		request.Header.Set(name, value)
	}
	dialer := &dial.Dialer{Allowed: c.Operator}
	if c.Call.GetLocal() {
		dialer.Allowed = slices.Concat(dialer.Allowed, webtool.Allowed(c.Call.GetWeb()))
	}
	client := dialer.Client(slices.Collect(maps.Keys(headers))...)
	check := client.CheckRedirect
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if !webtool.Reads(r.Method) || !c.mayFollow(site, next.URL) {
			return http.ErrUseLastResponse
		}
		return check(next, via)
	}
	return c.exchange(client, request)
}

// mayFollow reports whether a redirect of a request to a host may be followed.
func (c *Client) mayFollow(from webtool.Site, to *url.URL) bool {
	site, err := webtool.Of(to)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" {
		return false
	}
	return c.Call.GetAnyHost() || site.String() == from.String() || site.In(webtool.Hosts(c.Call.GetHosts()))
}

// exchange sends a request with a client.
func (c *Client) exchange(client *http.Client, request *http.Request) (*Response, error) {
	defer client.CloseIdleConnections()
	var sent atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { sent.Store(true) },
	}))
	answer, err := client.Do(request)
	if err != nil {
		return nil, &Error{Text: c.Redact(failure(request, err)), Sent: sent.Load()}
	}
	defer func() { _ = answer.Body.Close() }()
	response := &Response{URL: answer.Request.URL, Status: answer.StatusCode, Header: answer.Header}
	if to := answer.Header.Get("Location"); to != "" && answer.StatusCode/100 == 3 {
		response.Moved = "?"
		if u, err := answer.Request.URL.Parse(to); err == nil {
			response.Moved = content.Clip(u.Redacted(), webtool.MaxURL)
		}
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody+1))
	if len(body) > MaxBody {
		body, response.Cut = body[:MaxBody], true
	}
	response.Body, response.Broken = body, err != nil
	return response, nil
}

// failure returns why a request has no response, for the model.
func failure(request *http.Request, err error) string {
	host := content.Clip(request.URL.Host, 200)
	var failed *url.Error
	if errors.As(err, &failed) {
		if u, wrong := url.Parse(failed.URL); wrong == nil && u.Host != "" {
			host = content.Clip(u.Host, 200) // that of the last redirect
		}
		err = failed.Err
	}
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, dial.ErrNotPublic):
		return host + " has no public address, so it is not reached."
	case errors.Is(err, dial.ErrPort):
		return host + " is not reached: only the ports 80 and 443 are allowed."
	case errors.As(err, &certificate):
		return fmt.Sprintf("The certificate of %s is not valid: %s.", host, content.Line(content.Clean(certificate.Err.Error()), 300))
	case errors.Is(err, context.DeadlineExceeded), failed != nil && failed.Timeout():
		return fmt.Sprintf("%s did not answer within %v.", host, dial.Timeout)
	}
	return fmt.Sprintf("%s: %s.", host, content.Line(content.Clean(err.Error()), 300))
}

// credentials returns the headers that requests to a host are sent with. A host without a port
// has them over https only.
func (c *Client) credentials(site webtool.Site) (map[string]string, error) {
	headers := map[string]string{}
	for _, given := range c.Call.GetWeb().GetCredentials() {
		host, err := webtool.ParseHost(given.GetHost())
		if err != nil || !site.In([]sandbox.Host{host}) || host.Port == 0 && (!site.Secure || site.Port != 443) {
			continue
		}
		for name, text := range given.GetHeaders() {
			value, err := c.expand(text)
			if confidential(name) {
				c.secret(value)
			}
			if err != nil || !webtool.ValidHeader(name, value) {
				return nil, fmt.Errorf("The credential for %s cannot be used: %w.", given.GetHost(), cmpError(err)) //nolint:staticcheck // a sentence for the model
			}
			headers[http.CanonicalHeaderKey(name)] = value
		}
	}
	return headers, nil
}

func cmpError(err error) error {
	if err == nil {
		return errors.New("its value is no header")
	}
	return err
}

// expand returns a text of the settings with its variables, whose values are secrets.
func (c *Client) expand(text string) (string, error) {
	value, err := mcptool.Expand(text, func(name string) (string, bool) {
		value, ok := c.Variable(name)
		c.secret(value)
		return value, ok
	})
	if err == nil && value != text {
		c.secret(value)
	}
	return value, err
}

// confidential reports whether the value of a header is a secret, by the name of the header.
func confidential(header string) bool {
	header = strings.ToLower(header)
	return slices.ContainsFunc([]string{"authorization", "cookie", "key", "token", "secret", "password"}, func(part string) bool {
		return strings.Contains(header, part)
	})
}

// minSecret is the length from which a value is replaced, in bytes: a shorter one is part of
// other words.
const minSecret = 6

func (c *Client) secret(value string) {
	for _, v := range []string{value, url.QueryEscape(value)} {
		if len(v) >= minSecret && !slices.Contains(c.secrets, v) {
			c.secrets = append(c.secrets, v)
		}
	}
	slices.SortFunc(c.secrets, func(a, b string) int { return len(b) - len(a) }) // the whole before its parts
}

// Redact replaces the credentials in a text.
func (c *Client) Redact(text string) string {
	for _, s := range c.secrets {
		text = strings.ReplaceAll(text, s, "[credential]")
	}
	return text
}
