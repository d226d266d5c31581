package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// ReceivedRequest is one request as the server received it.
type ReceivedRequest struct {
	// Method and Path of the request.
	Method, Path string
	// Header as it arrived.
	Header http.Header
	// Body is all of its bytes.
	Body []byte
	// Refused is the reason of a 400, 401 or 422; empty for other responses.
	Refused string
	// Thinking is the thinking of a request of the Messages protocol that was not refused.
	Thinking RequestThinking
	// Returned counts what has come back with the answers; in the chat protocol only.
	Returned ReturnCount
	// Schema is the JSON Schema of the answer; nil if the request has none.
	Schema json.RawMessage
	// Tokens is the size of the request, as Request.Tokens returns it; only if the server
	// has a window.
	Tokens int

	messages bool // it uses the Messages protocol
}

// Server is a strict server on loopback that is compatible with OpenAI's chat
// completions and responses, and with Anthropic's messages; the path of a request determines its
// protocol. The fields may be set before the first request.
type Server struct {
	// Models are listed under /models; default test-model.
	Models []string
	// OnlyListed answers 404 to a model that is not in Models.
	OnlyListed bool
	// Key is required, as bearer token or as x-api-key; empty requires nothing.
	Key string
	// Thinking is what each model accepts as the configuration of its thinking; one that
	// is missing accepts each. In the Messages protocol only.
	Thinking map[string]ThinkingMode
	// Window is how many tokens a request may have, as Request.Tokens counts them; 0: any
	// number. A longer one is refused in the words of its service. With a window, a reply
	// without usage reports the counted one.
	Window int
	// UnboundThinking accepts blocks of thinking although what precedes them has changed,
	// as models before Claude Fable 5.1 do.
	UnboundThinking bool
	// Responses is how the server speaks the Responses protocol.
	Responses ResponsesOptions
	// Temper is how the server treats reasoning; in the chat protocol only.
	Temper Temper

	t       testing.TB
	http    *httptest.Server
	reply   func(n int, req *Request) (Reply, bool)
	release chan struct{}
	once    sync.Once

	mu       sync.Mutex
	requests []ReceivedRequest
	answered int
	sent     map[string][]payload // by answer
	arrived  chan struct{}

	counter counter
}

// NewServer starts a server that answers with replies in order. It stops at
// the end of the test.
func NewServer(t testing.TB, replies ...Reply) *Server {
	return start(t, func(n int, _ *Request) (Reply, bool) {
		if n >= len(replies) {
			return Reply{}, false
		}
		return replies[n], true
	})
}

// NewServerFunc starts a server that computes its replies. f is called from
// the goroutines of the server, at the same time for requests that come at the
// same time.
func NewServerFunc(t testing.TB, f func(*Request) Reply) *Server {
	return start(t, func(_ int, req *Request) (Reply, bool) { return f(req), true })
}

