package turnserver_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/model"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/tokens"
	"github.com/harnessmesh/harnessmesh/services/turn/turnserver"
	"github.com/harnessmesh/harnessmesh/test/kit/marktest"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// history is a conversation with a call, whose result is longer than models are shown.
func history(b *bed) []*harnessv1.Message {
	return []*harnessv1.Message{
		{Id: 1, Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Content: content.Inline(goal)},
		{Id: 2, Role: harnessv1.Role_ROLE_ASSISTANT, TurnNumber: 1, Content: content.Inline("Look."), ToolCalls: []*harnessv1.ToolCall{
			{Id: "c", Name: "read_file", Arguments: content.Inline(`{"path":"a.txt"}`)},
		}},
		{Id: 3, Role: harnessv1.Role_ROLE_TOOL, TurnNumber: 1, ToolCallId: "c", ToolName: "read_file", Content: b.Blob(strings.Repeat("a line of the file\n", 2000)),
			Durability: harnessv1.Durability_DURABILITY_REPLAYABLE},
	}
}

// filled is a state after history, in a window of 8,000 tokens of which used are.
func (b *bed) filled(used uint32) *harnessv1.Snapshot {
	s := b.state()
	s.MessageCount, s.ToldTurn, s.Config.Context.MaxInputTokens = 3, 2, proto.Uint32(8000)
	s.TokenBudget = &harnessv1.TokenBudget{MaxInputTokens: 8000, UsedTokens: used}
	return s
}

// turnOver performs the turn that follows messages, and returns the record of its response.
func (b *bed) turnOver(s *harnessv1.Snapshot, messages ...*harnessv1.Message) (*harnessv1.ModelResponded, *harnessv1.Snapshot) {
	b.Helper()
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: s, Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}}, messages...)
	b.start()
	journal, outcome := b.records()
	for _, rec := range journal {
		if r := rec.GetJournal().GetModelResponded(); r != nil {
			return r, outcome.GetStep().GetSnapshot()
		}
	}
	b.Fatalf("no response in %s", entries(journal))
	return nil, nil
}

// prepared returns what Prepare says of the same turn.
func (b *bed) prepared(s *harnessv1.Snapshot, messages ...*harnessv1.Message) *harnessv1.ModelRequest {
	b.Helper()
	r, err := harnessv1.NewTurnServiceClient(b.dial()).Prepare(b.Context(), &harnessv1.PrepareRequest{
		Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
		Conversation: messages,
	})
	if err != nil {
		b.Fatal(err)
	}
	return r.GetRequest()
}

// weighed returns the weights of the messages of a request, and of the whole request.
func weighed(r *harnessv1.ModelRequest) (weights []uint32, total uint32) {
	for _, m := range r.GetMessages() {
		weights = append(weights, shown.ModelOf(nil, r.GetModel()).Weight(m))
		total += weights[len(weights)-1]
	}
	for _, spec := range r.GetTools() {
		total += uint32(tokens.Tool(r.GetModel(), spec))
	}
	return weights, total + 3
}

// TestResponsesHaveTheDigestsOfTheirRequest: that of the messages, and that of the tools with
// a blob unless the request before had the same.
func TestResponsesHaveTheDigestsOfTheirRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.filled(1999)
	want := b.prepared(s, history(b)...)
	r, after := b.turnOver(s, history(b)...)
	if !bytes.Equal(r.GetViewDigest(), shown.Extend(nil, want.GetMessages()...)) {
		t.Errorf("the digest is %x, want that of %v", r.GetViewDigest(), want.GetMessages())
	}
	data, err := b.Log.Blob(b.Context(), b.Run, r.GetTools().GetDigest())
	list := &harnessv1.ToolList{}
	if err != nil || proto.Unmarshal(data, list) != nil || !proto.Equal(list, &harnessv1.ToolList{Tools: want.GetTools()}) || r.GetTools().GetSize() != uint64(len(data)) {
		t.Errorf("the tools are %v, %v, want %v", list, err, want.GetTools())
	}
	if after.GetToolsDigest() != r.GetTools().GetDigest() {
		t.Errorf("the state has the tools %q", after.GetToolsDigest())
	}
	if r.GetWeights() != nil || r.GetCountedTokens() != 0 {
		t.Errorf("below a quarter of the window %v and %d tokens were counted", r.GetWeights(), r.GetCountedTokens())
	}
	next := newBed(t, calls(done))
	same := next.filled(1999)
	same.ToolsDigest = after.GetToolsDigest()
	if r, after := next.turnOver(same, history(next)...); r.GetTools() != nil || after.GetToolsDigest() != same.GetToolsDigest() {
		t.Errorf("the same tools are stored again: %v", r.GetTools())
	}
}

