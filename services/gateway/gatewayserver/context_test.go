package gatewayserver_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	"github.com/harnessmesh/harnessmesh/pkg/conversation"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/shown"
	"github.com/harnessmesh/harnessmesh/pkg/conversation/view"
	"github.com/harnessmesh/harnessmesh/pkg/fault"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
	"github.com/harnessmesh/harnessmesh/services/gateway/gatewayserver"
)

// Short names of what plans name.
const (
	clearing    = harnessv1.CompactionAction_COMPACTION_ACTION_CLEAR
	externalize = harnessv1.CompactionAction_COMPACTION_ACTION_EXTERNALIZE
	summarize   = harnessv1.CompactionAction_COMPACTION_ACTION_SUMMARIZE
	shorten     = harnessv1.CompactionAction_COMPACTION_ACTION_SHORTEN

	replayable = harnessv1.MessageClass_MESSAGE_CLASS_REPLAYABLE
	anyResult  = harnessv1.MessageClass_MESSAGE_CLASS_RESULT
	user       = harnessv1.MessageClass_MESSAGE_CLASS_USER
	span       = harnessv1.MessageClass_MESSAGE_CLASS_SPAN
)

// talk is a run whose conversation a test writes.
type talk struct {
	*hand
	folded conversation.Conversation
	turn   uint32
	reads  *countedBlobs
}

// countedBlobs is a log that counts the blobs that are read.
type countedBlobs struct {
	runlog.Log
	mu      sync.Mutex
	digests []string
}

func (c *countedBlobs) Blob(ctx context.Context, run runlog.Run, digest string) ([]byte, error) {
	c.mu.Lock()
	c.digests = append(c.digests, digest)
	c.mu.Unlock()
	return c.Log.Blob(ctx, run, digest)
}

func (c *countedBlobs) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.digests
	c.digests = nil
	return taken
}

// newTalk starts a run with a window of 16,000 tokens, a system prompt and a goal.
func newTalk(t testing.TB) *talk {
	t.Helper()
	counted := &countedBlobs{Log: shared}
	b := newBed(t, func(c *gatewayserver.Config) { c.Log = counted })
	k := &talk{hand: b.started("r1"), reads: counted}
	k.snapshot = proto.CloneOf(k.snapshot)
	k.snapshot.Model = "openai:gpt-4o"
	k.snapshot.Config = runstate.Resolve(nil, 16_000)
	k.add(&harnessv1.Record{Body: k.stepTo("compaction", nil)},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are an agent.")},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Kind: harnessv1.MessageKind_MESSAGE_KIND_USER_INPUT, Kept: true, Content: content.Inline("Find the bug.")})
	return k
}

func (k *talk) stepTo(to string, change func(*harnessv1.Step)) *harnessv1.Record_Step {
	s := &harnessv1.Step{From: "test", To: to, Snapshot: proto.CloneOf(k.snapshot)}
	if change != nil {
		change(s)
	}
	s.Snapshot.MessageCount = uint64(len(k.folded.Messages))
	k.snapshot = s.GetSnapshot()
	return &harnessv1.Record_Step{Step: s}
}

// add appends a record with messages.
func (k *talk) add(rec *harnessv1.Record, messages ...*harnessv1.Message) {
	k.b.t.Helper()
	for i, m := range messages {
		m.Id, m.TurnNumber = uint64(len(k.folded.Messages)+i)+1, k.turn
	}
	rec.Appended = messages
	k.append(rec)
	k.folded.Fold(rec)
}

// compacted appends the step of compaction to turn with a plan.
func (k *talk) compacted(plan *harnessv1.CompactionPlan, used uint32) {
	k.b.t.Helper()
	k.add(&harnessv1.Record{Body: k.stepTo("turn", func(s *harnessv1.Step) {
		s.From = "compaction"
		s.Snapshot.CompactionPlan = plan
		s.Snapshot.TokenBudget = &harnessv1.TokenBudget{MaxInputTokens: 16_000, UsedTokens: used, ToolTokens: 700}
		s.Message = &harnessv1.Step_CompactionComplete{CompactionComplete: &harnessv1.CompactionComplete{}}
	})})
}

// result is the content of a result, in a blob if it is large.
func (k *talk) result(text string) *harnessv1.Content {
	k.b.t.Helper()
	if len(text) < 8<<10 {
		return content.Inline(text)
	}
	ref, err := k.b.log.PutBlob(k.b.ctx, k.run, []byte(text))
	k.b.must(err)
	return &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: ref}}
}

