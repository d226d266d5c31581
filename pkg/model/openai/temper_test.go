package openai_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/model/adapter"
	"github.com/harnessmesh/harnessmesh/pkg/model/openai"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// service is a service with the settings that fit it. kept reports whether the reasoning
// of an answer goes back.
type service struct {
	config openai.Config
	temper modeltest.Temper
	kept   func(calls bool) bool
}

func never(bool) bool       { return false }
func always(bool) bool      { return true }
func withCalls(c bool) bool { return c }

// services are the settings of services with the five tempers, and of two more.
func services() map[string]service {
	return map[string]service{
		"deepseek": {
			openai.Config{Reasoning: openai.Reasoning{Field: "reasoning_content", Back: openai.BackAlways, HasBlank: true}, Effort: openai.EffortThinking},
			modeltest.TemperDeepSeek(), always,
		},
		"moonshot": {
			openai.Config{
				Reasoning: openai.Reasoning{Field: "reasoning_content", Back: openai.BackWithCalls, Blank: " ", HasBlank: true},
				Effort:    openai.EffortThinking,
			},
			modeltest.TemperMoonshot(), withCalls,
		},
		"mistral": {
			openai.Config{
				Reasoning: openai.Reasoning{Chunks: true, Back: openai.BackAlways}, Effort: openai.EffortField,
				NoStreamOptions: true, NoUserAfterResults: true, ShortCallIDs: true,
			},
			modeltest.TemperMistral(), always,
		},
		"groq": {openai.Config{Effort: openai.EffortField}, modeltest.TemperGroq(), never},
		"openrouter": {
			openai.Config{
				Reasoning: openai.Reasoning{Field: "reasoning_details", Back: openai.BackAlways}, Effort: openai.EffortObject, CacheKey: true,
			},
			modeltest.TemperOpenRouter(), always,
		},
		"google": {openai.Config{Reasoning: openai.Reasoning{Signature: true}, Effort: openai.EffortField}, modeltest.TemperGemini(), never},
		"vllm":   {openai.Config{Reasoning: openai.Reasoning{Back: openai.BackAlways}, Effort: openai.EffortField}, modeltest.TemperVLLM(), always},
	}
}

// server starts a server of the service and a provider with its settings.
func (s service) start(t *testing.T, replies ...modeltest.Reply) (*modeltest.Server, *openai.Provider) {
	t.Helper()
	server := modeltest.NewServer(t, replies...)
	server.Temper = s.temper
	config := s.config
	config.BaseURL, config.HTTPClient = server.BaseURL(), server.Client()
	config.Takes = func(name string) media.Takes { return media.Takes{Images: name == "test-model", Documents: true} }
	p, err := openai.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return server, p
}

const turns = 60

// TestSuiteOfServices has a server of each service.
func TestSuiteOfServices(t *testing.T) {
	for name, service := range services() {
		t.Run(name, func(t *testing.T) {
			modeltest.Suite(t, func(t *testing.T, replies ...modeltest.Reply) model.Provider {
				_, p := service.start(t, replies...)
				return p
			})
		})
	}
}

// script returns the replies of a talk: parallel calls, texts alone, calls alone, answers
// without reasoning, and faults, after which the same reply comes whole.
func script(streaming bool) []modeltest.Reply {
	var replies []modeltest.Reply
	for i := range turns {
		thinking := modeltest.ReplyPart{Thinking: &modeltest.Thinking{Text: fmt.Sprintf("Step %d: is a < b & \"c\"? Ja, 思考 😀.\n", i), Size: 100 * (i % 5)}}
		text := modeltest.ReplyPart{Text: fmt.Sprintf("Answer %d.", i)}
		call := func(name string) modeltest.ReplyPart {
			return modeltest.ReplyPart{Call: &modeltest.Call{ID: fmt.Sprintf("%s%08d", name, i), Name: "read_file", Arguments: fmt.Sprintf(`{"path": "%d"}`, i)}}
		}
		reply := modeltest.Reply{Usage: &modeltest.Usage{Input: 100, Output: 20, Cached: 50, Reasoning: 7}}
		switch i % 6 {
		case 0:
			reply.Parts = []modeltest.ReplyPart{thinking, text, call("a"), call("b")}
		case 1:
			reply.Parts = []modeltest.ReplyPart{thinking, text}
		case 2:
			reply.Parts = []modeltest.ReplyPart{thinking, call("c")}
		case 3:
			reply.Parts = []modeltest.ReplyPart{text, call("d")}
		case 4:
			reply.Parts = []modeltest.ReplyPart{thinking, {Thinking: &modeltest.Thinking{Redacted: true}}, call("e"), call("f"), call("g")}
		case 5:
			reply.Parts = []modeltest.ReplyPart{text}
		}
		fault := []modeltest.Fault{0, 0, modeltest.FaultCut, 0, modeltest.FaultError, 0, 0, modeltest.FaultNoFinish}[i%8]
		if fault != 0 && (streaming || fault != modeltest.FaultNoFinish) { // a plain answer is whole
			failed := reply
			failed.Fault = fault
			replies = append(replies, failed)
		}
		replies = append(replies, reply)
	}
	return replies
}

