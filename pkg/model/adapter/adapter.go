// Package adapter is the common part of the providers that speak HTTP: it
// makes one try at a model service and reads the response, streamed or not. A
// Protocol describes what differs between the wires: how a request is encoded,
// how a body and an event are decoded, and which errors mean that a quota is used up or
// that a filter has refused the request.
//
// Invariants:
//   - One Complete sends exactly one request for a response. An empty model name
//     is resolved from the server's list of models, once, with a request before
//     the first one.
//   - The body decides how it is read, not the request: events are read as events
//     and JSON as JSON, whatever was requested.
//   - A response is returned only after the server has declared it complete.
//   - A server that sends no event within the idle timeout ends the try, and so does one
//     whose events add nothing to the answer, or whose answer has no end; see pace. Time
//     that the caller spends on a delta does not count.
//   - An answer has at most MaxAnswer bytes, however it comes.
//   - A request has the opaque parts that package opaque selects for its target, and
//     no others. It shows the images and documents that package media selects.
//   - No error contains the key.
//
// How it fails: always with a *model.Error of one line. Statuses 408, 409, 425,
// 429 and from 500 are retryable, as are failed connections, unreadable bodies, web pages,
// cut, silent and endless streams, answers above MaxAnswer, and errors within a stream. Other statuses, refused
// redirects are not. When the caller's context ends, the error
// wraps the context's and is not retryable.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

// DefaultIdle is the idle timeout of a request that sets none.
const DefaultIdle = 120 * time.Second

// Protocol is what differs between the wires.
type Protocol struct {
	// Name is the prefix of the provider's models, such as openai.
	Name string
	// Wire is the name of the wire: chat, responses or messages.
	Wire string
	// Bound reports whether the wire binds opaque parts to the request before them.
	Bound bool
	// Reads returns the other models of the provider whose opaque parts a model reads.
	// Nil: none.
	Reads func(name string) []string
	// Takes returns the images and documents that a model takes on this wire. Nil: none.
	Takes func(name string) media.Takes
	// Choices are the models of a request that names none, the first choice first.
	Choices []string
	// ModelsPath and Path are where the models are listed and a response is
	// requested, relative to the base address.
	ModelsPath, Path string
	// Schemas reports whether the service takes the JSON Schema of an answer.
	Schemas bool
	// Optional are the members of requests that Encode leaves out if req.Leaves them.
	Optional []Optional
	// Encode returns the body of a request to the named model, as a *wire.Body or as a
	// value that encoding/json encodes. The opaque parts and media of the request are inline, and all
	// of them are sent, and so is its schema.
	Encode func(req *model.Request, name string) (any, error)
	// Decode reads a response that came as one JSON object.
	Decode func(body []byte) (*model.Response, error)
	// NewStream returns an empty Stream.
	NewStream func() Stream
	// KeepsAlive reports whether the service sends events that add nothing to the answer
	// while the model thinks, such as ping. Elsewhere they count as silence.
	KeepsAlive bool
	// Refusals classifies the service's errors.
	Refusals Refusals
}

// Stream builds a response from events. It is a fold without clock and I/O.
type Stream interface {
	// Add takes an event and returns the text that it adds. data is empty only in
	// an event of the type error.
	Add(kind string, data []byte) (model.Delta, error)
	// Size returns the bytes of the answer so far: texts, reasoning, calls and opaque
	// parts, and PieceBytes for each piece that they are in. It never falls.
	Size() int
	// Complete reports whether the server has declared the response complete. The
	// usage may still follow.
	Complete() bool
	// Ended reports whether no further event is of use.
	Ended() bool
	// Response returns the response that the events add up to.
	Response() *model.Response
}

// Provider is a model.Provider for a Protocol. It is safe for concurrent use.
type Provider struct {
	protocol Protocol
	client   *wire.Client
	key      string

	mu       sync.Mutex
	resolved string // the model of requests that name none
}

var _ model.Provider = (*Provider)(nil)

// New returns a Provider. It sends nothing. key is removed from messages; the
// client is what sends it.
func New(p Protocol, client *wire.Client, key string) *Provider {
	return &Provider{protocol: p, client: client, key: key}
}

// Close closes idle connections. The provider can still be used.
func (p *Provider) Close() error {
	p.client.Close()
	return nil
}

// Complete makes one try. A request without a model gets the one that Choose returns for
// the server's list. The provider remembers it until the server no longer knows it.
func (p *Provider) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	try, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pace := startPace(idleLimit(req), cancel)
	defer pace.stop()

	name, err := p.modelName(try, req.Model)
	if err == nil {
		pace.restart()
		var resp *model.Response
		if resp, err = p.request(try, req, name, delta, pace); err == nil {
			return resp, nil
		}
	}
	if req.Model == "" {
		p.forget(err)
	}
	return nil, p.failure(ctx, try, pace, err)
}

func idleLimit(req *model.Request) time.Duration {
	limit := req.IdleTimeout
	if limit <= 0 {
		limit = DefaultIdle
	}
	if !req.Streaming {
		limit *= plainFactor
	}
	return limit
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
	listed, err := p.list(ctx)
	if err != nil {
		return "", err
	}
	if name, err = Choose(p.protocol.Name, listed, p.protocol.Choices); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolved = name
	return name, nil
}

