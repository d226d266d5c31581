package compactionserver_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/pkg/workflow"
	"github.com/harnessmesh/harnessmesh/services/compaction"
	"github.com/harnessmesh/harnessmesh/services/compaction/compactionserver"
	"github.com/harnessmesh/harnessmesh/test/kit/steptest"
	"github.com/harnessmesh/harnessmesh/test/kit/storetest"
)

func TestMain(m *testing.M) {
	storetest.InMemory()
	goleak.VerifyTestMain(m)
}

const (
	model    = "openai:gpt-4o"
	reported = 700 // tokens that the provider has reported
)

// step is a step to compaction, of a run without compaction in a window of 1,000 tokens. The provider has reported
// 700 of them, for the first two of count messages.
func step(count, unreportedBytes uint64) *harnessv1.Step {
	return &harnessv1.Step{From: "repair", To: compaction.Name,
		Snapshot: &harnessv1.Snapshot{
			Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Phase: harnessv1.Phase_PHASE_EXECUTING, TurnCount: 2, MaxTurns: 9, Model: model,
			MessageCount: count, Workflow: workflow.Default(),
			TokenBudget: &harnessv1.TokenBudget{ReportedTokens: reported, ReportedMessages: 2, UnreportedBytes: unreportedBytes},
			Config: runstate.Resolve(&harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{
				MaxInputTokens: proto.Uint32(1000), SafetyBuffer: proto.Uint32(50), Compaction: proto.Bool(false),
			}}, 0),
		},
		Message: &harnessv1.Step_RepairComplete{RepairComplete: &harnessv1.RepairComplete{RepairsMade: 3}},
	}
}

func user(id uint64, text *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{Id: id, Role: harnessv1.Role_ROLE_USER, Content: text}
}

func call(id uint64, arguments *harnessv1.Content) *harnessv1.Message {
	return &harnessv1.Message{Id: id, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(""), ToolCalls: []*harnessv1.ToolCall{
		{Id: "call", Name: "write_file", Arguments: arguments},
	}}
}

// TestCompactionCountsUnreportedMessages stores messages in three records, with texts
// and arguments in blobs that are longer than their previews. Messages that the provider
// has reported do not count.
func TestCompactionCountsUnreportedMessages(t *testing.T) {
	b := steptest.New(t)
	long, arguments := strings.Repeat("A long sentence about nothing. ", 20), `{"content":"`+strings.Repeat("A long sentence about nothing. ", 20)+`"}`
	b.PutJournal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 1}}},
		user(1, content.Inline(long)), user(2, content.Inline(long)), user(3, b.Blob(long)))
	b.PutJournal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: 2}}})
	picture := user(5, content.Inline("And now?"))
	picture.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: media.PNG, Width: 300, Height: 250}}}}
	b.Put(step(5, uint64(len(long)+len(arguments))), call(4, b.Blob(arguments)), picture)
	b.Start(compactionserver.New(compactionserver.Config{Log: b.Log}).Run)

	want := reported + 85 + 170 // a tile of gpt-4o
	for _, m := range []*harnessv1.Message{user(3, content.Inline(long)), call(4, content.Inline(arguments)), user(5, content.Inline("And now?"))} {
		want += tokens.Message(model, m)
	}
	rec := b.Next()
	got := rec.GetStep()
	if used := got.GetSnapshot().GetTokenBudget().GetUsedTokens(); int(used) != want {
		t.Errorf("used %d tokens, want %d", used, want)
	}
	if got.GetTo() != "turn" || got.GetCompactionComplete().GetRepair().GetRepairsMade() != 3 {
		t.Errorf("committed %v", got)
	}
	if o := got.GetObserved(); len(o) != 1 || o[0].GetKey() != compaction.KeyTokens || int(o[0].GetTokens()) != want-reported {
		t.Errorf("observed %v, want %d tokens under %q", o, want-reported, compaction.KeyTokens)
	}
	if events := rec.GetEvents(); len(events) == 0 || int(events[0].GetContextUsage().GetUsedTokens()) != want {
		t.Errorf("events %v", events)
	}
}

// TestCompactionReadsNoLogBelowTheThreshold: an estimate far below the threshold needs
// no count.
func TestCompactionReadsNoLogBelowTheThreshold(t *testing.T) {
	b := steptest.New(t)
	b.Put(step(3, 8), user(3, content.Inline("Go on.")))
	b.Start(compactionserver.New(compactionserver.Config{Log: b.Log}).Run)
	got := b.NextStep()
	if len(got.GetObserved()) != 0 || got.GetSnapshot().GetTokenBudget().GetUsedTokens() != reported+4+2 {
		t.Errorf("observed %v, used %d tokens", got.GetObserved(), got.GetSnapshot().GetTokenBudget().GetUsedTokens())
	}
}

