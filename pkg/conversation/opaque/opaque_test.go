package opaque_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

var target = opaque.Target{Wire: "messages", Endpoint: "a https://x", Model: "m", Bound: true}

var tools = []*harnessv1.ToolSpec{{Name: "read", Description: "Reads.", ParametersSchema: `{}`}}

// talk is a conversation of n turns, each with a call. Every answer was made by the
// target for the request before it.
func talk(n int) []*harnessv1.Message {
	messages := []*harnessv1.Message{{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("go")}}
	for i := range n {
		id := fmt.Sprint("c", i)
		answer := &harnessv1.Message{
			Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("Look."),
			ToolCalls: []*harnessv1.ToolCall{{Id: id, Name: "read", Arguments: content.Inline(`{}`)}},
			Parts: []*harnessv1.Part{
				{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline("hm")}}, Opaque: payload("1")},
				{Kind: &harnessv1.Part_Text{Text: 5}}, {Kind: &harnessv1.Part_Call{}},
			},
			Origin: &harnessv1.Origin{Wire: "messages", Endpoint: "a https://x", Model: "m", RequestDigest: opaque.Digest(messages, tools)},
		}
		result := &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "read", Content: content.Inline("text")}
		messages = append(messages, answer, result)
	}
	for i, m := range messages {
		m.Id = uint64(i) + 1
	}
	return messages
}

func payload(text string) *harnessv1.Opaque {
	return &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(text)}}
}

// reads returns a relation in which one model reads another.
func reads(model, other string) func(string) []string {
	return func(of string) []string {
		if of == model {
			return []string{other}
		}
		return nil
	}
}

func TestSelect(t *testing.T) {
	other := func(change func(*harnessv1.Origin)) func([]*harnessv1.Message) []*harnessv1.Message {
		return func(ms []*harnessv1.Message) []*harnessv1.Message {
			change(ms[3].Origin)
			return ms
		}
	}
	for name, c := range map[string]struct {
		change func([]*harnessv1.Message) []*harnessv1.Message
		target func(*opaque.Target)
		tools  []*harnessv1.ToolSpec
		want   []int
	}{
		"all":              {want: []int{1, 3, 5}},
		"another wire":     {change: other(func(o *harnessv1.Origin) { o.Wire = "chat" }), want: []int{1, 5}},
		"another endpoint": {change: other(func(o *harnessv1.Origin) { o.Endpoint = "b https://x" }), want: []int{1, 5}},
		"another model":    {change: other(func(o *harnessv1.Origin) { o.Model = "n" }), want: []int{1, 5}},
		"a model it reads": {change: other(func(o *harnessv1.Origin) { o.Model = "n" }), target: func(t *opaque.Target) { t.Bound, t.Reads = false, reads("m", "n") }, want: []int{1, 3, 5}},
		"a model it reads and that does not read it": {change: other(func(o *harnessv1.Origin) { o.Model = "n" }), target: func(t *opaque.Target) { t.Reads = reads("m", "n") }, want: []int{3, 5}},
		"models that read each other": {change: other(func(o *harnessv1.Origin) { o.Model = "n" }), target: func(t *opaque.Target) {
			t.Reads = func(model string) []string { return map[string][]string{"m": {"n"}, "n": {"m"}}[model] }
		}, want: []int{1, 3, 5}},
		"refused of a model that it reads": {change: other(func(o *harnessv1.Origin) { o.Model = "n" }), target: func(t *opaque.Target) {
			t.Reads, t.RefusedOf = reads("m", "n"), map[string]uint64{"n": 4}
		}, want: []int{5}},
		"refused of a model that it does not read": {target: func(t *opaque.Target) { t.RefusedOf = map[string]uint64{"n": 4} }, want: []int{1, 3, 5}},
		"refused":          {target: func(t *opaque.Target) { t.Refused = 4 }, want: []int{5}},
		"all refused":      {target: func(t *opaque.Target) { t.Refused = 6 }},
		"another tool":     {tools: []*harnessv1.ToolSpec{{Name: "read", Description: "Reads a file.", ParametersSchema: `{}`}}},
		"a tool more":      {tools: append(slices.Clone(tools), tools[0])},
		"cut at the front": {change: func(ms []*harnessv1.Message) []*harnessv1.Message { return append(ms[:1:1], ms[3:]...) }},
		"cut in the middle": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			return append(ms[:3:3], ms[5:]...)
		}},
		"a result changed": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			ms[4].Content = content.Inline("cleared")
			return ms
		}},
		"a result changed, unbound": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			ms[4].Content = content.Inline("cleared")
			return ms
		}, target: func(t *opaque.Target) { t.Bound = false }, want: []int{1, 3, 5}},
		"the newest result changed": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			ms[6].Content = content.Inline("cleared")
			return ms
		}, want: []int{1, 3, 5}},
		"arguments changed": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			ms[1].ToolCalls[0].Arguments = content.Inline(`{"a":1}`)
			return ms
		}},
		"media added": {change: func(ms []*harnessv1.Message) []*harnessv1.Message {
			ms[2].Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Data: []byte("x")}}}}
			return ms
		}},
	} {
		t.Run(name, func(t *testing.T) {
			messages, to, with := talk(3), target, tools
			if c.change != nil {
				messages = c.change(messages)
			}
			if c.target != nil {
				c.target(&to)
			}
			if c.tools != nil {
				with = c.tools
			}
			if got := opaque.Select(messages, with, to); !slices.Equal(got, c.want) {
				t.Errorf("selected %v, want %v", got, c.want)
			}
		})
	}
}