// Model returns the model of a request that names none; see Choose. It makes one request.
func (p *Provider) Model(ctx context.Context) (string, error) {
	try, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pace := startPace(DefaultIdle, cancel)
	defer pace.stop()
	name, err := p.modelName(try, "")
	if err != nil {
		return "", p.failure(ctx, try, pace, err)
	}
	return name, nil
}

// forget drops the resolved model after the server did not find it.
func (p *Provider) forget(err error) {
	var failed *model.Error
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		p.Forget()
	}
}

// Forget drops the model of requests that name none: the next one asks for the list again.
func (p *Provider) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.resolved = ""
}

func (p *Provider) request(ctx context.Context, req *model.Request, name string, delta func(model.Delta), pace *pace) (*model.Response, error) {
	out, err := p.prepare(ctx, req, name)
	if err != nil {
		return nil, err
	}
	body, err := p.protocol.Encode(out.request, name)
	if err != nil {
		return nil, &model.Error{RetryAfter: -1, Message: "the request cannot be sent: " + err.Error()}
	}
	res, err := p.client.Post(ctx, p.protocol.Path, body)
	if err != nil {
		return nil, p.refused(out, err)
	}
	defer res.Close()
	r, err := p.read(ctx, res, req.Streaming, delta, pace)
	if err != nil {
		return nil, p.refused(out, err)
	}
	if r.Parts != nil {
		r.Origin = out.origin()
	}
	r.Limits = Limits(res.Header)
	return r, nil
}

// read reads a response in the form in which it comes.
func (p *Provider) read(ctx context.Context, res *wire.Response, streaming bool, delta func(model.Delta), pace *pace) (*model.Response, error) {
	if !streaming || delta == nil {
		delta = func(model.Delta) {}
	}
	place := &largeAnswer{ctx: ctx, pace: pace}
	defer place.leave()
	res.Large = place.enter
	first, err := res.Peek()
	switch {
	case err != nil:
		return nil, Cut("the response broke off before its first byte", err)
	case first == '{':
		model.ReadOf(ctx)()
		return p.plain(res, delta)
	case first == '<':
		// A proxy sends one while the service is away, with the status of a success.
		return nil, &model.Error{Retryable: true, RetryAfter: -1, Status: res.Status,
			Message: fmt.Sprintf("%s answered with a web page instead of a response: if it still does when the service is up, check that %s %s", p.client.Host(), p.protocol.Refusals.BaseVariable, p.protocol.Refusals.BaseHint)}
	}
	return p.stream(res, p.protocol.NewStream(), delta, model.ReadOf(ctx), pace)
}

// plain reads a response that is one JSON object; its text is one delta, and so is
// that of its reasoning.
func (p *Provider) plain(res *wire.Response, delta func(model.Delta)) (*model.Response, error) {
	body, err := readAll(res)
	if err != nil {
		return nil, err
	}
	resp, err := p.protocol.Decode(body)
	if err != nil {
		return nil, err
	}
	if size(resp) > MaxAnswer {
		return nil, tooLarge("the answer", MaxAnswer)
	}
	if text := reasoningText(resp.Parts); text != "" {
		delta(model.Delta{Reasoning: text})
	}
	if resp.Text != "" {
		delta(model.Delta{Text: resp.Text})
	}
	return resp, nil
}

// reasoningText returns the text of reasoning for people, as observers get it: a blank
// line separates the texts of two parts.
func reasoningText(parts []*harnessv1.Part) string {
	var texts []string
	for _, p := range parts {
		if text := p.GetReasoning().GetText().GetInline(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// failure turns what ended a try into a *model.Error without the key. parent is
// the caller's context, try the one that the pace cancels.
func (p *Provider) failure(parent, try context.Context, pace *pace, err error) *model.Error {
	host := p.client.Host()
	if parent.Err() != nil {
		return &model.Error{RetryAfter: -1, Message: "the model call was cancelled: " + parent.Err().Error(), Err: parent.Err()}
	}
	if failed := pace.failure(host, context.Cause(try)); failed != nil {
		return failed
	}
	var failed *model.Error
	var status *wire.StatusError
	var redirect *wire.RedirectError
	var unreachable *url.Error
	switch {
	case errors.As(err, &failed):
	case errors.As(err, &status):
		failed = p.protocol.Refusals.Classify(status)
	case errors.As(err, &redirect):
		failed = &model.Error{RetryAfter: -1, Message: fmt.Sprintf("%s: %v; set %s to the right address", host, redirect, p.protocol.Refusals.BaseVariable)}
	case errors.As(err, &unreachable):
		failed = Cut(fmt.Sprintf("cannot reach %s: %v", host, unreachable.Err), unreachable.Err)
	default:
		failed = Cut(fmt.Sprintf("the response of %s cannot be read: %v", host, err), nil)
	}
	failed.Message = Clean(failed.Message, p.key)
	return failed
}

// Cut returns the error of a try that broke off and may be made again.
func Cut(what string, cause error) *model.Error {
	return &model.Error{Retryable: true, RetryAfter: -1, Message: what, Err: cause}
}
