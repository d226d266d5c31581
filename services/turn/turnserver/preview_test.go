package turnserver_test

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// TestPrepareLeavesOpaquePartsOut: the answer has the reasoning for people, and nothing
// that only a provider can read.
func TestPrepareLeavesOpaquePartsOut(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	answer := &harnessv1.Message{
		Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Done."),
		Parts: []*harnessv1.Part{
			{
				Kind:   &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("for people")}},
				Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`"payload"`)}},
			},
			{Kind: &harnessv1.Part_Text{Text: 5}},
		},
		Origin: &harnessv1.Origin{Wire: "messages"},
	}
	r, err := harnessv1.NewTurnServiceClient(b.dial()).Prepare(b.Context(), &harnessv1.PrepareRequest{
		Input: &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: b.state()}},
		Conversation: []*harnessv1.Message{
			{Id: 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline(goal)}, answer,
			{Id: 3, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("And now?")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	shown := ""
	for _, m := range r.GetRequest().GetMessages() {
		if opaque.Has(m) || m.GetOrigin() != nil {
			t.Errorf("the answer has %v", m)
		}
		for _, p := range m.GetParts() {
			shown += content.Text(p.GetReasoning().GetText())
		}
	}
	if shown != "for people" {
		t.Errorf("the answer shows the reasoning %q", shown)
	}
}
