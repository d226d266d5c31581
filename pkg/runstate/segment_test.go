package runstate_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/media"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// TestOpenSegmentWithoutEnd: a limit beyond all numbers stays one in later segments.
func TestOpenSegmentWithoutEnd(t *testing.T) {
	s := &harnessv1.Snapshot{
		Config:    &harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(math.MaxUint32)}},
		TurnCount: 3,
	}
	for range 3 {
		if runstate.OpenSegment(s); s.GetMaxTurns() != math.MaxUint32 {
			t.Errorf("segment %d ends at turn %d", s.GetSegment(), s.GetMaxTurns())
		}
		s.TurnCount += 5
	}
}

// TestOpenSegment: the counts of the segment restart, what counts over the
// run does not, and nothing of the former end is left.
func TestOpenSegment(t *testing.T) {
	s := &harnessv1.Snapshot{
		Config: runstate.Resolve(&harnessv1.LoopConfig{Stop: &harnessv1.StopConfig{MaxTurns: proto.Uint32(4)}}, 0),
		Status: harnessv1.RunStatus_RUN_STATUS_DONE, Accepted: true, Segment: 1, TurnCount: 7, MaxTurns: 4,
		ContinuationCount: 2, WorkCompleteRetries: 3,
		Turn: &harnessv1.TurnState{Number: 7, AgentDone: true, CalledWorkComplete: true}, StopReason: &harnessv1.StopReason{Kind: "agent_done"},
		Answer: content.Inline("a"), Summary: content.Inline("s"), MessageCount: 31,
		DoomLoop:        &harnessv1.DoomLoop{Strict: []uint64{1}, Corrections: 2},
		ProgressTracker: &harnessv1.ProgressTracker{Fingerprints: []uint64{1, 1}, DistinctOutcomes: 5, FirstMessage: 2},
		Hooks:           &harnessv1.HookState{SkipNext: "why", Replan: "why"}, RejectedKind: "contract_not_satisfied", RejectedCount: 4, PoisonParks: 2,
		WorkItemLedger: &harnessv1.WorkItemLedger{LastNumber: 2}, CoverageLedger: &harnessv1.CoverageLedger{TurnNumber: 7},
		Jit: &harnessv1.JitState{Fired: []string{"r"}}, ToolUsage: []*harnessv1.ToolUsage{{Tool: "t", Calls: 9}}, Mode: "plan",
		Spent: &harnessv1.Spent{
			ToolCalls: 9, ToolCallsTotal: 11, Turns: 7, ModelCalls: 8,
			Usage: &harnessv1.Usage{InputTokens: 100}, Active: durationpb.New(time.Minute),
		},
	}
	runstate.OpenSegment(s)
	want := &harnessv1.Snapshot{
		Config: s.GetConfig(), Status: harnessv1.RunStatus_RUN_STATUS_RUNNING, Segment: 2, TurnCount: 7, MaxTurns: 11,
		MessageCount: 31, ProgressTracker: &harnessv1.ProgressTracker{FirstMessage: 31},
		WorkItemLedger: &harnessv1.WorkItemLedger{LastNumber: 2}, CoverageLedger: &harnessv1.CoverageLedger{TurnNumber: 7},
		Jit: &harnessv1.JitState{Fired: []string{"r"}}, ToolUsage: []*harnessv1.ToolUsage{{Tool: "t", Calls: 9}}, Mode: "plan",
		Spent: &harnessv1.Spent{
			ToolCallsTotal: 11, ModelCalls: 8, Usage: &harnessv1.Usage{InputTokens: 100}, UsageBeforeSegment: &harnessv1.Usage{InputTokens: 100},
			Active: durationpb.New(time.Minute), ActiveBeforeSegment: durationpb.New(time.Minute),
		},
	}
	if !proto.Equal(s, want) {
		t.Errorf("got  %v\nwant %v", s, want)
	}
	runstate.AddUsage(s, &harnessv1.Usage{InputTokens: 1})
	if s.GetSpent().GetUsageBeforeSegment().GetInputTokens() != 100 {
		t.Error("the usage before the segment grows with it")
	}
}

func TestCountsOfTurnsAndCalls(t *testing.T) {
	s := &harnessv1.Snapshot{Turn: &harnessv1.TurnState{Number: 1, Open: true, AgentDone: true}}
	runstate.EndTurn(s)
	runstate.CountCalls(s, 3)
	runstate.CountCalls(s, 2)
	want := &harnessv1.Snapshot{
		TurnCount: 1, Turn: &harnessv1.TurnState{Number: 1, AgentDone: true}, Spent: &harnessv1.Spent{Turns: 1, ToolCalls: 5, ToolCallsTotal: 5},
	}
	if !proto.Equal(s, want) {
		t.Errorf("got %v", s)
	}
}

