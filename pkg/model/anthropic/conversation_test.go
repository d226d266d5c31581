package anthropic_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// open returns a provider with a configuration.
func open(t *testing.T, s *modeltest.Server, cfg anthropic.Config) *anthropic.Provider {
	t.Helper()
	cfg.BaseURL, cfg.HTTPClient = s.MessagesURL(), s.Client()
	p, err := anthropic.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func adaptive(string) anthropic.Thinking {
	return anthropic.Thinking{Mode: anthropic.ThinkingAdaptive}
}

// thoughtfulReply is the answer of a turn, numbered from 0: with thinking of every kind, in
// every place.
func thoughtfulReply(turn int) modeltest.Reply {
	think := func(text string, redacted bool) modeltest.ReplyPart {
		return modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: text, Redacted: redacted, Size: 64 * (turn%5 + 1)}}
	}
	call := func(n int) modeltest.ReplyPart {
		return modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("toolu_%d-%d", turn, n), Name: "read_file", Arguments: fmt.Sprintf(`{"path": "%d < %d"}`, n, turn)}}
	}
	text := modeltest.ReplyPart{Text: fmt.Sprintf("Turn %d: <ä & 世界>.", turn)}
	parts := [][]modeltest.ReplyPart{
		{think("Let me read <both> & more.", false), call(0), call(1)},
		{think("", false), text, think("Öne\u2028more\\.", false), call(0), think("", true), call(1), call(2)},
		{think("", true), text},
		{text, call(0)},
		{think("A.", false), {Text: "\n\n"}, think("B.", false), call(0)},
		{call(0), text, call(1)},
		{think("a", false), think("", true), text, call(0)},
	}[turn%7]
	return modeltest.Reply{Parts: parts, Quirks: modeltest.Quirks{Foreign: turn%3 == 0}, Usage: &modeltest.Usage{Input: 100, Output: 30, Reasoning: 7}}
}

// exchangeTurn completes one turn: the tries of it, its answer and the results. It returns the
// blocks of thinking of the answer.
func exchangeTurn(t *testing.T, p *anthropic.Provider, req *model.Request) (blocks []string) {
	t.Helper()
	for {
		resp, err := p.Complete(t.Context(), req, func(model.Delta) {})
		if err != nil {
			if !model.AsError(err).Retryable {
				t.Fatal(err)
			}
			continue
		}
		modeltest.Answer(req, resp, func(c *harnessv1.ToolCall) string { return "result of " + c.GetId() })
		for _, part := range resp.Parts {
			if part.GetReasoning() != nil {
				blocks = append(blocks, string(part.GetOpaque().GetInline()))
			}
		}
		return blocks
	}
}

func addUser(req *model.Request, text string) {
	req.Messages = append(req.Messages, &harnessv1.Message{Id: uint64(len(req.Messages) + 1), Role: harnessv1.Role_ROLE_USER, Content: inline(text)})
}

// checkGrowth checks that each request begins with the one before it,
// cache marks apart.
func checkGrowth(t *testing.T, requests []modeltest.ReceivedRequest) {
	t.Helper()
	var before []string
	for i, sent := range requests {
		blocks, _ := prompt(t, sent.Body)
		if len(blocks) < len(before) || !slices.Equal(blocks[:len(before)], before) {
			t.Fatalf("request %d does not begin with the one before it:\n%s\nbefore:\n%s", i+1, strings.Join(blocks, "\n"), strings.Join(before, "\n"))
		}
		before = blocks
	}
}

// TestThinkingComesBackForSixtyTurns has parallel calls, cut streams, errors, nudges and
// messages of the user.
func TestThinkingComesBackForSixtyTurns(t *testing.T) {
	const turns = 60
	for _, streaming := range []bool{true, false} {
		for _, show := range []bool{true, false} {
			t.Run(fmt.Sprintf("streaming %t, show %t", streaming, show), func(t *testing.T) {
				var turn, tries int
				s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply {
					reply := thoughtfulReply(turn)
					tries++
					if tries == 1 && turn%4 == 1 {
						reply.Fault = []modeltest.Fault{modeltest.FaultCut, modeltest.FaultError, modeltest.FaultDrop, modeltest.FaultNoFinish}[turn/4%4]
					}
					if tries == 1 && turn%8 == 2 {
						return modeltest.Reply{Status: 529}
					}
					return reply
				})
				s.Thinking = map[string]modeltest.ThinkingMode{"test-model": modeltest.ThinkingAlways}
				p := open(t, s, anthropic.Config{Thinking: adaptive})
				req := modeltest.Conversation(streaming)
				req.ShowReasoning = show
				var blocks []string
				for turn = range turns {
					tries = 0
					already := len(s.Requests())
					made := exchangeTurn(t, p, req)
					for _, sent := range s.Requests()[already:] {
						checkThinking(t, turn, sent, blocks)
					}
					blocks = append(blocks, made...)
					if turn%6 == 3 {
						addUser(req, "A message of the user.")
					}
				}
				if len(blocks) < turns {
					t.Errorf("%d blocks of thinking, want more", len(blocks))
				}
				checkGrowth(t, s.Requests())
			})
		}
	}
}

