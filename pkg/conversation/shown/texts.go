package shown

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// Blob returns the bytes of a blob of a run.
type Blob func(ctx context.Context, run runlog.Run, digest string) ([]byte, error)

// Texts makes messages as models are sent them. It keeps those that needed work, so that at
// each turn only new messages are read, counted and cut. It is safe for concurrent use.
type Texts struct {
	blob  Blob
	cache messageCache
}

// New returns Texts that read blobs with blob, and keep up to limit bytes of messages in
// memory.
func New(blob Blob, limit int) *Texts { return &Texts{blob: blob, cache: newCache(limit)} }

// Messages returns messages with inline contents, in which a result, and each string in the
// arguments of a call, has at most limit tokens of a model. refs is true if the model can
// read the omitted part by the id of the message: it is that of the run. The messages must not
// change later.
func (t *Texts) Messages(
	ctx context.Context, run runlog.Run, model string, limit uint32, refs bool, messages []*harnessv1.Message,
) ([]*harnessv1.Message, error) {
	out, copied := messages, false
	for i, m := range messages {
		if isShown(m, limit) {
			continue
		}
		shown, err := t.show(ctx, run, key{message: m, model: model, limit: limit, refs: refs})
		if err != nil {
			return nil, err
		}
		if shown != m && !copied {
			out, copied = append([]*harnessv1.Message(nil), messages...), true
		}
		out[i] = shown
	}
	return out, nil
}

// View returns the messages of a view with inline contents, as Messages does. Items with a
// separate limit are shortened to it.
func (t *Texts) View(ctx context.Context, run runlog.Run, model string, limit uint32, refs bool, items []view.Item) ([]*harnessv1.Message, error) {
	messages, err := t.Messages(ctx, run, model, limit, refs, view.Messages(items))
	if err != nil {
		return nil, err
	}
	for i := range items {
		if own := items[i].Limit; own > 0 && own < limit {
			one, err := t.Messages(ctx, run, model, own, refs, []*harnessv1.Message{items[i].Message})
			if err != nil {
				return nil, err
			}
			messages[i] = one[0]
		}
	}
	return messages, nil
}

// isShown reports whether a message is sent unchanged whatever its tokens.
func isShown(m *harnessv1.Message, limit uint32) bool {
	fits := func(c *harnessv1.Content) bool {
		return c.GetBlob() == nil && uint64(len(c.GetInline())) <= uint64(limit)
	}
	for _, c := range m.GetToolCalls() {
		if !fits(c.GetArguments()) {
			return false
		}
	}
	if m.GetRole() == harnessv1.Role_ROLE_TOOL {
		return fits(m.GetContent())
	}
	return m.GetContent().GetBlob() == nil
}

// show returns a message as it is sent.
func (t *Texts) show(ctx context.Context, run runlog.Run, k key) (*harnessv1.Message, error) {
	if shown := t.cache.get(k); shown != nil {
		return shown, nil
	}
	m := k.message
	c := newCutter(k)
	shown := proto.CloneOf(m)
	text, err := t.text(ctx, run, m.GetContent())
	if err != nil {
		return nil, err
	}
	if m.GetRole() == harnessv1.Role_ROLE_TOOL {
		text = c.result(text)
	}
	size := len(text)
	if m.GetContent() != nil {
		shown.Content = content.Inline(text)
	}
	for _, call := range shown.GetToolCalls() {
		arguments, err := t.text(ctx, run, call.GetArguments())
		if err != nil {
			return nil, err
		}
		arguments = c.arguments(arguments)
		size += len(arguments)
		call.Arguments = content.Inline(arguments)
	}
	if proto.Equal(shown, m) {
		shown = m
	}
	t.cache.put(k, shown, size)
	return shown, nil
}

// text returns a content as text, read from its blob if it is stored as one.
func (t *Texts) text(ctx context.Context, run runlog.Run, c *harnessv1.Content) (string, error) {
	b := c.GetBlob()
	if b == nil {
		return c.GetInline(), nil
	}
	data, err := t.blob(ctx, run, b.GetDigest())
	return string(data), err
}