// TestMessagesAreWeighedOnce, from a quarter of the window on.
func TestMessagesAreWeighedOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.filled(2000)
	want, total := weighed(b.prepared(s, history(b)...))
	r, after := b.turnOver(s, history(b)...)
	if w := r.GetWeights(); w.GetFirstMessage() != 1 || !slices.Equal(w.GetTokens(), want) || r.GetCountedTokens() != total {
		t.Errorf("weights %v and %d tokens, want %d and %d", w, r.GetCountedTokens(), want, total)
	}
	if after.GetTokenBudget().GetWeighedMessages() != 3 {
		t.Errorf("the state has %v", after.GetTokenBudget())
	}

	later := newBed(t, calls(done))
	messages := history(later)
	later.PutJournal(&harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: &harnessv1.ModelResponded{
		Weights: &harnessv1.Weights{FirstMessage: 1, Tokens: []uint32{100, 200}},
	}}}, messages[:2]...)
	r, _ = later.turnOver(later.filled(2000), messages[2])
	if w := r.GetWeights(); w.GetFirstMessage() != 3 || !slices.Equal(w.GetTokens(), want[2:]) || r.GetCountedTokens() != total-want[0]-want[1]+300 {
		t.Errorf("with weights of the first two: %v and %d tokens, want those recorded to count", w, r.GetCountedTokens())
	}
}

// TestRefusedToolsAreNotCounted: a request is sent without the tools that its model refuses.
func TestRefusedToolsAreNotCounted(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.filled(2000)
	request := b.prepared(s, history(b)...)
	_, total := weighed(request)
	refused := request.GetTools()[0]
	s.ModelAdjustments = []*harnessv1.ModelAdjustment{{Model: s.GetModel(), Adjustment: harnessv1.Adjustment_ADJUSTMENT_NO_TOOL, Tool: refused.GetName()}}
	r, _ := b.turnOver(s, history(b)...)
	if want := total - uint32(tokens.Tool(request.GetModel(), refused)); r.GetCountedTokens() != want {
		t.Errorf("%d tokens were counted, want %d of %d", r.GetCountedTokens(), want, total)
	}
}

// TestCompactedMessagesAreCountedAsSent, and weighed as they are without compaction.
func TestCompactedMessagesAreCountedAsSent(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.filled(2000)
	whole, _ := weighed(b.prepared(s, history(b)...))
	s.CompactionPlan = &harnessv1.CompactionPlan{Renderer: view.Renderer, Watermarks: []*harnessv1.Watermark{{
		Action: harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR, Class: harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE, ThroughMessage: 3,
	}}}
	request := b.prepared(s, history(b)...)
	cleared, total := weighed(request)
	if cleared[2] >= whole[2]/2 {
		t.Fatalf("the result is not cleared: %v", request.GetMessages()[2])
	}
	r, _ := b.turnOver(s, history(b)...)
	if !slices.Equal(r.GetWeights().GetTokens(), whole) || r.GetCountedTokens() != total || !bytes.Equal(r.GetViewDigest(), shown.Extend(nil, request.GetMessages()...)) {
		t.Errorf("weights %v and %d tokens, want %d and %d", r.GetWeights(), r.GetCountedTokens(), whole, total)
	}
}

func TestRequestsAreNotDescribedWithoutCompaction(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(call("a", "read_file", "path", "PLAN.md"), done))
	b.write("PLAN.md", "1. Look.")
	messages := history(b)
	messages[2].Durability = 0
	b.Put(&harnessv1.Step{From: "compaction", To: "turn", Snapshot: marktest.Off(b.filled(7000)), Message: &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}}, messages...)
	b.start()
	journal, outcome := b.records()
	for _, rec := range append(journal, outcome) {
		if found := marktest.In(rec); len(found) > 0 {
			t.Errorf("%v has %v", rec.GetBody(), found)
		}
	}
}

// slowBlobs is a log in which a blob is stored once the model was called.
type slowBlobs struct {
	turnserver.Log
	called <-chan struct{} // closed by the model
	err    error
	puts   atomic.Int32
}

