package anthropic_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/pkg/conversation/opaque"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/anthropic"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

func answer(text string, calls []*harnessv1.ToolCall, parts ...*harnessv1.Part) *harnessv1.Message {
	return &harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline(text), ToolCalls: calls, Parts: parts}
}

func textPart(n uint64) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Text{Text: n}}
}

func callPart(n uint32) *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Call{Call: n}}
}

// thinkingPart has the block as JSON; empty: only a text for people.
func thinkingPart(block string) *harnessv1.Part {
	p := &harnessv1.Part{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{Text: inline("FOR PEOPLE")}}}
	if block != "" {
		p.Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(block)}}
	}
	return p
}

func mediaParts(parts ...*harnessv1.Media) (list []*harnessv1.Part) {
	for _, m := range parts {
		list = append(list, &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: m}})
	}
	return list
}

// lastRequest returns the messages of a request as they were sent, without cache marks. The
// thinking in it is that of no server.
func lastRequest(t *testing.T, cfg anthropic.Config, req *model.Request) string {
	t.Helper()
	s := modeltest.NewServer(t, modeltest.Reply{})
	p := open(t, s, cfg)
	for i, m := range req.Messages {
		m.Id = uint64(i + 1)
		if m.GetRole() == harnessv1.Role_ROLE_ASSISTANT && len(m.GetParts()) > 0 {
			m.Origin = &harnessv1.Origin{Wire: "messages", Endpoint: "anthropic " + s.MessagesURL() + "/v1/messages", Model: req.Model, RequestDigest: digestBefore(req, m)}
		}
	}
	_, _ = p.Complete(t.Context(), req, nil)
	body := string(s.Requests()[0].Body)
	_, rest, ok := strings.Cut(body, `"messages":`)
	messages, _, ok2 := strings.Cut(rest, `,"model":`)
	if !ok || !ok2 {
		t.Fatalf("the request is %s", body)
	}
	return strings.ReplaceAll(messages, `,"cache_control":{"type":"ephemeral"}`, "")
}

// digestBefore returns the digest of the request that a message of req answers.
func digestBefore(req *model.Request, m *harnessv1.Message) []byte {
	return opaque.Digest(req.Messages[:slices.Index(req.Messages, m)], req.Tools)
}

const (
	thought  = `{"type":"thinking", "thinking":"\u003c a <b> ", "signature":"c2ln","more":[1 ,2]}`
	redacted = `{"type":"redacted_thinking","data":"ZGF0YQ=="}`
)

