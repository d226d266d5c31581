package turnserver

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// shownCache keeps long results as models are shown them, by digest and limit, so that
// a text is not counted again at each turn. It is bounded by number; an entry has at
// most limit tokens.
type shownCache struct {
	mu      sync.Mutex
	entries map[shownKey]string
}

type shownKey struct {
	digest string
	limit  uint32
}

const maxShown = 1024

func (c *shownCache) get(key shownKey) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ok := c.entries[key]
	return text, ok
}

func (c *shownCache) put(key shownKey, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries) >= maxShown {
		clear(c.entries) // rare, and cheap to make again
	}
	c.entries[key] = text
}

// shorten returns a text of at most limit tokens: of a longer one the head and the
// tail, cut at lines, with a line between them that names what is missing. Bytes bound
// tokens, so short texts are not counted.
func shorten(model, text string, limit uint32) string {
	if uint64(len(text)) <= uint64(limit) {
		return text
	}
	count := tokens.Count(model, text)
	if count <= int(limit) {
		return text
	}
	keep := len(text) / count * int(limit) / 2
	for keep > 0 {
		head, tail := text[:keep], text[len(text)-keep:]
		if i := strings.LastIndexByte(head, '\n'); i > keep/2 {
			head = head[:i+1]
		}
		if i := strings.IndexByte(tail, '\n'); i >= 0 && i < keep/2 {
			tail = tail[i+1:]
		}
		cut := fmt.Sprintf("%s\n[%d bytes left out here; ask for the part that you need, with an offset or a narrower call]\n%s",
			strings.ToValidUTF8(head, ""), len(text)-len(head)-len(tail), strings.ToValidUTF8(tail, ""))
		if tokens.Count(model, cut) <= int(limit) {
			return cut
		}
		keep -= keep/8 + 1
	}
	return fmt.Sprintf("[%d bytes left out here]", len(text))
}

// inline returns messages with references replaced by their texts, and with tool
// results cut to shown tokens.
func (w *Server) inline(ctx context.Context, run runlog.Run, model string, shown uint32, messages []*harnessv1.Message) ([]*harnessv1.Message, error) {
	out := messages
	copied := false
	for i, m := range messages {
		long := m.GetRole() == harnessv1.Role_ROLE_TOOL && len(m.GetContent().GetInline()) > int(shown)
		if m.GetContent().GetBlob() == nil && !long && !hasBlobArguments(m) {
			continue
		}
		if !copied {
			out, copied = append([]*harnessv1.Message(nil), messages...), true
		}
		m = proto.CloneOf(m)
		var err error
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			m.Content, err = w.result(ctx, run, model, shown, m.GetContent())
		} else {
			m.Content, err = w.text(ctx, run, m.GetContent())
		}
		if err != nil {
			return nil, err
		}
		for _, c := range m.GetToolCalls() {
			if c.Arguments, err = w.text(ctx, run, c.GetArguments()); err != nil {
				return nil, err
			}
		}
		out[i] = m
	}
	return out, nil
}

// result returns the text of a tool result as the model is shown it.
func (w *Server) result(ctx context.Context, run runlog.Run, model string, shown uint32, c *harnessv1.Content) (*harnessv1.Content, error) {
	key := shownKey{digest: c.GetBlob().GetDigest(), limit: shown}
	if key.digest != "" {
		if text, ok := w.shown.get(key); ok {
			return content.Inline(text), nil
		}
	}
	whole, err := w.text(ctx, run, c)
	if err != nil {
		return nil, err
	}
	text := shorten(model, whole.GetInline(), shown)
	if key.digest != "" {
		w.shown.put(key, text)
	}
	return content.Inline(text), nil
}

func hasBlobArguments(m *harnessv1.Message) bool {
	for _, c := range m.GetToolCalls() {
		if c.GetArguments().GetBlob() != nil {
			return true
		}
	}
	return false
}
