// Package anthropic speaks the Anthropic Messages protocol to the provider or to
// any server that knows it. It is the only package that imports the provider's
// SDK.
//
// Invariants:
//   - One Complete sends exactly one request for a message: the SDK's retries are
//     off. An empty model name is resolved once from the server's list, with a
//     request of its own.
//   - The bytes of a request are a pure function of the conversation and the tools.
//     What a later turn sends begins with what the turn before it sent, but for the
//     marks of the cache, which are no part of what is cached.
//   - The server's answer decides how it is read, not the request: events are
//     read as events and plain JSON as JSON, whatever was asked for.
//   - A response is returned only when the server said that it is finished.
//   - What the model wrote as arguments is passed on untouched.
//   - The environment is not read, and no message holds the key.
//
// Thinking is not asked for. Blocks of it that come all the same are counted in the
// usage and left out of the answer; they are not sent back.
//
// How it fails: always with a *model.Error. Statuses 408, 409, 425, 429 and
// 5xx (529 is "overloaded"), failed connections, unreadable answers, cut and
// silent streams and errors in mid-stream are retryable; other statuses are not.
// When the caller's context ends, the error wraps the context's and is not
// retryable.
package anthropic

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// DefaultBaseURL is the provider's own address; it demands a key.
const DefaultBaseURL = "https://api.anthropic.com"

const (
	// DefaultMaxOutput is asked for where the model's own bound is not known, in
	// tokens: the protocol demands a number, and refuses one above the model's.
	DefaultMaxOutput = 8192
	// plainMaxOutput bounds an answer that is not streamed, in tokens: connections
	// on which nothing happens for many minutes are cut on the way.
	plainMaxOutput = 16384
)

// Config says which server to speak to. The zero value is the provider's own
// address without a key.
type Config struct {
	// BaseURL is the address without the version path, such as
	// http://127.0.0.1:8000; default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as x-api-key; empty sends none.
	APIKey string
	// MaxOutput is the most that a model writes in one answer, in tokens; 0, or a
	// nil function: not known, DefaultMaxOutput is asked for.
	MaxOutput func(model string) uint32
	// HTTPClient carries the requests; nil means a client of its own without a
	// total timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct {
	api       sdk.Client
	client    *http.Client
	server    attempt.Server
	maxOutput func(string) uint32

	mu       sync.Mutex
	resolved string
}

var _ model.Provider = (*Provider)(nil)

