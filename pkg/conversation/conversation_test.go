package conversation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/progress"
)

// check returns the fault of a view, empty for none. It shares no code with View.
func check(view []*harnessv1.Message) error {
	for i := 0; i < len(view); i++ {
		m := view[i]
		if m.GetRole() == harnessv1.Role_ROLE_TOOL {
			return fmt.Errorf("message %d is a result of %q, which is not called there", i, m.GetToolCallId())
		}
		if blank(m) && len(m.GetToolCalls()) == 0 {
			return fmt.Errorf("message %d is blank", i)
		}
		for _, c := range m.GetToolCalls() {
			if i++; i == len(view) || view[i].GetRole() != harnessv1.Role_ROLE_TOOL || view[i].GetToolCallId() != c.GetId() {
				return fmt.Errorf("message %d is not the answer to %q", i, c.GetId())
			}
			if blank(view[i]) {
				return fmt.Errorf("the answer to %q is blank", c.GetId())
			}
		}
	}
	return nil
}

func blank(m *harnessv1.Message) bool {
	for _, p := range m.GetParts() {
		if p.GetMedia() != nil {
			return m.GetRole() == harnessv1.Role_ROLE_TOOL && noText(m)
		}
	}
	return noText(m)
}

func noText(m *harnessv1.Message) bool {
	return m.GetContent().GetBlob() == nil && strings.TrimSpace(m.GetContent().GetInline()) == ""
}

// with returns a message with an image.
func with(m *harnessv1.Message) *harnessv1.Message {
	m.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Width: 1, Height: 1}}}}
	return m
}

func user(text string) *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline(text)}
}

func assistant(text string, ids ...string) *harnessv1.Message {
	m := &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(text)}
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, &harnessv1.ToolCall{Id: id, Name: "t"})
	}
	return m
}

func result(id, text string) *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, ToolName: "t", Content: content.Inline(text)}
}

func show(messages []*harnessv1.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(strings.ToLower(strings.TrimPrefix(m.GetRole().String(), "ROLE_")[:1]))
		for _, c := range m.GetToolCalls() {
			b.WriteString("(" + c.GetId() + ")")
		}
		b.WriteString(m.GetToolCallId() + ":" + content.Text(m.GetContent()) + " ")
	}
	return strings.TrimSpace(b.String())
}

func TestView(t *testing.T) {
	const placeholder = "No result of this call was recorded."
	for _, c := range []struct {
		name string
		in   []*harnessv1.Message
		want string
	}{
		{"nothing", nil, ""},
		{"in order already", []*harnessv1.Message{user("go"), assistant("", "a"), result("a", "1")}, "u:go a(a): ta:1"},
		{"a message between call and result", []*harnessv1.Message{assistant("", "a"), user("wait"), result("a", "1")}, "a(a): ta:1 u:wait"},
		{"results in another order", []*harnessv1.Message{assistant("", "a", "b"), result("b", "2"), result("a", "1")}, "a(a)(b): ta:1 tb:2"},
		{"a result too few", []*harnessv1.Message{assistant("", "a", "b"), result("b", "2")}, "a(a)(b): ta:" + placeholder + " tb:2"},
		{"a result too many", []*harnessv1.Message{assistant("", "a"), result("a", "1"), result("a", "2")}, "a(a): ta:1"},
		{"a result without its call", []*harnessv1.Message{user("go"), result("x", "1")}, "u:go"},
		{"a result before its call", []*harnessv1.Message{result("a", "1"), assistant("", "a")}, "a(a): ta:1"},
		{"silence", []*harnessv1.Message{user("go"), assistant(""), assistant(" \n"), user("well?")}, "u:go u:well?"},
		{"a result that says nothing", []*harnessv1.Message{assistant("", "a"), result("a", "")}, "a(a): ta:(no output)"},
		{"an image alone", []*harnessv1.Message{user("go"), with(user(" ")), user("")}, "u:go u:"},
		{"a result that is an image", []*harnessv1.Message{assistant("", "a"), with(result("a", ""))}, "a(a): ta:(the output is attached)"},
		{"parts without an image", []*harnessv1.Message{user("go"), {Role: harnessv1.Role_ROLE_ASSISTANT, Parts: []*harnessv1.Part{{}}}}, "u:go"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := conversation.View(c.in)
			if err := check(got); err != nil {
				t.Error(err)
			}
			if show(got) != c.want {
				t.Errorf("got  %s\nwant %s", show(got), c.want)
			}
		})
	}
}

// TestViewOfGarbage: whatever was stored, the view can be sent, arranging it
// again changes nothing, nothing stored is changed, and the user's words are
// all there, in order.
func TestViewOfGarbage(t *testing.T) {
	id := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	text := rapid.SampledFrom([]string{"", " ", "\n", "x", "a longer text"})
	message := rapid.Custom(func(t *rapid.T) *harnessv1.Message {
		switch rapid.IntRange(0, 9).Draw(t, "role") {
		case 0:
			return &harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Content: content.Inline(text.Draw(t, "text"))}
		case 1, 2:
			m := user(text.Draw(t, "text"))
			if rapid.Bool().Draw(t, "image") {
				with(m)
			}
			return m
		case 3:
			return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: &harnessv1.Content{Value: &harnessv1.Content_Blob{
				Blob: content.Ref([]byte("in a blob " + text.Draw(t, "text"))),
			}}}
		case 4, 5, 6:
			return assistant(text.Draw(t, "text"), rapid.SliceOfN(id, 0, 4).Draw(t, "calls")...)
		case 7:
			return &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT}
		}
		m := result(id.Draw(t, "answers"), text.Draw(t, "text"))
		if rapid.Bool().Draw(t, "image") {
			with(m)
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(message, 0, 20).Draw(t, "messages")
		stored := make([]*harnessv1.Message, len(in))
		for i, m := range in {
			stored[i] = proto.CloneOf(m)
		}
		view := conversation.View(in)
		if err := check(view); err != nil {
			t.Fatalf("%v:\n%s\nfrom\n%s", err, show(view), show(in))
		}
		if !equal(view, conversation.View(view)) {
			t.Fatalf("the view of\n%s\nis\n%s", show(view), show(conversation.View(view)))
		}
		if !equal(in, stored) {
			t.Fatal("stored messages were changed")
		}
		if said, heard := words(in), words(view); !slices.Equal(said, heard) {
			t.Fatalf("said %q, heard %q", said, heard)
		}
	})
}

