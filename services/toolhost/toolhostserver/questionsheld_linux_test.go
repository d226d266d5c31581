package toolhostserver

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/servertest"
	"github.com/harnessmesh/harnessmesh/test/kit/waittest"
)

// startOld returns a server that asks while its calls run.
func (h *host) startOld(env ...string) *harnessv1.McpServer {
	return h.startNotes(append(env, servertest.Questions+"=1", servertest.Old+"=1")...)
}

// held fails unless a call is held with a question, which it returns.
func (h *host) held(r *harnessv1.ExecuteToolResponse, round uint32) *harnessv1.ServerQuestion {
	h.t.Helper()
	q := r.GetQuestion()
	if r.GetOutcome() != inputRequired || q.GetLedgerId() != h.ledger.ID || q.GetValid().AsDuration() <= 0 || q.GetRound() != round {
		h.t.Fatalf("the call is not held: %v", r)
	}
	return q
}

// TestAnOlderServerAsks: a server of an older protocol gets the answer of a person while its call
// runs. Each part of the call has one result, however often it is sent.
func TestAnOlderServerAsks(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	req := h.asking(h.startOld(), "form")
	first := h.execute(req)
	q := h.held(first, 1)
	if again := h.execute(req); !proto.Equal(first, again) {
		t.Errorf("%v, then %v", first, again)
	}
	if r := q.GetRequests()[0]; content.Text(r.GetMessage()) != "Where to?" || r.Schema == nil || r.Url != nil {
		t.Errorf("it asks %v", r)
	}
	next := h.continued(req, q, `{"city":"Rome","nights":2}`)
	result, repeated := h.execute(next), h.execute(next)
	want := `[data from the server notes] {"trip":{"action":"accept","content":{"city":"Rome","nights":2}}} after state of form`
	if result.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || result.GetResult() != want || repeated.GetResult() != want {
		t.Errorf("%v, then %v", result, repeated)
	}
	if lines := strings.Fields(h.read("lines")); len(lines) != 5 {
		t.Errorf("lines %q", lines)
	}
	h.endServers()
}

// TestAnOlderServerAsksOverHTTP: a server over HTTP gets the answer in the same way.
func TestAnOlderServerAsksOverHTTP(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	web := httptest.NewServer(h.handler(servertest.Questions, servertest.Old))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(h.endServers)
	req := h.asking(&harnessv1.McpServer{Name: "web", Url: web.URL}, "form")
	next := h.continued(req, h.held(h.execute(req), 1), `{"city":"Rome","nights":2}`)
	if r := h.execute(next); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !strings.Contains(r.GetResult(), "Rome") {
		t.Errorf("%v", r)
	}
	req.CallId = "interrupted"
	q := h.held(h.execute(req), 1)
	h.killAll(h.ledger.ID)
	if r := h.execute(h.continued(req, q, `{"city":"Oslo","nights":2}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("after the interrupt: %v", r)
	}
}

// TestAnOlderServerAsksAgain: each question of a call is a round, and one that cannot be shown is
// declined.
func TestAnOlderServerAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startOld()
	req := h.asking(server, "during:3")
	r := h.execute(req)
	for round := range uint32(3) {
		r = h.execute(h.continued(req, h.held(r, round+1), "yes"))
	}
	if !strings.HasSuffix(r.GetResult(), "asked 3 times") {
		t.Errorf("after three rounds: %v", r)
	}
	req = h.asking(server, "address")
	req.CallId = "address"
	if r := h.execute(req); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !strings.Contains(r.GetResult(), `"decline"`) || !strings.Contains(r.GetResult(), "is not the address of a web page") {
		t.Errorf("an address that cannot be shown: %v", r)
	}
	h.endServers()
}

// TestTwoHeldCalls: while a call waits for its answer, another one of the run asks for itself, and each
// gets its own. One can be cancelled alone.
func TestTwoHeldCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startOld()
	ask := func(id string) (*harnessv1.ExecuteToolRequest, *harnessv1.ServerQuestion) {
		req := h.asking(server, "form")
		req.CallId = id
		return req, h.held(h.execute(req), 1)
	}
	first, firstAsks := ask("first")
	second, secondAsks := ask("second")
	if r := h.execute(h.continued(second, secondAsks, `{"city":"Oslo","nights":2}`)); !strings.Contains(r.GetResult(), "Oslo") {
		t.Errorf("the second: %v", r)
	}
	if r := h.execute(h.continued(first, firstAsks, `{"city":"Rome","nights":2}`)); !strings.Contains(r.GetResult(), "Rome") {
		t.Errorf("the first: %v", r)
	}
	third, thirdAsks := ask("third")
	h.cancel("round:1:third")
	if left := len(h.servers.Held()); left != 0 {
		t.Errorf("%d calls are held after the cancel", left)
	}
	if r := h.execute(h.continued(third, thirdAsks, `{"city":"Oslo","nights":2}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED {
		t.Errorf("the third: %v", r)
	}
	h.endServers()
}

// TestHeldCallsEnd: a held call whose server or host has ended, or whose run no longer waits, has an
// unknown end. It is not sent again, and nothing of it is left.
func TestHeldCallsEnd(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h *host) *host{
		"server": func(h *host) *host { h.endServers(); return h },
		"run":    func(h *host) *host { h.killAll(h.ledger.ID); return h },
		"host": func(h *host) *host {
			h.close()
			return &host{Server: newHost(h.t, h.config).Server, t: h.t, dir: h.dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, Config{Dir: t.TempDir()})
			server := h.startOld("MARK=" + t.Name())
			server.Idempotent = []string{"ask"}
			req := h.asking(server, "form")
			q := h.held(h.execute(req), 1)
			h = end(h)
			if left := processes(t, "MARK="+t.Name()); len(left) > 0 {
				t.Errorf("the processes %v are left", left)
			}
			if r := h.execute(h.continued(req, q, `{"city":"Rome","nights":2}`)); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
				t.Errorf("after the end: %v", r)
			}
			if lines := h.read("lines"); lines != "asking form\n" {
				t.Errorf("lines %q", lines)
			}
		})
	}
}

