package turn_test

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/services/turn"
)

func textPart(n uint64) *harnessv1.Part { return &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: n}} }

func callPart(i uint32) *harnessv1.Part { return &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: i}} }

func thought(text, payload string) *harnessv1.Part {
	return &harnessv1.Part{
		Kind:   &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline(text)}},
		Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(payload)}},
	}
}

// TestPartsAreStoredWhole: parts that cover the answer are stored as they came, with
// their origin. Of others only the text for people is stored.
func TestPartsAreStoredWhole(t *testing.T) {
	read := call("a", "read_file", `{"path":"1"}`)
	whole := []*harnessv1.Part{thought("hm", "1"), textPart(5), thought("", "2"), callPart(0)}
	for name, c := range map[string]struct {
		parts []*harnessv1.Part
		whole bool
	}{
		"whole":             {whole, true},
		"text too short":    {[]*harnessv1.Part{thought("hm", "1"), textPart(4), callPart(0)}, false},
		"text too long":     {[]*harnessv1.Part{thought("hm", "1"), textPart(6), callPart(0)}, false},
		"text of no bytes":  {[]*harnessv1.Part{thought("hm", "1"), textPart(0), textPart(5), callPart(0)}, false},
		"without the call":  {[]*harnessv1.Part{thought("hm", "1"), textPart(5)}, false},
		"call twice":        {[]*harnessv1.Part{thought("hm", "1"), textPart(5), callPart(0), callPart(0)}, false},
		"another call":      {[]*harnessv1.Part{thought("hm", "1"), textPart(5), callPart(1)}, false},
		"a part of no kind": {[]*harnessv1.Part{thought("hm", "1"), textPart(5), callPart(0), {}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			origin := &harnessv1.Origin{Wire: "messages", Endpoint: "e", Model: "m", RequestDigest: []byte("d")}
			r := &model.Response{Text: "Look.", ToolCalls: []*harnessv1.ToolCall{read}, FinishReason: "tool_calls", Parts: c.parts, Origin: origin}
			m := respond(t, snapshot(), r).GetAppended()[0]
			if opaque.Has(m) != c.whole || (m.GetOrigin() != nil) != c.whole {
				t.Errorf("stored %v", m)
			}
			if m.GetParts()[0].GetReasoning().GetText().GetInline() != "hm" {
				t.Errorf("the text of the reasoning is lost: %v", m.GetParts())
			}
			if c.whole && !bytes.Equal(m.GetParts()[2].GetOpaque().GetInline(), []byte("2")) {
				t.Errorf("the parts are %v", m.GetParts())
			}
		})
	}
}

// TestDroppedCallsDropParts: an answer of which calls are dropped cannot go back.
func TestDroppedCallsDropParts(t *testing.T) {
	r := &model.Response{FinishReason: "tool_calls", Origin: &harnessv1.Origin{Wire: "messages"}}
	r.Parts = append(r.Parts, thought("hm", "1"))
	for i := range uint32(70) {
		r.ToolCalls = append(r.ToolCalls, call("", "read_file", `{"path":"1"}`))
		r.Parts = append(r.Parts, callPart(i))
	}
	if m := respond(t, snapshot(), r).GetAppended()[0]; len(m.GetToolCalls()) == 70 || opaque.Has(m) {
		t.Errorf("%d calls and parts %v", len(m.GetToolCalls()), m.GetParts())
	}
	r.FinishReason = "length"
	if m := respond(t, snapshot(), r).GetAppended()[0]; opaque.Has(m) {
		t.Errorf("parts %v of an answer that was cut", m.GetParts())
	}
}

// TestTooManyParts: an answer with more than 256 parts cannot go back.
func TestTooManyParts(t *testing.T) {
	r := &model.Response{Text: "a", FinishReason: "stop", Origin: &harnessv1.Origin{Wire: "messages"}}
	for range 256 {
		r.Parts = append(r.Parts, thought("hm", "1"))
	}
	r.Parts = append(r.Parts, textPart(1))
	m := respond(t, snapshot(), r).GetAppended()[0]
	if opaque.Has(m) || len(m.GetParts()) > 256 || len(m.GetParts()) < 200 {
		t.Errorf("%d parts are stored", len(m.GetParts()))
	}
}

// TestAnyPartsAreConsistent: whatever a provider returns, stored parts cover the message.
func TestAnyPartsAreConsistent(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) *harnessv1.Part {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return textPart(rapid.Uint64Range(0, 6).Draw(t, "bytes"))
		case 1:
			return callPart(rapid.Uint32Range(0, 2).Draw(t, "call"))
		case 2:
			return &harnessv1.Part{}
		}
		return thought(rapid.SampledFrom([]string{"", "a", "\xff"}).Draw(t, "text"), "1")
	})
	rapid.Check(t, func(t *rapid.T) {
		r := &model.Response{
			Text: rapid.SampledFrom([]string{"", "ab", "ä", "a\xffb"}).Draw(t, "text"), FinishReason: "stop",
			Parts: rapid.SliceOfN(part, 0, 6).Draw(t, "parts"), Origin: &harnessv1.Origin{Wire: "w"},
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			r.ToolCalls = append(r.ToolCalls, call("", "read_file", `{"path":"1"}`))
		}
		rec := respond(t, snapshot(), r)
		encode(t, rec)
		m := rec.GetAppended()[0]
		if len(m.GetParts()) == 0 {
			return
		}
		var text uint64
		calls := 0
		for _, p := range m.GetParts() {
			text += p.GetText()
			if _, ok := p.GetKind().(*harnessv1.Part_Call); ok {
				calls++
			}
		}
		if text != uint64(len(m.GetContent().GetInline())) || calls != len(m.GetToolCalls()) {
			t.Fatalf("parts %v of %v", m.GetParts(), m)
		}
	})
}

// TestAToolHostCannotNameBlobs: a file without data is left out.
func TestAToolHostCannotNameBlobs(t *testing.T) {
	w := responded(t, snapshot(), response(call("a", "read_file", `{"path":"1"}`))).folded()
	c := w.p.Calls[0]
	_, appended, _ := turn.Finish(w.state.Snapshot, w.p, c, &harnessv1.ExecuteToolResponse{
		Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, Result: "A picture.",
		Media: []*harnessv1.Media{{Type: "image/png", Blob: &harnessv1.BlobRef{Digest: "x", Size: 1}}, {Type: "image/png", Data: []byte("x")}},
	})
	if parts := appended[0].GetParts(); len(parts) != 1 || parts[0].GetMedia().GetBlob() != nil {
		t.Errorf("the result has %v", parts)
	}
}
