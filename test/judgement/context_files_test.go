package judgement

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// contextIn lets a run work in a folder below its workspace.
func contextIn(folder string) func(*harnessv1.RunSpec) {
	return func(spec *harnessv1.RunSpec) { spec.Workspace = filepath.Join(spec.GetWorkspace(), folder) }
}

// Instruction files are found by default, under each of their names.
func TestContextInstructionFilesAreFound(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"AGENTS.md", "CLAUDE.md", ".github/copilot-instructions.md"} {
		t.Run(strings.ReplaceAll(name, "/", " "), func(t *testing.T) {
			t.Parallel()
			r := live.Prepare(t, live.Replies(live.Done()))
			r.Write(name, "Use tabs, never spaces.\n")
			s := jitBegin(r).Wait()
			s.Want("DONE agent_done accepted")
			contextOrder(t, contextPrompt(t, s), "Instructions from "+name+"\n", "Use tabs, never spaces.")
			contextOnce(t, s.Text(0), "Use tabs, never spaces.")
		})
	}
}

// They are looked for from the workspace up to the root of the repository, nearest
// first, and not above it; the same content is shown once.
func TestContextInstructionFilesOfTheRepository(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	r.Write("AGENTS.md", "outside of the repository")
	r.Write("repo/.git/HEAD", "ref: refs/heads/main\n")
	r.Write("repo/AGENTS.md", "rule of the root")
	r.Write("repo/.github/copilot-instructions.md", "rule for copilots")
	r.Write("repo/a/CLAUDE.md", "rule of the middle")
	r.Write("repo/a/AGENTS.md", "the same everywhere")
	r.Write("repo/a/b/AGENTS.md", "rule of the workspace")
	r.Write("repo/a/b/CLAUDE.md", "the same everywhere")
	r.Write("repo/a/b/c/AGENTS.md", "below the workspace")
	s := jitBegin(r, contextIn("repo/a/b")).Wait()
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	contextOnce(t, prompt, "rule of the root", "rule for copilots", "rule of the middle", "rule of the workspace", "the same everywhere")
	contextNone(t, prompt, "outside of the repository", "below the workspace")
	contextOrder(t, prompt, "Instructions from AGENTS.md", "rule of the workspace", "Instructions from CLAUDE.md", "the same everywhere",
		"Instructions from ../CLAUDE.md", "rule of the middle", "Instructions from ../../AGENTS.md", "rule of the root",
		"Instructions from ../../.github/copilot-instructions.md", "rule for copilots")
}

// Without a repository only the workspace counts.
func TestContextInstructionFilesWithoutARepository(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	r.Write("AGENTS.md", "of the parent")
	r.Write("work/AGENTS.md", "of the workspace")
	s := jitBegin(r, contextIn("work")).Wait()
	s.Want("DONE agent_done accepted")
	contextOnce(t, contextPrompt(t, s), "of the workspace")
	contextNone(t, contextPrompt(t, s), "of the parent")
}

// A large file is cut with a note in the prompt. Many files have a total bound.
func TestContextInstructionFilesAreCapped(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	r.Write("r/.git/HEAD", "ref: refs/heads/main\n")
	folder := "r"
	for i := range 8 {
		r.Write(folder+"/AGENTS.md", fmt.Sprintf("begin-%d\n", i)+strings.Repeat(fmt.Sprintf("line of %d\n", i), 5000)+fmt.Sprintf("end-%d\n", i))
		folder += "/d"
	}
	s := jitBegin(r, contextIn(strings.TrimSuffix(folder, "/d"))).Wait()
	s.Want("DONE agent_done accepted")
	prompt := contextPrompt(t, s)
	contextOrder(t, prompt, "begin-7", "line of 7", "Cut here", "begin-6")
	contextNone(t, prompt, "end-7", "end-6", "begin-0")
	if first := strings.Count(prompt, "line of 7\n") * len("line of 7\n"); first > 32<<10 || first < 24<<10 {
		t.Errorf("%d bytes of the first file are shown", first)
	}
	if all := strings.Count(prompt, "line of ") * len("line of 7\n"); all > 96<<10 || all < 64<<10 {
		t.Errorf("%d bytes are shown in all", all)
	}
}

