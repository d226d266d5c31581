package anthropic_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

var update = flag.Bool("update", false, "rewrite testdata")

// story is a conversation with every kind of message.
func story() *model.Request {
	req := modeltest.Conversation(true)
	req.Messages = append(req.Messages,
		&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Content: inline("Guidance <&>.")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline("Looking."), ToolCalls: []*harnessv1.ToolCall{
			{Id: "toolu_1", Name: "read_file", Arguments: inline(`{"path":"a","line":12345678901234567890}`)},
			{Id: "functions.read_file:1", Name: "read_file", Arguments: inline(`{"path": `)},
		}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "toolu_1", Content: inline("hello")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "functions.read_file:1", Content: inline("not JSON"), IsError: true},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline("Hm.")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_CONTINUATION, Content: inline("Go on, please.")},
	)
	return req
}

func TestRequestBytes(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Reply{}, modeltest.Reply{})
	s.Key = "k-1"
	p := provider(t, s)
	for i, file := range []string{"streaming.json", "plain.json"} {
		req := story()
		req.Streaming = i == 0
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()[i]
		if got := sent.Header.Get("X-Api-Key"); got != "k-1" {
			t.Errorf("key %q", got)
		}
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, append(indented(t, sent.Body), '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(indented(t, sent.Body)) + "\n"; got != string(want) {
			t.Errorf("%s: the request is\n%s\nwant\n%s", file, got, want)
		}
		// The same request, byte for byte, as releases without thinking sent it.
		bytes, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".bytes.json")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(sent.Body) + "\n"; got != string(bytes) {
			t.Errorf("%s: the request is\n%s\nwant\n%s", file, got, bytes)
		}
	}
}

func indented(t *testing.T, raw []byte) []byte {
	t.Helper()
	var b strings.Builder
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		t.Fatal(err)
	}
	return []byte(strings.TrimSpace(b.String()))
}

// TestEachTurnReusesTheCacheOfTheTurnBefore goes through a conversation in which
// every turn has more blocks than the provider looks back from a mark.
func TestEachTurnReusesTheCacheOfTheTurnBefore(t *testing.T) {
	const turns, calls = 5, 25
	replies := make([]modeltest.Reply, turns)
	for i := range replies {
		replies[i].Parts = []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "Hm."}}, {Text: fmt.Sprintf("Turn %d.", i+1)}}
		for n := range calls {
			replies[i].Parts = append(replies[i].Parts, modeltest.ReplyPart{Thinking: &modeltest.Thinking{Redacted: n%2 == 0}},
				modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("t%d-%d", i, n), Name: "read_file", Arguments: `{}`}})
		}
	}
	s := modeltest.NewServer(t, replies...)
	p := provider(t, s)
	req := modeltest.Conversation(true)
	for range turns {
		resp, err := p.Complete(t.Context(), req, nil)
		if err != nil {
			t.Fatal(err)
		}
		modeltest.Answer(req, resp, func(c *harnessv1.ToolCall) string { return "result of " + c.GetId() })
		req.Messages = append(req.Messages, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: inline("Guidance.")})
	}
	var before []string // the blocks of the former request
	for i, sent := range s.Requests() {
		parsed, err := modeltest.ParseMessagesRequest(sent.Body)
		if err != nil {
			t.Fatal(err)
		}
		blocks, marked := prompt(t, sent.Body)
		if len(parsed.CacheMarks) > 4 || parsed.CacheMarks[0] != "tools[1]" || parsed.CacheMarks[1] != "system[0]" {
			t.Errorf("turn %d: marks %v", i+1, parsed.CacheMarks)
		}
		if !marked[len(blocks)-1] {
			t.Errorf("turn %d: the end of the request is not marked: %v", i+1, parsed.CacheMarks)
		}
		if before != nil {
			if len(blocks) < len(before) || !slices.Equal(blocks[:len(before)], before) {
				t.Fatalf("turn %d does not begin with what turn %d sent", i+1, i)
			}
			if !marked[len(before)-1] {
				t.Errorf("turn %d: the end of the former request is not marked: %v", i+1, parsed.CacheMarks)
			}
		}
		before = blocks
	}
}

// prompt returns the parts of a request that are cached, in their order and byte for byte
// but for the cache marks, and which of them have a mark.
func prompt(t *testing.T, body []byte) (blocks []string, marked []bool) {
	t.Helper()
	var r struct {
		Tools    []json.RawMessage `json:"tools"`
		System   []json.RawMessage `json:"system"`
		Messages []struct {
			Role    string            `json:"role"`
			Content []json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatal(err)
	}
	add := func(role string, parts []json.RawMessage) {
		for _, p := range parts {
			unmarked := strings.Replace(string(p), `,"cache_control":{"type":"ephemeral"}`, "", 1)
			blocks, marked = append(blocks, role+unmarked), append(marked, unmarked != string(p))
		}
	}
	add("tools", r.Tools)
	add("system", r.System)
	for _, m := range r.Messages {
		add(m.Role, m.Content)
	}
	return blocks, marked
}

func TestContinuationHasNoCacheMark(t *testing.T) {
	req := modeltest.Conversation(true)
	req.Messages = append(req.Messages, &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline("Silence.")})
	s := modeltest.NewServer(t, modeltest.Reply{})
	if _, err := provider(t, s).Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	parsed, err := modeltest.ParseMessagesRequest(s.Requests()[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"tools[1]", "system[0]", "messages[0].content[0]", "messages[1].content[0]"}; !slices.Equal(parsed.CacheMarks, want) {
		t.Errorf("marks %v, want %v", parsed.CacheMarks, want)
	}
}