// TestWeight is bytes as the model is sent them, wherever they are stored.
func TestWeight(t *testing.T) {
	long := strings.Repeat("x", 70_000)
	blob := &harnessv1.Content{Value: &harnessv1.Content_Blob{Blob: content.Ref([]byte(long))}}
	for _, c := range []struct {
		m    *harnessv1.Message
		want uint64
	}{
		{nil, 0},
		{&harnessv1.Message{}, 0},
		{&harnessv1.Message{Content: content.Inline("héllo")}, 6},
		{&harnessv1.Message{Content: content.Inline(long)}, 70_000},
		{&harnessv1.Message{Content: blob}, 70_000},
		{&harnessv1.Message{Content: content.Inline("ab"), ToolCalls: []*harnessv1.ToolCall{
			{Id: "1", Name: "read", Arguments: content.Inline("{}")}, {Id: "2", Name: "w", Arguments: blob},
		}}, 2 + 5 + 2 + 2 + 70_000},
		{&harnessv1.Message{Content: content.Inline("ab"), Parts: []*harnessv1.Part{
			{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "image/png", Width: 1000, Height: 750, Blob: &harnessv1.BlobRef{Size: 3_000_000}}}},
			{Kind: &harnessv1.Part_Media{Media: &harnessv1.Media{Type: "application/pdf", Pages: 10, Data: []byte("%PDF")}}},
		}}, 2 + 4*1000 + 4*24_000},
	} {
		if got := runstate.MessageBytes(c.m); got != c.want {
			t.Errorf("weight %d, want %d", got, c.want)
		}
	}
}

func TestAppendNumbersAndWeighs(t *testing.T) {
	s := &harnessv1.Snapshot{MessageCount: 4, TokenBudget: &harnessv1.TokenBudget{UnreportedBytes: 10}}
	got := runstate.AppendMessages(s, 3, &harnessv1.Message{Content: content.Inline("ab")}, &harnessv1.Message{Content: content.Inline("cde")})
	if len(got) != 2 || got[0].GetId() != 5 || got[1].GetId() != 6 || got[0].GetTurnNumber() != 3 {
		t.Errorf("appended %v", got)
	}
	if s.GetMessageCount() != 6 || s.GetTokenBudget().GetUnreportedBytes() != 15 {
		t.Errorf("counted %v", s)
	}
}

// TestRemembered: the last 256 ids are known, one more is forgotten, and the
// snapshot does not grow beyond that.
func TestRemembered(t *testing.T) {
	for name, c := range map[string]struct {
		note func(*harnessv1.Snapshot, string)
		has  func(runstate.InboxFields, string) bool
		held func(*harnessv1.Snapshot) []uint64
	}{
		"drained items":  {runstate.RecordDrained, runstate.Drained, (*harnessv1.Snapshot).GetDrainedItems},
		"answered calls": {func(s *harnessv1.Snapshot, call string) { runstate.RecordAnswer(s, call, "item of "+call) }, runstate.Answered, (*harnessv1.Snapshot).GetAnsweredCalls},
	} {
		s := &harnessv1.Snapshot{}
		if c.has(s, "id-0") {
			t.Error("an empty memory remembers")
		}
		for i := range 1000 {
			c.note(s, fmt.Sprintf("id-%d", i))
			for _, known := range []int{i, max(i-255, 0)} {
				if !c.has(s, fmt.Sprintf("id-%d", known)) {
					t.Fatalf("%s: id-%d is forgotten after id-%d", name, known, i)
				}
			}
			if c.has(s, fmt.Sprintf("id-%d", i-256)) || len(c.held(s)) > 256 {
				t.Fatalf("%s: %d are held after id-%d", name, len(c.held(s)), i)
			}
		}
	}
}

// TestWhoAnswered is known for the calls that are, and not for those of a log from
// a time when it was not noted.
func TestWhoAnswered(t *testing.T) {
	s := &harnessv1.Snapshot{AnsweredCalls: []uint64{runlog.HashID("old")}}
	call := &harnessv1.PendingCall{CallId: "asked", Origin: harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT}
	runstate.RecordAnswer(s, "expired", "")
	runstate.RecordAnswer(s, "answered", "i1")
	runstate.RecordDecision(s, call, harnessv1.ApprovalDecision_APPROVAL_DECISION_ONCE, "i2")
	for _, c := range []struct {
		ask       func(runstate.InboxFields, string, string) (bool, bool)
		call, by  string
		is, known bool
	}{
		{runstate.AnsweredBy, "old", "i1", false, false},
		{runstate.AnsweredBy, "nobody", "i1", false, false},
		{runstate.AnsweredBy, "expired", "i1", false, true},
		{runstate.AnsweredBy, "answered", "i1", true, true},
		{runstate.AnsweredBy, "answered", "i2", false, true},
		{runstate.AnsweredBy, "asked", "i2", false, false},
		{runstate.DecidedBy, "asked", "i2", true, true},
		{runstate.DecidedBy, "asked", "i1", false, true},
		{runstate.DecidedBy, "answered", "i1", true, true},
	} {
		if is, known := c.ask(s, c.call, c.by); is != c.is || known != c.known {
			t.Errorf("%s by %s: %v, known %v", c.call, c.by, is, known)
		}
	}
}