// TestReasoningBuildsUpAgain: after a change, the answers made from then on go back.
func TestReasoningBuildsUpAgain(t *testing.T) {
	messages := talk(2)
	messages[2].Content = content.Inline("cleared")
	for _, m := range talk(2)[1:] {
		m = proto.CloneOf(m)
		if m.GetOrigin() != nil {
			m.Origin.RequestDigest = opaque.Digest(messages, tools)
		}
		messages = append(messages, m)
	}
	if got := opaque.Select(messages, tools, target); !slices.Equal(got, []int{5, 7}) {
		t.Errorf("selected %v", got)
	}
}

// TestDigestTellsConversationsApart: no two different requests have one digest, however
// their texts are divided.
func TestDigestTellsConversationsApart(t *testing.T) {
	text := rapid.SampledFrom([]string{"", "a", "ab", "b", "ba"})
	message := rapid.Custom(func(t *rapid.T) *harnessv1.Message {
		m := &harnessv1.Message{
			Role: harnessv1.Role(rapid.IntRange(1, 4).Draw(t, "role")), Content: content.Inline(text.Draw(t, "text")),
			ToolCallId: text.Draw(t, "call"), IsError: rapid.Bool().Draw(t, "error"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: text.Draw(t, "id"), Name: text.Draw(t, "name"), Arguments: content.Inline(text.Draw(t, "arguments"))})
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.SliceOfN(message, 0, 3).Draw(t, "a"), rapid.SliceOfN(message, 0, 3).Draw(t, "b")
		same := slices.EqualFunc(a, b, func(x, y *harnessv1.Message) bool { return proto.Equal(x, y) })
		if equal := string(opaque.Digest(a, nil)) == string(opaque.Digest(b, nil)); equal != same {
			t.Fatalf("equal digests: %v, equal requests: %v", equal, same)
		}
	})
}

func TestWithout(t *testing.T) {
	m := talk(1)[1]
	before := proto.CloneOf(m)
	bare := opaque.Without(m)
	if opaque.Has(bare) || bare.GetOrigin() != nil || len(bare.GetParts()) != 3 || bare.GetParts()[0].GetReasoning().GetText().GetInline() != "hm" {
		t.Errorf("without: %v", bare)
	}
	if !proto.Equal(m, before) {
		t.Error("the message was changed")
	}
	if again := opaque.Without(bare); again != bare {
		t.Error("a message without opaque parts was copied")
	}
	kept := opaque.WithParts(m, m.GetParts(), m.GetOrigin())
	if !proto.Equal(kept, m) {
		t.Errorf("a field is lost: %v", kept)
	}
}

// TestWithPartsKeepsEachField fails for a field of Message that WithParts does not copy.
func TestWithPartsKeepsEachField(t *testing.T) {
	m := &harnessv1.Message{
		Id: 1, Role: 2, Kind: 3, Content: content.Inline("c"), ToolCalls: []*harnessv1.ToolCall{{Id: "i"}}, ToolCallId: "t", ToolName: "n",
		IsError: true, TurnNumber: 4, Kept: true, Parts: []*harnessv1.Part{{}}, Origin: &harnessv1.Origin{Wire: "w"}, Topic: "p", Durability: 1,
		Preserved: []*harnessv1.PreservedField{{}}, KeptContent: 1, ExternalizeTokens: 2,
	}
	for i := range m.ProtoReflect().Descriptor().Fields().Len() {
		if f := m.ProtoReflect().Descriptor().Fields().Get(i); !m.ProtoReflect().Has(f) {
			t.Fatalf("the test leaves %s unset", f.Name())
		}
	}
	if !proto.Equal(opaque.WithParts(m, m.GetParts(), m.GetOrigin()), m) {
		t.Error("a field is lost")
	}
}
