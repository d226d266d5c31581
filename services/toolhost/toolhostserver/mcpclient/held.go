package mcpclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// A server of a protocol before 2026-07-28 asks while its call runs. The call is then held: it
// stays in flight at this host, its run parks with the question, and the part of the call that
// follows the answer attends to it again.

const (
	// asksBetween is the first version of the protocol whose servers ask between the parts of a call.
	asksBetween = "2026-07-28"
	// heldTime is how long the question of a held call waits in its run, which closes it then.
	heldTime = 10 * time.Minute
	// closeTime is after how long the host closes the question: the run may wait for other answers
	// before it continues the call. After endTime the call is cancelled.
	closeTime, endTime = time.Hour, 70 * time.Minute
	// maxQueued bounds the questions of a call that wait for the one before them, and maxHeld the
	// held calls of all runs.
	maxQueued, maxHeld = elicit.MaxRounds, 256
	// heldRequest is the id of the request in the question of a held call.
	heldRequest = "question"
)

// elicitation is what a server asks during a call.
type elicitation struct {
	request *harnessv1.ServerRequest
	// reply receives the answer; it has room for one. gone is closed when the server does not
	// wait any more.
	reply chan *mcp.ElicitResult
	gone  chan struct{}
}

// answer answers the question, unless it has an answer.
func (e *elicitation) answer(r *mcp.ElicitResult) {
	select {
	case e.reply <- r:
	default:
	}
}

func (e *elicitation) isGone() bool {
	select {
	case <-e.gone:
		return true
	default:
		return false
	}
}

// heldCall is a call in flight whose server may ask a person.
type heldCall struct {
	*flight
	session *session
	conn    *connection
	way     *delivery
	// stop cancels the call.
	stop context.CancelCauseFunc
	// asked are the questions in their order.
	asked chan *elicitation
	// ended is closed when the call has ended. answer and err are set before.
	ended  chan struct{}
	answer *mcp.CallToolResult
	err    error

	// open is the number of its questions without an answer. The mutex of its flights is for it.
	open int
	// waiting is the question that the run has, and next the id of the part of the call that follows
	// the answer. timer closes the question, and later ends the call. closed: it has closed it.
	waiting *elicitation
	next    string
	timer   *time.Timer
	closed  bool
}

// flight is a call in flight of a connection.
type flight struct {
	token, run string
	refused    *refusals
	// held is the call if its server may ask a person; nil: its questions are declined.
	held *heldCall
}

// flights are the calls in flight of a connection, in their order. The zero value has none.
type flights struct {
	mu  sync.Mutex
	all []*flight
}

func (f *flights) add(one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, one)
}

func (f *flights) remove(one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(other *flight) bool { return other == one })
}

func (f *flights) list() []*flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.all)
}

// asker returns the call that a question belongs to, which the protocol does not name: the first
// of those with the fewest questions. It is nil if that cannot be known, because calls of several
// runs are in flight, or if no person is there. The caller calls answered once the question is over.
func (f *flights) asker() *heldCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	var first *heldCall
	for _, one := range f.all {
		if one.held == nil || one.run != f.all[0].run {
			return nil
		}
		if first == nil || first.open > one.held.open {
			first = one.held
		}
	}
	if first != nil {
		first.open++
	}
	return first
}

// answered records that a question of a call is over.
func (f *flights) answered(h *heldCall) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h.open--
}

