//go:build linux

package run_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// signed matches what a provider wants back with its thinking.
var signed = regexp.MustCompile(`"signature": ?"([^"]{60,})"`)

// thinker is a strict server of Claude's protocol that thinks before each answer: small
// signatures are stored in records, large ones in blobs.
func thinker(t *testing.T) *modeltest.Server {
	part := func(size int) modeltest.ReplyPart {
		return modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: "A thought for people.", Size: size}}
	}
	call := func(name, arguments string) modeltest.ReplyPart {
		return modeltest.ReplyPart{Call: &modeltest.Call{Name: name, Arguments: arguments}}
	}
	usage := &modeltest.Usage{Input: 100, Output: 50, Reasoning: 40}
	s := modeltest.NewServer(t,
		modeltest.Reply{Usage: usage, Parts: []modeltest.ReplyPart{part(400), {Text: "Looking."}, call("list_directory", `{}`)}},
		modeltest.Reply{Usage: usage, Parts: []modeltest.ReplyPart{part(12 << 10), call("list_directory", `{}`)}},
		modeltest.Reply{Usage: usage, Parts: []modeltest.ReplyPart{part(400), call("work_complete", `{"summary":"seen"}`)}},
	)
	s.Thinking = map[string]modeltest.ThinkingMode{"claude-opus-5-5": modeltest.ThinkingAlways}
	return s
}

// TestPayloadsAreShownNowhere: what only the provider can read goes back to it, and is in
// no output, event, log line or span, also when spans have the contents of messages.
func TestPayloadsAreShownNowhere(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	p, provider := harnesstest.NewPlace(t, harnesstest.Finishes), thinker(t)
	env, collector := collecting(t, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true", "HARNESS_LOG_LEVEL=debug",
		"ANTHROPIC_BASE_URL="+provider.MessagesURL())
	shown := map[string]string{}
	verb := func(args ...string) {
		t.Helper()
		got := harnesstest.Call(t, env, "", args...)
		if got.Code != 0 {
			t.Fatalf("%q: %+v", args, got)
		}
		name := strings.Join(args[:min(3, len(args))], " ")
		shown[name], shown[name+", stderr"] = got.Out, got.Err
	}
	verb("run", "--output", "jsonl", "--run-id", "r", "--data", p.Data, "--workspace", p.Workspace, "--model", "anthropic:claude-opus-5-5", "look")
	verb("watch", "r", "--output=jsonl", "--data", p.Data)
	verb("watch", "r", "--data", p.Data)
	for _, flag := range []string{"--conversation", "--conversation --output=json", "--output=json", "--state=0 --output=json"} {
		verb(append(append([]string{"show", "r"}, strings.Fields(flag)...), "--data", p.Data)...)
	}
	for _, s := range collector.Spans() {
		shown["spans"] += fmt.Sprintln(s)
	}

	requests := provider.Requests()
	payloads := signed.FindAllStringSubmatch(string(requests[len(requests)-1].Body), -1)
	if len(payloads) != 2 {
		t.Fatalf("%d payloads went back, want 2", len(payloads))
	}
	for _, payload := range payloads {
		inside := payload[1][len(payload[1])/2:][:20]
		secrets := []string{payload[1][:40], inside}
		for i := range 3 { // one of them is where an encoding of all the bytes has a border
			secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(inside[i:]))[:20])
		}
		for what, text := range shown {
			for _, secret := range secrets {
				if strings.Contains(text, secret) {
					t.Errorf("%s has a payload", what)
				}
			}
		}
	}
	for _, what := range []string{"run --output jsonl", "show r --conversation", "watch r --output=jsonl"} {
		if !strings.Contains(shown[what], "A thought for people.") {
			t.Errorf("%s lacks the text of the reasoning: %s", what, shown[what])
		}
	}
}
