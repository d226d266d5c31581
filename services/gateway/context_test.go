package gateway

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

func TestContextPageTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := ContextPage{
			Version: rapid.Uint64Min(1).Draw(t, "version"), Sequence: rapid.Uint64Min(1).Draw(t, "sequence"),
			First: rapid.IntRange(1, 1<<20).Draw(t, "first"), Before: rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "before"), Size: 7,
		}
		run, got, err := CheckContext(&harnessv1.GetContextRequest{RunId: "r", PageToken: want.Token(), PageSize: 7})
		if err != nil || run != (runlog.Run{Namespace: "default", ID: "r"}) || got.Version != want.Version || got.Sequence != want.Sequence ||
			got.First != want.First || got.Size != 7 || !bytes.Equal(got.Before, want.Before) {
			t.Fatalf("got %v, %v, want %v", got, err, want)
		}
		token := []byte(want.Token())
		token = slices.Delete(token, 0, rapid.IntRange(1, len(token)).Draw(t, "cut"))
		if _, _, err := CheckContext(&harnessv1.GetContextRequest{RunId: "r", PageToken: string(token)}); err != nil && codeOf(err) != codes.InvalidArgument {
			t.Fatalf("a cut token: %v", err)
		}
	})
}

func FuzzContextPage(f *testing.F) {
	f.Add(ContextPage{Version: 1, Sequence: 2, First: 3, Before: make([]byte, 32)}.Token())
	f.Fuzz(func(t *testing.T, token string) {
		p, err := parseContextPage(token)
		if err == nil && (p.Version == 0 || p.Sequence == 0 || p.First <= 0 || len(p.Before) != 32) {
			t.Errorf("%q is %+v", token, p)
		}
	})
}

func codeOf(err error) codes.Code {
	var known *fault.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return codes.Unknown
}

// contextOf returns the context of messages under a plan.
func contextOf(plan *harnessv1.CompactionPlan, budget *harnessv1.TokenBudget, messages ...*harnessv1.Message) *Context {
	c := &conversation.Conversation{}
	for i, m := range messages {
		m.Id = uint64(i) + 1
	}
	c.Fold(&harnessv1.Record{Version: 1, Appended: messages})
	var v view.View
	items := v.Update(c, plan, nil)
	return &Context{
		Step: &harnessv1.Step{Snapshot: &harnessv1.Snapshot{CompactionPlan: plan, TokenBudget: budget}}, Conversation: c, Items: items, Index: &v.Index,
	}
}

func exchange(text string) []*harnessv1.Message {
	return []*harnessv1.Message{
		{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline("Go."), Kept: true},
		{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline("I go."), ToolCalls: []*harnessv1.ToolCall{{Id: "c", Name: "read_file", Arguments: content.Inline("{}")}}},
		{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: "c", ToolName: "read_file", Content: content.Inline(text), Durability: harnessv1.Durability_DURABILITY_EPHEMERAL},
	}
}