// elicit puts a question of the server to a person through its call, and returns the answer. It
// declines where it cannot.
func (c *connection) elicit(ctx context.Context, params *mcp.ElicitParams, message string) (*mcp.ElicitResult, error) {
	request, err := requestOf(heldRequest, params)
	if err == nil {
		err = elicit.Check(&harnessv1.ServerQuestion{Round: 1, Requests: []*harnessv1.ServerRequest{request}})
	}
	if err != nil { // it cannot be shown
		c.decline(content.Line(message, 200) + " (" + content.Line(content.Clean(err.Error()), 200) + ")")
		return &mcp.ElicitResult{Action: declineAction}, nil
	}
	h := c.flights.asker()
	if h == nil {
		c.decline(message)
		return &mcp.ElicitResult{Action: declineAction}, nil
	}
	defer c.flights.answered(h)
	e := &elicitation{request: request, reply: make(chan *mcp.ElicitResult, 1), gone: make(chan struct{})}
	defer close(e.gone)
	select {
	case h.asked <- e:
	default: // it has too many
		c.decline(message)
		return &mcp.ElicitResult{Action: declineAction}, nil
	}
	select {
	case r := <-e.reply:
		if ctx.Err() != nil { // too late
			e.answer(r)
			return nil, ctx.Err()
		}
		return r, nil
	case <-h.ended:
		return nil, errCancelled
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// asksDuring reports whether the server asks while calls run.
func (c *connection) asksDuring() bool {
	return c.client.InitializeResult().ProtocolVersion < asksBetween
}

// callHeld sends a call whose server may ask a person while it runs.
func (s *session) callHeld(ctx, bounded context.Context, conn *connection, c Call, params *mcp.CallToolParams) (result Result, again bool) {
	sending, stop := context.WithCancelCause(context.WithoutCancel(bounded))
	sending, way := withDelivery(sending)
	h := &heldCall{
		flight:  &flight{token: c.Token, run: c.Run.Key, refused: &refusals{}},
		session: s, conn: conn, way: way, stop: stop, asked: make(chan *elicitation, maxQueued), ended: make(chan struct{}),
	}
	h.held = h
	conn.flights.add(h.flight)
	conn.progress.Store(h.token, c.Output)
	s.retain()
	go func() {
		h.answer, h.err = conn.client.CallTool(sending, params)
		conn.flights.remove(h.flight)
		conn.progress.Delete(h.token)
		s.release()
		close(h.ended)
		stop(nil)
	}()
	return s.attend(ctx, bounded, h, c)
}

// continueHeld gives a held call the answer to its question. A call that is not held any more has
// an unknown end: its server, or this host, ended while it waited.
func (s *Servers) continueHeld(ctx, bounded context.Context, c Call) Result {
	lost := Result{Unknown: true, over: true}
	h := s.takeHeld(string(c.GetQuestion().GetState().GetInline()), c.Run.Key)
	if h == nil {
		return lost
	}
	responses, err := responsesOf(c.GetQuestion())
	reply, ok := responses[heldRequest].(*mcp.ElicitResult)
	if err != nil || !ok {
		reply = &mcp.ElicitResult{Action: cancelAction}
	}
	h.waiting.answer(reply)
	h.conn.progress.Store(h.token, c.Output)
	result, again := h.session.attend(ctx, bounded, h, c)
	if result.Question == nil {
		h.conn.progress.Delete(h.token)
	}
	if again {
		return lost
	}
	result.Text = h.session.secrets.redact(result.Text)
	h.session.secrets.redactQuestion(result.Question)
	return result
}

// attend waits until a call in flight has ended, or its server asks, or bounded ends. again is as
// for once.
func (s *session) attend(ctx, bounded context.Context, h *heldCall, c Call) (result Result, again bool) {
	for round := c.GetQuestion().GetRound() + 1; ; {
		select {
		case <-h.ended:
			return s.heldEnd(ctx, bounded, h, c)
		case <-bounded.Done():
			h.stop(context.Cause(bounded))
			<-h.ended
			return s.heldEnd(ctx, bounded, h, c)
		case e := <-h.asked:
			if e.isGone() {
				continue
			}
			q := &harnessv1.ServerQuestion{
				Server: c.GetServer().GetName(), Round: round, Valid: durationpb.New(heldTime), Requests: []*harnessv1.ServerRequest{e.request},
			}
			s.secrets.redactQuestion(q)
			if elicit.Check(q) != nil || !s.servers.hold(h, e, q) { // too many questions, or held calls
				h.refused.add(e.request.GetMessage().GetInline())
				e.answer(&mcp.ElicitResult{Action: declineAction})
				continue
			}
			return Result{Question: q}, false
		}
	}
}

// heldEnd returns the result of a call that has ended.
func (s *session) heldEnd(ctx, bounded context.Context, h *heldCall, c Call) (result Result, again bool) {
	if h.err == nil {
		s.succeeded()
		h.refused.late = h.waiting != nil && (h.closed || len(h.waiting.reply) > 0) // the server did not take the answer
		r := resultOf(c, h.answer)
		r.Text = h.refused.text(c.GetServer()) + r.Text
		return r, false
	}
	if q := visitOf(c, h.way, h.err); q != nil {
		return Result{Question: q}, false
	}
	result, again = s.broken(ctx, bounded, h.conn, c, h.way, h.err)
	if c.GetQuestion().GetLedgerId() != "" && (again || result.notRun) { // a part of it has run
		return Result{Unknown: true}, false
	}
	return result, again
}

// hold keeps a call until its question is answered, and names it in the state of the question. It
// reports whether there is room for it.
func (s *Servers) hold(h *heldCall, e *elicitation, q *harnessv1.ServerQuestion) bool {
	name := rand.Text()
	q.State = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(name)}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= maxHeld {
		return false
	}
	h.waiting, h.next = e, runstate.RoundID(h.token, q.GetRound())
	s.held[name] = h
	h.timer = time.AfterFunc(closeTime, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.held[name] != h || h.waiting != e {
			return
		}
		h.closed = true
		e.answer(&mcp.ElicitResult{Action: cancelAction})
		h.timer = time.AfterFunc(endTime-closeTime, func() {
			if h := s.takeHeld(name, h.run); h != nil {
				h.abandon()
			}
		})
	})
	return true
}