// sent returns the messages of the request that the next turn sends.
func (k *talk) sent(summary *harnessv1.StructuredSummary) []*harnessv1.Message {
	k.b.t.Helper()
	var v view.View
	var messages []*harnessv1.Message
	texts := shown.New(shared.Blob, 1<<20)
	for _, it := range v.Update(&k.folded, k.snapshot.GetCompactionPlan(), summary) {
		limit := runstate.ShownTokens(k.snapshot.GetConfig())
		if it.Limit > 0 {
			limit = it.Limit
		}
		one, err := texts.Messages(k.b.ctx, k.run, k.snapshot.GetModel(), limit, true, []*harnessv1.Message{it.Message})
		k.b.must(err)
		messages = append(messages, one...)
	}
	return messages
}

// respond appends a response with a call, made of the request that sent returns, and
// returns its version.
func (k *talk) respond(summary *harnessv1.StructuredSummary) uint64 {
	k.b.t.Helper()
	k.turn++
	k.journal(&harnessv1.Journal{Entry: &harnessv1.Journal_TurnStarted{TurnStarted: &harnessv1.TurnStarted{TurnNumber: k.turn, Attempt: 1}}}, nil)
	responded := &harnessv1.ModelResponded{Model: "openai:gpt-4o-2024", ViewDigest: shown.Extend(nil, k.sent(summary)...)}
	if n := len(k.folded.Weights); n < len(k.folded.Messages) {
		responded.Weights = &harnessv1.Weights{FirstMessage: uint64(n) + 1}
		for id := n + 1; id <= len(k.folded.Messages); id++ {
			responded.Weights.Tokens = append(responded.Weights.Tokens, uint32(100+id))
		}
	}
	call := &harnessv1.ToolCall{Id: fmt.Sprintf("c%d", k.turn), Name: "read_file", Arguments: content.Inline(fmt.Sprintf(`{"path":"%d.go"}`, k.turn))}
	k.add(&harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ModelResponded{ModelResponded: responded}}}},
		&harnessv1.Message{Role: harnessv1.Role_ROLE_ASSISTANT, Content: content.Inline(fmt.Sprintf("Reading %d.", k.turn)), ToolCalls: []*harnessv1.ToolCall{call}})
	return k.version
}

// answered appends the result of the turn's call and ends the turn.
func (k *talk) answered(text string) {
	k.b.t.Helper()
	k.add(&harnessv1.Record{Body: &harnessv1.Record_Journal{Journal: &harnessv1.Journal{Entry: &harnessv1.Journal_ToolFinished{ToolFinished: &harnessv1.ToolFinished{CallId: fmt.Sprintf("c%d", k.turn)}}}}},
		&harnessv1.Message{
			Role: harnessv1.Role_ROLE_TOOL, ToolCallId: fmt.Sprintf("c%d", k.turn), ToolName: "read_file", Content: k.result(text),
			Durability: harnessv1.Durability_DURABILITY_REPLAYABLE,
		})
	k.add(&harnessv1.Record{Body: k.stepTo("stopdecision", func(s *harnessv1.Step) {
		s.Message = &harnessv1.Step_TurnComplete{TurnComplete: &harnessv1.TurnComplete{TurnNumber: k.turn}}
	})})
}

func (k *talk) get(r *harnessv1.GetContextRequest) *harnessv1.GetContextResponse {
	k.b.t.Helper()
	r.Namespace, r.RunId = k.run.Namespace, k.run.ID
	resp, err := k.b.client.GetContext(k.b.ctx, r)
	k.b.must(err)
	return resp
}

