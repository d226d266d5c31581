package gatewayhttp

import (
	"encoding/json"
	"net/http"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// signInBody reads the body of a request of a sign-in into its message, and returns the namespace.
// fields are those that the body can have.
func signInBody(w http.ResponseWriter, r *http.Request, into proto.Message, fields ...string) (namespace string, err error) {
	q := queryOf(r)
	if q.err != nil {
		return "", q.err
	}
	body, err := bodyOf(w, r, false)
	if err != nil {
		return "", err
	}
	m := into.ProtoReflect()
	err = object(body, "", func(name string, value json.RawMessage) error {
		if !slices.Contains(fields, name) {
			return unknownField(clip(name), name, fields)
		}
		return fillField(m, fieldOf(m.Descriptor(), name), value, name, false)
	})
	return q.namespace(), err
}

func (s *server) startSignIn(w http.ResponseWriter, r *http.Request) (err error) {
	request := &harnessv1.StartSignInRequest{}
	if request.Namespace, err = signInBody(w, r, request, "subject", "redirect_uri", "ledger_id"); err != nil {
		return err
	}
	answer, err := s.gateway.StartSignIn(calling(r), request)
	return answered(w, answer, err)
}

func (s *server) finishSignIn(w http.ResponseWriter, r *http.Request) (err error) {
	request := &harnessv1.FinishSignInRequest{}
	if request.Namespace, err = signInBody(w, r, request, "returned"); err != nil {
		return err
	}
	if request.GetReturned() == nil {
		return fault.Invalid("returned", "missing: expected the parameters with which the browser returned")
	}
	answer, err := s.gateway.FinishSignIn(calling(r), request)
	return answered(w, answer, err)
}

func (s *server) signIn(w http.ResponseWriter, r *http.Request) (err error) {
	request := &harnessv1.GetSignInRequest{}
	if request.Namespace, err = signInBody(w, r, request, "subject"); err != nil {
		return err
	}
	answer, err := s.gateway.GetSignIn(calling(r), request)
	return answered(w, answer, err)
}

func (s *server) signOut(w http.ResponseWriter, r *http.Request) (err error) {
	request := &harnessv1.SignOutRequest{}
	if request.Namespace, err = signInBody(w, r, request, "subject"); err != nil {
		return err
	}
	answer, err := s.gateway.SignOut(calling(r), request)
	return answered(w, answer, err)
}
