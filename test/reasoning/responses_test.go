package reasoning_test

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/responses"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// onResponses starts a run on a strict Responses server.
func onResponses(t *testing.T, streaming bool, reply func(*modeltest.Request) modeltest.Reply) (*talk, *modeltest.Server) {
	t.Helper()
	s := modeltest.NewServerFunc(t, reply)
	s.Responses.KeepPhases = true
	p, err := responses.New(responses.Config{Endpoint: adapter.Endpoint{BaseURL: s.BaseURL(), HTTPClient: s.Client()}})
	if err != nil {
		t.Fatal(err)
	}
	k := newMesh(t, func(string) (model.Provider, string, error) { return p, "test-model", nil }).newTalk("openai:test-model")
	k.state.Config.Model.Streaming = proto.Bool(streaming)
	return k, s
}

// refusedNone fails if the server refused a request.
func refusedNone(t *testing.T, s *modeltest.Server) {
	t.Helper()
	for i, r := range s.Requests() {
		if r.Refused != "" {
			t.Fatalf("request %d was refused: %s", i+1, r.Refused)
		}
	}
}

// TestARunOnResponses: 60 turns with reasoning, phases, parallel calls, streams that break
// off, and user messages; changes of the view, the mode and the tools.
func TestARunOnResponses(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{true, false} {
		t.Run(fmt.Sprintf("streaming %t", streaming), func(t *testing.T) {
			t.Parallel()
			k, s := onResponses(t, streaming, (&variation{}).reply)
			for turn := range 60 {
				switch turn {
				case 20:
					k.view = dropTurns(2, 8)
				case 30:
					k.state.Mode = "plan"
				case 40:
					k.state.Autonomous = false
				}
				k.mustAnswer(t)
				if turn%9 == 4 {
					k.send("And what about this?")
				}
			}
			refusedNone(t, s)
			if thoughts(k.messages) < 40 {
				t.Errorf("only %d thoughts", thoughts(k.messages))
			}
		})
	}
}

// TestReasoningThatCannotBeVerified: one further request without it, then the run
// continues and builds reasoning up again.
func TestReasoningThatCannotBeVerified(t *testing.T) {
	t.Parallel()
	script := &variation{faultless: true}
	requests, refusals := 0, 0
	k, s := onResponses(t, true, func(*modeltest.Request) modeltest.Reply {
		if requests++; requests == 6 {
			refusals++
			return modeltest.Reply{Status: 400, ErrorCode: "invalid_encrypted_content", ErrorMessage: "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content organization_id did not match the target organization."}
		}
		return script.reply(nil)
	})
	s.Responses.KeepPhases = false // they go with the reasoning
	adjusted := 0
	for range 14 {
		k.mustAnswer(t)
		for _, r := range k.retries {
			if r.GetAdjustment().GetAdjustment() == harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE {
				adjusted++
			}
		}
		k.restart()
	}
	refusedNone(t, s)
	if refusals != 1 || adjusted != 1 || len(s.Requests()) != 15 {
		t.Errorf("%d refusals, %d adjusted requests, %d requests", refusals, adjusted, len(s.Requests()))
	}
}
