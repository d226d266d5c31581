package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

const (
	// maxBusy is how often a call is continued whose server asks for time, and asks nothing.
	maxBusy = 3
	// busyPause is the pause before that.
	busyPause = 250 * time.Millisecond
	// maxDeclined bounds how many declined questions a result names.
	maxDeclined = 4
)

// Actions of the protocol.
const (
	acceptAction  = "accept"
	declineAction = "decline"
	cancelAction  = "cancel"
)

// refusals are the questions that no person was prompted with, for the result of their call.
type refusals struct {
	mu    sync.Mutex
	texts []string
	more  int
	// late: the server did not wait for the answer to its last question.
	late bool
}

// add adds a question. Its text is the word of a server.
func (d *refusals) add(message string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.texts) >= maxDeclined {
		d.more++
		return
	}
	d.texts = append(d.texts, content.Line(content.Clean(strings.ToValidUTF8(message, "\uFFFD")), 200))
}

// text returns a note about them for the model; empty for none.
func (d *refusals) text(server *harnessv1.McpServer) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	late := ""
	if d.late {
		late = fmt.Sprintf("[The server %s did not wait for the answer to its last question.]\n", server.GetName())
	}
	if len(d.texts) == 0 {
		return late
	}
	asked := make([]string, len(d.texts))
	for i, text := range d.texts {
		asked[i] = fmt.Sprintf("%q", text)
	}
	more := ""
	if d.more > 0 {
		more = fmt.Sprintf(" and %d times more", d.more)
	}
	return late + fmt.Sprintf("[The server %s asked a person %s%s. No person could be asked, so this was declined.]\n", server.GetName(), strings.Join(asked, ", "), more)
}

// callTool sends a call, or the answers to its question, and returns the response of the server: a
// result, or the next question. It declines where no person is there to answer. answered reports
// whether the server has answered before the error, so that a part of the call has run.
func (s *session) callTool(ctx context.Context, c *connection, call Call, params *mcp.CallToolParams) (result Result, answered bool, err error) {
	round := call.GetQuestion().GetRound()
	if q := call.GetQuestion(); q != nil {
		params.RequestState = string(q.GetState().GetInline())
		if params.InputResponses, err = responsesOf(q); err != nil {
			return failed("The answers cannot be sent: %s. The call was given up.", err), false, nil
		}
	}
	refused := &refusals{}
	one := &flight{token: call.Token, run: call.Run.Key, refused: refused}
	c.flights.add(one)
	defer c.flights.remove(one)
	for busy := 0; ; {
		answer, err := c.client.CallTool(ctx, params)
		switch {
		case err != nil:
			return Result{}, answered, err
		case len(answer.InputRequests) == 0 && !answer.NeedsInput():
			r := resultOf(call, answer)
			r.Text = refused.text(call.GetServer()) + r.Text
			return r, true, nil
		case len(answer.InputRequests) == 0 && busy == maxBusy:
			return failed("%sThe server is busy. Make the call again later.", origin(call.GetServer())), true, nil
		}
		answered = true
		again := *params
		again.RequestState, again.InputResponses = answer.RequestState, nil
		params = &again
		if len(answer.InputRequests) == 0 {
			busy++
			select {
			case <-time.After(busyPause << busy):
			case <-ctx.Done():
				return Result{}, answered, ctx.Err()
			}
			continue
		}
		round++
		q, err := questionOf(call.GetServer().GetName(), round, answer)
		switch {
		case err != nil:
			return failed("%sThe server asks a person in a way that cannot be shown: %s. The call was given up; what it had done until then stays.",
				origin(call.GetServer()), content.Line(content.Clean(err.Error()), 400)), true, nil
		case call.GetAsks():
			return Result{Question: q}, true, nil
		}
		for _, r := range q.GetRequests() {
			refused.add(r.GetMessage().GetInline())
		}
		q.Responses = elicit.All(q, harnessv1.AnswerAction_ANSWER_ACTION_DECLINE)
		if params.InputResponses, err = responsesOf(q); err != nil {
			return Result{}, answered, err
		}
	}
}

// responsesOf returns the answers to a question as the protocol has them.
func responsesOf(q *harnessv1.ServerQuestion) (mcp.InputResponseMap, error) {
	all := mcp.InputResponseMap{}
	for _, r := range q.GetResponses() {
		response := &mcp.ElicitResult{}
		switch r.GetAction() {
		case harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT:
			response.Action = acceptAction
			if values := r.GetContent().GetInline(); values != "" {
				if err := json.Unmarshal([]byte(values), &response.Content); err != nil {
					return nil, fmt.Errorf("the values of %q are no JSON object", r.GetRequestId())
				}
			}
		case harnessv1.AnswerAction_ANSWER_ACTION_DECLINE:
			response.Action = declineAction
		default:
			response.Action = cancelAction
		}
		all[r.GetRequestId()] = response
	}
	return all, nil
}

// questionOf returns what a server asks. The error is why no person gets it.
func questionOf(server string, round uint32, answer *mcp.CallToolResult) (*harnessv1.ServerQuestion, error) {
	q := &harnessv1.ServerQuestion{Server: server, Round: round}
	if answer.RequestState != "" {
		q.State = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(answer.RequestState)}}
	}
	if n := len(answer.InputRequests); n > elicit.MaxRequests { // before any of them is copied
		return nil, fmt.Errorf("it asks %d things, more than the limit of %d", n, elicit.MaxRequests)
	}
	for _, id := range slices.Sorted(maps.Keys(answer.InputRequests)) {
		params, ok := answer.InputRequests[id].(*mcp.ElicitParams)
		if !ok || params == nil {
			return nil, fmt.Errorf("request %q is not for a person", id)
		}
		r, err := requestOf(id, params)
		if err != nil {
			return nil, err
		}
		q.Requests = append(q.Requests, r)
	}
	return q, elicit.Check(q)
}

// clean returns a text of a server as it is recorded.
func clean(text string) string { return content.Clean(strings.ToValidUTF8(text, "\uFFFD")) }

// decline records a question that a server asks while calls run, and that gets no answer. The
// protocol does not name the call.
func (c *connection) decline(message string) {
	for _, one := range c.flights.list() {
		one.refused.add(message)
		if output, ok := c.progress.Load(one.token); ok && output.(io.Writer) != nil {
			_, _ = fmt.Fprintf(output.(io.Writer), "The server asks: %s. This was declined.\n", message)
		}
	}
}

// redactQuestion replaces the values in what people read of a question, which it changes.
func (s *secrets) redactQuestion(q *harnessv1.ServerQuestion) {
	for _, r := range q.GetRequests() {
		for _, text := range []*harnessv1.Content{r.GetMessage(), r.GetSchema(), r.GetUrl()} {
			if text != nil {
				text.Value = &harnessv1.Content_Inline{Inline: s.redact(text.GetInline())}
			}
		}
	}
}