// TestAnswersAreSentInTheOrderOfTheirParts compares the bytes of a request.
func TestAnswersAreSentInTheOrderOfTheirParts(t *testing.T) {
	calls := func(n int) (list []*harnessv1.ToolCall) {
		for i := range n {
			list = append(list, &harnessv1.ToolCall{Id: fmt.Sprint("c", i), Name: "f", Arguments: inline(`{"n": 1.0}`)})
		}
		return list
	}
	const call0, call1 = `{"type":"tool_use","id":"c0","name":"f","input":{"n":1.0}}`, `{"type":"tool_use","id":"c1","name":"f","input":{"n":1.0}}`
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	for name, c := range map[string]struct {
		answer *harnessv1.Message
		want   []string // nil: the answer is left out
	}{
		"thinking first":                    {answer("Hi.", calls(2), thinkingPart(thought), textPart(3), callPart(0), callPart(1)), []string{thought, text("Hi."), call0, call1}},
		"in between":                        {answer("Hi.", calls(2), textPart(3), callPart(0), thinkingPart(redacted), callPart(1)), []string{text("Hi."), call0, redacted, call1}},
		"text after a call":                 {answer("Hi.", calls(1), callPart(0), textPart(3)), []string{call0, text("Hi.")}},
		"text in two parts":                 {answer("Hi. Ho.", calls(1), textPart(3), thinkingPart(thought), textPart(4), callPart(0)), []string{text("Hi."), thought, text(" Ho."), call0}},
		"blank text":                        {answer(" \\n", calls(1), thinkingPart(thought), textPart(3), callPart(0)), []string{thought, text(` \\n`), call0}},
		"blank texts":                       {answer(" \n.", calls(1), thinkingPart(thought), textPart(2), callPart(0), textPart(1)), []string{thought, call0, text(".")}},
		"no opaque":                         {answer("Hi.", calls(1), thinkingPart(""), textPart(3), callPart(0)), []string{text("Hi."), call0}},
		"no parts":                          {answer("Hi.", calls(2)), []string{text("Hi."), call0, call1}},
		"parts that do not cover the text":  {answer("Hi.", calls(1), thinkingPart(thought), textPart(2), callPart(0)), []string{text("Hi."), call0}},
		"parts that cover more":             {answer("Hi.", calls(1), thinkingPart(thought), textPart(9), callPart(0)), []string{text("Hi."), call0}},
		"parts whose sum overflows":         {answer("Hi.", calls(1), thinkingPart(thought), textPart(9), textPart(math.MaxUint64-5), callPart(0)), []string{text("Hi."), call0}},
		"parts without a call":              {answer("Hi.", calls(2), thinkingPart(thought), textPart(3), callPart(0)), []string{text("Hi."), call0, call1}},
		"a call twice":                      {answer("", calls(2), thinkingPart(thought), callPart(0), callPart(0)), []string{call0, call1}},
		"a call that there is not":          {answer("", calls(1), thinkingPart(thought), callPart(3)), []string{call0}},
		"thinking that led to nothing":      {answer("Hi.", nil, textPart(3), thinkingPart(thought)), []string{text("Hi.")}},
		"thinking that led to a blank text": {answer("Hi. ", nil, textPart(3), thinkingPart(thought), textPart(1)), []string{text("Hi.")}},
		"thinking alone":                    {answer("", nil, thinkingPart(thought)), nil},
		"not UTF-8":                         {answer("Hi.", nil, thinkingPart(thought), thinkingPart("{\"signature\":\"\xff\"}"), textPart(3)), []string{text("Hi.")}},
	} {
		t.Run(name, func(t *testing.T) {
			req := modeltest.Conversation(true)
			req.Messages = append(req.Messages, c.answer)
			for _, call := range c.answer.GetToolCalls() {
				req.Messages = append(req.Messages, &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: call.GetId(), Content: inline("r")})
			}
			addUser(req, "And?")
			want := `[{"role":"user","content":[{"type":"text","text":"Read a and b."}`
			if c.want != nil {
				want += `]},{"role":"assistant","content":[` + strings.Join(c.want, ",") + `]},{"role":"user","content":[`
				for _, call := range c.answer.GetToolCalls() {
					want += `{"type":"tool_result","tool_use_id":"` + call.GetId() + `","content":[{"type":"text","text":"r"}]},`
				}
			} else {
				want += ","
			}
			want += `{"type":"text","text":"And?"}]}]`
			got := lastRequest(t, anthropic.Config{}, req)
			if got != want {
				t.Errorf("the messages are\n%s\nwant\n%s", got, want)
			}
			if strings.Contains(got, "FOR PEOPLE") {
				t.Errorf("the text for people was sent")
			}
		})
	}
}

// TestAnswersOneAfterTheOther are in conversations of earlier releases. An answer with parts
// was made for a request that ended with a text of the user.
func TestAnswersOneAfterTheOther(t *testing.T) {
	req := modeltest.Conversation(true)
	req.Messages = append(req.Messages, answer("One.", nil), answer("Two.", nil), answer("Three.", nil, thinkingPart(redacted), textPart(6)), answer("Four.", nil))
	addUser(req, "And?")
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	want := `[{"role":"user","content":[` + text("Read a and b.") + `]},{"role":"assistant","content":[` + text("One.") + "," + text("Two.") +
		`]},{"role":"user","content":[` + text("Go on.") + `]},{"role":"assistant","content":[` + redacted + "," + text("Three.") + "," + text("Four.") +
		`]},{"role":"user","content":[` + text("And?") + `]}]`
	if got := lastRequest(t, anthropic.Config{}, req); got != want {
		t.Errorf("the messages are\n%s\nwant\n%s", got, want)
	}
}

