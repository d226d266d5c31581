package show

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/backend"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/console"
	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// checkParts checks the flags that select a part of the conversation.
func (c *Cmd) checkParts(a *console.Console) error {
	for _, part := range []string{"call", "turn"} {
		for _, other := range []string{"state", "context"} {
			if err := a.Conflict(part, other); err != nil {
				return err
			}
		}
	}
	if err := a.Conflict("call", "conversation"); err != nil {
		return err
	}
	if err := a.Conflict("call", "turn"); err != nil {
		return err
	}
	if c.Turn != nil && *c.Turn == 0 {
		return errors.New("--turn: 0: turns begin with 1")
	}
	if a.Given["system"] && !c.Conversation {
		return errors.New("--system: needs --conversation")
	}
	return nil
}

// placedCall is a call of a conversation with the message that answers it, nil if none
// does yet.
type placedCall struct {
	turn   uint32
	call   *harnessv1.ToolCall
	result *harnessv1.Message
}

// callsOf returns the calls of a conversation in their order.
func callsOf(messages []*harnessv1.Message) []placedCall {
	var calls []placedCall
	at := map[string]int{} // by id, the newest
	for _, m := range messages {
		for _, call := range m.GetToolCalls() {
			at[call.GetId()] = len(calls)
			calls = append(calls, placedCall{turn: m.GetTurnNumber(), call: call})
		}
		if i, known := at[m.GetToolCallId()]; known && m.GetRole() == harnessv1.Role_ROLE_TOOL {
			calls[i].result = m
		}
	}
	return calls
}

// findCall returns the call with an id, or the one with a number, from 1.
func findCall(calls []placedCall, which string) (number int, found placedCall, err error) {
	for i, c := range calls {
		if c.call.GetId() == which {
			return i + 1, c, nil
		}
	}
	if n, err := strconv.Atoi(which); err == nil && n >= 1 && n <= len(calls) {
		return n, calls[n-1], nil
	}
	return 0, placedCall{}, fmt.Errorf("--call: %q: expected the id of a call or a number from 1 to %d", which, len(calls))
}

// call prints one call with all of its arguments and its whole result.
func (c *Cmd) call(ctx context.Context, s *backend.Session) ([]byte, error) {
	answer, err := s.Client.GetConversation(ctx, &harnessv1.GetConversationRequest{Namespace: c.Namespace, RunId: c.RunID})
	if err != nil {
		return nil, err
	}
	calls := callsOf(answer.GetMessages())
	if len(calls) == 0 {
		return nil, errors.New("--call: the run has made no call yet")
	}
	number, found, err := findCall(calls, c.Call)
	if err != nil {
		return nil, err
	}
	arguments, err := backend.Text(ctx, s.Client, c.Namespace, c.RunID, found.call.GetArguments())
	if err != nil {
		return nil, err
	}
	result := ""
	if found.result != nil {
		if result, err = backend.Text(ctx, s.Client, c.Namespace, c.RunID, found.result.GetContent()); err != nil {
			return nil, err
		}
	}
	if c.Output == "json" {
		return callJSON(number, found, arguments, result)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "call %d (%s), turn %d: %s\n%s", number, render.Clean(found.call.GetId()), found.turn, render.Clean(found.call.GetName()), argumentText(arguments))
	switch {
	case found.result == nil:
		text.WriteString("\nno result yet\n")
	case found.result.GetIsError():
		text.WriteString("\nerror:\n" + indent(render.Clean(result)))
	default:
		text.WriteString("\nresult:\n" + indent(render.Clean(result)))
	}
	return []byte(text.String()), nil
}

// callJSON returns a call as an object; arguments that are no JSON are a string.
func callJSON(number int, found placedCall, arguments, result string) ([]byte, error) {
	given := json.RawMessage(arguments)
	if !json.Valid(given) {
		quoted, err := json.Marshal(arguments)
		if err != nil {
			return nil, err
		}
		given = quoted
	}
	out := map[string]any{
		"number": number, "call_id": found.call.GetId(), "tool": found.call.GetName(), "turn_number": found.turn, "arguments": given,
		"result": nil, "is_error": false,
	}
	if found.result != nil {
		out["result"], out["is_error"] = result, found.result.GetIsError()
	}
	return json.Marshal(out)
}

// argumentText returns the arguments of a call, one below the other in their order: texts
// without escapes, those of several lines as a block.
func argumentText(raw string) string {
	decoder := json.NewDecoder(strings.NewReader(raw))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return indent(render.Clean(raw))
	}
	var text strings.Builder
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return indent(render.Clean(raw))
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return indent(render.Clean(raw))
		}
		text.WriteString(argumentLines(fmt.Sprint(name), value))
	}
	return text.String()
}

func argumentLines(name string, value json.RawMessage) string {
	plain := string(value)
	var written string
	if json.Unmarshal(value, &written) == nil {
		plain = written
	} else if bytes.ContainsAny(value, "[{") {
		var laid bytes.Buffer
		if json.Indent(&laid, value, "", "  ") == nil {
			plain = laid.String()
		}
	}
	plain = render.Clean(strings.TrimRight(plain, "\n"))
	if strings.Contains(plain, "\n") {
		return "  " + render.Clean(name) + ":\n" + indent(indent(plain))
	}
	return "  " + render.Clean(name) + ": " + plain + "\n"
}

// keepTurn leaves the messages of one turn in a conversation.
func keepTurn(answer *harnessv1.GetConversationResponse, turn uint32) error {
	var own []*harnessv1.Message
	last := uint32(0)
	for _, m := range answer.GetMessages() {
		last = max(last, m.GetTurnNumber())
		if m.GetTurnNumber() == turn {
			own = append(own, m)
		}
	}
	if len(own) == 0 {
		return fmt.Errorf("--turn: %d: expected a turn from 1 to %d", turn, last)
	}
	answer.Messages = own
	return nil
}
