package reasoning_test

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// olderRun returns the conversation of a run that a program with schema 3 stored.
func olderRun(t *testing.T) *conversation.Conversation {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "compat", "run-3.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	c := &conversation.Conversation{}
	for r := bufio.NewReader(f); ; {
		if _, err := r.Peek(1); err != nil {
			return c
		}
		rec := &harnessv1.Record{}
		if err := protodelim.UnmarshalFrom(r, rec); err != nil {
			t.Fatal(err)
		}
		c.Fold(rec)
	}
}

// TestOlderRunsSendTheSameRequests compares the requests of a run that an earlier
// program stored with those which that program sent, byte for byte.
func TestOlderRunsSendTheSameRequests(t *testing.T) {
	t.Parallel()
	tools := []*harnessv1.ToolSpec{
		{Name: "read_file", Description: "Reads a file.", ParametersSchema: `{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}`},
		{Name: "list", Description: "Lists."},
	}
	c := olderRun(t)
	for name, streaming := range map[string]bool{"chat-plain": false, "chat-streamed": true, "messages-plain": false, "messages-streamed": true} {
		t.Run(name, func(t *testing.T) {
			sent, err := os.ReadFile(filepath.Join("testdata", "compat", name+"-3.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.Split(bytes.TrimSpace(sent), []byte("\n"))
			s := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "ok"} })
			var p model.Provider
			if name[:4] == "chat" {
				p, err = openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
			} else {
				p, err = anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), HTTPClient: s.Client()}})
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, m := range c.Messages {
				if m.GetRole() != harnessv1.Role_ROLE_ASSISTANT {
					continue
				}
				request := &model.Request{Model: "test-model", Messages: conversation.View(c.Messages[:i]), Tools: tools, Streaming: streaming}
				if _, err := p.Complete(t.Context(), request, nil); err != nil {
					t.Fatalf("before message %d: %v", m.GetId(), err)
				}
			}
			got := s.Requests()
			if len(got) != len(want) {
				t.Fatalf("%d requests, want %d", len(got), len(want))
			}
			for i := range want {
				if !bytes.Equal(got[i].Body, want[i]) {
					t.Errorf("request %d is\n%s\nwant\n%s", i, got[i].Body, want[i])
				}
			}
		})
	}
}
