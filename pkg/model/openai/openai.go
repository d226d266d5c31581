// Package openai speaks the OpenAI chat-completion protocol to any server that
// knows it. It is the only package that imports the provider's SDK.
//
// Invariants:
//   - One Complete sends exactly one completion request: the SDK's retries are
//     off. An empty model name is resolved once from the server's list, with a
//     request of its own.
//   - A request carries only what every compatible server knows: model,
//     messages, tools, stream, stream_options.
//   - The server's answer decides how it is read, not the request: events are
//     read as events and plain JSON as JSON, whatever was asked for.
//   - A response is returned only when the server said that it is finished.
//   - What the model wrote as arguments is passed on untouched.
//   - The environment is not read, and no message holds the key.
//
// How it fails: always with a *model.Error. Statuses 408, 409, 425, 429 and
// 5xx, failed connections, unreadable answers, cut and silent streams and
// errors in mid-stream are retryable; other statuses are not. When the caller's
// context ends, the error wraps the context's and is not retryable.
package openai

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/attempt"
)

// DefaultBaseURL is the provider's own address; it demands a key.
const DefaultBaseURL = "https://api.openai.com/v1"

// tailTimeout bounds the wait for the usage once the response is finished.
const tailTimeout = 5 * time.Second

// Config says which server to speak to. The zero value is the provider's own
// address without a key.
type Config struct {
	// BaseURL includes the version path, such as http://127.0.0.1:8000/v1;
	// default DefaultBaseURL.
	BaseURL string
	// APIKey is sent as bearer token; empty sends none.
	APIKey string
	// HTTPClient carries the requests; nil means a client of its own without a
	// total timeout. A timeout of the client would cut long streams.
	HTTPClient *http.Client
}

// Provider is a model.Provider. It is safe for concurrent use.
type Provider struct {
	chat   sdk.ChatCompletionService
	models sdk.ModelService
	client *http.Client
	server attempt.Server

	mu       sync.Mutex
	resolved string
}

var _ model.Provider = (*Provider)(nil)

// New makes a Provider. It sends nothing. It fails if BaseURL is not an http
// or https address.
func New(cfg Config) (*Provider, error) {
	base := cfg.BaseURL
	if base == "" {
		base = DefaultBaseURL
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the base URL must be an http or https address that includes the version path, such as https://api.openai.com/v1")
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
	}
	if cfg.APIKey != "" {
		opts = append(opts, option.WithAPIKey(cfg.APIKey))
	}
	return &Provider{
		chat: sdk.NewChatCompletionService(opts...), models: sdk.NewModelService(opts...),
		client: client, server: attempt.Server{Host: u.Host, Key: cfg.APIKey, Classify: classify},
	}, nil
}

// Close closes the connections that wait for a next request. The provider can
// still be used.
func (p *Provider) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// Complete makes one try. A request without a model asks the server for its
// list first and takes the first entry; the answer is kept until the server no
// longer knows that model.
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
	page, err := p.models.List(ctx, option.WithResponseInto(&raw))
	if err != nil {
		return "", attempt.StatusOr(raw, err)
	}
	if len(page.Data) == 0 || page.Data[0].ID == "" {
		return "", &model.Error{RetryAfter: -1, Message: "no model was named and the server lists none: name one, such as openai:NAME"}
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
	question, err := params(req, name)
	if err != nil {
		return nil, err
	}
	var raw *http.Response
	if _, err = p.chat.New(ctx, question, option.WithResponseBodyInto(&raw)); err != nil {
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
		return attempt.Plain(body, readCompletion, delta)
	case first == '<':
		return nil, &model.Error{RetryAfter: -1, Status: raw.StatusCode,
			Message: fmt.Sprintf("%s answered with a web page: check the base URL, it includes the version path such as /v1", p.server.Host)}
	}
	return stream(raw, body, delta, w)
}

// stream reads an answer that comes as events.
func stream(raw *http.Response, body io.Reader, delta func(string), w *attempt.Watch) (*model.Response, error) {
	attempt.AsEvents(raw, body)
	events := ssestream.NewDecoder(raw)
	var acc accumulator
	for events.Next() {
		w.Pause()
		data := bytes.TrimSpace(events.Event().Data)
		if bytes.Equal(data, []byte("[DONE]")) {
			break
		}
		if events.Event().Type == "error" {
			return nil, reportedError(data)
		}
		text, err := acc.add(data)
		if err != nil {
			return nil, err
		}
		if text != "" {
			delta(text)
		}
		if acc.finished() {
			w.Shorten(tailTimeout)
		}
		w.Resume()
	}
	w.Pause()
	if !acc.finished() {
		return nil, attempt.Cut("the stream ended without a finish reason", events.Err())
	}
	return acc.response(), nil
}