// talk is a conversation that a provider continues.
type talk struct {
	*testing.T

	req    *model.Request
	p      *openai.Provider
	server *modeltest.Server
}

// ask makes tries until one succeeds and appends the answer with what follows it.
func (k *talk) ask(turn int) *model.Response {
	k.Helper()
	resp, err := k.try(turn)
	if err != nil {
		k.Fatalf("turn %d: %v", turn, err)
	}
	return resp
}

// try makes tries until one succeeds, and appends the answer with the messages that follow it. The
// error is a refusal.
func (k *talk) try(turn int) (*model.Response, error) {
	k.Helper()
	var said strings.Builder
	for {
		said.Reset()
		resp, err := k.p.Complete(k.Context(), k.req, func(d model.Delta) { said.WriteString(d.Reasoning) })
		if err != nil {
			if failed := model.AsError(err); !failed.Retryable || failed.Status != 0 {
				return nil, err
			}
			continue
		}
		if k.req.Streaming && said.String() != reasoning(resp) {
			k.Errorf("turn %d: deltas %q of the reasoning %q", turn, said.String(), reasoning(resp))
		}
		first := len(k.req.Messages) + 1
		modeltest.Answer(k.req, resp, func(c *harnessv1.ToolCall) string { return "result of " + c.GetId() })
		if m := k.req.Messages[first]; turn%5 == 0 && m.GetRole() == harnessv1.Role_ROLE_TOOL { // what a tool shows
			m.Parts = []*harnessv1.Part{screenshot()}
		}
		if turn%7 == 0 { // a message of the user in between
			k.append(&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: inline(fmt.Sprint("Message ", turn))})
		}
		if turn%20 == 10 { // what another model answers
			k.append(&harnessv1.Message{
				Role: harnessv1.Role_ROLE_ASSISTANT, Content: inline("Elsewhere."), ToolCalls: []*harnessv1.ToolCall{{Id: fmt.Sprint("x", turn), Name: "read_file"}},
				Parts: []*harnessv1.Part{
					{Kind: &harnessv1.Part_Reasoning{Reasoning: &harnessv1.Reasoning{}}, Opaque: &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: []byte(`{"foreign":1}`)}}},
					{Kind: &harnessv1.Part_Text{Text: uint64(len("Elsewhere."))}}, {Kind: &harnessv1.Part_Call{}},
				},
				Origin: &harnessv1.Origin{Wire: "chat", Endpoint: "elsewhere", Model: "other"},
			})
			k.append(&harnessv1.Message{Role: harnessv1.Role_ROLE_TOOL, ToolCallId: fmt.Sprint("x", turn), Content: inline("found")})
		}
		return resp, nil
	}
}

// screenshot is an image without an image in it.
func screenshot() *harnessv1.Part {
	return &harnessv1.Part{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Data: []byte("PNG"), Width: 10, Height: 10, Name: "a.png"}}}
}

func (k *talk) append(m *harnessv1.Message) {
	m.Id = uint64(len(k.req.Messages)) + 1
	k.req.Messages = append(k.req.Messages, m)
}

// reasoning returns the text of the reasoning for people.
func reasoning(r *model.Response) string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.GetReasoning().GetText().GetInline())
	}
	return b.String()
}

