package toolhostserver

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
)

// asking is a call of the tool ask in a run with a person.
func (h *host) asking(server *harnessv1.McpServer, kind string) *harnessv1.ExecuteToolRequest {
	h.t.Helper()
	req := h.serverCall(server, "ask", `{"kind":"`+kind+`"}`)
	req.Mcp.Asks = true
	return req
}

// continued is the part of a call that follows its question, with the text that answers it.
func (h *host) continued(req *harnessv1.ExecuteToolRequest, q *harnessv1.ServerQuestion, text string) *harnessv1.ExecuteToolRequest {
	h.t.Helper()
	responses, err := elicit.Responses(q, &harnessv1.ToolAnswer{}, text)
	if err != nil {
		h.t.Fatal(err)
	}
	next := proto.CloneOf(req)
	next.CallId = runstate.RoundID(req.GetCallId(), q.GetRound())
	next.Mcp.Question = proto.CloneOf(q)
	next.Mcp.Question.Responses = responses
	return next
}

const inputRequired = harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED

// TestServerAsks: a question is an outcome with the words and the state of the server. The part of
// the call that follows the answer runs once, however often it is sent, and after another process
// of the server and of the host has taken over.
func TestServerAsks(t *testing.T) {
	t.Parallel()
	config := Config{Dir: t.TempDir()}
	h := newHost(t, config)
	server := h.startNotes(servertest.Questions + "=1")
	req := h.asking(server, "both")
	first, again := h.execute(req), h.execute(req)
	if first.GetOutcome() != inputRequired || !proto.Equal(first, again) {
		t.Fatalf("%v, then %v", first, again)
	}
	q := first.GetQuestion()
	if q.GetServer() != "notes" || q.GetRound() != 1 || len(q.GetRequests()) != 2 || string(q.GetState().GetInline()) != "state of both" {
		t.Errorf("the question is %v", q)
	}
	if pay := q.GetRequests()[0]; pay.GetId() != "pay" || content.Text(pay.GetUrl()) != "https://pay.example.com/1" || pay.Schema != nil {
		t.Errorf("the first request is %v", pay)
	}
	h.close()
	h = &host{Server: newHost(t, config).Server, t: t, dir: h.dir}
	next := h.continued(req, q, `{"pay":"done","trip":{"city":"Rome","nights":2}}`)
	result, repeated := h.execute(next), h.execute(next)
	want := `[data from the server notes] {"pay":{"action":"accept"},"trip":{"action":"accept","content":{"city":"Rome","nights":2}}} after state of both`
	if result.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || result.GetResult() != want || repeated.GetResult() != want {
		t.Errorf("%v, then %v", result, repeated)
	}
	if lines := strings.Split(h.read("lines"), "\n"); len(lines) != 3 || lines[0] != "asking both" || !strings.HasPrefix(lines[1], "answered both") {
		t.Errorf("lines %q", lines)
	}
	h.endServers()
}

// TestServerAsksAgain: a call may ask ten times.
func TestServerAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startNotes(servertest.Questions + "=1")
	for kind, end := range map[string]string{"rounds:10": "asked 10 times", "rounds:11": "more than 10 times"} {
		req := h.asking(server, kind)
		r := h.execute(req)
		rounds := 0
		for ; r.GetOutcome() == inputRequired; rounds++ {
			r = h.execute(h.continued(req, r.GetQuestion(), "yes"))
		}
		if rounds != elicit.MaxRounds || !strings.Contains(r.GetResult(), end) || r.GetIsError() != (kind == "rounds:11") {
			t.Errorf("%s: after %d questions %v", kind, rounds, r)
		}
	}
	h.endServers()
}

// TestQuestionsThatAreRefused: what cannot be put to a person is an error result that names why.
func TestQuestionsThatAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many processes")
	}
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startNotes(servertest.Questions + "=1")
	for kind, want := range map[string]string{
		"many": "it asks 200 things", "state": "its state has 1048576 bytes", "garbage": "invalid JSON Schema", "nested": `its field "a"`,
		"address": `"file:///etc/passwd" is not the address of a web page`, "sampling": `request "model" is not for a person`,
	} {
		r := h.execute(h.asking(server, kind))
		if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !r.GetIsError() || !strings.Contains(r.GetResult(), want) || len(r.GetResult()) > 1000 {
			t.Errorf("%s: %v", kind, r)
		}
	}
	if r := h.execute(h.asking(server, "busy")); r.GetIsError() || !strings.Contains(r.GetResult(), "at last") {
		t.Errorf("busy: %v", r)
	}
	h.endServers()
}

// TestQuestionsWithoutAPerson: a run whose agent cannot ask declines, and the result names what the
// server asked.
func TestQuestionsWithoutAPerson(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	for name, server := range map[string]*harnessv1.McpServer{
		"new": h.startNotes(servertest.Questions + "=1"), "old": h.startNotes(servertest.Questions+"=1", servertest.Old+"=1"),
	} {
		server.Name = name
		req := h.asking(server, "form")
		req.CallId = name
		req.Mcp.Asks = false
		r := h.execute(req)
		note := `[The server ` + name + ` asked a person "Where to?". No person could be asked, so this was declined.]`
		if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || r.GetIsError() || !strings.HasPrefix(r.GetResult(), note) || !strings.Contains(r.GetResult(), `{"action":"decline"}`) {
			t.Errorf("%s: %v", name, r)
		}
	}
	h.endServers()
}
