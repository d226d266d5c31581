package modeltest

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// ResponsesOptions are how the server speaks the Responses protocol.
type ResponsesOptions struct {
	// Organisation owns the reasoning that the server makes; it refuses that of another.
	// Default org-test.
	Organisation string
	// KeepPhases refuses a text that the server made and that comes back without the
	// phase that it was made with.
	KeepPhases bool

	responses int // the number of responses, also of those with a fault
	made      [][]json.RawMessage
	phases    map[string][]string // of the texts that the server made
}

// ResponseItems returns the items of each response of the Responses protocol that the
// server sent without a fault, in order and as they were sent.
func (s *Server) ResponseItems() [][]json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.Responses.made)
}

func (o *ResponsesOptions) organisation() string {
	if o.Organisation == "" {
		return "org-test"
	}
	return o.Organisation
}

// serveResponses answers a request of the Responses protocol.
func (s *Server) serveResponses(w http.ResponseWriter, r *http.Request, rec ReceivedRequest) {
	req, err := ParseResponsesRequest(rec.Body)
	if err == nil {
		err = s.checkReturned(req)
	}
	var refused *responsesError
	if errors.As(err, &refused) {
		rec.Refused = refused.message
		s.record(rec, false)
		writeJSON(w, refused.status, refused.body())
		return
	}
	s.chat(w, r, rec, func([]byte) (*Request, error) { return req, err })
}

// checkReturned checks the items of the server that come back.
func (s *Server) checkReturned(req *Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, made := range req.responses.seals {
		if made.Organisation != s.Responses.organisation() {
			return unverified(made.Item, "Encrypted content organization_id did not match the target organization.")
		}
	}
	for _, t := range req.responses.texts {
		made := s.Responses.phases[t.text]
		if s.Responses.KeepPhases && made != nil && !slices.Contains(made, t.phase) {
			return invalid("input", "The message %q was made with the phase %q and came back with %q.", t.text, made[0], t.phase)
		}
	}
	return nil
}

// output makes the items of a response and records those of one without a fault.
func (s *Server) output(req *Request, reply Reply) (*responseOutput, []map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Responses.responses++
	m := &responseOutput{number: s.Responses.responses, organisation: s.Responses.organisation(), request: req, reply: reply}
	items := m.items()
	if reply.Fault != FaultNone {
		return m, items
	}
	if s.Responses.phases == nil {
		s.Responses.phases = map[string][]string{}
	}
	raw := make([]json.RawMessage, len(items))
	for i, item := range items {
		raw[i] = mustJSON(item)
		phase, _ := item["phase"].(string)
		if item["type"] == "message" {
			text, _ := item["content"].([]any)[0].(map[string]any)["text"].(string)
			s.Responses.phases[text] = append(s.Responses.phases[text], phase)
		}
	}
	s.Responses.made = append(s.Responses.made, raw)
	return m, items
}

// responseBody returns a response that is one JSON object.
func (s *Server) responseBody(req *Request, reply Reply, model string) []byte {
	m, items := s.output(req, reply)
	return mustJSON(m.ended(model, items))
}

// responseFrames returns the events of a streamed response.
func (s *Server) responseFrames(req *Request, reply Reply, model string) (body, tail []frame, failed frame) {
	m, items := s.output(req, reply)
	return m.frames(model, items)
}
