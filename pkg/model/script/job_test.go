package script_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

const jobs = `
turns: [{text: A turn.}]
jobs:
  summarize:
    - {answer: {b: [1, {x: null}], a: 12345678901234567890}, usage: {input_tokens: 7, output_tokens: 3}}
    - {text: Not JSON., calls: [{name: look}]}
    - {error: {status: 529, retry_after: 0}}
  verify: [{text: "yes"}]
`

// jobRequest returns a request of the n-th job of a purpose.
func jobRequest(purpose string, n uint32) *model.Request {
	req := modeltest.Conversation(true)
	req.Job = &model.Job{Purpose: purpose, Number: func(context.Context) (uint32, error) { return n, nil }}
	return req
}

// TestJobsOfAPurposeGetItsEntries: the number of a job decides, in any order, each time
// and in a new process.
func TestJobsOfAPurposeGetItsEntries(t *testing.T) {
	p := provider(t, jobs)
	for _, c := range []struct {
		purpose string
		number  uint32
		want    string
	}{
		{"summarize", 3, "error 529"},
		{"summarize", 2, "Not JSON.[ look {}]"},
		{"summarize", 1, `{"b":[1,{"x":null}],"a":12345678901234567890}`},
		{"summarize", 1, `{"b":[1,{"x":null}],"a":12345678901234567890}`},
		{"summarize", 3, "error 529"},
		{"summarize", 9, "error 529"}, // the last entry is repeated
		{"summarize", 0, `{"b":[1,{"x":null}],"a":12345678901234567890}`},
		{"verify", 4, "yes"},
	} {
		for _, p := range []model.Provider{p, provider(t, jobs)} {
			if got, _ := respond(t, p, jobRequest(c.purpose, c.number)); got != c.want {
				t.Errorf("job %d of %s: %q, want %q", c.number, c.purpose, got, c.want)
			}
		}
	}
	_, resp := respond(t, p, jobRequest("summarize", 1))
	if resp.Usage.GetInputTokens() != 7 || resp.Usage.GetOutputTokens() != 3 || resp.FinishReason != "stop" {
		t.Errorf("got %v", resp)
	}
	if got, _ := respond(t, p, modeltest.Conversation(true)); got != "A turn." {
		t.Errorf("a turn got %q", got)
	}
}

func TestJobsWithoutANumberAreTheFirst(t *testing.T) {
	req := modeltest.Conversation(true)
	req.Job = &model.Job{Purpose: "summarize"}
	if got, _ := respond(t, provider(t, jobs), req); !strings.HasPrefix(got, `{"b":`) {
		t.Errorf("got %q", got)
	}
}

// TestJobsWithoutAnEntryFail: such a job is not tried again, and the error names the
// field to add.
func TestJobsWithoutAnEntryFail(t *testing.T) {
	for _, text := range []string{jobs, "turns: [{text: A turn.}]"} {
		_, err := provider(t, text).Complete(t.Context(), jobRequest("classify", 1), nil)
		failed := model.AsError(err)
		if failed.Retryable || !strings.Contains(failed.Message, `purpose "classify"`) || !strings.Contains(failed.Message, "jobs: {classify:") {
			t.Errorf("got %+v", failed)
		}
	}
}

func TestJobsThatCannotBeCountedFail(t *testing.T) {
	away := errors.New("the log is away")
	req := modeltest.Conversation(true)
	req.Job = &model.Job{Purpose: "summarize", Number: func(context.Context) (uint32, error) { return 0, away }}
	_, err := provider(t, jobs).Complete(t.Context(), req, nil)
	if failed := model.AsError(err); !failed.Retryable || !errors.Is(failed, away) {
		t.Errorf("got %+v", failed)
	}
}

// TestScriptOfJobsOnly: a script can be a model for jobs alone.
func TestScriptOfJobsOnly(t *testing.T) {
	p := provider(t, "jobs: {summarize: [{text: Short.}]}")
	if got, _ := respond(t, p, jobRequest("summarize", 1)); got != "Short." {
		t.Errorf("got %q", got)
	}
	if got, _ := respond(t, p, modeltest.Conversation(true)); got != script.Exhausted {
		t.Errorf("a turn got %q", got)
	}
}