func equal(a, b []*harnessv1.Message) bool {
	return slices.EqualFunc(a, b, func(a, b *harnessv1.Message) bool { return proto.Equal(a, b) })
}

func words(messages []*harnessv1.Message) []string {
	var all []string
	for _, m := range messages {
		if m.GetRole() == harnessv1.Role_ROLE_USER && !blank(m) {
			all = append(all, content.Text(m.GetContent()))
		}
	}
	return all
}

// TestFold: a conversation has the messages of the records, in order, however it
// is cut into folds.
func TestFold(t *testing.T) {
	records := []*harnessv1.Record{
		{Version: 1},
		{Version: 2, Appended: []*harnessv1.Message{user("go")}},
		{Version: 3, Appended: []*harnessv1.Message{assistant("x", "a", "b"), result("a", "1")}},
	}
	var c conversation.Conversation
	if c.HasCall("a") {
		t.Error("a call in an empty conversation")
	}
	var bytes uint64
	for _, rec := range records {
		c.Fold(rec)
		if c.Version != rec.GetVersion() || c.Bytes < bytes {
			t.Errorf("version %d, %d bytes after %d", c.Version, c.Bytes, rec.GetVersion())
		}
		bytes = c.Bytes
	}
	if show(c.Messages) != "u:go a(a)(b):x ta:1" {
		t.Errorf("folded %s", show(c.Messages))
	}
	if !c.HasCall("a") || !c.HasCall("b") || c.HasCall("c") {
		t.Error("the calls are not known")
	}
}

// TestNewestOutcomeInASegment: an outcome counts for the segment in which it came about,
// whatever came before it and whatever the current step has added.
func TestNewestOutcomeInASegment(t *testing.T) {
	var id uint64
	c := &conversation.Conversation{}
	outcome := func(turn uint32, arguments, result string) {
		call := fmt.Sprintf("c%d", id)
		c.Fold(&harnessv1.Record{Appended: []*harnessv1.Message{
			{Id: id + 1, TurnNumber: turn, Role: harnessv1.Role_ROLE_ASSISTANT, ToolCalls: []*harnessv1.ToolCall{{Id: call, Name: "read", Arguments: content.Inline(arguments)}}},
			{Id: id + 2, TurnNumber: turn, Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call, ToolName: "read", Content: content.Inline(result)},
		}})
		id += 2
	}
	outcome(1, `{"a":1}`, "x")  // messages 1, 2
	outcome(2, `{"a":1}`, "x")  // 3, 4
	outcome(2, `{"b":1}`, "x")  // 5, 6
	outcome(3, `{"a": 1}`, "x") // 7, 8
	outcome(3, `{"a":1}`, "y")  // 9, 10
	outcome(3, `{"a":1}`, "x")  // 11, 12
	signature := func(arguments, result string) uint64 {
		strict, _ := progress.Signature("read", arguments, content.DigestOf(content.Inline(result)))
		return strict
	}
	for _, s := range []struct {
		name               string
		signature          uint64
		first, limit, want uint64
	}{
		{"in all there is", signature(`{"a":1}`, "x"), 0, 13, 12},
		{"in the message at the limit", signature(`{"a":1}`, "y"), 0, 10, 0},
		{"before the newest turn", signature(`{"a":1}`, "x"), 1, 7, 4},
		{"in the part of the newest turn before its current step", signature(`{"a":1}`, "x"), 1, 9, 8},
		{"in no message of the segment", signature(`{"a":1}`, "x"), 5, 7, 0},
		{"in the first message of the segment", signature(`{"a":1}`, "x"), 4, 7, 4},
		{"only in the current step", signature(`{"a":1}`, "y"), 1, 7, 0},
		{"other arguments", signature(`{"b":1}`, "x"), 3, 7, 6},
		{"never", signature(`{"c":1}`, "x"), 0, 13, 0},
	} {
		if got := c.NewestOutcome(s.signature, s.first, s.limit); got != s.want {
			t.Errorf("%s: %d, want %d", s.name, got, s.want)
		}
	}
	if (&conversation.Conversation{}).NewestOutcome(1, 0, 9) != 0 {
		t.Error("an empty conversation has an outcome")
	}
}

// TestBytesCountParts: reasoning and what only its provider reads count against the bound
// of the cache.
func TestBytesCountParts(t *testing.T) {
	m := assistant("x")
	m.Parts = []*harnessv1.Part{{
		Kind:   &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: content.Inline(strings.Repeat("r", 1000))}},
		Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: make([]byte, 2000)}},
	}}
	var with, without conversation.Conversation
	with.Fold(&harnessv1.Record{Appended: []*harnessv1.Message{m}})
	without.Fold(&harnessv1.Record{Appended: []*harnessv1.Message{assistant("x")}})
	if with.Bytes < without.Bytes+3000 {
		t.Errorf("%d bytes with parts of 3,000, %d without", with.Bytes, without.Bytes)
	}
}