// A link that leads out of the repository, or out of the workspace where there is none,
// is not followed; one that stays inside is fine. So is a folder or a pipe of that name.
func TestContextInstructionLinksOutAreRefused(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	r.Write("secret.md", "a secret of the machine")
	r.Write("repo/.git/HEAD", "ref: refs/heads/main\n")
	r.Write("repo/docs/rules.md", "rules that lie inside")
	r.Write("repo/work/.github/keep", "")
	for link, to := range map[string]string{
		"repo/work/AGENTS.md":                       filepath.Join(r.Dir, "secret.md"),
		"repo/work/.github/copilot-instructions.md": "../../../secret.md",
		"repo/work/CLAUDE.md":                       "../docs/rules.md",
	} {
		if err := os.Symlink(to, filepath.Join(r.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r.Write("repo/AGENTS.md/file", "a folder of that name")
	s := jitBegin(r, contextIn("repo/work")).Wait()
	s.Want("DONE agent_done accepted")
	contextOnce(t, contextPrompt(t, s), "rules that lie inside")
	contextNone(t, s.Text(0), "a secret of the machine", "a folder of that name")
}

// Without a repository a link must not lead out of the workspace.
func TestContextInstructionLinkOutOfABareWorkspaceIsRefused(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, live.Replies(live.Done()))
	r.Write("secret.md", "a secret of the machine")
	r.Write("work/rules.md", "rules that lie inside")
	for link, to := range map[string]string{"AGENTS.md": "../secret.md", "CLAUDE.md": "rules.md"} {
		if err := os.Symlink(to, filepath.Join(r.Dir, "work", link)); err != nil {
			t.Fatal(err)
		}
	}
	s := jitBegin(r, contextIn("work")).Wait()
	s.Want("DONE agent_done accepted")
	contextOnce(t, contextPrompt(t, s), "rules that lie inside")
	contextNone(t, s.Text(0), "a secret of the machine")
}

// A link that is swapped in during the run does not lead out either.
func TestContextInstructionLinkSwappedInIsRefused(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("secret.md", "a secret of the machine")
	r.Write("work/AGENTS.md", "the rules")
	r.Model.Answer = modesDoes(jitScript(jitLooks(2)...), map[int]func(){0: func() {
		path := filepath.Join(r.Dir, "work/AGENTS.md")
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		if err := os.Symlink("../secret.md", path); err != nil {
			t.Error(err)
		}
	}})
	s := jitBegin(r, contextIn("work")).Wait()
	s.Want("DONE agent_done accepted")
	contextNone(t, s.Text(len(s.Requests)-1), "a secret of the machine")
	jitTold(t, s, 1, "AGENTS.md", "no longer")
}

// When a file is changed, added or deleted, the next turn has one message about it, with the
// new text, unless the agent itself has written that. The prompt does not change.
func TestContextInstructionChangesAreReported(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "edition one")
	r.Model.Answer = modesDoes(jitScript(
		live.Calls(jitLook()),
		live.Calls(jitWrite("AGENTS.md", "edition two")), // the agent itself
		live.Calls(jitRead("AGENTS.md")),
		jitLooks(3)[0], jitLooks(3)[1], jitLooks(3)[2],
	), map[int]func(){
		3: func() { r.Write("CLAUDE.md", "another file") },
		4: func() {
			if err := os.Remove(filepath.Join(r.Dir, "CLAUDE.md")); err != nil {
				t.Error(err)
			}
		},
	})
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	told := map[int][]string{}
	for n := range s.Requests {
		for _, m := range jitSaid(s, n) {
			if n > 0 && strings.Contains(m, "instructions in ") {
				told[n+1] = append(told[n+1], m)
			}
		}
	}
	if len(told) != 3 || len(told[3]) != 1 || len(told[5]) != 1 || len(told[6]) != 1 {
		t.Fatalf("told is %v", told)
	}
	modesSays(t, "the third request", told[3][0], "AGENTS.md", "no longer", "no person has accepted")
	modesSays(t, "the fifth request", told[5][0], "CLAUDE.md", "another file")
	modesSays(t, "the sixth request", told[6][0], "CLAUDE.md", "no longer")
	var kinds []string
	for _, e := range s.Events {
		if g := e.GetGuidanceInjected(); g.GetKind() == "instructions" {
			kinds = append(kinds, fmt.Sprint(e.GetTurnNumber()))
		}
	}
	jitSame(t, "turns of the events", kinds, "3", "5", "6")
	contextOnce(t, contextPrompt(t, s), "edition one")
	jitStable(t, s)
}

// The first instruction file is reported as well, within five turns, once, unless the agent has
// written it: that waits for a person.
func TestContextFirstInstructionFileIsReported(t *testing.T) {
	t.Parallel()
	t.Run("written by the agent", func(t *testing.T) {
		t.Parallel()
		s := live.Play(t, jitScript(slices.Concat([]modeltest.Reply{live.Calls(jitWrite("AGENTS.md", "the first rule"))}, jitLooks(2))...))
		s.Want("DONE agent_done accepted")
		for n := range s.Requests {
			for _, m := range jitSaid(s, n) {
				if strings.Contains(m, "the first rule") {
					t.Errorf("request %d has a text that no person has accepted: %s", n+1, m)
				}
			}
		}
		if result := jitResult(s, "call_1_0"); !strings.Contains(result, "AGENTS.md") || !strings.Contains(result, "harness trust") {
			t.Errorf("the result does not name the file and its acceptance: %s", result)
		}
		jitStable(t, s)
	})
	t.Run("written by somebody else", func(t *testing.T) {
		t.Parallel()
		r := live.Prepare(t, nil)
		r.Model.Answer = modesDoes(jitScript(jitLooks(6)...), map[int]func(){1: func() { r.Write("AGENTS.md", "the first rule") }})
		s := jitBegin(r).Wait()
		s.Want("DONE agent_done accepted")
		contextTold(t, s, 2, "the first rule")
	})
}

// A file that returns after all were deleted is reported.
func TestContextReturningInstructionFileIsReported(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "the rule")
	r.Model.Answer = modesDoes(jitScript(jitLooks(7)...), map[int]func(){
		0: func() {
			if err := os.Remove(filepath.Join(r.Dir, "AGENTS.md")); err != nil {
				t.Error(err)
			}
		},
		2: func() { r.Write("AGENTS.md", "the new rule") },
	})
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	jitTold(t, s, 1, "AGENTS.md", "no longer")
	contextTold(t, s, 3, "the new rule")
}

