package provider_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestMissingUsageIsCounted: on each wire, what a provider does not report is this program's own count,
// marked; what it reports is not changed.
func TestMissingUsageIsCounted(t *testing.T) {
	t.Parallel()
	const said = "The answer is forty-two, as it has always been."
	for _, ref := range []string{"openai:test-model", "openai:gpt-5", "anthropic:claude-opus-5-5"} {
		for name, c := range map[string]struct {
			reports       *modeltest.Usage
			input, output bool // are counted
		}{
			"none":        {nil, true, true},
			"zero":        {&modeltest.Usage{}, true, true},
			"output only": {&modeltest.Usage{Output: 77}, true, false},
			"input only":  {&modeltest.Usage{Input: 99}, false, true},
			"both":        {&modeltest.Usage{Input: 99, Output: 77}, false, false},
		} {
			t.Run(ref+" "+name, func(t *testing.T) {
				s := modeltest.NewServer(t, modeltest.Reply{Text: said, Usage: c.reports})
				p, model, err := provider.Open(ref, environment("OPENAI_BASE_URL", s.BaseURL(), "ANTHROPIC_BASE_URL", strings.TrimSuffix(s.BaseURL(), "/v1")))
				if err != nil {
					t.Fatal(err)
				}
				req := modeltest.Conversation(true)
				req.Model = model
				req.Messages = append(req.Messages, &harnessv1.Message{Id: 9, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("And what is the question?")})
				r, err := p.Complete(t.Context(), req, nil)
				if err != nil {
					t.Fatal(err)
				}
				sent := 0
				for _, m := range req.Messages {
					sent += tokens.Message(model, m)
				}
				for _, tool := range req.Tools {
					sent += tokens.Tool(model, tool)
				}
				want := &harnessv1.Usage{InputTokens: 99, OutputTokens: 77}
				if c.input {
					want.InputTokens = uint64(sent)
				}
				if c.output {
					want.OutputTokens = uint64(tokens.Count(model, said))
				}
				u := r.Usage
				if u.GetInputTokens() != want.GetInputTokens() || u.GetOutputTokens() != want.GetOutputTokens() || u.GetEstimated() != (c.input || c.output) {
					t.Errorf("used %v, want %v", u, want)
				}
			})
		}
	}
}
