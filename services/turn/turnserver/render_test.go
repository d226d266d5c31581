package turnserver_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPrepareReturnsWhatIsSent: Prepare and the turn show the same of a conversation in which
// results and arguments are longer than an eighth of the window.
func TestPrepareReturnsWhatIsSent(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.state()
	s.MessageCount, s.Config.Context.MaxInputTokens = 3, proto.Uint32(800)
	s.ToldTurn = 2
	long := strings.Repeat("a line of the file\n", 2000)
	messages := []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)},
		{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, ToolCalls: []*harnessv1.ToolCall{
			{Id: "c", Name: "write_file", Arguments: b.Blob(`{"content":"` + strings.ReplaceAll(long, "\n", `\n`) + `","path":"a.txt"}`)},
		}},
		{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c", ToolName: "write_file", Content: b.Blob(long)},
	}
	prepared, err := harnessv1.NewTurnServiceClient(b.dial()).Prepare(b.Context(), &harnessv1.PrepareRequest{
		Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
		Conversation: messages,
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}}, messages...)
	b.start()
	b.records()
	sent := b.request(0).Messages
	if len(sent) != len(prepared.GetRequest().GetMessages()) {
		t.Fatalf("%d messages are sent, %d were prepared", len(sent), len(prepared.GetRequest().GetMessages()))
	}
	for i, m := range prepared.GetRequest().GetMessages() {
		if sent[i].Content != m.GetContent().GetInline() {
			t.Errorf("message %d is sent as %q, and was prepared as %v", i, sent[i].Content, m)
		}
		for n, c := range m.GetToolCalls() {
			if sent[i].ToolCalls[n].Arguments != c.GetArguments().GetInline() {
				t.Errorf("call %d is sent as %q, and was prepared as %v", n, sent[i].ToolCalls[n].Arguments, c)
			}
		}
	}
	if got := sent[2].Content; len(got) > 1000 || !strings.Contains(got, "left out here; call read_artifact with ref m3 to read them]\n") {
		t.Errorf("the result is sent as %q", got)
	}
	if got := sent[1].ToolCalls[0].Arguments; len(got) > 1000 || !strings.Contains(got, `left out here; call read_artifact with ref m2 to read them]\n`) || !strings.HasSuffix(got, `","path":"a.txt"}`) {
		t.Errorf("the arguments are sent as %q", got)
	}
}