// takeHeld returns a held call of a run, which is not held any more; nil if there is none.
func (s *Servers) takeHeld(name, run string) *heldCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.held[name]
	if h == nil || h.run != run {
		return nil
	}
	delete(s.held, name)
	h.timer.Stop()
	return h
}

// Held returns the ids of the parts that follow the answers of the calls that are held now.
func (s *Servers) Held() (next []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.held {
		next = append(next, h.next)
	}
	return next
}

// EndQuestions cancels calls of a run that are held for answers, and returns when they have ended:
// those whose next parts have these ids, or all without ids. The process of a server that does not
// react within the grace period is killed, unless other runs share it.
func (s *Servers) EndQuestions(run string, next ...string) {
	s.mu.Lock()
	var ending []*heldCall
	for name, h := range s.held {
		if h.run == run && (len(next) == 0 || slices.Contains(next, h.next)) {
			ending = append(ending, h)
			delete(s.held, name)
			h.timer.Stop()
		}
	}
	s.mu.Unlock()
	var wait sync.WaitGroup
	for _, h := range ending {
		wait.Go(h.abandon)
	}
	wait.Wait()
}

// abandon cancels a call that waits for an answer, which closes its question.
func (h *heldCall) abandon() {
	select {
	case <-h.ended: // without an answer
		return
	default:
	}
	h.stop(errCancelled)
	<-h.ended
	h.session.stopAlone(h.conn, h.way, true)
}

// requestOf returns what a server asks.
func requestOf(id string, params *mcp.ElicitParams) (*harnessv1.ServerRequest, error) {
	r := &harnessv1.ServerRequest{Id: id, Message: content.Inline(clean(params.Message))}
	if params.Mode == "url" || params.Mode == "" && params.URL != "" {
		r.Url = content.Inline(params.URL)
		return r, nil
	}
	form, err := json.Marshal(params.RequestedSchema)
	if err != nil || params.RequestedSchema == nil {
		return nil, fmt.Errorf("request %q has no form", id)
	}
	r.Schema = content.Inline(strings.ToValidUTF8(string(form), "\uFFFD"))
	return r, nil
}

// visited is the state of a question whose call is sent again after the answer.
const visited = "harnessmesh: visited"

// visitOf returns the question of a server that refuses a call until a person has visited an
// address (error -32042 of 2025-11-25); nil if the error is another one, or no person is there.
func visitOf(c Call, way *delivery, err error) *harnessv1.ServerQuestion {
	e := rpcError(err)
	if e == nil || e.Code != mcp.CodeURLElicitationRequired || way.outcome(err) != answered || !c.GetAsks() {
		return nil
	}
	var data struct {
		Elicitations []*mcp.ElicitParams `json:"elicitations"`
	}
	if json.Unmarshal(e.Data, &data) != nil {
		return nil
	}
	q := &harnessv1.ServerQuestion{
		Server: c.GetServer().GetName(), Round: c.GetQuestion().GetRound() + 1,
		State: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(visited)}},
	}
	for i, params := range data.Elicitations {
		r, err := requestOf(fmt.Sprintf("%s%d", heldRequest, i+1), params)
		if i >= elicit.MaxRequests || err != nil || r.Url == nil {
			return nil
		}
		q.Requests = append(q.Requests, r)
	}
	if elicit.Check(q) != nil {
		return nil
	}
	return q
}

// errNotVisited: a person did not visit the address that the server needs.
var errNotVisited = errors.New("the user did not visit the address that the server asks for")

// afterVisit reports whether a call is sent again after its question. err is why it is not.
func afterVisit(q *harnessv1.ServerQuestion) (again bool, err error) {
	if q.GetLedgerId() != "" || string(q.GetState().GetInline()) != visited {
		return false, nil
	}
	for _, r := range q.GetResponses() {
		if r.GetAction() != harnessv1.AnswerAction_ANSWER_ACTION_ACCEPT {
			return false, errNotVisited
		}
	}
	return true, nil
}