// TestMediaAreSentWhereTheyBelong compares the requests that the server read.
func TestMediaAreSentWhereTheyBelong(t *testing.T) {
	png := &harnessv1.Media{Type: "image/png", Name: "a.png", Data: []byte("png")}
	pdf := &harnessv1.Media{Type: "application/pdf", Name: "a <b>.pdf", Data: []byte("pdf")}
	unnamed := &harnessv1.Media{Type: "application/pdf", Data: []byte("pdf")}
	req := modeltest.Conversation(true)
	req.Messages[1].Parts = mediaParts(png, pdf)
	result := func(id, text string, isError bool, parts []*harnessv1.Part) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: id, Content: inline(text), IsError: isError, Parts: parts}
	}
	calls := []*harnessv1.ToolCall{{Id: "a", Name: "f"}, {Id: "b", Name: "f"}, {Id: "c", Name: "f"}}
	req.Messages = append(req.Messages, answer("", calls), result("a", "A picture.", false, mediaParts(png)), result("b", "It failed.", true, mediaParts(png)), result("c", " ", false, mediaParts(unnamed)))
	withErrors := len(req.Messages)
	addUser(req, "And?")
	req.Messages = append(req.Messages, &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Parts: mediaParts(png)})
	var seen *modeltest.Request
	s := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
		seen = r
		return modeltest.Reply{}
	})
	p := open(t, s, anthropic.Config{Endpoint: adapter.Endpoint{Takes: func(string) media.Takes { return media.Takes{Images: true, Documents: true} }}})
	complete := func(messages []*harnessv1.Message) {
		sent := *req
		sent.Messages = messages
		if _, err := p.Complete(t.Context(), &sent, nil); err != nil {
			t.Fatal(err)
		}
	}
	complete(req.Messages[:withErrors])
	if last := seen.Messages[len(seen.Messages)-1]; last.Role != "user" || len(last.Media) != 1 {
		t.Errorf("the request ends with %+v, want the image of the error", last)
	}
	complete(req.Messages)
	var got []string
	for _, m := range seen.Messages {
		line := m.Role + " " + m.Content
		for _, x := range m.Media {
			line += fmt.Sprintf(" [%s %s %s]", x.Type, x.Name, x.Data)
		}
		got = append(got, line)
	}
	want := []string{
		"system You are tested.", "user Read a and b. [image/png  png] [application/pdf a <b>.pdf pdf]", "assistant ",
		"tool A picture. [image/png  png]", "tool It failed.", "tool  [application/pdf  pdf]",
		"user  [image/png  png]", "user And? [image/png  png]",
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("messages\n%q\nwant\n%q", got, want)
	}
	checkGrowth(t, s.Requests())
	req.Messages[1].Parts[0].GetMedia().Data = nil
	if _, err := p.Complete(t.Context(), req, nil); err == nil || !strings.Contains(err.Error(), "not inline") {
		t.Errorf("error %v, want one about media that are not inline", err)
	}
}

