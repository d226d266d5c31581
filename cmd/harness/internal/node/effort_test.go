package node_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/openapitest"
)

// The gateway of a node knows the efforts of the models of its catalogue.
func TestStartWithAnEffortThatTheModelDoesNotTake(t *testing.T) {
	w := startWeb(t, openapitest.Load(t))
	body := `{"goal": "go", "workspace": "/tmp", "agent": {"model": "openai:gpt-5", "reasoning": {"effort": %q}}}`
	var refused struct {
		Error struct{ Reason, Field, Message string }
	}
	w.call("POST", "/v1/runs", fmt.Sprintf(body, "max"), 400, &refused)
	const want = "agent.reasoning.effort: model openai:gpt-5 takes the efforts minimal, low, medium, high; not max: choose one of them"
	if e := refused.Error; e.Reason != "INVALID_FIELD" || e.Field != "agent.reasoning.effort" || e.Message != want {
		t.Errorf("%+v", e)
	}
	var started struct{ RunID json.RawMessage }
	w.call("POST", "/v1/runs", fmt.Sprintf(body, "high"), 201, &started)
}
