package script_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// TestRunsOfSubAgentsPlayTheirTurns: each run of a sub-agent begins at the first of its
// entries, errors included, and others play the turns of the script.
func TestRunsOfSubAgentsPlayTheirTurns(t *testing.T) {
	p := provider(t, `
turns: [{text: Root.}]
agents:
  explore: {turns: [{error: {status: 529}}, {text: Looking.}, {text: Done.}]}
  silent: {turns: []}
`)
	ask := func(agent string, failed uint32) string {
		req := modeltest.Conversation(true)
		req.Agent, req.FailedTries = agent, failed
		got, _ := respond(t, p, req)
		return got
	}
	for range 2 {
		for _, c := range []struct {
			agent  string
			failed uint32
			want   string
		}{
			{"", 0, "Root."}, {"explore", 0, "error 529"}, {"explore", 1, "Looking."}, {"silent", 0, "The script has no more turns."}, {"other", 0, "Root."},
		} {
			if got := ask(c.agent, c.failed); got != c.want {
				t.Errorf("the sub-agent %q got %q after %d failures, want %q", c.agent, got, c.failed, c.want)
			}
		}
	}
}