// TestCompactionFailsTheStep_WhenABlobIsMissing: an error of an observation is recorded,
// and the step is tried again.
func TestCompactionFailsTheStep_WhenABlobIsMissing(t *testing.T) {
	b := steptest.New(t)
	missing := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: &harnessv1.BlobRef{Digest: strings.Repeat("0", 64), Size: 9000}}}
	b.Put(step(3, 9000), user(3, missing))
	b.Start(compactionserver.New(compactionserver.Config{Log: b.Log}).Run)
	if failed := b.Next().GetJournal().GetExecutorFailed(); failed.GetCount() != 1 || !strings.Contains(failed.GetError(), compaction.KeyTokens) {
		t.Errorf("recorded %v", failed)
	}
}

// TestCompactCommitsNothing calls the decision over gRPC.
func TestCompactCommitsNothing(t *testing.T) {
	b := steptest.New(t)
	server := compactionserver.New(compactionserver.Config{Log: b.Log})
	client := harnessv1.NewCompactionServiceClient(steptest.Dial(t, steptest.Serve(t, func(r grpc.ServiceRegistrar) { server.Register(r) })))
	b.Put(&harnessv1.Step{From: "repair", To: "turn", Snapshot: step(3, 8).GetSnapshot(), Message: step(3, 8).GetMessage()})

	input := &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: step(3, 9000)}
	r, err := client.Compact(b.Context(), &harnessv1.CompactRequest{Input: input})
	if err != nil || len(r.GetOutput().GetNeeds().GetKeys()) != 1 || r.GetOutput().GetNeeds().GetKeys()[0] != compaction.KeyTokens {
		t.Fatalf("got %v, %v; want the need of %s", r, err, compaction.KeyTokens)
	}
	input.Observed = []*harnessv1.Observation{{Key: compaction.KeyTokens, Value: &harnessv1.Observation_Tokens{Tokens: 250}}}
	r, err = client.Compact(b.Context(), &harnessv1.CompactRequest{Input: input})
	if err != nil || r.GetOutput().GetOutcome().GetStep().GetCompactionComplete().GetPressure() != harnessv1.PressureLevel_PRESSURE_LEVEL_BLOCKING {
		t.Fatalf("got %v, %v; want blocking pressure", r, err)
	}
	_, err = client.Compact(b.Context(), &harnessv1.CompactRequest{Input: &harnessv1.StepInput{}})
	if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "input") {
		t.Errorf("an input without a step: %v", err)
	}
	b.IsNewest()
}

// TestCompactionClears makes a pass over a conversation that it reads and counts. The weights
// and the plan are in the step, so that nothing is counted again.
func TestCompactionClears(t *testing.T) {
	b := steptest.New(t)
	st := step(6, 20_000)
	st.Snapshot.Config.Context.Compaction, st.Snapshot.TokenBudget.ReportedMessages = proto.Bool(true), 0
	st.Snapshot.TokenBudget.ReportedTokens = 0
	result := func(id uint64, call, text string) *harnessv1.Message {
		return &harnessv1.Message{
			Id: id, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call, ToolName: "read_file", Content: content.Inline(text),
			Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		}
	}
	ask := func(id uint64, callID string) *harnessv1.Message {
		return &harnessv1.Message{Id: id, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(""), TurnNumber: 2, ToolCalls: []*harnessv1.ToolCall{
			{Id: callID, Name: "read_file", Arguments: content.Inline(`{"path":"a.go"}`)},
		}}
	}
	goal := user(2, content.Inline("Fix it."))
	goal.Kind = harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT
	messages := []*harnessv1.Message{{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline("You fix things."), Kept: true}, goal}
	for id := uint64(3); id < 17; id += 2 {
		call := fmt.Sprintf("c%d", id)
		messages = append(messages, ask(id, call), result(id+1, call, strings.Repeat("A long line of a file.\n", 100)))
	}
	st.Snapshot.MessageCount = 16
	b.Put(st, messages...)
	b.Start(compactionserver.New(compactionserver.Config{Log: b.Log}).Run)
	rec := b.Next()
	got := rec.GetStep()
	if weights := runlog.Weights(rec); len(weights) != 1 || len(weights[0].GetTokens()) != 16 || weights[0].GetTokens()[3] < 100 {
		t.Errorf("the step has the weights %v", weights)
	}
	marks := got.GetSnapshot().GetCompactionPlan().GetWatermarks()
	if got.GetTo() != "turn" || len(marks) == 0 || marks[0].GetThroughMessage() < 4 || marks[0].GetThroughMessage() > 12 || marks[0].GetClass() != harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE {
		t.Errorf("committed %v", got)
	}
}