func (l *slowBlobs) PutBlob(ctx context.Context, run runlog.Run, data []byte) (*harnessv1.BlobRef, error) {
	l.puts.Add(1)
	select {
	case <-l.called:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.Log.PutBlob(ctx, run, data)
}

// slowModel is a model whose answer follows the storing of the tools.
type slowModel struct {
	model.Provider
	called chan struct{}
	log    *slowBlobs
	wait   func(func() bool)
}

func (p *slowModel) Complete(ctx context.Context, r *model.Request, delta func(model.Delta)) (*model.Response, error) {
	select {
	case <-p.called:
	default:
		p.wait(func() bool { return p.log.puts.Load() > 0 })
		close(p.called)
	}
	return p.Provider.Complete(ctx, r, delta)
}

// TestRequestsAreDescribedWhileTheModelAnswers: neither waits for the other to begin, and the
// response waits for both. A second try finds the description, and a log that fails costs no
// answer.
func TestRequestsAreDescribedWhileTheModelAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		replies []modeltest.Reply
		err     error
		puts    int32
	}{
		"an answer":   {[]modeltest.Reply{calls(done)}, nil, 1},
		"a retry":     {[]modeltest.Reply{{Status: 503, ErrorMessage: "busy"}, calls(done)}, nil, 1},
		"a log fails": {[]modeltest.Reply{calls(done)}, errors.New("full"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			called, log := make(chan struct{}), &slowBlobs{err: c.err}
			log.called = called
			var b *bed
			b = newBedWith(t, nil, func(cfg *turnserver.Config) {
				log.Log, cfg.Log = cfg.Log, log
				open := cfg.Open
				cfg.Open = func(ref string) (model.Provider, string, error) {
					p, name, err := open(ref)
					return &slowModel{Provider: p, called: called, log: log, wait: func(is func() bool) { b.within("the tools are being stored", is) }}, name, err
				}
			}, c.replies...)
			s := b.filled(2000)
			s.Config.Model.BackoffInitial = nil
			r, after := b.turnOver(s, history(b)...)
			if log.puts.Load() != c.puts || (r.GetTools() != nil) != (c.err == nil) || (after.GetToolsDigest() != "") != (c.err == nil) {
				t.Errorf("%d blobs, the response has the tools %v", log.puts.Load(), r.GetTools())
			}
		})
	}
}

// TestTurnServiceDescribesItsRequest: the turn shows its guidance as Prepare does, and has
// weights. Its tools are in no blob.
func TestTurnServiceDescribesItsRequest(t *testing.T) {
	t.Parallel()
	b := newBed(t, calls(done))
	s := b.filled(2000)
	s.TurnCount, s.ToldTurn = 0, 0
	messages := history(b)[:1]
	s.MessageCount = 1
	want := b.prepared(s, messages...)
	updates, _ := collect(t, b, &harnessv1.TurnRequest{
		Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
		Conversation: messages,
	})
	var r *harnessv1.ModelResponded
	for _, u := range updates {
		if u.GetJournal().GetModelResponded() != nil {
			r = u.GetJournal().GetModelResponded()
		}
	}
	sent := b.request(0).Messages
	if len(sent) < 2 || len(sent) != len(want.GetMessages()) || sent[1].Content != want.GetMessages()[1].GetContent().GetInline() {
		t.Fatalf("the model is sent %v, want %v", sent, want.GetMessages())
	}
	if weights, total := weighed(want); !slices.Equal(r.GetWeights().GetTokens(), weights) || r.GetCountedTokens() != total || r.GetTools() != nil {
		t.Errorf("the response is %v, want the weights %d, %d tokens and no blob", r, weights, total)
	}
}

// TestWeightsOfARecordAreBounded: the messages beyond the bound are counted by later turns,
// and then the request is.
func TestWeightsOfARecordAreBounded(t *testing.T) {
	t.Parallel()
	const most = 16 << 10
	b := newBed(t, calls(done))
	s := b.filled(2000)
	var messages []*harnessv1.Message
	for i := range most + 1 {
		messages = append(messages, &harnessv1.Message{Id: uint64(i) + 1, Role: harnessv1.Role_ROLE_USER, Content: content.Inline("x")})
	}
	s.MessageCount = most + 1
	updates, _ := collect(t, b, &harnessv1.TurnRequest{
		Input:        &harnessv1.StepInput{Namespace: b.Run.Namespace, RunId: b.Run.ID, Version: 1, Step: &harnessv1.Step{To: "turn", Snapshot: s}},
		Conversation: messages,
	})
	for _, u := range updates {
		if r := u.GetJournal().GetModelResponded(); r != nil && (len(r.GetWeights().GetTokens()) != most || r.GetCountedTokens() != 0) {
			t.Errorf("%d weights and %d tokens, want %d and none", len(r.GetWeights().GetTokens()), r.GetCountedTokens(), most)
		}
	}
	if len(b.model.Requests()) != 1 {
		t.Fatal("no request was sent")
	}
}