// TestQuestionsOfSharedServers: where calls of two runs are in flight, the protocol does not name the
// one that a question belongs to, so that it is declined for both.
func TestQuestionsOfSharedServers(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startOld()
	server.Shared = true
	first := h.asking(server, "form")
	q := h.held(h.execute(first), 1)
	second := h.asking(server, "form")
	second.RunId = "other"
	if r := h.execute(second); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !strings.Contains(r.GetResult(), `"decline"`) {
		t.Errorf("the second run: %v", r)
	}
	stolen := h.continued(second, q, `{"city":"Oslo","nights":2}`)
	if r := h.execute(stolen); r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN {
		t.Errorf("the other run answers: %v", r)
	}
	if r := h.execute(h.continued(first, q, `{"city":"Rome","nights":2}`)); !strings.Contains(r.GetResult(), "Rome") {
		t.Errorf("the first run: %v", r)
	}
	h.endServers()
}

// TestServerThatDoesNotWait: a call whose server gave up waiting ends, and its result reports that.
func TestServerThatDoesNotWait(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startOld()
	req := h.asking(server, "impatient")
	q := h.held(h.execute(req), 1)
	waittest.Eventually(t, "it gives up", func() bool { return strings.Contains(h.read("lines"), "gave up") })
	after := h.serverCall(server, "look", "{}")
	after.CallId = "after"
	h.execute(after) // its answer follows the end of the question
	r := h.execute(h.continued(req, q, `{"city":"Rome","nights":2}`))
	if r.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE || !strings.HasPrefix(r.GetResult(), "[The server notes did not wait for the answer to its last question.]") {
		t.Errorf("%v", r)
	}
	h.endServers()
}

// TestServerNeedsAVisit: a call that a server refuses until a person has visited an address is sent
// again after the visit, and not without it.
func TestServerNeedsAVisit(t *testing.T) {
	t.Parallel()
	h := newHost(t, Config{})
	server := h.startOld()
	for i, visit := range []bool{true, false} {
		req := h.asking(server, "visit")
		req.CallId = strconv.Itoa(i)
		r := h.execute(req)
		q := r.GetQuestion()
		if r.GetOutcome() != inputRequired || content.Text(q.GetRequests()[0].GetUrl()) != "https://pay.example.com/1" || q.GetLedgerId() != "" {
			t.Fatalf("it asks %v", r)
		}
		next := h.continued(req, q, "done")
		want := "[data from the server notes] visited"
		if !visit {
			next.Mcp.Question.Responses[0].Action = harnessv1.AnswerAction_ANSWER_ACTION_DECLINE
			want = "The call did not run: the user did not visit the address that the server asks for."
		}
		if r := h.execute(next); r.GetResult() != want {
			t.Errorf("%v: %v", visit, r)
		}
	}
	h.endServers()
}