func TestEfforts(t *testing.T) {
	const (
		unset, none, minimal, low, medium = harnessv1.Effort_EFFORT_UNSPECIFIED, harnessv1.Effort_EFFORT_NONE, harnessv1.Effort_EFFORT_MINIMAL, harnessv1.Effort_EFFORT_LOW, harnessv1.Effort_EFFORT_MEDIUM
		high, xhigh, most                 = harnessv1.Effort_EFFORT_HIGH, harnessv1.Effort_EFFORT_XHIGH, harnessv1.Effort_EFFORT_MAX
	)
	efforts := func(list ...harnessv1.Effort) []harnessv1.Effort { return list }
	config := func(kind string) string { return `,"thinking":{"type":"` + kind + `"}` }
	effort := func(name string) string { return `,"output_config":{"effort":"` + name + `"}` }
	budget := func(n int) string { return fmt.Sprintf(`,"thinking":{"type":"enabled","budget_tokens":%d}`, n) }
	for _, c := range []struct {
		thinking anthropic.Thinking
		effort   harnessv1.Effort
		show     bool
		limit    uint32 // max_tokens; 0: 64,000
		want     string
	}{
		{anthropic.Thinking{}, high, true, 0, ""},
		{anthropic.Thinking{Mode: anthropic.ThinkingNone}, none, true, 0, ""},
		{anthropic.Thinking{Mode: "adaptive"}, unset, false, 0, config("adaptive")},
		{anthropic.Thinking{Mode: "adaptive"}, unset, true, 0, `,"thinking":{"type":"adaptive","display":"summarized"}`},
		{anthropic.Thinking{Mode: "adaptive"}, none, true, 0, config("disabled")},
		{anthropic.Thinking{Mode: "adaptive", AlwaysOn: true}, none, false, 0, config("adaptive")},
		{anthropic.Thinking{Mode: "adaptive", AlwaysOn: true, Efforts: efforts(medium, low)}, none, false, 0, config("adaptive") + effort("low")},
		{anthropic.Thinking{Mode: "adaptive"}, minimal, false, 0, config("adaptive") + effort("low")},
		{anthropic.Thinking{Mode: "adaptive"}, low, false, 0, config("adaptive") + effort("low")},
		{anthropic.Thinking{Mode: "adaptive"}, medium, false, 0, config("adaptive") + effort("medium")},
		{anthropic.Thinking{Mode: "adaptive"}, high, false, 0, config("adaptive") + effort("high")},
		{anthropic.Thinking{Mode: "adaptive"}, xhigh, false, 0, config("adaptive") + effort("xhigh")},
		{anthropic.Thinking{Mode: "adaptive"}, most, false, 0, config("adaptive") + effort("max")},
		{anthropic.Thinking{Mode: "adaptive", Efforts: efforts(low, medium, high, most)}, xhigh, false, 0, config("adaptive") + effort("high")},
		{anthropic.Thinking{Mode: "adaptive", Efforts: efforts(medium, high)}, low, false, 0, config("adaptive") + effort("medium")},
		{anthropic.Thinking{Mode: "budget"}, unset, true, 0, ""},
		{anthropic.Thinking{Mode: "budget"}, none, true, 0, ""},
		{anthropic.Thinking{Mode: "budget", Efforts: efforts(low)}, none, true, 0, ""},
		{anthropic.Thinking{Mode: "budget"}, minimal, true, 0, budget(1024)},
		{anthropic.Thinking{Mode: "budget"}, low, false, 0, budget(2048)},
		{anthropic.Thinking{Mode: "budget"}, medium, false, 0, budget(8192)},
		{anthropic.Thinking{Mode: "budget"}, high, false, 0, budget(16384)},
		{anthropic.Thinking{Mode: "budget"}, xhigh, false, 0, budget(32768)},
		{anthropic.Thinking{Mode: "budget"}, most, false, 0, budget(62976)},
		{anthropic.Thinking{Mode: "budget"}, high, false, 8192, budget(7168)},
		{anthropic.Thinking{Mode: "budget"}, high, false, 2048, budget(1024)},
		{anthropic.Thinking{Mode: "budget"}, high, false, 2047, ""},
		{anthropic.Thinking{Mode: "budget", Efforts: efforts(low, high)}, medium, false, 0, budget(2048)},
	} {
		s := modeltest.NewServer(t, modeltest.Reply{})
		limit := c.limit
		if limit == 0 {
			limit = 64000
		}
		p := open(t, s, anthropic.Config{MaxOutput: func(string) uint32 { return limit }, Thinking: func(string) anthropic.Thinking { return c.thinking }})
		req := modeltest.Conversation(true)
		req.Tools, req.Effort, req.ShowReasoning = nil, c.effort, c.show
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		sent := s.Requests()[0]
		_, got, _ := strings.Cut(string(sent.Body), `"stream":true`)
		if got != c.want+"}" || !strings.Contains(string(sent.Body), fmt.Sprintf(`"max_tokens":%d,`, limit)) {
			t.Errorf("%+v, effort %s: the request ends with %s, want %s", c.thinking, c.effort, got, c.want)
		}
		if beta := sent.Header.Get("Anthropic-Beta"); beta != "" {
			t.Errorf("beta %s was sent", beta)
		}
	}
}