// TestContextUsed: the estimate of compaction counts for the request that it was made for;
// later it is the report and what followed it, and before any report all items.
func TestContextUsed(t *testing.T) {
	text := strings.Repeat("word", 100) // 100 tokens and 4 that frame it
	for name, c := range map[string]struct {
		budget  *harnessv1.TokenBudget
		decided bool
		want    uint32
	}{
		"decided":                   {&harnessv1.TokenBudget{UsedTokens: 777, ReportedTokens: 10}, true, 777},
		"not estimated":             {&harnessv1.TokenBudget{ReportedTokens: 10, ReportedMessages: 2}, true, 10 + 104},
		"reported":                  {&harnessv1.TokenBudget{UsedTokens: 777, ReportedTokens: 1000, ReportedMessages: 2}, false, 1000 + 104},
		"reported, with a factor":   {&harnessv1.TokenBudget{ReportedTokens: 1000, ReportedMessages: 2, Factor: 1.5}, false, 1000 + 156},
		"with another's factor":     {&harnessv1.TokenBudget{ReportedTokens: 1000, ReportedMessages: 2, Factor: 1.5, FactorModel: "another"}, false, 1000 + 104},
		"freed since":               {&harnessv1.TokenBudget{ReportedTokens: 1000, ReportedMessages: 3, FreedTokens: 400, Factor: 2}, false, 600},
		"freed more than there was": {&harnessv1.TokenBudget{ReportedTokens: 100, ReportedMessages: 3, FreedTokens: 400}, false, 0},
		"before a report":           {&harnessv1.TokenBudget{ToolTokens: 50}, false, 50 + 500 + 4 + 8 + 104},
		"before a report, factor":   {&harnessv1.TokenBudget{ToolTokens: 50, Factor: 1.5}, false, 75 + 500 + 174},
		"a result that is cut":      {&harnessv1.TokenBudget{ReportedTokens: 1000, ReportedMessages: 2}, false, 1000 + 10_000 + 44},
	} {
		x := contextOf(nil, c.budget, exchange(text)...)
		if name == "a result that is cut" {
			x = contextOf(nil, c.budget, exchange(strings.Repeat(text, 1000))...)
		}
		if c.decided {
			x.Step.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}
		}
		if got := x.Used(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestContextReasons: one line for each way in which a message is not shown in full.
func TestContextReasons(t *testing.T) {
	long := strings.Repeat("word ", 400)
	guidance := func(text string) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_GUIDANCE, Topic: "items", Content: content.Inline(text)}
	}
	said := func(text string) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline(text)}
	}
	pictured := said("Look.")
	pictured.Parts = []*harnessv1.Part{{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Name: "a.png", Data: []byte("1234")}}}}
	all := func() []*harnessv1.Message {
		return slices.Concat(exchange(long), []*harnessv1.Message{guidance("old"), guidance("new"), said(long), proto.CloneOf(pictured), said("last")})
	}
	mark := func(action harnessv1.CompactionAction, class harnessv1.MessageClass, change ...func(*harnessv1.Watermark)) *harnessv1.Watermark {
		w := &harnessv1.Watermark{Action: action, Class: class, ThroughMessage: 7, Version: 57}
		for _, f := range change {
			f(w)
		}
		return w
	}
	least := func(w *harnessv1.Watermark) { w.MinTokens = 100 }
	for want, c := range map[string]struct {
		mark *harnessv1.Watermark
		id   uint64
		ref  string
		done harnessv1.CompactionAction
	}{
		"": {mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE), 3, "", include},
		"cleared: ephemeral results of 100 tokens or more up to m7; pass at version 57":               {mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_EPHEMERAL, least), 3, "m3", clearing},
		"cleared: m5 replaces this guidance; pass at version 57":                                      {mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_REPLACED_GUIDANCE), 4, "m4", clearing},
		"cleared: all results up to m7":                                                               {mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_RESULT, func(w *harnessv1.Watermark) { w.Version = 0 }), 3, "m3", clearing},
		"externalised: messages of the user of 100 tokens or more up to m7; pass at version 57":       {mark(externalize, harnessv1.MessageClass_MESSAGE_CLASS_USER, least), 6, "m6", externalize},
		"externalised: older messages of the user, to their first line, up to m7; pass at version 57": {mark(externalize, harnessv1.MessageClass_MESSAGE_CLASS_OLD_USER), 6, "m6", externalize},
		"cleared: images and documents up to m7; pass at version 57":                                  {mark(clearing, harnessv1.MessageClass_MESSAGE_CLASS_MEDIA), 7, "m7", clearing},
		"shortened to 20 tokens: all results up to m7; pass at version 57":                            {mark(shorten, harnessv1.MessageClass_MESSAGE_CLASS_RESULT, func(w *harnessv1.Watermark) { w.ShownTokens = 20 }), 3, "m3", shorten},
	} {
		x := contextOf(&harnessv1.CompactionPlan{Renderer: 1, Watermarks: []*harnessv1.Watermark{c.mark}}, nil, all()...)
		i := slices.IndexFunc(x.Items, func(it view.Item) bool { return it.First == c.id })
		got := x.Describe(&x.Items[i], x.Items[i].Message, func(*harnessv1.Message) uint32 { return 9 }, "")
		if got.GetReason() != want || got.GetRef() != c.ref || got.GetAction() != c.done || got.GetTokens() != 9 {
			t.Errorf("%v: got %v, want %q", c.mark, got, want)
		}
		if c.done != include && (len(x.Plan()) != 1 || x.Plan()[0].GetFirstMessage() != c.id || x.Plan()[0].GetMessages() == 0 || x.Plan()[0].GetAction() != c.done) {
			t.Errorf("%v: plan %v", c.mark, x.Plan())
		}
	}
}

// TestContextOfCutArguments: what is cut as everywhere is named, and weighs what it is sent
// with.
func TestContextOfCutArguments(t *testing.T) {
	x := contextOf(nil, nil, exchange("short")...)
	whole := x.Items[1].Message
	cut := proto.CloneOf(whole)
	whole.ToolCalls[0].Arguments = content.Inline(`{"content":"a very long text"}`)
	for sent, want := range map[*harnessv1.Message]string{whole: "", cut: "shown with at most 10000 tokens, as every result and argument"} {
		got := x.Describe(&x.Items[1], sent, func(*harnessv1.Message) uint32 { return 9 }, "")
		if got.GetReason() != want || got.GetTokens() != 9 || got.GetOriginalTokens() != 9 || (got.GetRef() == "m2") != (want != "") || !slices.Equal(got.GetCalls(), []string{"read_file"}) {
			t.Errorf("got %v", got)
		}
	}
}

// TestContextWithoutResult: the placeholder of a missing result belongs to no message.
func TestContextWithoutResult(t *testing.T) {
	x := contextOf(nil, nil, exchange("short")[:2]...)
	got := x.Describe(&x.Items[2], x.Items[2].Message, func(*harnessv1.Message) uint32 { return 9 }, "")
	if got.GetFirstMessage() != 0 || got.GetRef() != "" || got.GetReason() != "" || got.GetToolName() != "read_file" || got.GetTokens() != 9 {
		t.Errorf("got %v", got)
	}
}
