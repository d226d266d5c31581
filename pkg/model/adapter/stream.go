package adapter

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/wire"
)

const (
	// MaxAnswer bounds an answer, in bytes: text, reasoning, the arguments of calls and
	// opaque parts together. The longest answers of models are 128,000 tokens, about half
	// a MiB of text; an answer above the bound is one that does not end.
	MaxAnswer = 16 << 20
	// PieceBytes is what a piece of an answer, such as a call, counts in addition to its
	// bytes: about what it needs in memory.
	PieceBytes = 256
	// maxStream bounds the data of the events of one response, in bytes. They are not kept.
	// Services wrap a token of some bytes in an event of some hundred.
	maxStream = 1 << 30
)

// stream reads a response that comes as events. It calls read for each that adds to the answer.
func (p *Provider) stream(res *wire.Response, s Stream, delta func(model.Delta), read func(), pace *pace) (*model.Response, error) {
	events := res.Events()
	var broken error
	received := 0
	for first := true; !s.Ended(); first = false {
		var e wire.Event
		if e, broken = events.Next(); broken != nil {
			break
		}
		if received += len(e.Data); received > maxStream {
			return nil, tooLarge("the stream", maxStream)
		}
		data := bytes.TrimSpace(e.Data)
		if len(data) == 0 && e.Type != "error" || len(data) > 0 && data[0] == ':' { // some proxies send comments as data
			continue
		}
		size, complete := s.Size(), s.Complete()
		piece, err := s.Add(e.Type, data)
		if err != nil {
			return nil, err
		}
		if s.Size() > MaxAnswer {
			return nil, tooLarge("the answer", MaxAnswer)
		}
		grown := first || s.Size() > size || s.Complete() && !complete
		if grown && !first {
			read()
		}
		if !grown && !p.protocol.KeepsAlive {
			continue
		}
		if s.Size() > wire.LargeBytes {
			if err := res.Large(); err != nil {
				return nil, err
			}
		}
		pace.pause(grown)
		if piece != (model.Delta{}) {
			delta(piece)
		}
		if s.Complete() {
			pace.shorten(tailTimeout)
		}
		pace.resume(grown)
	}
	pace.stop()
	switch {
	case errors.Is(broken, wire.ErrTooLarge):
		return nil, tooLarge("an event", wire.MaxEvent)
	case !s.Complete():
		return nil, Cut("the stream ended before the response was complete", broken)
	}
	r := s.Response()
	if size(r) > MaxAnswer {
		return nil, tooLarge("the answer", MaxAnswer)
	}
	return r, nil
}

// size returns the bytes of an answer.
func size(r *model.Response) int {
	n := len(r.Text)
	for _, c := range r.ToolCalls {
		n += PieceBytes + len(c.GetId()) + len(c.GetName()) + len(c.GetArguments().GetInline())
	}
	for _, p := range r.Parts {
		n += PieceBytes + len(p.GetReasoning().GetText().GetInline()) + len(p.GetOpaque().GetInline()) + len(p.GetMedia().GetData())
	}
	return n
}

func readAll(res *wire.Response) ([]byte, error) {
	body, err := res.ReadAll()
	switch {
	case errors.Is(err, wire.ErrTooLarge):
		return nil, tooLarge("the response", wire.MaxBody)
	case err != nil:
		return nil, Cut("the response broke off", err)
	}
	return body, nil
}

// tooLarge returns the error of an answer that does not end. The same request may get one
// that does.
func tooLarge(what string, limit int) *model.Error {
	return Cut(fmt.Sprintf("%s exceeds %d bytes", what, limit), wire.ErrTooLarge)
}