// checkThinking checks that a request has exactly the blocks that came so far.
func checkThinking(t *testing.T, turn int, sent modeltest.ReceivedRequest, want []string) {
	t.Helper()
	var got []string
	for _, b := range sent.Thinking.Blocks {
		got = append(got, string(b))
	}
	if sent.Refused != "" || !slices.Equal(got, want) || sent.Thinking.Accepted != len(want) || sent.Thinking.Missing != 0 {
		t.Fatalf("turn %d: refused %q; %d of %d blocks were accepted, %d are missing:\n%s\nwant\n%s", turn+1, sent.Refused,
			sent.Thinking.Accepted, len(want), sent.Thinking.Missing, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestThinkingBuildsUpAgainAfterAChange changes what precedes the thinking in the middle of
// a conversation, with a server that binds thinking to it.
func TestThinkingBuildsUpAgainAfterAChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Request)
		kept   bool // the newest blocks stay valid
	}{
		"prompt":     {change: func(r *model.Request) { r.Messages[0] = withText(r.Messages[0], "You are tested again.") }},
		"tool":       {change: func(r *model.Request) { r.Tools = r.Tools[:1] }},
		"front cut":  {change: func(r *model.Request) { r.Messages = slices.Delete(r.Messages, 2, 5) }},
		"middle cut": {change: func(r *model.Request) { r.Messages = slices.Delete(r.Messages, 9, 11) }},
		"result":     {change: func(r *model.Request) { r.Messages[3] = withText(r.Messages[3], "[cleared]") }},
		"refused": {kept: true, change: func(r *model.Request) {
			r.Adjustments = append(r.Adjustments, &harnessv1.ModelAdjustment{Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE, ThroughMessage: 6})
		}},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				var turn int
				s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return thoughtfulReply(turn) })
				p := open(t, s, anthropic.Config{Thinking: adaptive})
				req := modeltest.Conversation(streaming)
				for turn = range 12 {
					exchangeTurn(t, p, req)
				}
				c.change(req)
				var blocks []string
				for ; turn < 24; turn++ {
					blocks = append(blocks, exchangeTurn(t, p, req)...)
				}
				requests := s.Requests()
				for i, sent := range requests {
					if sent.Refused != "" || sent.Thinking.Dropped > 0 {
						t.Fatalf("request %d: refused %q, %d dropped", i+1, sent.Refused, sent.Thinking.Dropped)
					}
				}
				last := requests[len(requests)-1].Thinking.Accepted
				made := len(blocks) - len(thoughtfulBlocks(23))
				if last < made || (last > made) != c.kept {
					t.Errorf("the last request has %d blocks, %d were made since the change", last, made)
				}
			})
		}
	}
}

// thoughtfulBlocks are the blocks of thinking of a turn.
func thoughtfulBlocks(turn int) (blocks []modeltest.ReplyPart) {
	for _, p := range thoughtfulReply(turn).Parts {
		if p.Thinking != nil {
			blocks = append(blocks, p)
		}
	}
	return blocks
}

func withText(m *harnessv1.Message, text string) *harnessv1.Message {
	return &harnessv1.Message{Id: m.GetId(), Role: m.GetRole(), Content: inline(text), ToolCallId: m.GetToolCallId()}
}

