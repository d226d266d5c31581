package script_test

import (
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/script"
)

func TestReasoningIsStreamedBeforeTheText(t *testing.T) {
	s, err := script.Parse([]byte("turns:\n  - {reasoning: I should look first., text: Looking., usage: {output_tokens: 9, reasoning_tokens: 5}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var reasoning, text strings.Builder
	r, err := script.NewProvider(s).Complete(t.Context(), &model.Request{Streaming: true, Messages: []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER}}}, func(d model.Delta) {
		if d.Reasoning != "" && text.Len() > 0 {
			t.Error("reasoning after text")
		}
		reasoning.WriteString(d.Reasoning)
		text.WriteString(d.Text)
	})
	if err != nil {
		t.Fatal(err)
	}
	if reasoning.String() != "I should look first." || text.String() != "Looking." {
		t.Errorf("deltas %q, %q", reasoning.String(), text.String())
	}
	if r.Parts[0].GetReasoning().GetText().GetInline() != "I should look first." || r.Usage.GetReasoningTokens() != 5 {
		t.Errorf("parts %v, usage %v", r.Parts, r.Usage)
	}
}
