package script_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSuite(t *testing.T) {
	modeltest.Suite(t, func(t *testing.T, replies ...modeltest.Reply) model.Provider {
		return provider(t, fromReplies(t, replies))
	})
}

// fromReplies writes replies as a script; JSON is YAML.
func fromReplies(t *testing.T, replies []modeltest.Reply) string {
	t.Helper()
	turns := []any{}
	for _, r := range replies {
		turn := map[string]any{}
		switch {
		case r.Status != 0:
			e := map[string]any{"status": r.Status}
			if after, ok := r.Header["Retry-After"]; ok {
				seconds, err := strconv.ParseFloat(after, 64)
				if err != nil {
					t.Fatal(err)
				}
				e["retry_after"] = seconds
			}
			turn["error"] = e
		default:
			var calls []any
			for _, c := range r.Calls {
				calls = append(calls, map[string]any{"id": c.ID, "name": c.Name, "raw_arguments": c.Arguments})
			}
			turn["text"] = r.Text
			if calls != nil {
				turn["calls"] = calls
			}
			if r.FinishReason != "" {
				turn["finish_reason"] = r.FinishReason
			}
			if u := r.Usage; u != nil {
				turn["usage"] = map[string]any{"input_tokens": u.Input, "output_tokens": u.Output, "cached_input_tokens": u.Cached}
			}
			if r.Fault == modeltest.FaultHang {
				turn["delay"] = "1h"
			}
		}
		turns = append(turns, turn)
	}
	b, err := json.Marshal(map[string]any{"turns": turns})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func provider(t *testing.T, text string) *script.Provider {
	t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return script.NewProvider(s)
}

// respond returns the response of the provider as one line.
func respond(t *testing.T, p model.Provider, req *model.Request) (string, *model.Response) {
	t.Helper()
	resp, err := p.Complete(t.Context(), req, nil)
	if err != nil {
		return fmt.Sprintf("error %d", model.AsError(err).Status), nil
	}
	line := resp.Text
	for _, c := range resp.ToolCalls {
		line += fmt.Sprintf("[%s %s %s]", c.GetId(), c.GetName(), c.GetArguments().GetInline())
	}
	return line, resp
}

// converse runs a whole conversation and returns the responses. result returns the
// results of tools. fresh makes each try with a new provider, like a process that is
// killed after each; it counts the failed tries like the log.
func converse(t *testing.T, text string, fresh bool, turns int, result func(string) string) []string {
	t.Helper()
	p := provider(t, text)
	req := modeltest.Conversation(true)
	var said []string
	for turn := range turns {
		req.Turn, req.FailedTries = uint32(turn+1), 0
		for {
			if fresh {
				p = provider(t, text)
			}
			line, resp := respond(t, p, req)
			said = append(said, line)
			if resp == nil {
				req.FailedTries++
				continue
			}
			modeltest.Answer(req, resp, func(c *harnessv1.ToolCall) string { return result(c.GetName()) })
			break
		}
	}
	return said
}

const story = `
turns:
  - {text: Looking., calls: [{name: look}]}
  - {text: Thinking.}
  - {error: {status: 500}}
  - {error: {}}
  - {when: {last_contains: never}, text: not this}
  - {calls: [{name: test}]}
  - {when: {last_contains: FAIL}, calls: [{name: fix, arguments: {b: 1, a: 12345678901234567890}}]}
  - {error: {status: 429, retry_after: 0}}
  - {when: {last_contains: FAIL}, text: not this either}
  - {text: Done.}
  - {calls: [{name: finish}]}
`

func TestConversation(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		got := converse(t, story, fresh, 7, func(tool string) string {
			if tool == "test" {
				return "2 tests FAILED"
			}
			return "ok"
		})
		want := []string{
			"Looking.[call_1_0 look {}]", "Thinking.", "error 500", "error 0", "[call_6_0 test {}]",
			`[call_7_0 fix {"b":1,"a":12345678901234567890}]`, "error 429", "Done.", "[call_11_0 finish {}]", script.Exhausted,
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("fresh %t: said\n%s\nwant\n%s", fresh, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestSkippedEntries(t *testing.T) {
	got := converse(t, story, true, 6, func(string) string { return "ok" })
	want := "Looking.[call_1_0 look {}]|Thinking.|error 500|error 0|[call_6_0 test {}]|error 429|Done.|[call_11_0 finish {}]|" + script.Exhausted
	if strings.Join(got, "|") != want {
		t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "|"), want)
	}
}

func TestConditionsFindFiles(t *testing.T) {
	p := provider(t, "turns: [{when: {last_contains: 'image none.png'}, text: not this}, {when: {last_contains: 'image chart.png, 1280×720, 240 KB'}, text: a chart}]")
	req := modeltest.Conversation(true)
	last := req.Messages[len(req.Messages)-1]
	last.Parts = media.Parts([]*harnessv1.Media{{Type: media.PNG, Width: 1280, Height: 720, Name: "chart.png", Blob: &harnessv1.BlobRef{Size: 245_760}}})
	if got, _ := respond(t, p, req); got != "a chart" {
		t.Errorf("said %q, want a chart", got)
	}
}

// TestErrorsWithoutCount has a caller that leaves FailedTries at 0.
func TestErrorsWithoutCount(t *testing.T) {
	p := provider(t, "turns: [{error: {status: 500}}, {error: {status: 503}}, {text: yes}]")
	req := modeltest.Conversation(true)
	for range 2 { // an equal conversation sees the same again
		for _, want := range []string{"error 500", "error 503", "yes"} {
			if got, _ := respond(t, p, req); got != want {
				t.Fatalf("said %q, want %q", got, want)
			}
		}
	}
	req.FailedTries = 9
	if got, _ := respond(t, p, req); got != "yes" {
		t.Errorf("said %q after all errors, want yes", got)
	}
}

func TestRequestsThatAreTooLong(t *testing.T) {
	p := provider(t, "turns: [{error: {status: 400, context_exceeded: true, prompt_tokens: 130123, window_tokens: 128000}}]")
	_, err := p.Complete(t.Context(), modeltest.Conversation(true), nil)
	if e := model.AsError(err); !e.ContextExceeded || e.Retryable || e.PromptTokens != 130123 || e.WindowTokens != 128000 {
		t.Errorf("got exceeded %v, retryable %v, %d of %d tokens", e.ContextExceeded, e.Retryable, e.PromptTokens, e.WindowTokens)
	}
}

func TestCompactedConversation(t *testing.T) {
	text := "turns: [{calls: [{name: a}]}, {text: b}, {text: c}, {calls: [{name: d}]}, {text: e}, {text: f}]"
	for name, c := range map[string]struct {
		keep func(id uint64) bool
		want string
	}{
		"all":                  {func(uint64) bool { return true }, "f"},
		"calls and their tail": {func(id uint64) bool { return id <= 2 || id >= 9 }, "f"},
		"only words":           {func(id uint64) bool { return id <= 2 || id >= 11 }, "f"},
	} {
		t.Run(name, func(t *testing.T) {
			p := provider(t, text)
			req := modeltest.Conversation(true)
			for turn := range 5 {
				req.Turn = uint32(turn + 1)
				_, resp := respond(t, p, req)
				modeltest.Answer(req, resp, func(*harnessv1.ToolCall) string { return "ok" })
			}
			kept := req.Messages[:0:0]
			for _, m := range req.Messages {
				if c.keep(m.GetId()) {
					kept = append(kept, m)
				}
			}
			req.Messages, req.Turn = kept, 6
			if got, _ := respond(t, p, req); got != c.want {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
}

// TestEmptyEntries is a harness that stores no message for an empty answer.
func TestEmptyEntries(t *testing.T) {
	p := provider(t, "turns: [{calls: [{name: a}]}, {}, {}, {calls: [{name: b}]}]")
	req := modeltest.Conversation(true)
	_, resp := respond(t, p, req)
	modeltest.Answer(req, resp, func(*harnessv1.ToolCall) string { return "ok" })
	for turn, want := range []string{"", "", "[call_4_0 b {}]"} {
		req.Turn = uint32(turn + 2)
		if got, _ := respond(t, p, req); got != want {
			t.Errorf("turn %d: said %q, want %q", req.Turn, got, want)
		}
		req.Messages = append(req.Messages, &harnessv1.Message{
			Id: uint64(len(req.Messages) + 1), Role: harnessv1.Role_ROLE_USER, TurnNumber: req.Turn,
		})
	}
	req = modeltest.Conversation(true)
	req.Turn = 2 // a turn that was interrupted before its answer consumed nothing
	if got, _ := respond(t, p, req); got != "[call_1_0 a {}]" {
		t.Errorf("said %q, want the first entry", got)
	}
}

func TestRepeatedIds(t *testing.T) {
	got := converse(t, "turns: [{calls: [{id: x, name: a}]}, {calls: [{id: x, name: b}]}, {calls: [{id: x, name: c}]}]", true, 4,
		func(string) string { return "ok" })
	if want := "[x a {}]|[x b {}]|[x c {}]|" + script.Exhausted; strings.Join(got, "|") != want {
		t.Errorf("said %q, want %q", strings.Join(got, "|"), want)
	}
}