// TestRefusedThinkingIsNotSentAgain has the three refusals of the service.
func TestRefusedThinkingIsNotSentAgain(t *testing.T) {
	for _, says := range []string{
		"messages.1.content.0: Invalid `signature` in `thinking` block",
		"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block.",
		"messages.3.content.8: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were.",
		"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
		"messages.3.content.10: When providing `thinking` or `redacted_thinking` blocks, the blocks must match the parameters during the original request.",
	} {
		var turn int
		s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply {
			turn++
			if turn%2 == 0 {
				return modeltest.Reply{Status: 400, ErrorMessage: says}
			}
			return thoughtfulReply(0)
		})
		p := open(t, s, anthropic.Config{Thinking: adaptive})
		req := modeltest.Conversation(true)
		exchangeTurn(t, p, req)
		_, err := p.Complete(t.Context(), req, nil)
		if e := model.AsError(err); err == nil || e.Adjustment != harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE || e.Retryable {
			t.Errorf("%s: error %+v, want one that asks for a request without thinking", says, e)
		}
		req.Adjustments = []*harnessv1.ModelAdjustment{{Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE, ThroughMessage: uint64(len(req.Messages))}}
		exchangeTurn(t, p, req)
		if n := len(s.Requests()[2].Thinking.Blocks); n != 0 {
			t.Errorf("%d blocks came back after the refusal", n)
		}
	}
	for _, c := range []struct {
		status int
		says   string
		want   harnessv1.Adjustment
	}{
		{400, "bad request", harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE}, // in words that nothing knows
		{422, "Invalid `signature` in `thinking` block", harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE},
		{403, "Invalid `signature` in `thinking` block", harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED},
		{400, "prompt is too long: 200001 tokens > 200000 maximum", harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED},
		{400, "Your credit balance is too low to access the Anthropic API.", harnessv1.Adjustment_ADJUSTMENT_UNSPECIFIED},
	} {
		if got := refusalOf(t, c.status, c.says); got != c.want {
			t.Errorf("%d %s: adjustment %s, want %s", c.status, c.says, got, c.want)
		}
	}
}

// refusalOf returns the adjustment of a refusal of a request with thinking.
func refusalOf(t *testing.T, status int, says string) harnessv1.Adjustment {
	t.Helper()
	s := modeltest.NewServer(t, thoughtfulReply(0), modeltest.Reply{Status: status, ErrorMessage: says})
	p := open(t, s, anthropic.Config{})
	req := modeltest.Conversation(true)
	exchangeTurn(t, p, req)
	_, err := p.Complete(t.Context(), req, nil)
	return model.AsError(err).Adjustment
}

// TestBudgetModelThinksAtTheStartOfATurn has a model that thinks only before its first call
// after a text of the user. An answer of another model at that place has no thinking, and the
// service refuses a budget until the user writes again.
func TestBudgetModelThinksAtTheStartOfATurn(t *testing.T) {
	budget := func(string) anthropic.Thinking { return anthropic.Thinking{Mode: anthropic.ThinkingBudget} }
	call := modeltest.ReplyPart{Call: &modeltest.Call{ID: "a", Name: "read_file", Arguments: `{}`}}
	var types []string
	s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		types = append(types, r.Thinking.Type)
		last := r.Messages[len(r.Messages)-1]
		if last.Role == "tool" || r.Thinking.Type == "" {
			return modeltest.Reply{Parts: []modeltest.ReplyPart{call}}
		}
		return modeltest.Reply{Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "Hm."}}, call}}
	})
	s.Thinking = map[string]modeltest.ThinkingMode{"test-model": modeltest.ThinkingBudget}
	p := open(t, s, anthropic.Config{Thinking: budget})
	req := modeltest.Conversation(true)
	req.Effort = harnessv1.Effort_EFFORT_MEDIUM
	exchangeTurn(t, p, req) // thinks
	exchangeTurn(t, p, req) // continues the turn without
	exchangeTurn(t, p, req)
	addUser(req, "Go on, please.")
	other := &harnessv1.ToolCall{Id: "other", Name: "read_file", Arguments: inline(`{}`)}
	req.Messages = append(req.Messages, answer("", []*harnessv1.ToolCall{other}), &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "other", Content: inline("r")})
	exchangeTurn(t, p, req)
	exchangeTurn(t, p, req)
	addUser(req, "And now?")
	exchangeTurn(t, p, req)
	exchangeTurn(t, p, req)
	if want := []string{"enabled", "enabled", "enabled", "", "", "enabled", "enabled"}; !slices.Equal(types, want) {
		t.Errorf("thinking %q, want %q", types, want)
	}
	for i, sent := range s.Requests() {
		if sent.Refused != "" || sent.Thinking.Budget > 0 && sent.Thinking.Budget != anthropic.DefaultMaxOutput-1024 {
			t.Errorf("request %d: refused %q, budget %d", i+1, sent.Refused, sent.Thinking.Budget)
		}
	}
}