func plan(marks ...*harnessv1.Watermark) *harnessv1.CompactionPlan {
	return &harnessv1.CompactionPlan{Renderer: view.Renderer, Watermarks: marks}
}

func mark(action harnessv1.CompactionAction, class harnessv1.MessageClass, through uint64) *harnessv1.Watermark {
	return &harnessv1.Watermark{Action: action, Class: class, ThroughMessage: through, Version: 33}
}

// describe returns items on one line each.
func describe(items []*harnessv1.ContextItem) string {
	var b strings.Builder
	for _, i := range items {
		action := strings.ToLower(strings.TrimPrefix(i.GetAction().String(), "COMPACTION_ACTION_"))
		fmt.Fprintf(&b, "%d-%d turn %d %s %s%s %s %d of %d %q %s |", i.GetFirstMessage(), i.GetLastMessage(), i.GetTurnNumber(),
			strings.ToLower(strings.TrimPrefix(i.GetRole().String(), "ROLE_")), i.GetToolName(), i.GetCalls(), action, i.GetTokens(), i.GetOriginalTokens(), content.Cut(i.GetText(), 24), i.GetRef())
		b.WriteString(strings.TrimRight(" "+i.GetReason(), " ") + "\n")
	}
	return b.String()
}

// grown returns a run of 4 turns whose results were cleared up to message 6 and shortened up
// to message 8, and the version of the fifth response.
func grown(t *testing.T) (k *talk, first, fifth uint64) {
	k = newTalk(t)
	k.compacted(nil, 900)
	first = k.respond(nil)
	k.answered(strings.Repeat("short\n", 100))
	for range 3 {
		k.compacted(nil, 5000)
		k.respond(nil)
		k.answered(strings.Repeat("a line of a file\n", 800))
	}
	lines := mark(shorten, anyResult, 8)
	lines.ShownTokens = 60
	k.compacted(plan(mark(clearing, replayable, 6), lines), 4000)
	fifth = k.respond(nil)
	k.answered("last")
	return k, first, fifth
}

// TestContextIsWhatTheModelWasSent: with the response of a turn, and up to the end of the
// turn, it is what was sent, which the digest of the response proves. Elsewhere it is what
// would be sent.
func TestContextIsWhatTheModelWasSent(t *testing.T) {
	k, first, fifth := grown(t)
	for _, c := range []struct {
		version uint64
		items   int
		sent    bool
	}{{1, 0, false}, {3, 2, false}, {first - 1, 2, false}, {first, 2, true}, {first + 1, 2, true}, {first + 2, 4, false}, {fifth - 1, 10, false}, {fifth, 10, true}, {0, 12, false}} {
		got := k.get(&harnessv1.GetContextRequest{Version: c.version})
		if len(got.GetItems()) != c.items || int(got.GetTotalItems()) != c.items || got.GetNextPageToken() != "" {
			t.Errorf("version %d: %d items of %d\n%s", c.version, len(got.GetItems()), got.GetTotalItems(), describe(got.GetItems()))
		}
		if (len(got.GetViewDigest()) > 0) != c.sent || (got.DigestMatches != nil) != c.sent || got.GetDigestMatches() != c.sent {
			t.Errorf("version %d: the digest %x matches: %v", c.version, got.GetViewDigest(), got.DigestMatches)
		}
		model := "openai:gpt-4o"
		if c.version == 1 {
			model = "script:x"
		} else if c.sent {
			model = "openai:gpt-4o-2024"
		}
		if got.GetModel() != model || c.version > 1 && got.GetMaxInputTokens() != 16_000 || c.version != 0 && got.GetVersion() != c.version {
			t.Errorf("version %d: %s, %d tokens, version %d", c.version, got.GetModel(), got.GetMaxInputTokens(), got.GetVersion())
		}
	}
	if got := k.get(&harnessv1.GetContextRequest{Version: fifth}); got.GetUsedTokens() != 4000 || got.GetToolTokens() != 700 {
		t.Errorf("%d tokens, %d of tools", got.GetUsedTokens(), got.GetToolTokens())
	}
}

