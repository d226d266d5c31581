package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestModelIsRepaired: a run with a wrong model shows its error once and continues with
// another one.
func TestModelIsRepaired(t *testing.T) {
	t.Parallel()
	server := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return complete })
	server.Models, server.OnlyListed = []string{"gpt-4o", "good"}, true
	env, home, workspace := environment("OPENAI_BASE_URL="+server.BaseURL()), newHome(t), t.TempDir()
	run := func(args ...string) (int, string, string) {
		return home.start(env, args...).wait()
	}

	code, _, stderr := run("run", "--workspace", workspace, "--run-id", "r1", "--model", "openai:wrong", "do it")
	if n := strings.Count(stderr, "does not exist"); code != 2 || n != 1 {
		t.Errorf("a wrong model: exit %d, its error %d times:\n%s", code, n, stderr)
	}
	if !strings.Contains(stderr, "harness resume r1 --model PROVIDER:NAME") {
		t.Errorf("the way to repair it is missing:\n%s", stderr)
	}
	if code, _, stderr := run("resume", "r1"); code != 1 || !strings.Contains(stderr, "has ended (FAILED)") {
		t.Errorf("resume without another model: exit %d\n%s", code, stderr)
	}
	if code, _, stderr := run("resume", "r1", "--model", "anthropic:claude-sonnet-5-5"); code != 1 || !strings.Contains(stderr, "--model: ANTHROPIC_API_KEY is not set") {
		t.Errorf("a provider without a key: exit %d\n%s", code, stderr)
	}
	code, stdout, stderr := run("resume", "r1", "--model", "openai:good", "--output", "jsonl")
	if code != 0 || !strings.Contains(stdout, `"model.changed"`) || !strings.Contains(stdout, `"from":"openai:wrong"`) {
		t.Errorf("resume with another model: exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = run("run", "--continue", "r1", "--model", "openai:gpt-4o", "--output", "jsonl", "more")
	if code != 0 || !strings.Contains(stdout, `"to":"openai:gpt-4o"`) {
		t.Errorf("continue with another model: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := run("send", "r1", "--model", "openai:good"); code != 0 || !strings.Contains(stderr, "the model is stored") {
		t.Errorf("send: exit %d\n%s", code, stderr)
	}
	if code, stdout, stderr := run("run", "--continue", "r1", "--output", "json", "again"); code != 0 {
		t.Errorf("after send: exit %d\n%s%s", code, stdout, stderr)
	}
	var asked []string
	for _, r := range server.Requests() {
		if model := modelOf(t, r); model != "wrong" {
			asked = append(asked, model)
		}
	}
	if got := strings.Join(asked, " "); got != "good gpt-4o good" {
		t.Errorf("models that answered: %s", got)
	}
}

// TestModelIsChosen: without a name it is the catalogue's choice among those listed, the only
// one listed, else an error that lists them. It is never the first of a list.
func TestModelIsChosen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		listed []string
		want   string
	}{
		{[]string{"whisper-1", "gpt-5.4", "gpt-6.1-sol"}, "gpt-6.1-sol"},
		{[]string{"whisper-1", "gpt-5-2025-08-07"}, "gpt-5-2025-08-07"},
		{[]string{"local"}, "local"},
		{[]string{"one", "two"}, ""},
	} {
		server := modeltest.NewServerFunc(t, func(*modeltest.Request) modeltest.Reply { return complete })
		server.Models = c.listed
		code, _, stderr := newHome(t).start(environment("OPENAI_BASE_URL="+server.BaseURL()), "run", "--workspace", t.TempDir(), "do it").wait()
		if c.want == "" {
			if code != 1 || !strings.Contains(stderr, "--model: no model was named, and openai lists 2: one, two; name one") || len(server.Requests()) > 0 {
				t.Errorf("%v: exit %d\n%s", c.listed, code, stderr)
			}
			continue
		}
		requests := server.Requests()
		if code != 0 || len(requests) != 1 || modelOf(t, requests[0]) != c.want || !strings.Contains(stderr, "model openai:"+c.want+", the catalogue's choice") {
			t.Errorf("%v: exit %d\n%s", c.listed, code, stderr)
		}
	}
}

func modelOf(t *testing.T, r modeltest.ReceivedRequest) string {
	t.Helper()
	var body struct {
		Model string `json:"model"`
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Model
}
