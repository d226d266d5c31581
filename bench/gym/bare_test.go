package gym

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/harnesstool"
	"github.com/harnessmesh/harnessmesh/pkg/tree"
	"github.com/harnessmesh/harnessmesh/pkg/workitem"
	"github.com/harnessmesh/harnessmesh/services/toolhost/toolhostserver/tools"
)

// The ends of a bare loop, as its caller sees them.
const (
	saidDone   = "done"
	fellSilent = "stops"
	turnsGone  = "50 turns"
)

// maxTurns bounds both loops.
const maxTurns = 50

// bareLoop is what most agents begin with: ask the model, run its tools, ask again,
// until it makes no call or claims to be done. It trusts every claim.
type bareLoop struct {
	world *world
	next  int // number of the next work item
	// answer is the user's answer to questions.
	answer string
	// delegate runs another loop for a call of a sub-agent; nil without sub-agents.
	delegate func(prompt string) (string, error)
	// stopped reports that a loop below was stopped.
	stopped bool
}

var errTooManyRuns = errors.New("too many runs")

type wireMessage struct {
	Role       string     `json:"role"`
	Content    *string    `json:"content"`
	ToolCalls  []wireCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// run works until the end of the loop and returns what its caller sees.
func (b *bareLoop) run(t *testing.T, name, goal string) (says string) {
	t.Helper()
	system := "You are an agent with tools. Do the task, then call work_complete."
	messages := []wireMessage{{Role: "system", Content: &system}, {Role: "user", Content: &goal}}
	for range maxTurns {
		m := b.ask(t, name, messages)
		messages = append(messages, m)
		if len(m.ToolCalls) == 0 {
			return fellSilent
		}
		finished := false
		for _, c := range m.ToolCalls {
			result, err := b.call(t, c.Function.Name, c.Function.Arguments)
			if errors.Is(err, errTooManyRuns) {
				b.stopped = true
				return turnsGone
			}
			if err != nil {
				result = "Error: " + err.Error()
			}
			messages = append(messages, wireMessage{Role: "tool", Content: &result, ToolCallID: c.ID})
			finished = finished || c.Function.Name == harnesstool.WorkComplete && err == nil
		}
		if finished {
			return saidDone
		}
	}
	return turnsGone
}

// ask sends the conversation and returns the answer.
func (b *bareLoop) ask(t *testing.T, name string, messages []wireMessage) wireMessage {
	t.Helper()
	body, err := json.Marshal(map[string]any{"model": name, "messages": messages, "tools": b.tools()})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, models.http.BaseURL()+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := models.http.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %s", resp.Status, err, raw)
	}
	var got struct {
		Choices []struct{ Message wireMessage }
	}
	if err := json.Unmarshal(raw, &got); err != nil || len(got.Choices) != 1 {
		t.Fatalf("%v: %s", err, raw)
	}
	m := got.Choices[0].Message
	if m.Content == nil && len(m.ToolCalls) == 0 {
		m.Content = new(string)
	}
	return m
}

// tools are those of the loop: with sub-agents one more.
func (b *bareLoop) tools() []any {
	all := bareTools()
	if b.delegate != nil {
		for _, s := range tree.Tools([]*harnessv1.SubAgent{{Name: "helper", Description: "Helps.", Instructions: "Help."}}) {
			if s.GetName() == "helper" {
				all = append(all, wireTool(s))
			}
		}
	}
	return all
}

// bareTools are the tools with the descriptions that the harness gives them, so that
// they weigh the same on both sides.
func bareTools() []any {
	var specs []*harnessv1.ToolSpec
	for _, t := range tools.All() {
		specs = append(specs, t.Spec)
	}
	var list []any
	for _, s := range append(specs, harnesstool.Specs(harnesstool.Setting{WorkItems: true, Questions: true})...) {
		switch s.GetName() {
		case tools.ReadFile, tools.WriteFile, tools.RunCommand, harnesstool.WorkComplete, harnesstool.AskUser,
			workitem.Add, workitem.Update, workitem.SetArtifact, workitem.FlagRevision:
			list = append(list, wireTool(s))
		}
	}
	return list
}

func wireTool(s *harnessv1.ToolSpec) any {
	return map[string]any{"type": "function", "function": map[string]any{
		"name": s.GetName(), "description": s.GetDescription(), "parameters": json.RawMessage(s.GetParametersSchema()),
	}}
}

// call runs one call in the world. Work items are kept and never looked at.
func (b *bareLoop) call(t *testing.T, tool, raw string) (string, error) {
	t.Helper()
	var a struct {
		Path, Content, Command, Summary, ID, Prompt string
	}
	if err := json.Unmarshal([]byte(raw), &a); err != nil {
		return "", fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	path := filepath.Join(b.world.dir, a.Path)
	switch tool {
	case tools.ReadFile:
		text, err := os.ReadFile(path)
		return string(text), err
	case tools.WriteFile:
		return "Written.", os.WriteFile(path, []byte(a.Content), 0o600)
	case tools.RunCommand:
		return b.command(t, a.Command)
	case workitem.Add, workitem.FlagRevision:
		if a.ID == "" || tool == workitem.FlagRevision {
			b.next++
			a.ID = fmt.Sprintf("w%d", b.next)
		}
		return "Added " + a.ID + ".", nil
	case workitem.Update:
		return "Updated.", nil
	case workitem.SetArtifact:
		b.world.artifacts[a.ID] = a.Content
		return "Stored.", nil
	case "helper":
		return b.delegate(a.Prompt)
	case harnesstool.AskUser:
		return b.answer, nil
	case harnesstool.WorkComplete:
		b.world.summary = a.Summary
		return "Recorded.", nil
	}
	return "", fmt.Errorf("there is no tool %s", tool)
}

func (b *bareLoop) command(t *testing.T, line string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Dir = b.world.dir
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return fmt.Sprintf("%s[exit code %d]", out, exit.ExitCode()), nil
	}
	return string(out), err
}
