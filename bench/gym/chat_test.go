package gym

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// model answers what it is sent. It knows nothing but the requests so far.
type model func(c *chat) modeltest.Reply

// chat is what a model is sent, as models look at it, and what it remembers.
type chat struct {
	req *modeltest.Request
	*memory
}

// memory is what a model has seen in the requests so far, its own calls among it: what
// compaction takes out of a request is not forgotten.
type memory struct {
	turns    int
	messages []modeltest.RequestMessage // of others
	calls    []modeltest.Call           // of the model
	seen     map[string]bool
}

// add adds the new messages of a request.
func (m *memory) add(req *modeltest.Request) {
	if m.seen == nil {
		m.seen = map[string]bool{}
	}
	m.turns++
	for _, message := range req.Messages {
		for _, c := range message.ToolCalls {
			if !m.seen[c.ID] {
				m.seen[c.ID] = true
				m.calls = append(m.calls, c)
			}
		}
		key := message.Role + message.ToolCallID + message.Content
		if message.Role != "assistant" && !m.seen[key] {
			m.seen[key] = true
			m.messages = append(m.messages, message)
		}
	}
}

// turn returns the number of the requested answer, from 1.
func (c *chat) turn() int { return c.turns }

// told reports whether one message after the task contains all words. Only messages
// to the model count, not results of its calls.
func (c *chat) told(words ...string) bool {
	task := true
	for _, m := range c.messages {
		if m.Role != "user" {
			continue
		}
		if !task && holds(m.Content, words) {
			return true
		}
		task = false
	}
	return false
}

// toldLast is like told for the messages after its last answer only.
func (c *chat) toldLast(words ...string) bool {
	for _, m := range slices.Backward(c.req.Messages) {
		switch {
		case m.Role == "assistant":
			return false
		case m.Role == "user" && holds(m.Content, words):
			return c.turn() > 1
		}
	}
	return false
}

// answered reports whether one result of its calls contains all words.
func (c *chat) answered(words ...string) bool {
	return slices.ContainsFunc(c.messages, func(m modeltest.RequestMessage) bool {
		return m.Role == "tool" && holds(m.Content, words)
	})
}

// result is the newest result of a call; empty before the first.
func (c *chat) result() string {
	for _, m := range slices.Backward(c.req.Messages) {
		if m.Role == "tool" {
			return m.Content
		}
	}
	return ""
}

// made counts its calls of a tool whose arguments hold all words.
func (c *chat) made(tool string, words ...string) int {
	n := 0
	for _, call := range c.calls {
		if call.Name == tool && holds(call.Arguments, words) {
			n++
		}
	}
	return n
}

// wrote reports whether it has written a file.
func (c *chat) wrote(path string) bool { return c.made("write_file", `"`+path+`"`) > 0 }

// hasTool reports whether a tool is available.
func (c *chat) hasTool(tool string) bool {
	return slices.ContainsFunc(c.req.Tools, func(t modeltest.RequestTool) bool { return t.Name == tool })
}

func holds(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// weigh is roughly how many tokens a request has: a quarter of its bytes. The folder
// of the run counts as one of a fixed name, so that the figure does not depend on
// where the temporary files are.
func weigh(req *modeltest.Request, dir string) int {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Role) + len(strings.ReplaceAll(m.Content, dir, "/workspace"))
		for _, call := range m.ToolCalls {
			n += len(call.Name) + len(call.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Parameters)
	}
	return n / 4
}

// weighReply is roughly how many tokens a reply has.
func weighReply(r modeltest.Reply) int {
	n := len(r.Text)
	for _, call := range r.Calls {
		n += len(call.Name) + len(call.Arguments)
	}
	return n / 4
}

// args are arguments of a call.
type args = map[string]any

func call(tool string, arguments args) modeltest.Call {
	raw, err := json.Marshal(arguments)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: tool, Arguments: string(raw)}
}

func read(path string) modeltest.Call { return call("read_file", args{"path": path}) }
func sh(line string) modeltest.Call   { return call("run_command", args{"command": line}) }
func write(path, content string) modeltest.Call {
	return call("write_file", args{"path": path, "content": content})
}

func add(title, role string) modeltest.Call {
	return call("work_item_add", args{"title": title, "role": role})
}

func set(id, status string) modeltest.Call {
	a := args{"id": id, "status": status}
	if status == "SKIPPED" {
		a["notes"] = "not needed"
	}
	return call("work_item_update", a)
}

func artifact(id, role, content string) modeltest.Call {
	return call("work_item_set_artifact", args{"id": id, "role": role, "content": content})
}

func calls(c ...modeltest.Call) modeltest.Reply { return modeltest.Reply{Calls: c} }

// says is a reply without calls.
func text(format string, a ...any) modeltest.Reply {
	return modeltest.Reply{Text: fmt.Sprintf(format, a...)}
}

// saying is a reply with both.
func textAndCalls(text string, c ...modeltest.Call) modeltest.Reply {
	return modeltest.Reply{Text: text, Calls: c}
}

// done is the reply that ends the work.
func done(format string, a ...any) modeltest.Reply {
	return calls(call("work_complete", args{"summary": fmt.Sprintf(format, a...)}))
}

// inOrder is a model that answers in order, and with the last reply from then on.
func inOrder(all ...modeltest.Reply) model {
	return func(c *chat) modeltest.Reply {
		r := all[min(c.turn(), len(all))-1]
		r.Calls = slices.Clone(r.Calls)
		return r
	}
}
