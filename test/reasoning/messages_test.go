package reasoning_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// claude returns a provider of a server whose models think.
func claude(t testing.TB, s *modeltest.Server) model.Provider {
	t.Helper()
	p, err := anthropic.New(anthropic.Config{
		Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()},
		Thinking: func(string) anthropic.Thinking { return anthropic.Thinking{Mode: anthropic.ThinkingAdaptive} },
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// onMessages starts a run on a strict Messages server with bound thinking.
func onMessages(t testing.TB, streaming bool, reply func(*modeltest.Request) modeltest.Reply) (*talk, *modeltest.Server) {
	t.Helper()
	s := modeltest.NewServerFunc(t, reply)
	s.Thinking = map[string]modeltest.ThinkingMode{"test-model": modeltest.ThinkingAlways}
	p := claude(t, s)
	k := newMesh(t, func(string) (model.Provider, string, error) { return p, "test-model", nil }).newTalk("claude:test-model")
	k.state.Config.Model.Streaming = proto.Bool(streaming)
	return k, s
}

// accepted returns how many blocks of thinking the server accepted in each request, and
// fails if it refused one.
func accepted(t *testing.T, s *modeltest.Server) []int {
	t.Helper()
	var all []int
	for i, r := range s.Requests() {
		if r.Refused != "" {
			t.Fatalf("request %d was refused: %s", i+1, r.Refused)
		}
		if r.Thinking.Dropped > 0 {
			t.Errorf("request %d: %d blocks were dropped", i+1, r.Thinking.Dropped)
		}
		all = append(all, r.Thinking.Accepted)
	}
	return all
}

// thoughts returns how many blocks of thinking the answers of a conversation have.
func thoughts(messages []*harnessv1.Message) int {
	n := 0
	for _, m := range messages {
		for _, p := range m.GetParts() {
			if p.GetReasoning() != nil && p.GetOpaque() != nil {
				n++
			}
		}
	}
	return n
}

// TestThinkingComesBackWhole: in a long run with everything that happens in one, all
// thinking of all answers is in each request, and the server refuses and drops nothing.
func TestThinkingComesBackWhole(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming %t", streaming), func(t *testing.T) {
			t.Parallel()
			k, s := onMessages(t, streaming, (&variation{}).reply)
			for turn := range 60 {
				before := thoughts(k.messages)
				requests := len(s.Requests())
				k.mustAnswer(t)
				for _, n := range accepted(t, s)[requests:] {
					if n != before {
						t.Fatalf("turn %d: %d blocks of thinking came back, want %d", turn, n, before)
					}
				}
				if turn%9 == 4 {
					k.send("And what about this?")
				}
			}
			if thoughts(k.messages) < 60 {
				t.Errorf("only %d thoughts", thoughts(k.messages))
			}
			checkGrowth(t, s)
		})
	}
}

// TestThinkingBuildsUpAgain: after each change of what precedes it thinking is left out,
// is never refused, and comes back whole from then on.
func TestThinkingBuildsUpAgain(t *testing.T) {
	t.Parallel()
	cleared := func(from, to int) func([]*harnessv1.Message) []*harnessv1.Message {
		return func(ms []*harnessv1.Message) []*harnessv1.Message {
			out := make([]*harnessv1.Message, len(ms))
			for i, m := range ms {
				if out[i] = m; i >= from && i < to && m.GetRole() == harnessv1.Role_ROLE_TOOL {
					m = proto.CloneOf(m)
					m.Content = content.Inline("[cleared]")
					out[i] = m
				}
			}
			return out
		}
	}
	for name, change := range map[string]func(*talk){
		"cut at the front":      func(k *talk) { k.view = cleared(0, 8) },
		"cut in the middle":     func(k *talk) { k.view = cleared(6, 10) },
		"dropped at the front":  func(k *talk) { k.view = dropTurns(2, 6) },
		"dropped in the middle": func(k *talk) { k.view = dropTurns(4, 8) },
		"another mode":          func(k *talk) { k.state.Mode = "plan" },
		"a tool vanishes":       func(k *talk) { k.state.Autonomous = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, s := onMessages(t, true, (&variation{faultless: true}).reply)
			for range 12 {
				k.mustAnswer(t)
			}
			change(k)
			kept := len(s.Requests())
			first := len(k.messages)
			for range 12 {
				k.mustAnswer(t)
			}
			after := accepted(t, s)[kept:]
			if after[0] == thoughts(k.messages[:first]) {
				t.Error("the change had no effect on what comes back")
			}
			built := 0
			for i, n := range after[1:] {
				if n <= after[i] && i > 0 && thoughtsOfAnswer(k.messages[first:], i) > 0 {
					t.Errorf("request %d after the change has %d blocks, the one before %d", i+2, n, after[i])
				}
				built = n
			}
			if want := thoughts(k.messages[first:]) - lastThoughts(k.messages); built < want {
				t.Errorf("%d blocks came back at the end, want at least the %d since the change", built, want)
			}
		})
	}
}

