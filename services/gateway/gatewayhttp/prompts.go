package gatewayhttp

import (
	"encoding/json"
	"net/http"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// answered writes the answer of a call, or returns its error.
func answered[M protoreflect.ProtoMessage](w http.ResponseWriter, m M, err error) error {
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusOK, m)
}

func (s *server) prompts(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r)
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.GetPrompts(calling(r), &harnessv1.GetPromptsRequest{Namespace: q.namespace()})
	return answered(w, answer, err)
}

func (s *server) setPrompt(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "tier")
	if q.err != nil {
		return q.err
	}
	body, err := bodyOf(w, r, false)
	if err != nil {
		return err
	}
	request := &harnessv1.SetPromptRequest{Namespace: q.namespace(), Id: r.PathValue("prompt_id"), Tier: q.text("tier")}
	err = object(body, "", func(name string, value json.RawMessage) (err error) {
		if name != "text" {
			return unknownField(clip(name), name, []string{"text"})
		}
		request.Text, err = text(value, name)
		return err
	})
	if err == nil && strings.TrimSpace(request.GetText()) == "" {
		err = fault.Invalid("text", "missing: DELETE restores the built-in prompt")
	}
	if err != nil {
		return err
	}
	answer, err := s.gateway.SetPrompt(calling(r), request)
	return answered(w, answer, err)
}

func (s *server) unsetPrompt(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "tier")
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.SetPrompt(calling(r), &harnessv1.SetPromptRequest{Namespace: q.namespace(), Id: r.PathValue("prompt_id"), Tier: q.text("tier")})
	return answered(w, answer, err)
}

func (s *server) profile(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "profile")
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.GetProfile(calling(r), &harnessv1.GetProfileRequest{Namespace: q.namespace(), Profile: q.text("profile")})
	return answered(w, answer, err)
}

func (s *server) resetProfile(w http.ResponseWriter, r *http.Request) error {
	q := queryOf(r, "profile")
	if q.err != nil {
		return q.err
	}
	answer, err := s.gateway.ResetProfile(calling(r), &harnessv1.ResetProfileRequest{Namespace: q.namespace(), Profile: q.text("profile")})
	return answered(w, answer, err)
}
