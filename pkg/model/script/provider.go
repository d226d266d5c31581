package script

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
)

// deltas is the approximate number of pieces of a streamed text.
const deltas = 4

// Provider responds from a script. It is safe for concurrent use; runs that share
// it do not affect each other, unless their conversations are equal and their
// requests at an error entry overlap.
type Provider struct {
	script *Script

	mu     sync.Mutex
	failed map[place]uint32
}

// place is a conversation at an entry.
type place struct {
	script       *Script
	answer       int
	conversation [sha256.Size]byte
}

var _ model.Provider = (*Provider)(nil)

func NewProvider(s *Script) *Provider {
	return &Provider{script: s, failed: map[place]uint32{}}
}

// Complete responds with the next entry, after its delay.
func (p *Provider) Complete(ctx context.Context, req *model.Request, delta func(model.Delta)) (*model.Response, error) {
	t, err := p.next(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, t.delay); err != nil {
		return nil, err
	}
	if t.fail != nil {
		return nil, t.fail.error()
	}
	if req.Streaming && delta != nil {
		for _, piece := range pieces(t.reasoning) {
			delta(model.Delta{Reasoning: piece})
		}
		for _, piece := range pieces(t.text) {
			if err := wait(ctx, 0); err != nil {
				return nil, err
			}
			delta(model.Delta{Text: piece})
		}
	}
	return t.response(req.Model), nil
}

// next returns the entry of a try.
func (p *Provider) next(ctx context.Context, req *model.Request) (turn, error) {
	if req.Job != nil {
		return p.script.job(ctx, req.Job)
	}
	s := p.script.of(req.Agent)
	st := s.next(req)
	switch i, failing := p.failing(s, st, req); {
	case failing:
		return s.turns[st.errors[i]], nil
	case st.answer < len(s.turns):
		return s.turns[st.answer], nil
	}
	return turn{text: Exhausted}, nil
}

// failing returns which of the step's errors this try ends with, if any, and counts
// the try.
func (p *Provider) failing(s *Script, st step, req *model.Request) (index uint32, failing bool) {
	if len(st.errors) == 0 {
		return 0, false
	}
	at := place{script: s, answer: st.answer, conversation: digest(req.Messages)}
	p.mu.Lock()
	defer p.mu.Unlock()
	index = max(req.FailedTries, p.failed[at])
	if int64(index) >= int64(len(st.errors)) {
		delete(p.failed, at)
		return 0, false
	}
	p.failed[at] = index + 1
	return index, true
}

// digest identifies a conversation.
func digest(messages []*harnessv1.Message) [sha256.Size]byte {
	h := sha256.New()
	field := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, m := range messages {
		field(m.GetRole().String())
		field(m.GetContent().GetInline())
		field(m.GetToolCallId())
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// wait returns after d, or with an error when the context ends.
func wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return &model.Error{RetryAfter: -1, Message: "the model call was cancelled: " + err.Error(), Err: err}
	}
	return nil
}

func (f *failure) error() *model.Error {
	e := &model.Error{
		Retryable:  (f.status == 0 || model.RetryableStatus(f.status)) && !f.contextExceeded,
		RetryAfter: f.retryAfter, ContextExceeded: f.contextExceeded, Status: f.status, Message: f.message,
		PromptTokens: f.promptTokens, WindowTokens: f.windowTokens,
	}
	if e.Message == "" {
		e.Message = strings.TrimSpace(fmt.Sprintf("the script answered %d %s", f.status, http.StatusText(f.status)))
		if f.status == 0 {
			e.Message = "the script broke off"
		}
	}
	return e
}

func (t *turn) response(name string) *model.Response {
	if name == "" {
		name = "script"
	}
	r := &model.Response{
		Text: t.text, FinishReason: t.finish, Model: name,
		Usage: &harnessv1.Usage{InputTokens: t.usage.input, OutputTokens: t.usage.output, CachedInputTokens: t.usage.cached,
			ReasoningTokens: t.usage.reasoning},
	}
	if t.reasoning != "" {
		r.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{
			Text: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: t.reasoning}},
		}}}}
	}
	for _, c := range t.calls {
		r.ToolCalls = append(r.ToolCalls, &harnessv1.ToolCall{Id: c.id, Name: c.name,
			Arguments: &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: c.arguments}}})
	}
	if r.FinishReason == "" {
		r.FinishReason = "stop"
		if len(r.ToolCalls) > 0 {
			r.FinishReason = "tool_calls"
		}
	}
	return r
}

// pieces splits text into a few pieces between runes.
func pieces(text string) []string {
	size := len(text)/deltas + 1
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out = append(out, text[start:i])
			start = i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