// TestTempers talks with each service for 60 turns. The servers are strict: they refuse
// requests with reasoning that is missing, unknown, or not the one that they have sent.
func TestTempers(t *testing.T) {
	for name, service := range services() {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/streaming %t", name, streaming), func(t *testing.T) {
				server, p := service.start(t, script(streaming)...)
				req := modeltest.Conversation(streaming)
				req.Effort, req.CacheKey, req.ShowReasoning = harnessv1.Effort_EFFORT_HIGH, "run-1", true
				k := &talk{T: t, req: req, p: p, server: server}
				var want modeltest.ReturnCount
				for turn := range turns {
					count(&want, service, turn, k)
				}
				last := server.Requests()[len(server.Requests())-1]
				if last.Returned != want {
					t.Errorf("the last request brings back %+v, want %+v", last.Returned, want)
				}
				checkGrowth(t, server.Requests())
			})
		}
	}
}

// count performs a turn, and counts the reasoning of it that the last request has to bring back.
func count(want *modeltest.ReturnCount, s service, turn int, k *talk) {
	resp := k.ask(turn)
	if turn == turns-1 {
		return
	}
	calls := len(resp.ToolCalls) > 0
	thought, foreign := turn%6 != 3 && turn%6 != 5, turn%20 == 10
	blank := s.config.Reasoning.HasBlank
	switch {
	case thought && s.kept(calls):
		want.Reasoning++
	case blank && s.kept(calls):
		want.Blank++
	}
	if foreign && blank {
		want.Blank++
	}
	if s.temper.Signatures {
		want.Signatures++
		if foreign {
			want.Substitutes++
		}
	}
}

// checkGrowth checks that no request was refused and that each begins with the former one.
func checkGrowth(t *testing.T, requests []modeltest.ReceivedRequest) {
	t.Helper()
	const end = `],"model":`
	var before, settings []byte
	for i, r := range requests {
		if r.Refused != "" {
			t.Fatalf("request %d was refused: %s\n%s", i, r.Refused, r.Body)
		}
		messages, rest, found := bytes.Cut(r.Body, []byte(end))
		if !found || !bytes.HasPrefix(messages, before) {
			t.Fatalf("request %d does not begin with the former one:\n%s\n%s", i, before, r.Body)
		}
		if settings != nil && !bytes.Equal(rest, settings) {
			t.Fatalf("request %d ends with %s, the former one with %s", i, rest, settings)
		}
		before, settings = messages, rest
	}
}

// TestRefusedReasoningIsLeftOut alters what goes back: the server refuses it, the refusal
// names the adjustment, and the request succeeds without.
func TestRefusedReasoningIsLeftOut(t *testing.T) {
	for name, service := range services() {
		if name == "groq" {
			continue // it gets none back
		}
		t.Run(name, func(t *testing.T) {
			replies := script(true)[:1]
			server, p := service.start(t, replies[0], modeltest.Reply{Text: "Done."})
			k := &talk{T: t, req: modeltest.Conversation(true), p: p, server: server}
			k.ask(1)
			answer := k.req.Messages[2]
			for _, part := range answer.GetParts() {
				if data := part.GetOpaque().GetInline(); data != nil {
					data = bytes.Replace(data, []byte("Step"), []byte("Stop"), 1)
					data = bytes.Replace(data, []byte(`_signature":"`), []byte(`_signature":"x`), 1)
					part.Opaque = &harnessv1.Opaque{Value: &harnessv1.Opaque_Inline{Inline: data}}
				}
			}
			_, err := p.Complete(t.Context(), k.req, nil)
			if failed := model.AsError(err); failed.Adjustment != harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE || failed.Retryable {
				t.Fatalf("error %+v", err)
			}
			k.req.Adjustments = []*harnessv1.ModelAdjustment{{Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_OPAQUE, ThroughMessage: answer.GetId()}}
			resp, err := p.Complete(t.Context(), k.req, nil)
			if err != nil || resp.Text != "Done." {
				t.Errorf("%v, %v", resp, err)
			}
			if got := server.Requests()[2].Returned; got.Reasoning != 0 || got.Signatures != 0 {
				t.Errorf("the request brings back %+v", got)
			}
		})
	}
}