func start(t testing.TB, reply func(int, *Request) (Reply, bool)) *Server {
	s := &Server{
		t: t, Models: []string{"test-model"}, reply: reply,
		release: make(chan struct{}), arrived: make(chan struct{}, 1024),
	}
	s.http = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// BaseURL is the address up to and including /v1.
func (s *Server) BaseURL() string { return s.http.URL + "/v1" }

// MessagesURL is the address without /v1, as the Messages protocol wants it.
func (s *Server) MessagesURL() string { return s.http.URL }

// Client is an HTTP client for this server whose connections are closed with it.
func (s *Server) Client() *http.Client { return s.http.Client() }

// Release ends hanging replies, current and future ones.
func (s *Server) Release() { s.once.Do(func() { close(s.release) }) }

// Close ends hanging replies and stops the server. It is called at the end of
// the test; calling it earlier makes the address refuse connections.
func (s *Server) Close() {
	s.Release()
	s.http.Close()
}

// Arrived yields once for each request for an answer that has been read;
// a test waits on it instead of sleeping. It buffers 1,024 requests.
func (s *Server) Arrived() <-chan struct{} { return s.arrived }

// Requests returns the requests for a response so far, including refused ones.
func (s *Server) Requests() []ReceivedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	rec := ReceivedRequest{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body}
	rec.messages = r.Header.Get("Anthropic-Version") != ""
	if s.Key != "" && rec.messages && r.Header.Get("X-Api-Key") != s.Key {
		s.refuse(w, rec, http.StatusUnauthorized, "", "invalid x-api-key "+r.Header.Get("X-Api-Key"))
		return
	}
	if s.Key != "" && !rec.messages && r.Header.Get("Authorization") != "Bearer "+s.Key {
		s.refuse(w, rec, http.StatusUnauthorized, "invalid_api_key",
			fmt.Sprintf("Incorrect API key provided: %s.", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")))
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/models":
		s.models(w)
	case "POST /v1/chat/completions":
		rec.messages = false
		s.chat(w, r, rec, s.parseChat)
	case "POST /v1/messages":
		rec.messages = true
		s.chat(w, r, rec, s.parseMessages)
	case "POST /v1/responses":
		s.serveResponses(w, r, rec)
	default:
		writeJSON(w, http.StatusNotFound, Reply{Status: 404, ErrorMessage: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"}.errorBodyIn(rec.messages))
	}
}

func (s *Server) models(w http.ResponseWriter) {
	data := []any{}
	for _, id := range s.Models {
		data = append(data, map[string]any{"id": id, "object": "model", "created": 1, "owned_by": "test", // of one protocol
			"type": "model", "display_name": id, "created_at": "2026-01-01T00:00:00Z"}) // of the other
	}
	writeJSON(w, http.StatusOK, mustJSON(map[string]any{"object": "list", "data": data, "has_more": false}))
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request, rec ReceivedRequest, parse func([]byte) (*Request, error)) {
	req, err := parse(rec.Body)
	var refused *refusal
	switch {
	case rec.messages && r.Header.Get("Anthropic-Version") == "":
		s.refuse(w, rec, http.StatusBadRequest, "", "anthropic-version: header is required")
		return
	case errors.As(err, &refused):
		s.refuseAs(w, rec, refused)
		return
	case err != nil:
		s.refuse(w, rec, http.StatusBadRequest, map[bool]string{false: "invalid_request"}[rec.messages], err.Error())
		return
	case s.OnlyListed && !slices.Contains(s.Models, req.Model):
		s.refuse(w, rec, http.StatusNotFound, map[bool]string{false: "model_not_found"}[rec.messages],
			fmt.Sprintf("The model %q does not exist or you do not have access to it.", req.Model))
		return
	}
	rec.Thinking = req.Thinking
	rec.Returned = req.Returned
	rec.Schema = req.Schema
	if !s.fits(w, &rec, req) {
		return
	}
	n := s.record(rec, true)
	req.number = n
	reply, ok := s.reply(n, req)
	select {
	case s.arrived <- struct{}{}:
	default: // the buffer is full
	}
	if !ok {
		s.t.Errorf("modeltest: request %d has no scripted reply", n+1)
		reply = Reply{Status: http.StatusInternalServerError, ErrorMessage: "no scripted reply"}
	}
	s.answer(w, r, req, s.measured(&rec, req, reply))
}

func (s *Server) refuse(w http.ResponseWriter, rec ReceivedRequest, status int, code, message string) {
	rec.Refused = message
	s.record(rec, false)
	writeJSON(w, status, Reply{Status: status, ErrorCode: code, ErrorMessage: message}.errorBodyIn(rec.messages))
}

// refuseAs refuses a request in the words of the server's temper.
func (s *Server) refuseAs(w http.ResponseWriter, rec ReceivedRequest, r *refusal) {
	if r.body == nil {
		s.refuse(w, rec, r.status, r.code, r.message)
		return
	}
	rec.Refused = r.message
	s.record(rec, false)
	writeJSON(w, r.status, r.body)
}

// parseChat validates a request of the chat protocol, and what comes back in it.
func (s *Server) parseChat(body []byte) (*Request, error) {
	req, err := s.Temper.parse(body)
	if err != nil {
		return nil, err
	}
	return req, s.checkChatReturned(req)
}

// chatReply returns a reply in the chat protocol. One that arrives whole is remembered.
func (s *Server) chatReply(req *Request, reply Reply, model string) chatReply {
	r := chatReply{Reply: reply, temper: &s.Temper, model: model, n: req.number}
	if reply.Fault == FaultNone && req.Protocol == ProtocolChat {
		calls := r.calls()
		for i := range calls {
			calls[i].ID = r.callID(i)
		}
		s.remember(sentKey(r.text(), calls), r.sent())
	}
	return r
}

// record stores rec and returns the number of replies before it.
func (s *Server) record(rec ReceivedRequest, answered bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, rec)
	if answered {
		s.answered++
	}
	return s.answered - 1
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *Request, reply Reply) {
	switch reply.Fault {
	case FaultHang:
		s.hang(r)
	case FaultDrop:
		panic(http.ErrAbortHandler)
	default: // the other faults are in the response
	}
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	model := reply.Model
	if model == "" {
		model = req.Model
	}
	stream := req.Stream && !reply.Quirks.IgnoreStream || reply.Quirks.AlwaysStream
	switch {
	case reply.Body != "":
		status := reply.Status
		if status == 0 {
			status = http.StatusOK
		}
		contentType := reply.Quirks.ContentType
		if contentType == "" {
			contentType = "application/json"
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply.Body)
	case reply.Status != 0 && reply.Status != http.StatusOK:
		writeJSON(w, reply.Status, reply.errorBodyIn(req.Protocol == ProtocolMessages))
	case stream:
		s.stream(w, r, req, reply, model)
	default:
		s.plain(w, r, req, reply, model)
	}
}

func (s *Server) plain(w http.ResponseWriter, r *http.Request, req *Request, reply Reply, model string) {
	messages := req.Protocol == ProtocolMessages
	body := s.chatReply(req, reply, model).completion()
	if messages {
		body = reply.message(req, model)
	}
	if req.Protocol == ProtocolResponses {
		body = s.responseBody(req, reply, model)
	}
	if reply.Quirks.ContentType != "" {
		w.Header().Set("Content-Type", reply.Quirks.ContentType)
	}
	switch reply.Fault {
	case FaultGarbage:
		body = []byte("{\"choices\": [{]")
	case FaultError:
		body = Reply{Status: 502, ErrorMessage: "upstream failed"}.errorBodyIn(messages)
	case FaultCut, FaultSilence:
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		if reply.Fault == FaultSilence {
			s.hang(r)
		}
		panic(http.ErrAbortHandler)
	default: // no fault in the body
	}
	writeJSON(w, http.StatusOK, body)
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, req *Request, reply Reply, model string) {
	contentType := reply.Quirks.ContentType
	if contentType == "" {
		contentType = "text/event-stream; charset=utf-8"
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(http.StatusOK)
	messages := req.Protocol == ProtocolMessages
	send := func(f frame) {
		switch {
		case reply.Quirks.KeepAlive && messages:
			_, _ = io.WriteString(w, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
		case reply.Quirks.KeepAlive:
			_, _ = io.WriteString(w, ": keep-alive\n\n")
		}
		_, _ = fmt.Fprintf(w, "%s\n\n", f)
		w.(http.Flusher).Flush()
	}
	body, tail := s.chatReply(req, reply, model).frames(req.IncludeUsage || reply.Quirks.AlwaysStream)
	failed := frame{data: Reply{Status: 502, ErrorMessage: "upstream failed"}.errorBodyIn(messages)}
	if messages {
		body, tail = reply.messageFrames(req, model)
		failed.event = "error"
	}
	if req.Protocol == ProtocolResponses {
		body, tail, failed = s.responseFrames(req, reply, model)
	}
	switch reply.Fault {
	case FaultCut, FaultSilence, FaultError, FaultFailed, FaultGarbage:
		for _, f := range body[:(len(body)+1)/2] {
			send(f)
		}
		switch reply.Fault {
		case FaultError, FaultFailed:
			send(failed)
		case FaultGarbage:
			send(frame{data: []byte("{\"choices\": [{]")})
		case FaultSilence:
			s.hang(r)
			panic(http.ErrAbortHandler)
		default:
			panic(http.ErrAbortHandler)
		}
		return
	default: // no fault in the stream
	}
	events := append(body, tail...)
	for i, f := range events {
		if i == len(events)-1 && reply.Quirks.NoLastNewline {
			_, _ = fmt.Fprint(w, f)
			return
		}
		send(f)
	}
}

// hang waits until the client disconnects or the server releases it.
func (s *Server) hang(r *http.Request) {
	select {
	case <-s.release:
	case <-r.Context().Done():
	}
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