// TestContextItems: the action on each message and its reason, with the recorded weights.
func TestContextItems(t *testing.T) {
	k, _, fifth := grown(t)
	got := k.get(&harnessv1.GetContextRequest{Version: fifth})
	want := `
1-1 turn 0 system [] unspecified 101 of 101 "You are an agent."  |
2-2 turn 0 user [] unspecified 102 of 102 "Find the bug."  |
3-3 turn 1 assistant [read_file] unspecified 103 of 103 "Reading 1."  |
4-4 turn 1 tool read_file[] clear 33 of 104 "[Cleared: the result of " m4 | cleared: replayable results up to m6; pass at version 33
5-5 turn 2 assistant [read_file] unspecified 105 of 105 "Reading 2."  |
6-6 turn 2 tool read_file[] clear 33 of 106 "[Cleared: the result of " m6 | cleared: replayable results up to m6; pass at version 33
7-7 turn 3 assistant [read_file] unspecified 107 of 107 "Reading 3."  |
8-8 turn 3 tool read_file[] shorten 50 of 108 "a line of a file\na line " m8 | shortened to 60 tokens: all results up to m8; pass at version 33
9-9 turn 4 assistant [read_file] unspecified 109 of 109 "Reading 4."  |
10-10 turn 4 tool read_file[] unspecified 110 of 110 "a line of a file\na line " m10 | shown with at most 2000 tokens, as every result and argument
`
	if text := "\n" + describe(got.GetItems()); text != want {
		t.Errorf("got %s", text)
	}
	if ranges := describePlan(got.GetPlan()); ranges != "4-6 CLEAR REPLAYABLE 2 at 33, 8-8 SHORTEN RESULT 1 at 33" {
		t.Errorf("plan: %s", ranges)
	}
	for _, i := range got.GetItems() {
		if len(i.GetText()) > 2000 {
			t.Errorf("a text of %d bytes", len(i.GetText()))
		}
	}
}

// TestContextShowsSummaries: read from its blob, with the span that it shows.
func TestContextShowsSummaries(t *testing.T) {
	k, _, _ := grown(t)
	summary := &harnessv1.StructuredSummary{FirstMessage: 2, ThroughMessage: 8, Facts: []*harnessv1.SummaryStatement{{Text: "The bug is in 3.go.", Messages: []uint64{8}}}}
	data, err := proto.Marshal(summary)
	k.b.must(err)
	ref, err := k.b.log.PutBlob(k.b.ctx, k.run, data)
	k.b.must(err)
	p := plan(mark(summarize, span, 8), mark(externalize, user, 8))
	p.Summary = &harnessv1.SummaryRef{Key: "k", ThroughMessage: 8, Summary: ref, Tokens: 90}
	k.compacted(p, 3000)
	version := k.respond(summary)
	got := k.get(&harnessv1.GetContextRequest{Version: version})
	if !got.GetDigestMatches() {
		t.Error("the digest differs")
	}
	var item *harnessv1.ContextItem
	for _, i := range got.GetItems() {
		if i.GetAction() == summarize {
			item = i
		}
	}
	if item.GetFirstMessage() != 2 || item.GetLastMessage() != 8 || item.GetRef() != "m2-m8" || item.GetReason() != "summary of m2-m8; pass at version 33" ||
		!strings.Contains(item.GetText(), "The bug is in 3.go.") || item.GetOriginalTokens() != 103+104+105+106+107+108 || item.GetTurnNumber() != 3 {
		t.Errorf("got %v", item)
	}
	if ranges := describePlan(got.GetPlan()); ranges != "2-2 EXTERNALIZE USER 1 at 33, 3-8 SUMMARIZE SPAN 6 at 33" {
		t.Errorf("plan: %s", ranges)
	}
	p.Summary = proto.CloneOf(p.GetSummary())
	p.Summary.Summary = content.Ref([]byte("never stored"))
	k.compacted(p, 3000)
	_, err = k.b.client.GetContext(k.b.ctx, &harnessv1.GetContextRequest{Namespace: k.run.Namespace, RunId: k.run.ID})
	k.b.refused(err, codes.Internal, "")
}