// TestBothMembers has a server that sends each piece of reasoning twice.
func TestBothMembers(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		server := modeltest.NewServer(t, modeltest.Reply{
			Parts: []modeltest.ReplyPart{{Thinking: &modeltest.Thinking{Text: "Only once, but long."}}, {Text: "x"}}, Quirks: modeltest.Quirks{BothMembers: true},
		})
		var said strings.Builder
		resp, err := provider(t, server).Complete(t.Context(), modeltest.Conversation(streaming), func(d model.Delta) { said.WriteString(d.Reasoning) })
		if err != nil {
			t.Fatal(err)
		}
		if reasoning(resp) != "Only once, but long." || streaming && said.String() != reasoning(resp) {
			t.Errorf("reasoning %q, deltas %q", reasoning(resp), said.String())
		}
	}
}

// TestRefusalOfTheModel has a refusal after half an answer.
func TestRefusalOfTheModel(t *testing.T) {
	for _, streaming := range []bool{true, false} {
		server := modeltest.NewServer(t, modeltest.Reply{Text: "Well. ", RefusalText: "I cannot help with that."})
		resp, err := provider(t, server).Complete(t.Context(), modeltest.Conversation(streaming), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.FinishReason != "content_filter" || resp.Refusal != "refusal" || !strings.HasSuffix(resp.Text, "I cannot help with that.") {
			t.Errorf("finish reason %q, refusal %q, text %q", resp.FinishReason, resp.Refusal, resp.Text)
		}
	}
}

// TestMediaReachModelsThatTakeThem has an image of the user and one of a tool.
func TestMediaReachModelsThatTakeThem(t *testing.T) {
	for _, takes := range []bool{true, false} {
		var received *modeltest.Request
		server := modeltest.NewServerFunc(t, func(r *modeltest.Request) modeltest.Reply {
			received = r
			return modeltest.Reply{}
		})
		p, err := openai.New(openai.Config{
			Endpoint: adapter.Endpoint{BaseURL: server.BaseURL(), HTTPClient: server.Client(), Takes: func(string) media.Takes { return media.Takes{Images: takes} }},
		})
		if err != nil {
			t.Fatal(err)
		}
		req := modeltest.Conversation(false)
		req.Messages[1].Parts = []*harnessv1.Part{screenshot()}
		modeltest.Answer(req, &model.Response{ToolCalls: []*harnessv1.ToolCall{{Id: "a", Name: "read_file"}}}, func(*harnessv1.ToolCall) string { return "shown" })
		req.Messages[3].Parts = []*harnessv1.Part{screenshot()}
		if _, err := p.Complete(t.Context(), req, nil); err != nil {
			t.Fatal(err)
		}
		var images []string
		for i, m := range received.Messages {
			for _, one := range m.Media {
				images = append(images, fmt.Sprintf("%d %s %s", i, m.Role, one.Data))
			}
		}
		want := []string{"1 user PNG", "4 user PNG"}
		if !takes {
			want = nil
		}
		if !slices.Equal(images, want) {
			t.Errorf("a model that takes images, %t, gets %q, want %q", takes, images, want)
		}
	}
}

// TestKeyHeader has a service with its own header for the key, and additional ones.
func TestKeyHeader(t *testing.T) {
	server := modeltest.NewServer(t, modeltest.Reply{}, modeltest.Reply{Status: 401})
	p, err := openai.New(openai.Config{
		Endpoint: adapter.Endpoint{Name: "azure", BaseURL: server.BaseURL(), APIKey: "k-1", KeyHeader: "api-key", Header: http.Header{"X-Title": {"harness"}}, KeyVariable: "AZURE_KEY", BaseVariable: "AZURE_URL", HTTPClient: server.Client()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Complete(t.Context(), modeltest.Conversation(false), nil); err != nil {
		t.Fatal(err)
	}
	h := server.Requests()[0].Header
	if h.Get("Api-Key") != "k-1" || h.Get("Authorization") != "" || h.Get("X-Title") != "harness" {
		t.Errorf("headers %v", h)
	}
	if _, err := p.Complete(t.Context(), modeltest.Conversation(false), nil); err == nil || !strings.Contains(err.Error(), "AZURE_KEY") {
		t.Errorf("error %v, want one with the variable", err)
	}
}
