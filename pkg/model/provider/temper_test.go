package provider_test

import (
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// tempers are strict servers that behave as the service of a built-in provider.
func tempers() map[string]modeltest.Temper {
	qwen := modeltest.Temper{Members: []string{"enable_thinking", "reasoning_effort"}}
	zai := modeltest.Temper{Return: modeltest.ReturnAccepted, Members: []string{"thinking", "reasoning_effort"}}
	return map[string]modeltest.Temper{
		"deepseek": modeltest.TemperDeepSeek(), "moonshot": modeltest.TemperMoonshot(), "mistral": modeltest.TemperMistral(),
		"groq": modeltest.TemperGroq(), "openrouter": modeltest.TemperOpenRouter(), "google": modeltest.TemperGemini(),
		"vllm": modeltest.TemperVLLM(), "ollama": modeltest.TemperVLLM(), "qwen": qwen, "zai": zai,
		"llamacpp": {Return: modeltest.ReturnAccepted, Members: []string{"reasoning_effort"}},
	}
}

// TestBuiltInSettings talks with a strict server for each provider with the chat wire. The
// server refuses reasoning that is missing, empty, unknown or changed, members that the
// service does not know, and orders of messages and ids of calls that it does not take.
func TestBuiltInSettings(t *testing.T) {
	const turns = 12
	for name, temper := range tempers() {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, thoughts(turns)...)
			s.Temper = temper
			described := providerNamed(t, name)
			p, model, err := provider.Open(name+":test-model", environment(described.AddressVariable, s.BaseURL()))
			if err != nil {
				t.Fatal(err)
			}
			req := modeltest.Conversation(true)
			req.Model, req.Effort, req.ShowReasoning = model, harnessv1.Effort_EFFORT_HIGH, true
			answerElsewhere(req.Messages[1], &req.Messages)
			for turn := range turns {
				resp, err := p.Complete(t.Context(), req, nil)
				if err != nil {
					t.Fatalf("turn %d: %v", turn, err)
				}
				modeltest.Answer(req, resp, func(c *harnessv1.ToolCall) string { return "result of " + c.GetId() })
				if turn%4 == 0 { // guidance after results
					said := &harnessv1.Message{Id: uint64(len(req.Messages)) + 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Go on.")}
					req.Messages = append(req.Messages, said)
				}
			}
			for i, r := range s.Requests() {
				if r.Refused != "" {
					t.Errorf("request %d was refused: %s", i, r.Refused)
				}
			}
		})
	}
}

// thoughts are answers with and without reasoning, and with and without calls.
func thoughts(n int) []modeltest.Reply {
	replies := make([]modeltest.Reply, n)
	for i := range replies {
		if i%3 != 2 {
			replies[i].Parts = append(replies[i].Parts, modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: fmt.Sprintf("Step %d.", i)}})
		}
		replies[i].Parts = append(replies[i].Parts, modeltest.ReplyPart{Text: fmt.Sprintf("Answer %d.", i)})
		if i%2 == 0 {
			call := &modeltest.Call{ID: fmt.Sprintf("call%05d", i), Name: "read_file", Arguments: `{"path":"a"}`}
			replies[i].Parts = append(replies[i].Parts, modeltest.ReplyPart{Call: call})
		}
	}
	return replies
}

// answerElsewhere appends an answer of another provider, with a call and its result.
func answerElsewhere(like *harnessv1.Message, messages *[]*harnessv1.Message) {
	const id = "toolu_01elsewhere"
	*messages = append(*messages,
		&harnessv1.Message{Id: 3, Role: harnessv1.Role_ROLE_ASSISTANT, Content: like.GetContent(), ToolCalls: []*harnessv1.ToolCall{{Id: id, Name: "read_file"}}},
		&harnessv1.Message{Id: 4, Role: harnessv1.Role_ROLE_TOOL, Content: like.GetContent(), ToolCallId: id, ToolName: "read_file"})
}
