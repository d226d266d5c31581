package reasoning_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// mesh is a turn service with a tool host.
type mesh struct{ client harnessv1.TurnServiceClient }

// newMesh starts a turn service whose models are opened by open.
func newMesh(t testing.TB, open func(ref string) (model.Provider, string, error)) *mesh {
	t.Helper()
	server := turnserver.New(turnserver.Config{Log: steptest.New(t).Log, ToolHost: steptest.ToolHost(t, nil), Open: open})
	return &mesh{client: harnessv1.NewTurnServiceClient(steptest.Dial(t, steptest.Serve(t, server.Register)))}
}

// talk is a run whose turns are performed one by one. What a turn appends is in the
// conversation of the next one, as in a run log.
type talk struct {
	mesh     *mesh
	state    *harnessv1.Snapshot
	messages []*harnessv1.Message
	retries  []*harnessv1.ModelRetried // of the newest turn
	// view changes what the next turn sees of the conversation; nil: all.
	view func([]*harnessv1.Message) []*harnessv1.Message
}

// newTalk starts a run with a model and its fallback models.
func (m *mesh) newTalk(models ...string) *talk {
	k := &talk{mesh: m, state: &harnessv1.Snapshot{
		Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, MaxTurns: 1000, Model: models[0],
		FallbackModels: models[1:], Workflow: workflow.Default(), FirstSequence: 1, Autonomous: true,
		Config: runstate.Resolve(&harnessv1.LoopConfig{
			Model:    &harnessv1.ModelConfig{MaxTries: proto.Uint32(2), BackoffInitial: durationpb.New(0)},
			Guidance: &harnessv1.GuidanceConfig{Enabled: proto.Bool(false), Jit: proto.Bool(false)},
			Tools:    &harnessv1.ToolConfig{Yolo: proto.Bool(true)},
		}, 0),
	}}
	k.add(harnessv1.Role_ROLE_SYSTEM, "You are an agent.")
	k.send("Find the number.")
	return k
}

// add appends a message.
func (k *talk) add(role harnessv1.Role, text string) {
	k.messages = append(k.messages, &harnessv1.Message{Id: uint64(len(k.messages)) + 1, Role: role, Content: content.Inline(text)})
	k.state.MessageCount = uint64(len(k.messages))
}

// send appends a message of the user.
func (k *talk) send(text string) { k.add(harnessv1.Role_ROLE_USER, text) }

// turn performs a turn and returns its outcome.
func (k *talk) turn(t failer) *harnessv1.Outcome {
	t.Helper()
	conversation := k.messages
	if k.view != nil {
		conversation = k.view(conversation)
	}
	stream, err := k.mesh.client.Turn(tContext(t), &harnessv1.TurnRequest{
		Input: &harnessv1.StepInput{Namespace: "default", RunId: "talk", Version: 1, Step: &harnessv1.Step{
			From: workflow.Compaction, To: workflow.Turn, Snapshot: k.state,
			Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}},
		}},
		Conversation: conversation,
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	k.retries = nil
	for {
		update, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the turn has no outcome")
		}
		if err != nil {
			t.Fatalf("turn: %v", err)
		}
		if r := update.GetJournal().GetModelRetried(); r != nil {
			k.retries = append(k.retries, r)
		}
		if outcome := update.GetOutcome(); outcome != nil {
			k.take(outcome)
			return outcome
		}
	}
}

// take continues with the state that a turn ended with.
func (k *talk) take(outcome *harnessv1.Outcome) {
	for _, m := range outcome.GetAppended() {
		m = proto.CloneOf(m)
		m.Id = uint64(len(k.messages)) + 1
		k.messages = append(k.messages, m)
	}
	k.state = outcome.GetStep().GetSnapshot()
	k.state.Phase, k.state.MessageCount = harnessv1.Phase_PHASE_EXECUTING, uint64(len(k.messages))
}

// mustAnswer performs a turn that must not fail.
func (k *talk) mustAnswer(t failer) *harnessv1.Message {
	t.Helper()
	if e := k.turn(t).GetStep().GetTurnComplete().GetError(); e != nil {
		t.Fatalf("the turn failed: %v", e)
	}
	for i := len(k.messages) - 1; i >= 0; i-- {
		if m := k.messages[i]; m.GetRole() == harnessv1.Role_ROLE_ASSISTANT {
			return m
		}
	}
	t.Fatalf("no answer in %s", show(k.messages))
	return nil
}

func show(messages []*harnessv1.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%d %s %q %d calls, %d parts\n", m.GetId(), m.GetRole(), m.GetContent().GetInline(), len(m.GetToolCalls()), len(m.GetParts()))
	}
	return b.String()
}

// restart hands the run over as a stored log does: everything is read from its bytes.
func (k *talk) restart() {
	for i, m := range k.messages {
		k.messages[i] = proto.CloneOf(m)
	}
	k.state = proto.CloneOf(k.state)
}
