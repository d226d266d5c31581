package modeltest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// ReturnCount counts the reasoning that has come back in a request.
type ReturnCount struct {
	// Reasoning counts answers with the reasoning that the server has sent, byte for byte.
	Reasoning int
	// Blank counts answers with the member of reasoning and nothing in it.
	Blank int
	// Signatures counts answers with the signature that the server has sent.
	Signatures int
	// Substitutes counts answers with a stand-in for a signature that another model made.
	Substitutes int
}

// substitute is what Gemini takes for the signature of a call that another model made.
const substitute = `{"google":{"thought_signature":"skip_thought_signature_validator"}}`

// payload is what the server has sent with an answer that only it can read. Both are JSON
// without insignificant white space; empty if the answer had none.
type payload struct{ reasoning, extra string }

// sentKey identifies an answer by what every client returns of it.
func sentKey(text string, calls []Call) string {
	key := []string{text}
	for _, c := range calls {
		key = append(key, c.ID)
	}
	return strings.Join(key, "\x00")
}

// remember stores the payload of an answer, unless it is empty.
func (s *Server) remember(key string, what payload) {
	if what == (payload{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = map[string][]payload{}
	}
	if !slices.Contains(s.sent[key], what) {
		s.sent[key] = append(s.sent[key], what)
	}
}

// recall returns the payloads of the answers of a key.
func (s *Server) recall(key string) []payload {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[key]
}

// checkChatReturned checks what comes back with the answers of a request, and counts it.
func (s *Server) checkChatReturned(r *Request) error {
	if s.Temper.Return == ReturnRefused && !s.Temper.Signatures {
		return nil
	}
	for i, m := range r.Messages {
		if m.Role != "assistant" {
			continue
		}
		known := s.recall(sentKey(m.Content, m.ToolCalls))
		if err := s.checkReasoning(r, i, known); err != nil {
			return err
		}
		if err := s.checkSignature(r, i, known); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) checkReasoning(r *Request, i int, known []payload) error {
	t, m := &s.Temper, &r.Messages[i]
	demanded := t.Return == ReturnAlways || t.Return == ReturnWithCalls && len(m.ToolCalls) > 0
	blank := len(bytes.Trim(m.reasoning, "\" []")) == 0
	switch {
	case m.reasoning == nil && !demanded:
		return nil
	case m.reasoning == nil, t.NotEmpty && slices.Contains([]string{`""`, `[]`}, string(m.reasoning)):
		return t.missing(i)
	case blank:
		r.Returned.Blank++
		return nil
	case !slices.ContainsFunc(known, func(k payload) bool { return k.reasoning == string(m.reasoning) }):
		return t.refuse("invalid_request", "invalid '%s' in messages[%d]: it is not the reasoning of this answer", t.named(), i)
	}
	r.Returned.Reasoning++
	return nil
}

func (s *Server) checkSignature(r *Request, i int, known []payload) error {
	t, m := &s.Temper, &r.Messages[i]
	switch {
	case !t.Signatures || m.extra == nil && len(m.ToolCalls) == 0:
		return nil
	case m.extra == nil:
		return t.refuse("", "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call %q, position %d.",
			m.ToolCalls[0].Name, i)
	case slices.ContainsFunc(known, func(k payload) bool { return k.extra == string(m.extra) }):
		r.Returned.Signatures++
	case string(m.extra) == substitute:
		r.Returned.Substitutes++
	default:
		return t.refuse("", "Corrupted thought signature.")
	}
	return nil
}

// compact returns JSON without insignificant white space, and objects with their members
// in order if sorted.
func compact(raw json.RawMessage, sorted bool) json.RawMessage {
	if sorted {
		var v any
		if json.Unmarshal(raw, &v) == nil {
			return mustJSON(v)
		}
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// secret returns text of at least size bytes that depends on the number of a reply and
// on a name only.
func secret(n int, name string, size int) string {
	const usual = 32
	if size <= 0 {
		size = usual
	}
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		sum := sha256.Sum256(mustJSON([]any{n, name, i}))
		b.WriteString(base64.StdEncoding.EncodeToString(sum[:]))
	}
	return b.String()
}