// contextTold fails the test unless a change is reported once, in one of the five
// requests from request n on, from 0.
func contextTold(t *testing.T, s *live.Transcript, n int, text string) {
	t.Helper()
	var told []int
	for i := range s.Requests {
		for _, m := range jitSaid(s, i) {
			if strings.Contains(m, "AGENTS.md") && strings.Contains(m, text) {
				told = append(told, i)
			}
		}
	}
	if len(told) != 1 || told[0] < n || told[0] >= n+5 {
		t.Errorf("%q is in the requests %v, counted from 0; want one of %d to %d", text, told, n, n+4)
	}
	jitStable(t, s)
}

// A file that is written again with the same text has not changed.
func TestContextInstructionFileWrittenAgainIsNoChange(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "the rule")
	r.Model.Answer = modesDoes(jitScript(jitLooks(2)...), map[int]func(){0: func() { r.Write("AGENTS.md", "the rule") }})
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	if slices.ContainsFunc(s.Events, func(e *harnessv1.Event) bool { return e.GetGuidanceInjected().GetKind() == "instructions" }) {
		t.Error("a change is reported, want none")
	}
}

// A change above the workspace is reported with its path relative to the workspace.
func TestContextInstructionChangeInAParentIsReported(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("repo/.git/HEAD", "ref: refs/heads/main\n")
	r.Write("repo/CLAUDE.md", "edition one")
	r.Write("repo/work/file", "x")
	r.Model.Answer = modesDoes(jitScript(jitLooks(2)...), map[int]func(){0: func() { r.Write("repo/CLAUDE.md", "edition two") }})
	s := jitBegin(r, contextIn("repo/work")).Wait()
	s.Want("DONE agent_done accepted")
	jitTold(t, s, 1, "../CLAUDE.md", "edition two")
	contextOnce(t, contextPrompt(t, s), "edition one")
	jitStable(t, s)
}

// The report of a change to a large file has the same bound.
func TestContextInstructionChangeIsCapped(t *testing.T) {
	t.Parallel()
	r := live.Prepare(t, nil)
	r.Write("AGENTS.md", "short")
	r.Model.Answer = modesDoes(jitScript(jitLooks(2)...), map[int]func(){0: func() { r.Write("AGENTS.md", strings.Repeat("a long line\n", 20_000)) }})
	s := jitBegin(r).Wait()
	s.Want("DONE agent_done accepted")
	jitTold(t, s, 1, "AGENTS.md", "a long line", "Cut here")
	if n := len(s.Added(1)); n > 40<<10 {
		t.Errorf("the report has %d bytes", n)
	}
}
