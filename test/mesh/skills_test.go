package mesh

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/test/kit/meshtest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

const (
	// manySkills with descriptions of this many bytes do not fit into the list of skills.
	manySkills       = 60
	skillDescription = 400
	// skillEnd is in the middle of the text of a skill, which only whole texts have.
	skillEnd = "Warm the pot before the tea is in it."
)

// brewer is a model that reads a skill, works until the text is no longer in its requests, and reads it
// back.
type brewer struct {
	mu       sync.Mutex
	requests []*modeltest.Request
	gone     bool
	again    bool
	// left is what replaces the text.
	left string
}

func (b *brewer) reply(r *modeltest.Request) modeltest.Reply {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.requests = append(b.requests, r)
	n := len(b.requests)
	call := func(name, arguments string) modeltest.Reply {
		return modeltest.Reply{Calls: []modeltest.Call{{ID: fmt.Sprint("call-", n), Name: name, Arguments: arguments}}}
	}
	whole := strings.Contains(fmt.Sprint(r.Messages), skillEnd)
	switch {
	case n == 1:
		return call("skill", `{"name":"brewing"}`)
	case b.gone && whole:
		b.again = true
		return call("work_complete", `{"summary":"done"}`)
	case !whole:
		b.gone = true
		for _, message := range r.Messages {
			if message.ToolCallID == "call-1" {
				b.left = message.Content
			}
		}
		_, ref, _ := strings.Cut(strings.TrimSuffix(b.left, ".]"), "read_artifact, ref ")
		return call("read_artifact", fmt.Sprintf(`{"ref":%q}`, ref))
	case n > 40:
		return call("work_complete", `{"summary":"it never left"}`)
	}
	return call("run_command", fmt.Sprintf(`{"command":"seq -f '%d: line %%03.0f of the log of the server' 1 100"}`, n))
}

// TestSystemSkillsThroughCompaction: the system prompt lists the skills in at most 8 KiB, also after
// compactions. The text of one that was read is then replaced by a reference, and can be read back.
func TestSystemSkillsThroughCompaction(t *testing.T) {
	t.Parallel()
	b := &brewer{}
	model := modeltest.NewServerFunc(t, b.reply)
	m := meshtest.Start(t, bin, meshtest.Config{Env: []string{"OPENAI_BASE_URL=" + model.BaseURL()}})
	workspace := newWorkspace(t)
	text := strings.Repeat("Boil fresh water each time, and wait.\n", 100) + skillEnd + "\n" + strings.Repeat("Pour slowly, and stir only once.\n", 100)
	for i := range manySkills {
		name, body := fmt.Sprintf("skill-%02d", i), "Nothing."
		if i == 0 {
			name, body = "brewing", text
		}
		dir := filepath.Join(workspace, ".agents", "skills", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		data := fmt.Sprintf("---\nname: %s\ndescription: %s\n---\n%s", name, strings.Repeat("d", skillDescription), body)
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := &harnessv1.RunSpec{
		Goal: content.Inline("Brew tea."), Workspace: workspace, Agent: &harnessv1.AgentSpec{Model: "openai:gpt-5"},
		Config: &harnessv1.LoopConfig{
			Tools:   &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
			Context: &harnessv1.ContextConfig{MaxInputTokens: proto.Uint32(24_000), RecentMessages: proto.Uint32(4)},
		},
	}
	if _, err := m.Client().StartRun(t.Context(), &harnessv1.StartRunRequest{RunId: "skills", Spec: run}); err != nil {
		t.Fatal(err)
	}
	result, err := waittest.Watch(t.Context(), m.Client(), "", "skills", 0, harnessv1.WatchUntil_WATCH_UNTIL_REST, nil)
	if err != nil || !result.GetAccepted() {
		t.Fatalf("ended with %v, %v", result, err)
	}
	compactions := 0
	for _, e := range events(m.Ended(runlog.Run{Namespace: "default", ID: "skills"}, 0)) {
		if e.GetCompactionCompleted() != nil {
			compactions++
		}
	}
	if compactions == 0 || !b.gone || !b.again {
		t.Errorf("%d compactions, the text left the requests: %v, was read again: %v", compactions, b.gone, b.again)
	}
	if !strings.HasPrefix(b.left, "[Cleared: the result of skill ") {
		t.Errorf("the text is replaced by %q", b.left)
	}
	for i, r := range b.requests {
		system := r.Messages[0].Content
		_, list, found := strings.Cut(system, "Skills: ")
		list, _, _ = strings.Cut(list, "\n\n")
		if size := len("Skills: ") + len(list); !found || size > 8<<10 || size < 4<<10 {
			t.Fatalf("request %d: the list of skills has %d bytes", i+1, size)
		}
		for _, name := range []string{"brewing", fmt.Sprintf("skill-%02d", manySkills-1)} {
			if !strings.Contains(list, "\n- "+name) {
				t.Errorf("request %d does not name %s", i+1, name)
			}
		}
		if system != b.requests[0].Messages[0].Content {
			t.Errorf("request %d has another system prompt", i+1)
		}
	}
}
