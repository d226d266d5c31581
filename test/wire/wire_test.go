//go:build wire

// Package wire tests providers against aimock, a mock of the provider APIs by
// other people, so that a misreading of the protocol that our own test server
// shares with our provider is seen. It also tests the tool host, harness mcp serve and /mcp
// against servers, clients and the conformance suite of other people. It needs node with the packages of this
// folder, and Python, whose packages it installs; without them it fails with a message.
package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// start runs aimock on loopback until the end of the test, and returns its
// address up to and including /v1.
func start(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	if err := listener.Close(); err != nil { // aimock cannot be given a listener
		t.Fatal(err)
	}
	cli := filepath.Join("node_modules", "@copilotkit", "aimock", "dist", "cli.js")
	cmd := exec.CommandContext(t.Context(), "node", cli, "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-f", "fixtures", "--strict", "--validate-on-load", "--log-level", "info")
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		t.Fatalf("aimock does not start (npm ci in test/wire installs it): %v", err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case lines <- s.Text():
			default:
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed at the end
		_ = in.Close()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		for range lines { // until the reader has left
		}
	})
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	ready(t, address, lines)
	return address + "/v1"
}

// ready waits until aimock listens.
func ready(t *testing.T, address string, lines <-chan string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var said []string
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("aimock ended: %s", strings.Join(said, "\n"))
			}
			if said = append(said, line); !strings.Contains(strings.ToLower(line), "listening") {
				continue
			}
			resp, err := http.Get(address + "/health")
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return
		case <-ctx.Done():
			t.Fatalf("aimock is not ready: %s", strings.Join(said, "\n"))
		}
	}
}

func TestOpenAI(t *testing.T) {
	p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: start(t), APIKey: "any"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming %t", streaming), func(t *testing.T) {
			t.Run("exchange", func(t *testing.T) { exchange(t, p, streaming) })
			t.Run("error", func(t *testing.T) {
				req := modeltest.Conversation(streaming)
				req.Messages[1].Content = inline("Fail, please.")
				_, err := p.Complete(t.Context(), req, nil)
				if e := model.AsError(err); err == nil || e.Status != 429 || !e.Retryable || !strings.Contains(e.Message, "Rate limited") {
					t.Errorf("error %+v, want a retryable 429 with the reason", err)
				}
			})
			t.Run("model from the list", func(t *testing.T) {
				req := modeltest.Conversation(streaming)
				req.Model = ""
				req.Messages[1].Content = inline("What is in a.txt?")
				// None of its models is a choice of the catalogue, and the first of a list is no choice.
				if resp, err := p.Complete(t.Context(), req, nil); err == nil || !strings.Contains(err.Error(), "gpt-4o") {
					t.Errorf("%v, %v: want an error that lists the models", resp, err)
				}
			})
		})
	}
}

func TestAnthropic(t *testing.T) {
	p, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: strings.TrimSuffix(start(t), "/v1"), APIKey: "any"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming %t", streaming), func(t *testing.T) {
			t.Run("exchange", func(t *testing.T) { exchange(t, p, streaming) })
			t.Run("error", func(t *testing.T) {
				req := modeltest.Conversation(streaming)
				req.Messages[1].Content = inline("Fail, please.")
				_, err := p.Complete(t.Context(), req, nil)
				if e := model.AsError(err); err == nil || e.Status != 429 || !e.Retryable || !strings.Contains(e.Message, "Rate limited") {
					t.Errorf("error %+v, want a retryable 429 with the reason", err)
				}
			})
		})
	}
}

func exchange(t *testing.T, p model.Provider, streaming bool) {
	req := modeltest.Conversation(streaming)
	req.Model = "gpt-4o"
	req.Messages[1].Content = inline("What is in a.txt?")
	var deltas []string
	resp, err := p.Complete(t.Context(), req, func(d model.Delta) { deltas = append(deltas, d.Text) })
	if err != nil {
		t.Fatal(err)
	}
	modeltest.CheckAnswer(t, modeltest.Reply{
		Text: "Looking at the file now, one moment please.",
		Calls: []modeltest.Call{
			{ID: "call_a", Name: "read_file", Arguments: `{"path":"a.txt"}`},
			{ID: "call_b", Name: "read_file", Arguments: `{"path":"b.txt"}`},
		},
		Usage: &modeltest.Usage{Input: 120, Output: 30},
	}, resp)
	if got := strings.Join(deltas, ""); streaming && (got != resp.Text || len(deltas) < 2) {
		t.Errorf("deltas %q, want the text in several", deltas)
	}
	modeltest.Answer(req, resp, func(*harnessv1.ToolCall) string { return "hello" })
	if resp, err = p.Complete(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	if len(resp.ToolCalls) != 1 || resp.ToolCalls[0].GetName() != "work_complete" || resp.FinishReason != "tool_calls" {
		t.Errorf("answer %v, want one call of work_complete", resp)
	}
}

func inline(text string) *harnessv1.Content {
	return &harnessv1.Content{Value: &harnessv1.Content_Inline{Inline: text}}
}
