package context

import (
	"sync"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// thoughtBytes is the size of a piece of thinking that only its service can read.
const thoughtBytes = 1500

// thinker is a model that thinks before each answer, on a strict server that binds thinking
// to everything before it.
type thinker struct {
	t        testing.TB
	server   *modeltest.Server
	provider model.Provider
	target   opaque.Target // of the last answer
	bare     map[*harnessv1.Message]*harnessv1.Message

	mu    sync.Mutex
	reply modeltest.Reply // to the next request

	// thoughts are how many pieces of thinking came back with each request.
	thoughts []int
}

// think makes the model of a run one that thinks. The server also refuses requests that do
// not fit its window.
func (r *run) think() {
	k := &thinker{t: r.t, bare: map[*harnessv1.Message]*harnessv1.Message{}}
	k.server = modeltest.NewServerFunc(r.t, func(*modeltest.Request) modeltest.Reply {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.reply
	})
	k.server.Thinking = map[string]modeltest.ThinkingMode{"thinker": modeltest.ThinkingAlways}
	k.server.Window = int(r.s.GetConfig().GetContext().GetMaxInputTokens()) - toolTokens
	provider, err := anthropic.New(anthropic.Config{
		Endpoint: adapter.Endpoint{BaseURL: k.server.MessagesURL(), HTTPClient: k.server.Client()},
		Thinking: func(string) anthropic.Thinking { return anthropic.Thinking{Mode: anthropic.ThinkingAdaptive} },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	k.provider, r.thinker = provider, k
}

// asSent returns messages without the thinking that does not go back, as the provider sends
// them.
func (k *thinker) asSent(messages []*harnessv1.Message) []*harnessv1.Message {
	selected := map[int]bool{}
	for _, i := range opaque.Select(messages, nil, k.target) {
		selected[i] = true
	}
	sent := make([]*harnessv1.Message, len(messages))
	for i, m := range messages {
		if sent[i] = m; !selected[i] && opaque.Has(m) {
			if k.bare[m] == nil {
				k.bare[m] = opaque.Without(m)
			}
			sent[i] = k.bare[m]
		}
	}
	return sent
}

// answer sends a request, and adds the thinking of the response to m, which the server
// responds with.
func (k *thinker) answer(sent []*harnessv1.Message, m *harnessv1.Message) {
	k.t.Helper()
	parts := []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Size: thoughtBytes}}, {Text: content.Text(m.GetContent())}}
	for _, c := range m.GetToolCalls() {
		parts = append(parts, modeltest.ReplyPart{Call: &modeltest.Call{ID: c.GetId(), Name: c.GetName(), Arguments: content.Text(c.GetArguments())}})
	}
	k.mu.Lock()
	k.reply = modeltest.Reply{Parts: parts}
	k.mu.Unlock()
	response, err := k.provider.Complete(k.t.Context(), &model.Request{Model: "thinker", Messages: sent}, nil)
	if err != nil {
		k.t.Fatalf("request %d: %v", len(k.thoughts)+1, err)
	}
	thoughts := 0
	for _, m := range sent {
		if opaque.Has(m) {
			thoughts++
		}
	}
	requests := k.server.Requests()
	if got := requests[len(requests)-1]; got.Refused != "" || got.Thinking.Accepted != thoughts || got.Thinking.Dropped != 0 {
		k.t.Fatalf("request %d: %d pieces of thinking were accepted and %d dropped of %d; refused: %q",
			len(requests), got.Thinking.Accepted, got.Thinking.Dropped, thoughts, got.Refused)
	}
	k.thoughts = append(k.thoughts, thoughts)
	m.Parts, m.Origin = response.Parts, response.Origin
	k.target = opaque.Target{Wire: m.GetOrigin().GetWire(), Endpoint: m.GetOrigin().GetEndpoint(), Model: m.GetOrigin().GetModel(), Bound: true}
}

// TestThinking: no request is refused. The thinking that a pass invalidates is left out, and
// from then on each request has that of the answer before it and all that the request before
// it had.
func TestThinking(t *testing.T) {
	if testing.Short() {
		t.Skip("plays long runs")
	}
	for _, kind := range []string{"coding", "research"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, 32_000, nil)
			r.think()
			var passes []uint32
			for _, turn := range newWork(kind, 100, 5).turns {
				r.play(turn)
				passes = append(passes, r.sentPasses)
			}
			for i, n := range r.thinker.thoughts[1:] {
				if passed := passes[i+1] != passes[i]; !passed && n != r.thinker.thoughts[i]+1 {
					t.Errorf("request %d has %d pieces of thinking, the one before %d", i+2, n, r.thinker.thoughts[i])
				}
			}
			if r.figures.passes < 3 || r.figures.passes > len(passes)/4 {
				t.Errorf("%d passes in %d turns", r.figures.passes, len(passes))
			}
			t.Logf("%d passes, %d summaries, %.0f %% cached", r.figures.passes, r.figures.summaries, 100*r.figures.cachedBytes/r.figures.bytes)
		})
	}
}

// BenchmarkThinking plays 200 turns of coding with a model that thinks, and the same ones
// with a model that does not. A pass invalidates all thinking before it, so that it breaks
// the prefix where the first of it was.
func BenchmarkThinking(b *testing.B) {
	for b.Loop() {
		for unit, think := range map[string]bool{"": false, "-thinking": true} {
			r := newRun(b, 64_000, nil)
			if think {
				r.think()
			}
			for _, turn := range newWork("coding", 200, 3).turns {
				r.play(turn)
			}
			b.ReportMetric(100*r.figures.cachedBytes/r.figures.bytes, "%cached"+unit)
			b.ReportMetric(float64(r.figures.passes), "passes"+unit)
		}
	}
}