func TestGrantsAreBounded(t *testing.T) {
	s := &harnessv1.Snapshot{}
	for i := range 100 {
		runstate.Grant(s, fmt.Sprintf("t%d", i/2))
	}
	if len(s.GetGrantedTools()) != 50 {
		t.Errorf("%d grants of 50 tools", len(s.GetGrantedTools()))
	}
	for i := range 100 {
		runstate.Grant(s, fmt.Sprintf("u%d", i))
	}
	if len(s.GetGrantedTools()) != 64 {
		t.Errorf("%d grants", len(s.GetGrantedTools()))
	}
}

func TestPending(t *testing.T) {
	call := func(id string, class harnessv1.PendingClass) *harnessv1.PendingCall {
		return &harnessv1.PendingCall{CallId: id, Class: class}
	}
	s := &harnessv1.Snapshot{PendingToolCalls: []*harnessv1.PendingCall{
		call("a", harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL), call("b", harnessv1.PendingClass_PENDING_CLASS_EFFECT_UNKNOWN),
		call("c", harnessv1.PendingClass_PENDING_CLASS_APPROVED), call("d", harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL),
	}}
	if got := runstate.AwaitedCalls(s); len(got) != 2 || got[0].GetCallId() != "a" || got[1].GetCallId() != "d" {
		t.Errorf("awaited %v", got)
	}
	if got := runstate.ApprovedCalls(s); len(got) != 1 || got[0].GetCallId() != "c" {
		t.Errorf("approved %v", got)
	}
	runstate.RemovePending(s, "a")
	runstate.RemovePending(s, "nobody")
	if got := s.GetPendingToolCalls(); len(got) != 3 || got[0].GetCallId() != "b" {
		t.Errorf("pending %v", got)
	}
}

func TestResult(t *testing.T) {
	s := spent()
	s.Status, s.Accepted, s.TurnCount = harnessv1.RunStatus_RUN_STATUS_PARKED, true, 3
	s.StopReason, s.Answer, s.Summary = &harnessv1.StopReason{Kind: "approval"}, content.Inline("a"), content.Inline("s")
	s.PendingToolCalls = []*harnessv1.PendingCall{
		{CallId: "a", Class: harnessv1.PendingClass_PENDING_CLASS_AWAITING_EXTERNAL},
		{CallId: "b", Class: harnessv1.PendingClass_PENDING_CLASS_APPROVED},
	}
	want := &harnessv1.HarnessResult{
		Status: s.GetStatus(), Accepted: true, Reason: s.GetStopReason(), Answer: s.GetAnswer(), Summary: s.GetSummary(), TurnCount: 3,
		ToolCalls: 15, Usage: s.GetSpent().GetUsage(), Duration: durationpb.New(15 * time.Second), Pending: s.GetPendingToolCalls()[:1],
	}
	if got := runstate.Result(s, noon); !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestErrorKinds: every kind of error that a turn can end with has a distinct name.
func TestErrorKinds(t *testing.T) {
	want := map[harnessv1.TurnErrorKind]string{
		harnessv1.TurnErrorKind_TURN_ERROR_KIND_UNSPECIFIED: "failed",
		99: "failed",
	}
	for n, name := range harnessv1.TurnErrorKind_name {
		if n != 0 {
			want[harnessv1.TurnErrorKind(n)] = strings.ToLower(strings.TrimPrefix(name, "TURN_ERROR_KIND_"))
		}
	}
	for kind, name := range want {
		if got := runstate.ErrorKind(kind); got != name {
			t.Errorf("%s is called %q, want %q", kind, got, name)
		}
	}
}

// TestAppendedMediaAreCounted in the room that they need in a request, in a run with
// compaction.
func TestAppendedMediaAreCounted(t *testing.T) {
	for _, compaction := range []bool{true, false} {
		s := &harnessv1.Snapshot{Config: &harnessv1.LoopConfig{Context: &harnessv1.ContextConfig{Compaction: &compaction}}}
		runstate.AppendMessages(s, 1, &harnessv1.Message{Parts: media.Parts([]*harnessv1.Media{
			{Type: media.PNG, Blob: &harnessv1.BlobRef{Size: 3_000_000}}, {Type: media.PDF, Pages: 30, Blob: &harnessv1.BlobRef{Size: 300}},
		})}, &harnessv1.Message{})
		want := uint64(31 * media.MaxRequest / media.DefaultItems)
		if !compaction {
			want = 0
		}
		if got := s.GetTokenBudget().GetMediaBytes(); got != want {
			t.Errorf("with compaction %t: %d bytes, want %d", compaction, got, want)
		}
	}
}
