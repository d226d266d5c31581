package turnserver

import (
	"context"
	"fmt"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/mark"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/turn"
	"github.com/harnessmesh/harnessmesh/services/turn/offer"
)

const (
	// maxDigested bounds the requests in memory whose digests are continued, in bytes.
	maxDigested = 32 << 20
	// countedShare is the part of the window from which messages are counted: a quarter.
	countedShare = 4
	// maxWeights bounds the weights of a record. Messages beyond it wait for the next turn.
	maxWeights = 16 << 10
	// replyTokens is what a request needs in addition to its messages and tools: the mark
	// that the model's answer follows.
	replyTokens = 3
)

// describeRequest starts to describe the request, while the model answers. The function that
// it returns waits for the end. A description that fails costs no answer: the next turn makes
// up for it.
func (t *execution) describeRequest(ctx context.Context) (wait func()) {
	if t.facts != nil || !mark.On(t.state.Snapshot.GetConfig()) {
		return func() {}
	}
	type description struct {
		facts *turn.RequestFacts
		err   error
	}
	end := make(chan description, 1)
	go func() {
		var d description
		defer func() {
			if r := recover(); r != nil {
				d.err = fmt.Errorf("panic: %v", r)
			}
			end <- d
		}()
		d.facts, d.err = t.describe(ctx)
	}()
	return func() {
		d := <-end
		if d.err == nil {
			t.facts = d.facts
		} else if ctx.Err() == nil {
			t.server.cfg.Logger.WarnContext(ctx, "describe request", "run", t.run.ID, "turn", t.progress.Number, "error", d.err)
		}
	}
}

// describe returns the facts of the request for the record of the response.
func (t *execution) describe(ctx context.Context) (*turn.RequestFacts, error) {
	s := t.state.Snapshot
	f := &turn.RequestFacts{ViewDigest: t.server.digests.Of(t.run, s.GetFirstSequence(), t.request.Messages)}
	if b := s.GetTokenBudget(); b.GetMaxInputTokens() > 0 && countedShare*uint64(b.GetUsedTokens()) >= uint64(b.GetMaxInputTokens()) {
		if err := t.weigh(ctx, f); err != nil {
			return nil, fmt.Errorf("count messages: %w", err)
		}
	}
	if list := t.state.Offer.List; list.Digest != s.GetToolsDigest() && !t.unstored {
		ref, err := t.server.cfg.Log.PutBlob(ctx, t.run, list.Data)
		if err != nil {
			return nil, fmt.Errorf("store the tools: %w", err)
		}
		f.Tools = &harnessv1.BlobRef{Digest: ref.GetDigest(), Size: ref.GetSize()}
	}
	return f, nil
}

// weigh counts the messages of the conversation that have no weight. Once all have one, it
// sums up the request.
func (t *execution) weigh(ctx context.Context, f *turn.RequestFacts) error {
	s, c := t.state.Snapshot, t.conversation
	w := weigher{
		texts: t.server.shown, run: t.run, model: shown.ModelOf(t.server.cfg.Catalogue, s.GetModel()), limit: runstate.ShownTokens(s.GetConfig()),
		messages: c.Messages,
	}
	known := min(len(c.Weights), len(c.Messages))
	last := min(known+maxWeights, len(c.Messages))
	w.weights = append(w.weights, c.Weights[:known]...)
	for _, m := range c.Messages[known:last] {
		n, err := w.stored(ctx, m)
		if err != nil {
			return err
		}
		w.weights = append(w.weights, n)
	}
	if last > known {
		f.Weights = &harnessv1.Weights{FirstMessage: uint64(known) + 1, Tokens: w.weights[known:]}
	}
	if last < len(c.Messages) {
		return nil
	}
	total := replyTokens + uint64(t.server.toolTokens(s.GetModel(), t.state.Offer))
	for _, spec := range t.state.RefusedTools() {
		total -= min(total, uint64(tokens.Tool(s.GetModel(), spec))) //nolint:gosec // not negative
	}
	for _, m := range t.request.Messages {
		n, err := w.sent(ctx, m)
		if err != nil {
			return err
		}
		total += uint64(n)
	}
	f.Counted = uint32(min(total, 1<<32-1))
	return nil
}

// weigher counts messages for a request.
type weigher struct {
	texts    *shown.Texts
	run      runlog.Run
	model    shown.Model
	limit    uint32
	messages []*harnessv1.Message // of the conversation
	weights  []uint32             // of its first messages
}

// stored counts a message of the conversation as it is sent without compaction.
func (w *weigher) stored(ctx context.Context, m *harnessv1.Message) (uint32, error) {
	sent, err := w.show(ctx, m)
	if err != nil {
		return 0, err
	}
	return w.model.Weight(sent), nil
}

// sent returns the tokens of a message of the request: the weight of the one in the
// conversation, if compaction has not changed it.
func (w *weigher) sent(ctx context.Context, m *harnessv1.Message) (uint32, error) {
	if id := m.GetId(); id > 0 && id <= uint64(len(w.weights)) && w.weights[id-1] > 0 {
		unchanged, err := w.show(ctx, w.messages[id-1])
		if err != nil || unchanged == m {
			return w.weights[id-1], err
		}
	}
	return w.model.Weight(m), nil
}

// show returns a message of the conversation as it is sent without compaction.
func (w *weigher) show(ctx context.Context, m *harnessv1.Message) (*harnessv1.Message, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	all, err := w.texts.Messages(ctx, w.run, w.model.Ref, w.limit, true, []*harnessv1.Message{m})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// toolTokens returns the tokens of the tools of a set for a model, counted once.
func (w *Server) toolTokens(model string, set *offer.Offer) uint32 {
	key := toolsKey{model: model, digest: set.List.Digest}
	w.mu.Lock()
	n, ok := w.toolWeights[key]
	w.mu.Unlock()
	if ok {
		return n
	}
	for _, spec := range set.Specs() {
		n += uint32(tokens.Tool(model, spec)) //nolint:gosec // a few KB
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.toolWeights) >= maxOffers {
		clear(w.toolWeights)
	}
	w.toolWeights[key] = n
	return n
}

// toolsKey identifies the tools of a request, as a model counts them.
type toolsKey struct{ model, digest string }
