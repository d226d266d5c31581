package judgement

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// contextPrompt is the system prompt of a story: it is the same in each request.
func contextPrompt(t *testing.T, s *live.Transcript) string {
	t.Helper()
	for n, req := range s.Requests {
		for i, m := range req.Messages {
			if (m.Role == "system") != (i == 0) {
				t.Fatalf("message %d of request %d is of %s", i+1, n+1, m.Role)
			}
		}
		if req.Messages[0].Content != s.Requests[0].Messages[0].Content {
			t.Fatalf("the system prompt of request %d is another one", n+1)
		}
	}
	return s.Requests[0].Messages[0].Content
}

// contextOnce fails the test unless a text holds each of some words once.
func contextOnce(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if n := strings.Count(text, w); n != 1 {
			t.Errorf("%q is there %d times:\n%.6000s", w, n, text)
		}
	}
}

// contextNone fails the test if a text holds any of some words.
func contextNone(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if strings.Contains(text, w) {
			t.Errorf("%q is there:\n%.6000s", w, text)
		}
	}
}

// contextOrder fails the test unless a text contains words in this order.
func contextOrder(t *testing.T, text string, words ...string) {
	t.Helper()
	at := 0
	for _, w := range words {
		i := strings.Index(text[at:], w)
		if i < 0 {
			t.Errorf("%q does not follow the others of %q:\n%.6000s", w, words, text)
			return
		}
		at += i
	}
}

func contextInstructions(text string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Agent.Instructions = text }
}

// The agent's instructions, its workspace, its system and a listing two
// levels deep are in the first request, without a tool call.
func TestContextPromptDescribesTheWorkspace(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	for _, path := range []string{"top.txt", "src/main.go", "src/deep/hidden.go", ".git/config", "node_modules/left-pad/index.js"} {
		r.Write(path, "x")
	}
	s := jitBegin(r, contextInstructions("You are the tester of this house.")).Wait()
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	contextOrder(t, prompt, "You are the tester of this house.", r.Dir, runtime.GOOS+"/"+runtime.GOARCH)
	contextOnce(t, prompt, "\ntop.txt\n", "\nsrc/\n", "\nsrc/main.go\n", "\nsrc/deep/\n", "\n.git/\n", "\nnode_modules/\n")
	contextNone(t, prompt, "hidden.go", ".git/config", "left-pad")
	if len(s.Requests) != 1 || len(s.Names("tool.result")) != 1 {
		t.Errorf("%d requests, %v", len(s.Requests), s.Names())
	}
}

// The listing is bounded, whatever the workspace contains, and notes that it is cut.
func TestContextListingIsCapped(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	for i := range 60 {
		for j := range 40 {
			r.Write(fmt.Sprintf("folder-%02d/file-%02d.txt", i, j), "x")
		}
	}
	for i := range 500 {
		r.Write(fmt.Sprintf("z-%03d-%s.txt", i, strings.Repeat("n", 200)), "x")
	}
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	listed := strings.Count(prompt, "\nfolder-") + strings.Count(prompt, "\nz-")
	if listed == 0 || listed > 400 || len(prompt) > 64<<10 {
		t.Errorf("%d entries are listed in a prompt of %d bytes", listed, len(prompt))
	}
	modesSays(t, "the listing", prompt, "more\n")
}

// An empty workspace is called that.
func TestContextEmptyWorkspace(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(live.Done()))
	modesSays(t, "the prompt", contextPrompt(t, s), "(empty)")
}

// The prompt explains how to answer, how work ends and when to use each tool, those
// of the client included.
func TestContextPromptSaysWhichToolWhen(t *testing.T) {
	t.Parallel()
	lookup := jitClient("lookup_order", &harnessv1.ToolAnnotations{Reads: true})
	lookup.Usage = "For orders of the last year;\nolder ones are in the archive."
	s := live.Play(t, live.Replies(live.Done()), jitClients(lookup, jitClient("mute", nil)))
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	for _, name := range strings.Fields(modesLooking + " " + modesActing) {
		contextOnce(t, prompt, "\n"+name+": ")
	}
	modesSays(t, "the prompt", prompt, "How to answer", "work_complete", "Modes")
	modesSays(t, "the prompt", prompt, "\nlookup_order: For orders of the last year; older ones are in the archive.")
	contextNone(t, prompt, "mute")
}

// The prompt of the start is still in the last request of a long run, at the
// same place: later messages do not move it.
func TestContextPromptLivesThroughALongRun(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "Write British English.")
	files := jitFiles(r, 40)
	r.Model.Answer = func(n int, _ *modeltest.Request) modeltest.Reply {
		switch {
		case n == 40:
			return live.Done()
		case n%10 == 5:
			r.Write("AGENTS.md", fmt.Sprintf("Write British English, edition %d.", n))
		}
		return live.Calls(jitRead(files[n]))
	}
	s := jitBegin(r, contextInstructions("Never use semicolons."), contextProvide(&harnessv1.ContextProvider{Name: "House rules", Text: "Be kind."}),
		func(spec *harnessv1.RunSpec) { spec.Config.Context = jitWindow(20_000) }).Wait()
	s.Want("DONE agent_done accepted")
	if len(s.Requests) != 41 {
		t.Errorf("%d requests", len(s.Requests))
	}
	contextOnce(t, contextPrompt(t, s), "Never use semicolons.", "Write British English.", "Be kind.")
	jitTold(t, s, 36, "AGENTS.md", "edition 35")
	jitStable(t, s)
}

func contextProvide(providers ...*harnessv1.ContextProvider) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) {
		spec.Agent.ContextProviders = append(spec.Agent.ContextProviders, providers...)
	}
}
