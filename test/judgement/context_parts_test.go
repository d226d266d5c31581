package judgement

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// contextParts are the parts of the system prompt, each with its switch and its words.
var contextParts = []struct {
	name  string
	set   func(*harnessv1.PromptConfig)
	words []string
}{
	{"environment", func(p *harnessv1.PromptConfig) { p.Environment = proto.Bool(false) }, []string{"Environment", "working directory", "platform", "same.txt"}},
	{"instruction files", func(p *harnessv1.PromptConfig) { p.InstructionFiles = proto.Bool(false) }, []string{"Instructions from", "British English", "American English"}},
	{"modes", func(p *harnessv1.PromptConfig) { p.Modes = proto.Bool(false) }, []string{"# Modes", "execute"}},
	{"tools", func(p *harnessv1.PromptConfig) { p.Tools = proto.Bool(false) }, []string{"Which tool when"}},
	{"completion", func(p *harnessv1.PromptConfig) { p.Completion = proto.Bool(false) }, []string{"How work ends"}},
	{"style", func(p *harnessv1.PromptConfig) { p.Style = proto.Bool(false) }, []string{"How to answer"}},
	{"harness messages", func(p *harnessv1.PromptConfig) { p.HarnessMessages = proto.Bool(false) }, []string{"come from the harness"}},
}

// contextPlay is a run in which an instruction file changes, without anything but the
// system prompt that mentions its parts.
func contextPlay(t *testing.T, prompt *harnessv1.PromptConfig, edits ...func(*harnessv1.RunSpec)) *live.Transcript {
	t.Helper()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "Write British English.")
	r.Write("same.txt", "x")
	r.Model.Answer = func(n int, _ *modeltest.Request) modeltest.Reply {
		if n == 6 {
			return live.Done()
		}
		r.Write("AGENTS.md", "Write American English.")
		return live.Calls(jitWrite(fmt.Sprintf("out-%d.txt", n), "x"))
	}
	quiet := func(spec *harnessv1.RunSpec) {
		spec.Config.Prompt = prompt
		spec.Config.Guidance = &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)}
	}
	s := jitBegin(r, append([]func(*harnessv1.RunSpec){quiet}, edits...)...).Wait()
	s.Want("DONE agent_done accepted")
	return s
}

// Each part of the system prompt has a switch; without it no request mentions the part, and
// the other parts are there.
func TestContextPartsHaveSwitches(t *testing.T) {
	t.Parallel()
	for i, part := range contextParts {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel()
			prompt := &harnessv1.PromptConfig{}
			part.set(prompt)
			s := contextPlay(t, prompt)
			text := s.Text(len(s.Requests) - 1)
			contextNone(t, text, part.words...)
			for j, other := range contextParts {
				if j != i {
					modesSays(t, "the conversation", text, other.words[0])
				}
			}
			if part.name == "instruction files" && len(s.State().GetInstructionFiles()) > 0 {
				t.Errorf("the state has %v", s.State().GetInstructionFiles())
			}
		})
	}
}

// With every part off and no instructions there is no system prompt at all.
func TestContextWithoutAnyPart(t *testing.T) {
	t.Parallel()
	prompt := &harnessv1.PromptConfig{}
	for _, part := range contextParts {
		part.set(prompt)
	}
	s := contextPlay(t, prompt)
	for n, req := range s.Requests {
		for _, m := range req.Messages {
			if m.Role == "system" {
				t.Fatalf("request %d has the system prompt %q", n+1, m.Content)
			}
		}
	}
	if first := s.Requests[0].Messages[0]; first.Role != "user" || first.Content != "Do the task." {
		t.Errorf("the first message is %+v", first)
	}
}

// The system prompt describes what holds for this agent.
func TestContextPromptFollowsTheSettings(t *testing.T) {
	t.Parallel()
	prompt := func(t *testing.T, edits ...func(*harnessv1.RunSpec)) string {
		t.Helper()
		s := live.Play(t, live.Replies(live.Done()), edits...)
		s.Want("DONE agent_done accepted")
		return contextPrompt(t, s)
	}
	silent := func(spec *harnessv1.RunSpec) {
		spec.Config.Continuation = &harnessv1.ContinuationConfig{Enabled: proto.Bool(false)}
	}
	free := func(spec *harnessv1.RunSpec) {
		spec.Config.Stop = &harnessv1.StopConfig{RequireWorkComplete: proto.Bool(false)}
	}
	t.Run("defaults", func(t *testing.T) {
		t.Parallel()
		text := prompt(t)
		modesSays(t, "the prompt", text, "reminders", "corrections", "does not end the\nwork")
		contextNone(t, text, "stand up to checking")
	})
	t.Run("continuation off", func(t *testing.T) {
		t.Parallel()
		text := strings.ToLower(prompt(t, silent))
		contextNone(t, text, "remind", "nudge")
		modesSays(t, "the prompt", text, "does not end the\nwork")
	})
	t.Run("work_complete is not required", func(t *testing.T) {
		t.Parallel()
		contextNone(t, prompt(t, silent, free), "does not end the", "remind", "what is missing")
	})
	t.Run("doom_loop off", func(t *testing.T) {
		t.Parallel()
		contextNone(t, prompt(t, func(spec *harnessv1.RunSpec) {
			spec.Config.DoomLoop = &harnessv1.DoomLoopConfig{Enabled: proto.Bool(false)}
		}), "corrections")
	})
	t.Run("work items", func(t *testing.T) {
		t.Parallel()
		modesSays(t, "the prompt", prompt(t, jitItems), "stand up to checking")
	})
}
