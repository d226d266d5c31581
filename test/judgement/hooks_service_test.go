package judgement

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// hooksCall is one call of a service.
type hooksCall struct {
	*harnessv1.HookRequest
	payload map[string]any
}

// hooksAnswer is what a service makes of a call; nil and no error let it pass.
type hooksAnswer func(h hooksCall) (*harnessv1.HookVerdict, error)

// hooksService is a HookService in this process.
type hooksService struct {
	harnessv1.UnimplementedHookServiceServer
	addr   string
	answer hooksAnswer
	stop   func() // it is gone from then on

	mu    sync.Mutex
	asked []hooksCall
}

// hooksServe starts a HookService; a nil answer lets all pass.
func hooksServe(t *testing.T, answer hooksAnswer) *hooksService {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &hooksService{addr: l.Addr().String(), answer: answer}
	server := grpc.NewServer()
	s.stop = server.Stop
	harnessv1.RegisterHookServiceServer(server, s)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-served
	})
	return s
}

// HandleHook implements harnessv1.HookServiceServer.
func (s *hooksService) HandleHook(_ context.Context, r *harnessv1.HandleHookRequest) (*harnessv1.HandleHookResponse, error) {
	h := hooksCall{HookRequest: r.GetHook()}
	if err := json.Unmarshal([]byte(r.GetHook().GetPayload()), &h.payload); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, h)
	s.mu.Unlock()
	verdict := &harnessv1.HookVerdict{Action: hooksContinue}
	if s.answer != nil {
		v, err := s.answer(h)
		if err != nil {
			return nil, err
		}
		if v != nil {
			verdict = v
		}
	}
	return &harnessv1.HandleHookResponse{Verdict: verdict}, nil
}

// of are the calls of a topic, in order.
func (s *hooksService) of(topic harnessv1.HookTopic) []hooksCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []hooksCall
	for _, h := range s.asked {
		if h.GetTopic() == topic {
			all = append(all, h)
		}
	}
	return all
}

// all are all calls, in order.
func (s *hooksService) all() []hooksCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// one is the only call of a topic.
func (s *hooksService) one(t *testing.T, topic harnessv1.HookTopic) hooksCall {
	t.Helper()
	all := s.of(topic)
	if len(all) != 1 {
		t.Fatalf("%s was called %d times, want once", hooksTopic(topic), len(all))
	}
	return all[0]
}

// at subscribes the service to topics. Ids are the prefix, a dash and the topic.
func (s *hooksService) at(prefix string, topics ...harnessv1.HookTopic) []*harnessv1.Hook {
	var all []*harnessv1.Hook
	for _, topic := range topics {
		all = append(all, &harnessv1.Hook{Id: prefix + "-" + hooksTopic(topic), Topic: topic, Grpc: s.addr})
	}
	return all
}
