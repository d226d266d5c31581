package reasoning_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// service is a strict server and the models that it has.
type service struct {
	server   *modeltest.Server
	provider model.Provider
	// answers is the name of the model that answers; the others are refused.
	answers *atomic.Pointer[string]
	// owns reports whether a payload was made by the service.
	payloads map[string]bool
}

// services starts a server for each wire, all of which reason.
func services(t *testing.T) map[string]*service {
	t.Helper()
	var answers atomic.Pointer[string]
	start := func(ref string) *service {
		script := &variation{name: ref + "-", faultless: true}
		s := &service{answers: &answers, payloads: map[string]bool{}}
		s.server = modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
			if *answers.Load() != r.Model {
				return modeltest.Reply{Status: 403, ErrorMessage: "not today"}
			}
			return script.reply(r)
		})
		return s
	}
	all := map[string]*service{"messages": start("messages"), "responses": start("responses"), "chat": start("chat")}
	all["messages"].provider = claude(t, all["messages"].server)
	var err error
	if all["responses"].provider, err = responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: all["responses"].server.BaseURL(), HTTPClient: all["responses"].server.Client()}}); err != nil {
		t.Fatal(err)
	}
	all["chat"].server.Temper = modeltest.TemperDeepSeek()
	all["chat"].provider, err = openai.New(openai.Config{
		Endpoint:  adapter.Endpoint{Name: "deepseek", BaseURL: all["chat"].server.BaseURL(), HTTPClient: all["chat"].server.Client()},
		Reasoning: openai.Reasoning{Field: "reasoning_content", Back: openai.BackAlways, Blank: " ", HasBlank: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refs are the models of the runs: two of one provider, and one of each other wire.
var refs = []string{"messages:claude-a", "responses:gpt", "chat:deep", "messages:claude-b"}

// TestNoModelGetsTheReasoningOfAnother: in 100 runs over four models of three wires, of
// which another one answers at any turn, nothing that one provider made for a model is in
// a request to another, and each gets everything back that it made.
func TestNoModelGetsTheReasoningOfAnother(t *testing.T) {
	t.Parallel()
	n := 100
	if testing.Short() {
		n = 1
	}
	checkFallbacks(t, n)
}

// TestSystemNoModelGetsTheReasoningOfAnother is the same test with 1,000 runs.
func TestSystemNoModelGetsTheReasoningOfAnother(t *testing.T) {
	if testing.Short() {
		t.Skip("plays 1,000 runs")
	}
	t.Parallel()
	checkFallbacks(t, 1000)
}

// checkFallbacks plays at least n runs, whose requests it checks.
func checkFallbacks(t *testing.T, n int) {
	t.Helper()
	all := services(t)
	m := newMesh(t, func(ref string) (model.Provider, string, error) {
		wire, name, _ := strings.Cut(ref, ":")
		return all[wire].provider, name, nil
	})
	runs := 0
	check := func(t *rapid.T) {
		runs++
		order := rapid.Permutation(refs).Draw(t, "order")
		k := m.newTalk(order...)
		before := map[string]int{}
		for wire, s := range all {
			before[wire] = len(s.server.Requests())
		}
		for range rapid.IntRange(2, 7).Draw(t, "turns") {
			ref := rapid.SampledFrom(refs).Draw(t, "answers")
			_, name, _ := strings.Cut(ref, ":")
			all["chat"].answers.Store(&name)
			k.mustAnswer(t)
			if rapid.IntRange(0, 3).Draw(t, "message") == 0 {
				k.send("And this?")
			}
		}
		k.checkOwners(t, all, before)
	}
	for runs < n && !t.Failed() {
		rapid.Check(t, check)
	}
}

// checkOwners compares the payloads of the conversation with the requests of the run.
func (k *talk) checkOwners(t *rapid.T, all map[string]*service, before map[string]int) {
	made := map[string][]string{} // by WIRE:NAME, in order
	for _, m := range k.messages {
		for _, p := range m.GetParts() {
			if o := p.GetOpaque(); o != nil && p.GetReasoning() != nil {
				ref := m.GetOrigin().GetWire() + ":" + m.GetOrigin().GetModel()
				if text := payloadOf(t, o.GetInline()); text != "" {
					made[ref] = append(made[ref], text)
				}
			}
		}
	}
	last := map[string]string{}
	for wire, s := range all {
		for _, r := range s.server.Requests()[before[wire]:] {
			if r.Refused != "" {
				t.Fatalf("%s refused a request: %s", wire, r.Refused)
			}
			var to struct{ Model string }
			if err := json.Unmarshal(r.Body, &to); err != nil {
				t.Fatalf("%v", err)
			}
			ref := wire + ":" + to.Model
			last[ref] = string(r.Body)
			for owner, payloads := range made {
				for _, payload := range payloads {
					if owner != ref && strings.Contains(string(r.Body), payload) {
						t.Fatalf("a request to %s has the reasoning of %s", ref, owner)
					}
				}
			}
		}
	}
	for ref, body := range last {
		missing := 0
		for _, payload := range made[ref] {
			if !strings.Contains(body, payload) {
				missing++
			}
		}
		if missing > k.piecesOfLast(ref) {
			t.Fatalf("the last request to %s misses %d of the %d pieces that it made", ref, missing, len(made[ref]))
		}
	}
}

// piecesOfLast returns how many pieces of reasoning the newest answer of a model has,
// which no request can have had.
func (k *talk) piecesOfLast(ref string) int {
	for i := len(k.messages) - 1; i >= 0; i-- {
		if o := k.messages[i].GetOrigin(); o != nil && o.GetWire()+":"+o.GetModel() == ref {
			return thoughts(k.messages[i : i+1])
		}
	}
	return 0
}

// payloadOf returns what only the provider reads of an opaque part, as JSON text; empty
// if it is too short to be distinguished from others.
func payloadOf(t *rapid.T, data []byte) string {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(data, &o); err != nil {
		t.Fatalf("an opaque part is not an object: %s", data)
	}
	for _, name := range []string{"signature", "data", "encrypted_content"} {
		if raw := o[name]; len(raw) > 20 {
			return string(raw)
		}
	}
	if raw := o["reasoning_content"]; len(raw) > len(`"First. "`) {
		return fmt.Sprintf(`"reasoning_content":%s`, raw)
	}
	return ""
}