// dropTurns leaves out the messages from first up to but not including the limit-th
// answer.
func dropTurns(first, limit int) func([]*harnessv1.Message) []*harnessv1.Message {
	return func(ms []*harnessv1.Message) []*harnessv1.Message {
		var out []*harnessv1.Message
		answers := 0
		for _, m := range ms {
			if m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
				answers++
			}
			if answers < first || answers >= limit {
				out = append(out, m)
			}
		}
		return out
	}
}

// thoughtsOfAnswer returns how many blocks the n-th answer has.
func thoughtsOfAnswer(messages []*harnessv1.Message, n int) int {
	for _, m := range messages {
		if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
			continue
		}
		if n == 0 {
			return thoughts([]*harnessv1.Message{m})
		}
		n--
	}
	return 0
}

func lastThoughts(messages []*harnessv1.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			return thoughts(messages[i : i+1])
		}
	}
	return 0
}

// TestRefusedThinkingIsNeverSentAgain: one further request without it, then the run
// continues, also on another worker, and no later request has it.
func TestRefusedThinkingIsNeverSentAgain(t *testing.T) {
	t.Parallel()
	for name, message := range map[string]string{
		"bound elsewhere": "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
		"cannot be modified": "messages.5.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. " +
			"These blocks must remain as they were in the original response.",
		"in words that nothing knows": "messages.3.content.0.redacted_thinking.data: Field required",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := &variation{faultless: true}
			refusals := 0
			k, s := onMessages(t, true, func(r *modeltest.Request) modeltest.Reply {
				if refusals == 0 && r.Thinking.Accepted >= 5 {
					refusals++
					return modeltest.Reply{Status: 400, ErrorMessage: message}
				}
				return script.reply(r)
			})
			old := 0
			for range 14 {
				requests := len(s.Requests())
				k.mustAnswer(t)
				if len(k.retries) > 0 {
					old = thoughts(k.messages) - lastThoughts(k.messages)
					r := k.retries[0]
					if len(k.retries) != 1 || r.GetAdjustment().GetAdjustment() != harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE || r.GetWait().AsDuration() != 0 {
						t.Errorf("the retries are %v", k.retries)
					}
					if got := accepted(t, s)[requests:]; len(got) != 2 || got[1] != 0 {
						t.Errorf("the requests of the turn have %v blocks", got)
					}
				}
				k.restart()
			}
			if refusals != 1 || old == 0 {
				t.Fatalf("%d refusals, %d old blocks", refusals, old)
			}
			all := accepted(t, s)
			if last := all[len(all)-1]; last == 0 || last > thoughts(k.messages)-old {
				t.Errorf("the last request has %d blocks of %d, of which %d were refused", last, thoughts(k.messages), old)
			}
		})
	}
}

// checkGrowth checks that each request begins with the messages of the one before, marks
// of the cache apart.
func checkGrowth(t *testing.T, s *modeltest.Server) {
	t.Helper()
	const mark = `,"cache_control":{"type":"ephemeral"}`
	former := ""
	for i, r := range s.Requests() {
		body := strings.ReplaceAll(string(r.Body), mark, "")
		_, messages, ok := strings.Cut(body, `"messages":[`)
		if !ok {
			t.Fatalf("request %d has no messages: %.200s", i+1, body)
		}
		if !strings.HasPrefix(messages, former) {
			t.Fatalf("request %d does not begin with the one before", i+1)
		}
		end := strings.LastIndex(messages, `]}],"model"`)
		if end < 0 {
			t.Fatalf("request %d ends with %s", i+1, messages[max(0, len(messages)-200):])
		}
		former = messages[:end]
	}
}

// TestThinkingWithABudgetAfterAChange: a model that thinks with a budget requires that an
// open turn begins with thinking, so a request that leaves it out asks for none.
func TestThinkingWithABudgetAfterAChange(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServerFunc(t, (&variation{faultless: true}).reply)
	s.Thinking = map[string]modeltest.ThinkingMode{"test-model": modeltest.ThinkingBudget}
	p, err := anthropic.New(anthropic.Config{
		Endpoint:  adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()},
		MaxOutput: func(string) uint32 { return 64000 },
		Thinking:  func(string) anthropic.Thinking { return anthropic.Thinking{Mode: anthropic.ThinkingBudget} },
	})
	if err != nil {
		t.Fatal(err)
	}
	k := newMesh(t, func(string) (model.Provider, string, error) { return p, "test-model", nil }).newTalk("claude:test-model")
	k.state.Reasoning = &harnessv1.ReasoningConfig{Effort: harnessv1.Effort_EFFORT_MEDIUM}
	for turn := range 30 {
		if turn == 11 {
			k.state.Autonomous = false // a tool more
		}
		k.mustAnswer(t)
		if turn%7 == 6 {
			k.send("And this?")
		}
	}
	all := accepted(t, s)
	if all[10] == 0 || all[11] != 0 || all[29] < 5 {
		t.Errorf("the requests have %v blocks", all)
	}
}
