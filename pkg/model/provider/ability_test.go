package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model/catalogue"
	"github.com/harnessmesh/harnessmesh/pkg/model/provider"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const plain = "providers: [{name: plain, wire: [chat, responses], address: http://h/v1}]\nmodels: [{ref: 'plain:r', window: 1, wire: responses}, {ref: 'plain:on', window: 1, wire: responses, always_on: true}]\n"

func TestCheckEffort(t *testing.T) {
	const (
		unset = harnessv1.Effort_EFFORT_UNSPECIFIED
		none  = harnessv1.Effort_EFFORT_NONE
		high  = harnessv1.Effort_EFFORT_HIGH
		most  = harnessv1.Effort_EFFORT_MAX
	)
	c := extended(t, plain)
	for _, x := range []struct {
		ref    string
		effort harnessv1.Effort
		says   string
	}{
		{"openai:gpt-5", unset, ""},
		{"openai:gpt-5", high, ""},
		{"openai:gpt-5", most, "model openai:gpt-5 takes the efforts minimal, low, medium, high; not max: choose one of them"},
		{"azure:gpt-5", none, "model azure:gpt-5 takes the efforts minimal, low, medium, high; not none: choose one of them"},
		{"openai:unknown", most, ""},
		{"openai:gpt-4o", unset, ""},
		{"openai:gpt-4o", none, "model openai:gpt-4o takes no effort: leave it out"},
		{"plain:m", high, "model plain:m takes no effort: leave it out"},
		{"plain:r", high, ""},
		{"plain:on", none, "model plain:on always reasons: choose another effort than none"},
		{"plain:on", high, ""},
		{"anthropic:claude-opus-5-5", none, "model anthropic:claude-opus-5-5 takes the efforts low, medium, high, xhigh, max; not none: choose one of them"},
		{"script:a.yaml", high, ""},
		{"nobody:x", high, ""},
	} {
		err := provider.CheckEffort(c, x.ref, x.effort)
		if x.says == "" && err != nil || x.says != "" && (err == nil || err.Error() != x.says) {
			t.Errorf("%s with %v: error %v, want %q", x.ref, x.effort, err, x.says)
		}
	}
}

// TestEffortIsSent: a request to a model that takes no effort names none, also as a
// fallback, and one to a model that takes others the nearest.
func TestEffortIsSent(t *testing.T) {
	for ref, want := range map[string]string{"openai:gpt-4o": "", "openai:o3": "high", "openai:gpt-5-codex": "high", "openai:unknown": "max"} {
		var sent string
		s := restrict(t, nil)
		record := func(body []byte) {
			var r struct {
				Effort    string `json:"reasoning_effort"`
				Reasoning struct {
					Effort string `json:"effort"`
				} `json:"reasoning"`
			}
			if err := json.Unmarshal(body, &r); err != nil {
				t.Error(err)
			}
			sent = r.Effort + r.Reasoning.Effort
		}
		s.inspect = record
		p, name, err := provider.OpenWith(catalogue.Default(), ref, environment("OPENAI_BASE_URL", s.URL+"/v1"))
		if err != nil {
			t.Fatal(err)
		}
		req := modeltest.Conversation(true)
		req.Model, req.Effort = name, harnessv1.Effort_EFFORT_MAX
		if _, err := p.Complete(t.Context(), req, nil); err != nil && !strings.Contains(err.Error(), "reasoning_effort") {
			t.Error(err)
		}
		if sent != want {
			t.Errorf("%s receives the effort %q, want %q", ref, sent, want)
		}
	}
}
