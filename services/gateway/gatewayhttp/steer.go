package gatewayhttp

import (
	"encoding/json"
	"net/http"

	"google.golang.org/protobuf/reflect/protoreflect"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// input is the body of a request that gives a run an input: fields of a message, some
// under other names, and the request id.
type input struct {
	namespace, runID, requestID string
}

// inputOf reads an input into m. names maps fields of m to their JSON names, if they
// differ.
func inputOf(w http.ResponseWriter, r *http.Request, m protoreflect.ProtoMessage, optional bool, names map[string]string) (in input, err error) {
	q := queryOf(r)
	if q.err != nil {
		return in, q.err
	}
	in.namespace, in.runID = q.namespace(), r.PathValue("run_id")
	body, err := bodyOf(w, r, optional)
	if err != nil {
		return in, err
	}
	fields := m.ProtoReflect()
	known := []string{"request_id"}
	byName := map[string]protoreflect.FieldDescriptor{}
	for i := range fields.Descriptor().Fields().Len() {
		f := fields.Descriptor().Fields().Get(i)
		name := string(f.Name())
		if own, ok := names[name]; ok {
			name = own
		}
		known = append(known, name)
		byName[name] = f
	}
	err = object(body, "", func(name string, value json.RawMessage) error {
		if name == "request_id" {
			if kindOf(value) == 'n' {
				return nil
			}
			in.requestID, err = text(value, name)
			return err
		}
		if f := byName[name]; f != nil {
			return fillField(fields, f, value, name, false)
		}
		return unknownField(clip(name), name, known)
	})
	if err != nil {
		return in, err
	}
	in.requestID, err = requestID(r, in.requestID)
	return in, err
}

// send gives a run an input.
func (s *server) send(w http.ResponseWriter, r *http.Request, in input, set func(*harnessv1.SendInputRequest)) error {
	request := &harnessv1.SendInputRequest{Namespace: in.namespace, RunId: in.runID, RequestId: in.requestID}
	set(request)
	answer, err := s.gateway.SendInput(calling(r), request)
	if err != nil {
		return err
	}
	return answerMessage(w, stored(answer.GetExisted()), answer)
}

// stored returns the status of an input that is stored, or that existed before.
func stored(before bool) int {
	if before {
		return http.StatusOK
	}
	return http.StatusAccepted
}

func (s *server) message(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.UserMessage{}
	in, err := inputOf(w, r, m, false, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_UserMessage{UserMessage: m}
	})
}

func (s *server) approve(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.Approval{}
	in, err := inputOf(w, r, m, false, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_Approval{Approval: m}
	})
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.ToolAnswer{}
	in, err := inputOf(w, r, m, false, map[string]string{"result": "content"})
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_ToolAnswer{ToolAnswer: m}
	})
}

func (s *server) mode(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.ModeChange{}
	in, err := inputOf(w, r, m, false, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_ModeChange{ModeChange: m}
	})
}

func (s *server) model(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.ModelChange{}
	in, err := inputOf(w, r, m, false, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_ModelChange{ModelChange: m}
	})
}

func (s *server) feedback(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.Feedback{}
	in, err := inputOf(w, r, m, false, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_Feedback{Feedback: m}
	})
}

func (s *server) replan(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.ReplanRequest{}
	in, err := inputOf(w, r, m, true, nil)
	if err != nil {
		return err
	}
	return s.send(w, r, in, func(request *harnessv1.SendInputRequest) {
		request.Input = &harnessv1.SendInputRequest_Replan{Replan: m}
	})
}

func (s *server) interrupt(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.Interrupt{}
	in, err := inputOf(w, r, m, true, nil)
	if err != nil {
		return err
	}
	answer, err := s.gateway.InterruptRun(calling(r), &harnessv1.InterruptRunRequest{
		Namespace: in.namespace, RunId: in.runID, RequestId: in.requestID, Reason: m.GetReason(),
	})
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusAccepted, answer)
}

func (s *server) resume(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.Resume{}
	in, err := inputOf(w, r, m, true, nil)
	if err != nil {
		return err
	}
	answer, err := s.gateway.ResumeRun(calling(r), &harnessv1.ResumeRunRequest{
		Namespace: in.namespace, RunId: in.runID, RequestId: in.requestID, Budgets: m.GetBudgets(), Model: m.GetModel(),
	})
	if err != nil {
		return err
	}
	return answerMessage(w, stored(answer.GetAlreadyRunning()), answer)
}

func (s *server) cancel(w http.ResponseWriter, r *http.Request) error {
	m := &harnessv1.Cancel{}
	in, err := inputOf(w, r, m, true, nil)
	if err != nil {
		return err
	}
	answer, err := s.gateway.CancelRun(calling(r), &harnessv1.CancelRunRequest{
		Namespace: in.namespace, RunId: in.runID, RequestId: in.requestID, Reason: m.GetReason(),
	})
	if err != nil {
		return err
	}
	return answerMessage(w, http.StatusAccepted, answer)
}
