package reasoning_test

import (
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestATalkOnChat(t *testing.T) {
	t.Parallel()
	s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "Look.", Calls: []modeltest.Call{{ID: fmt.Sprint("c", len(r.Messages)), Name: "nothing", Arguments: `{}`}}}
	})
	m := newMesh(t, func(string) (model.Provider, string, error) {
		p, err := openai.New(openai.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
		return p, "test-model", err
	})
	k := m.newTalk("chat:test-model")
	for range 10 {
		k.mustAnswer(t)
	}
	if len(s.Requests()) != 10 {
		t.Error(len(s.Requests()), show(k.messages))
	}
}