// TestContextDigestDetectsAnotherRequest: a digest of other messages does not match.
func TestContextDigestDetectsAnotherRequest(t *testing.T) {
	k := newTalk(t)
	k.compacted(nil, 900)
	k.folded.Messages[0] = &harnessv1.Message{Id: 1, Role: harnessv1.Role_ROLE_SYSTEM, Kept: true, Content: content.Inline("You are another agent.")}
	got := k.get(&harnessv1.GetContextRequest{Version: k.respond(nil)})
	if got.DigestMatches == nil || got.GetDigestMatches() {
		t.Errorf("got %v", got.DigestMatches)
	}
}

// TestContextPagesFitTogether while the run continues: they are of one version, and the last
// one compares the digest of all.
func TestContextPagesFitTogether(t *testing.T) {
	k, _, fifth := grown(t)
	whole := k.get(&harnessv1.GetContextRequest{Version: fifth})
	var items []*harnessv1.ContextItem
	r := &harnessv1.GetContextRequest{Version: fifth, PageSize: 3}
	for pages := 1; ; pages++ {
		page := k.get(r)
		items = append(items, page.GetItems()...)
		if last := page.GetNextPageToken() == ""; (page.DigestMatches != nil) != last || page.GetDigestMatches() != last || (len(page.GetPlan()) > 0) != (pages == 1) || last != (pages == 4) {
			t.Errorf("page %d: %d items, digest %v, %d ranges", pages, len(page.GetItems()), page.DigestMatches, len(page.GetPlan()))
		}
		if page.GetNextPageToken() == "" {
			break
		}
		k.compacted(plan(mark(clearing, anyResult, 10)), 1000)
		r = &harnessv1.GetContextRequest{PageSize: 3, PageToken: page.GetNextPageToken()}
	}
	if got, want := describe(items), describe(whole.GetItems()); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestContextReadsBlobsOfThePageAlone of a run in which each result is one.
func TestContextReadsBlobsOfThePageAlone(t *testing.T) {
	k := newTalk(t)
	const turns = 40
	for n := range turns {
		k.compacted(nil, 5000)
		k.respond(nil)
		k.answered(strings.Repeat(fmt.Sprintf("line of file %d\n", n), 700))
	}
	k.compacted(plan(mark(clearing, replayable, 20)), 4000)
	k.reads.take()
	first := k.get(&harnessv1.GetContextRequest{PageSize: 26}) // messages 1 to 26: results 4, 6, … 26, of which 22, 24 and 26 are shown
	if read := k.reads.take(); len(read) != 3 {
		t.Errorf("the first page read %d blobs", len(read))
	}
	k.get(&harnessv1.GetContextRequest{PageSize: 10, PageToken: first.GetNextPageToken()})
	if read := k.reads.take(); len(read) != 5 {
		t.Errorf("the second page read %d blobs", len(read))
	}
}

func TestContextRefusals(t *testing.T) {
	k, _, fifth := grown(t)
	token := k.get(&harnessv1.GetContextRequest{Version: fifth, PageSize: 3}).GetNextPageToken()
	newest := k.get(&harnessv1.GetContextRequest{}).GetVersion()
	other := k.b.started("other").aTurn(1).park("approval")
	foreign, err := k.b.client.GetContext(k.b.ctx, &harnessv1.GetContextRequest{Namespace: k.run.Namespace, RunId: "other", PageSize: 1})
	k.b.must(err)
	for name, c := range map[string]struct {
		r    *harnessv1.GetContextRequest
		code codes.Code
		want string
	}{
		"unknown run":                {&harnessv1.GetContextRequest{RunId: "nothing"}, codes.NotFound, "RUN_NOT_FOUND"},
		"no run":                     {&harnessv1.GetContextRequest{}, codes.InvalidArgument, "run_id: must not be empty"},
		"beyond":                     {&harnessv1.GetContextRequest{RunId: "r1", Version: newest + 1}, codes.InvalidArgument, fmt.Sprintf("version: %d: run %s has versions up to %d", newest+1, k.run, newest)},
		"a large page":               {&harnessv1.GetContextRequest{RunId: "r1", PageSize: 1001}, codes.InvalidArgument, "page_size: 1001: must be from 1 to 1000"},
		"no token":                   {&harnessv1.GetContextRequest{RunId: "r1", PageToken: "x"}, codes.InvalidArgument, "page_token: is not a page token"},
		"a cut token":                {&harnessv1.GetContextRequest{RunId: "r1", PageToken: token[:len(token)-4]}, codes.InvalidArgument, "page_token: is not a page token"},
		"a token of another version": {&harnessv1.GetContextRequest{RunId: "r1", PageToken: token, Version: fifth - 1}, codes.InvalidArgument, "page_token: is of version"},
		"a token of another run":     {&harnessv1.GetContextRequest{RunId: "r1", PageToken: foreign.GetNextPageToken()}, codes.InvalidArgument, "page_token: is not a page token"},
	} {
		c.r.Namespace = k.run.Namespace
		_, err := k.b.client.GetContext(k.b.ctx, c.r)
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) && fault.ReasonOf(err) != c.want {
			t.Errorf("%s: got %v", name, err)
		}
	}
	_, err = k.b.client.DeleteRun(k.b.ctx, &harnessv1.DeleteRunRequest{Namespace: other.run.Namespace, RunId: "other"})
	k.b.must(err)
	_, err = k.b.client.GetContext(k.b.ctx, &harnessv1.GetContextRequest{Namespace: k.run.Namespace, RunId: "other"})
	k.b.refused(err, codes.FailedPrecondition, "RUN_EXPIRED")
}