// New makes a Provider. It sends nothing. It fails if BaseURL is not an http
// or https address, or includes the version path.
func New(cfg Config) (*Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the base URL must be an http or https address without the version path, such as https://api.anthropic.com")
	}
	if path := strings.TrimRight(u.Path, "/"); path == "/v1" || strings.HasSuffix(path, "/v1") {
		return nil, fmt.Errorf("the base URL must not include the version path: leave /v1 away, %s://%s%s", u.Scheme, u.Host, strings.TrimSuffix(path, "/v1"))
	}
	client := cfg.HTTPClient
	if client == nil {
		client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	opts := []option.RequestOption{
		option.WithBaseURL(base),
		option.WithHTTPClient(client),
		option.WithMaxRetries(0),
		option.WithMiddleware(attempt.BoundErrorBody),
		option.WithoutOpenTelemetry(), // the turn has spans of its own
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	if cfg.MaxOutput == nil {
		cfg.MaxOutput = func(string) uint32 { return 0 }
	}
	return &Provider{
		api: sdk.Client{Options: opts}, client: client, maxOutput: cfg.MaxOutput,
		server: attempt.Server{Host: u.Host, Key: cfg.APIKey, Classify: classify},
	}, nil
}

// Close closes the connections that wait for a next request. The provider can
// still be used.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// Complete makes one try. A request without a model asks the server for its
// list first and takes the first entry, the newest one; the answer is kept until
// the server no longer knows that model.
func (p *Provider) Complete(ctx context.Context, req *model.Request, delta func(text string)) (*model.Response, error) {
	try, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := attempt.NewWatch(req, cancel)
	defer w.Pause()

	name, err := p.modelName(try, req.Model)
	if err == nil {
		w.Resume()
		var resp *model.Response
		if resp, err = p.complete(try, req, name, delta, w); err == nil {
			return resp, nil
		}
	}
	if req.Model == "" {
		p.forget(err)
	}
	return nil, p.server.Failed(ctx, try, w, err)
}

func (p *Provider) modelName(ctx context.Context, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	p.mu.Lock()
	name = p.resolved
	p.mu.Unlock()
	if name != "" {
		return name, nil
	}
	var raw *http.Response
	if err := p.api.Get(ctx, "v1/models", nil, nil, option.WithResponseBodyInto(&raw)); err != nil {
		return "", attempt.StatusOr(raw, err)
	}
	defer func() { _ = raw.Body.Close() }()
	body, err := attempt.Whole(raw.Body)
	if err != nil {
		return "", err
	}
	var page struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return "", attempt.Cut("the list of models is not JSON", err)
	}
	if len(page.Data) == 0 || page.Data[0].ID == "" {
		return "", &model.Error{RetryAfter: -1, Message: "no model was named and the server lists none: name one, such as anthropic:NAME"}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolved = page.Data[0].ID
	return p.resolved, nil
}

// forget drops the resolved model when the server says that it is gone.
func (p *Provider) forget(err error) {
	var status *attempt.StatusError
	if errors.As(err, &status) && status.Code == http.StatusNotFound {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.resolved = ""
	}
}

func (p *Provider) complete(ctx context.Context, req *model.Request, name string, delta func(string), w *attempt.Watch) (*model.Response, error) {
	longest := p.maxOutput(name)
	if longest == 0 {
		longest = DefaultMaxOutput
	}
	if !req.Streaming {
		longest = min(longest, plainMaxOutput)
	}
	question, err := params(req, name, longest)
	if err != nil {
		return nil, err
	}
	opts := []option.RequestOption{}
	if req.Streaming {
		opts = append(opts, option.WithJSONSet("stream", true))
	}
	var raw *http.Response
	opts = append(opts, option.WithResponseBodyInto(&raw))
	if err := p.api.Post(ctx, "v1/messages", question, nil, opts...); err != nil {
		return nil, attempt.StatusOr(raw, err)
	}
	defer func() { _ = raw.Body.Close() }()
	if !req.Streaming || delta == nil {
		delta = func(string) {}
	}
	body := bufio.NewReader(raw.Body)
	first, err := attempt.FirstByte(body)
	switch {
	case err != nil:
		return nil, attempt.Cut("the answer broke off before its first byte", err)
	case first == '{':
		return attempt.Plain(body, readMessage, delta)
	case first == '<':
		return nil, &model.Error{RetryAfter: -1, Status: raw.StatusCode,
			Message: fmt.Sprintf("%s answered with a web page: check the base URL, it is the address without /v1", p.server.Host)}
	}
	return stream(raw, body, delta, w)
}

// stream reads an answer that comes as events.
func stream(raw *http.Response, body io.Reader, delta func(string), w *attempt.Watch) (*model.Response, error) {
	attempt.AsEvents(raw, body)
	events := ssestream.NewDecoder(raw)
	var acc accumulator
	for !acc.finished() && events.Next() {
		w.Pause()
		data := bytes.TrimSpace(events.Event().Data)
		if events.Event().Type == "error" {
			return nil, reportedError(data)
		}
		if len(data) > 0 {
			text, err := acc.add(data)
			if err != nil {
				return nil, err
			}
			if text != "" {
				delta(text)
			}
		}
		w.Resume()
	}
	w.Pause()
	if !acc.finished() {
		return nil, attempt.Cut("the stream ended before the message was finished", events.Err())
	}
	return acc.response(), nil
}
