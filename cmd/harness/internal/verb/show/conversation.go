package show

import (
	"context"
	"fmt"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
)

// conversation prints the messages, each in the order in which the model wrote it. Only JSON
// has the system prompt unless it is requested.
func (c *Cmd) conversation(ctx context.Context, a *console.Console, s *backend.Session) ([]byte, error) {
	answer, err := s.Client.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return nil, err
	}
	if c.Turn != nil {
		if err := keepTurn(answer, *c.Turn); err != nil {
			return nil, err
		}
	}
	if c.Output == "json" {
		return eventjson.Message(answer)
	}
	style := a.Style(a.Out)
	var text strings.Builder
	for _, m := range answer.GetMessages() {
		if m.GetRole() == harnessv1.Role_ROLE_SYSTEM && !c.System {
			continue
		}
		fmt.Fprintf(&text, "[%d] turn %d, %s:\n", m.GetId(), m.GetTurnNumber(), author(m))
		whole, err := backend.Text(ctx, s.Client, c.Namespace, c.RunID, m.GetContent())
		if err != nil {
			return nil, err
		}
		for _, p := range pieces(m, whole) {
			switch {
			case p.call != nil:
				fmt.Fprintf(&text, "  -> %s\n", render.Call(p.call.GetName(), p.call.GetArguments()))
			case p.reasoning != nil:
				thought, err := backend.Text(ctx, s.Client, c.Namespace, c.RunID, p.reasoning)
				if err != nil {
					return nil, err
				}
				text.WriteString(indent(strings.Join(style.ThoughtLines(thought), "\n")))
			default:
				text.WriteString(indent(render.Clean(p.text)))
			}
		}
		text.WriteString("\n")
	}
	return []byte(text.String()), nil
}

// author returns the role of a message, with its kind and tool.
func author(m *harnessv1.Message) string {
	who := strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_"))
	if kind := strings.TrimPrefix(m.GetKind().String(), "MESSAGE_KIND_"); kind != "UNSPECIFIED" && kind != "USER_INPUT" {
		who += " (" + strings.ToLower(kind) + ")"
	}
	if m.GetToolName() != "" {
		who += " " + m.GetToolName()
	}
	if m.GetIsError() {
		who += " (error)"
	}
	return render.Clean(who)
}

// piece is a text, a reasoning or a call of a message.
type piece struct {
	text      string
	reasoning *harnessv1.Content
	call      *harnessv1.ToolCall
}

// pieces returns the pieces of a message with a text: those of its parts in their order,
// then what no part names, then a line for each image or document.
func pieces(m *harnessv1.Message, text string) []piece {
	var all, files []piece
	calls := m.GetToolCalls()
	for _, p := range m.GetParts() {
		switch kind := p.GetKind().(type) {
		case *harnessv1.Part_Text:
			n := min(kind.Text, uint64(len(text)))
			if written := strings.TrimSpace(text[:n]); written != "" {
				all = append(all, piece{text: written})
			}
			text = text[n:]
		case *harnessv1.Part_Reasoning:
			all = append(all, piece{reasoning: kind.Reasoning.GetText()})
		case *harnessv1.Part_Call:
			if len(calls) > 0 { // they are named in their order
				all = append(all, piece{call: calls[0]})
				calls = calls[1:]
			}
		case *harnessv1.Part_Media:
			files = append(files, piece{text: "[" + media.Label(kind.Media) + "]"})
		}
	}
	if text != "" {
		all = append(all, piece{text: text})
	}
	for _, call := range calls {
		all = append(all, piece{call: call})
	}
	return append(all, files...)
}

// indent returns lines that end with a line break, each after two spaces.
func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + strings.TrimSuffix(line, "\n") + "\n")
	}
	return out.String()
}
