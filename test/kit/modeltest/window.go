package modeltest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"

	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
)

// reasoningBytes is how many bytes of reasoning that comes back are a token: what only the
// service reads is not text.
const reasoningBytes = 4

// Tokens returns the exact size of the request for its model, as package tokens counts: the
// texts of the messages, and the names and arguments of calls; the names, descriptions and
// schemas of the tools; tokens.MessageOverhead for each message and each tool. Images and
// documents have the weight of media.Tokens without a formula, and reasoning that comes back
// has a token for each 4 bytes.
func (r *Request) Tokens() int {
	n := r.reasoning() / reasoningBytes
	for _, m := range r.Messages {
		n += tokens.MessageOverhead + r.count(m.Content)
		for _, c := range m.ToolCalls {
			n += r.count(c.Name) + r.count(c.Arguments)
		}
		for _, file := range m.Media {
			if checked, _, err := media.Check(file.Name, file.Data); err == nil {
				n += int(media.Tokens(checked, nil))
			}
		}
	}
	return n + r.toolTokens()
}

// toolTokens returns the size of the tools.
func (r *Request) toolTokens() int {
	n := 0
	for _, t := range r.Tools {
		n += tokens.MessageOverhead + r.count(t.Name) + r.count(t.Description) + r.count(string(t.Parameters))
	}
	return n
}

// reasoning returns the bytes of the reasoning that came back.
func (r *Request) reasoning() int {
	n := r.responses.sealed
	for _, m := range r.Messages {
		n += len(m.reasoning)
	}
	for _, block := range r.Thinking.Blocks {
		n += len(block)
	}
	return n
}

func (r *Request) count(text string) int {
	if r.counter == nil {
		return tokens.Count(r.Model, text)
	}
	return r.counter.count(r.Model, text)
}

// counter remembers the counts of long texts: the requests of a run repeat them. It is
// safe for concurrent use.
type counter struct {
	mu     sync.Mutex
	counts map[[sha256.Size]byte]int
}

// rememberedText is the length from which a count is remembered, in bytes.
const rememberedText = 256

func (c *counter) count(model, text string) int {
	if len(text) < rememberedText {
		return tokens.Count(model, text)
	}
	key := sha256.Sum256([]byte(model + "\x00" + text))
	c.mu.Lock()
	n, known := c.counts[key]
	c.mu.Unlock()
	if known {
		return n
	}
	n = tokens.Count(model, text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[[sha256.Size]byte]int{}
	}
	c.counts[key] = n
	return n
}

// fits reports whether a request fits the server's window. It refuses one that does not, as
// the service would.
func (s *Server) fits(w http.ResponseWriter, rec *ReceivedRequest, req *Request) bool {
	if s.Window == 0 {
		return true
	}
	req.counter = &s.counter
	rec.Tokens = req.Tokens()
	if rec.Tokens <= s.Window {
		return true
	}
	code, message := s.tooLong(req, rec.Tokens)
	switch req.Protocol {
	case ProtocolMessages:
		s.refuse(w, *rec, http.StatusBadRequest, code, message)
	case ProtocolResponses:
		s.refuseAs(w, *rec, longRequest("input", code, message))
	default:
		s.refuseAs(w, *rec, longRequest("messages", code, message))
	}
	return false
}

// longRequest is the refusal of a request that is too long, in the form of OpenAI.
func longRequest(param, code, message string) *refusal {
	return &refusal{
		status: http.StatusBadRequest, message: message,
		body: (&responsesError{param: param, code: code, message: message}).body(),
	}
}

// tooLong returns the code and the message of the refusal of a request that does not fit, in
// the words of its service. The test of package adapter has their sources.
func (s *Server) tooLong(req *Request, size int) (code, message string) {
	const exceeded = "context_length_exceeded"
	switch {
	case req.Protocol == ProtocolMessages:
		return "", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", size, s.Window)
	case req.Protocol == ProtocolResponses:
		return exceeded, "Your input exceeds the context window of this model. Please adjust your input and try again."
	case s.Temper.Words == WordsGroq:
		return exceeded, "Please reduce the length of the messages or completion."
	case s.Temper.Words == WordsMoonshot:
		return "", fmt.Sprintf("Invalid request: Your request exceeded model token limit: %d (requested: %d)", s.Window, size)
	case s.Temper.Words == WordsMistral:
		return "3051", fmt.Sprintf("Prompt contains %d tokens and 0 draft tokens, too large for model with %d maximum context length", size, s.Window)
	case s.Temper.Words == WordsDeepSeek:
		return "invalid_request_error", fmt.Sprintf("This model's maximum context length is %d tokens. However, you requested %d tokens "+
			"(%d in the messages, 0 in the completion). Please reduce the length of the messages or completion.", s.Window, size, size)
	}
	limit := fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens", s.Window, size)
	functions := req.toolTokens()
	if functions == 0 {
		return exceeded, limit + ". Please reduce the length of the messages."
	}
	return exceeded, fmt.Sprintf("%s (%d in the messages, %d in the functions). Please reduce the length of the messages or functions.", limit, size-functions, functions)
}

// measured returns a reply that reports the size of its request, if it reports none and the
// server has a window.
func (s *Server) measured(rec *ReceivedRequest, req *Request, reply Reply) Reply {
	if s.Window == 0 || reply.Usage != nil || reply.Body != "" {
		return reply
	}
	output := req.count(reply.text())
	for _, c := range reply.calls() {
		output += req.count(c.Name) + req.count(c.Arguments)
	}
	reply.Usage = &Usage{Input: uint64(rec.Tokens), Output: uint64(output)}
	return reply
}
