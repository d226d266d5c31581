package anthropic_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func TestConfigOfServer(t *testing.T) {
	s := newServer(t)
	for _, c := range []struct{ header, sent, value string }{
		{"", "X-Api-Key", "sk-1"}, {"api-key", "Api-Key", "sk-1"}, {"Authorization", "Authorization", "Bearer sk-1"},
	} {
		p, err := anthropic.New(anthropic.Config{
			Endpoint: adapter.Endpoint{BaseURL: s.MessagesURL(), APIKey: "sk-1", KeyHeader: c.header, Header: http.Header{"X-Team": {"a"}}, HTTPClient: s.Client()},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Complete(t.Context(), modeltest.Conversation(true), nil); err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()[len(s.Requests())-1].Header
		if sent.Get(c.sent) != c.value || sent.Get("X-Team") != "a" || sent.Get("Anthropic-Version") == "" || c.header != "" && sent.Get("X-Api-Key") != "" {
			t.Errorf("the key in %q is sent as %v", c.header, sent)
		}
	}
}

func newServer(t *testing.T) *modeltest.Server {
	return modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "hello"} })
}

func TestBody(t *testing.T) {
	var sent []byte
	client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		var b bytes.Buffer
		_, err := b.ReadFrom(r.Body)
		sent = b.Bytes()
		return nil, err
	})}
	body := map[string]json.RawMessage{"z": json.RawMessage(`{"a": 1}`), "service_tier": json.RawMessage(`"auto"`)}
	p, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{BaseURL: "http://127.0.0.1:9", Body: body, HTTPClient: client}})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = p.Complete(t.Context(), modeltest.Conversation(true), nil)
	if !json.Valid(sent) || !strings.HasSuffix(string(sent), `,"service_tier":"auto","z":{"a": 1}}`) {
		t.Errorf("the request is %s", sent)
	}
	for name, value := range map[string]string{"model": `"x"`, "thinking": "{}", "a": "{"} {
		if _, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{Body: map[string]json.RawMessage{name: json.RawMessage(value)}}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("the member %s: %s is accepted: %v", name, value, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestErrorsNameTheServersVariables(t *testing.T) {
	s := modeltest.NewServer(t)
	s.Key = "sk-right"
	p, err := anthropic.New(anthropic.Config{Endpoint: adapter.Endpoint{Name: "bedrock", BaseURL: s.MessagesURL(), APIKey: "sk-wrong", KeyVariable: "AWS_KEY", HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Complete(t.Context(), modeltest.Conversation(true), nil)
	if failed := model.AsError(err); !strings.Contains(failed.Message, "check AWS_KEY") {
		t.Errorf("error %v", err)
	}
}