func describePlan(ranges []*harnessv1.PlanRange) string {
	var parts []string
	for _, r := range ranges {
		parts = append(parts, fmt.Sprintf("%d-%d %s %s %d at %d", r.GetFirstMessage(), r.GetLastMessage(), strings.TrimPrefix(r.GetAction().String(), "COMPACTION_ACTION_"),
			strings.TrimPrefix(r.GetClass().String(), "MESSAGE_CLASS_"), r.GetMessages(), r.GetVersion()))
	}
	return strings.Join(parts, ", ")
}

// TestContextNamesMediaThatAreNotSent: media that the wire leaves out are named on the page of
// their message, although the view shows them.
func TestContextNamesMediaThatAreNotSent(t *testing.T) {
	k := newTalk(t)
	paper := func(pages uint32) *harnessv1.Message {
		return &harnessv1.Message{Role: harnessv1.Role_ROLE_USER, Content: content.Inline("Read this."), Parts: media.Parts([]*harnessv1.Media{
			{Type: media.PDF, Pages: pages, Name: "a.pdf", Blob: &harnessv1.BlobRef{Digest: strings.Repeat("a", 64), Size: 900}},
		})}
	}
	k.add(&harnessv1.Record{Body: k.stepTo("compaction", func(*harnessv1.Step) {})}, paper(60), paper(60), paper(120))
	got := k.get(&harnessv1.GetContextRequest{PageSize: 3})
	items := got.GetItems()
	for got.GetNextPageToken() != "" {
		got = k.get(&harnessv1.GetContextRequest{PageSize: 3, PageToken: got.GetNextPageToken()})
		items = append(items, got.GetItems()...)
	}
	for i, want := range []string{
		"1 of 1 images and documents are not sent: newer ones need the room in the request", "", "1 of 1 images and documents are not sent: they exceed the limit of a request",
	} {
		item := items[len(items)-3+i]
		if item.GetReason() != want || (item.GetRef() != "") != (want != "") {
			t.Errorf("document %d: %q, ref %q, want %q", i, item.GetReason(), item.GetRef(), want)
		}
	}
}
