package runstate

import (
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// OpenSegment makes s ready for the next user message: what is counted per
// segment starts anew, and the run may take max_turns more turns. It changes s.
func OpenSegment(s *harnessv1.Snapshot) {
	spent := spentOf(s)
	spent.ToolCalls, spent.Turns = 0, 0
	spent.UsageBeforeSegment = proto.CloneOf(spent.GetUsage())
	spent.ActiveBeforeSegment = proto.CloneOf(spent.GetActive())
	s.Segment++
	s.MaxTurns = s.GetTurnCount() + s.GetConfig().GetStop().GetMaxTurns()
	s.ContinuationCount, s.WorkCompleteRetries = 0, 0
	s.Turn, s.Summary, s.Answer, s.StopReason, s.Accepted, s.WakeAt = nil, nil, nil, nil, false, nil
	s.Status = harnessv1.RunStatus_RUN_STATUS_RUNNING
	s.DoomLoop, s.ProgressTracker = nil, nil
	if s.GetConfig().GetStall().GetEnabled() {
		s.ProgressTracker = &harnessv1.ProgressTracker{FirstMessage: s.GetMessageCount()}
	}
	if s.GetJit() != nil {
		s.Jit.Fired = slices.DeleteFunc(s.Jit.Fired, func(id string) bool { return id == limitRule })
	}
	s.Hooks, s.RejectedKind, s.RejectedCount = nil, "", 0
}

// limitRule is the just-in-time rule that is about the turns of one segment.
const limitRule = "approaching_turn_limit"

// EndTurn counts the turn as ended. It changes s.
func EndTurn(s *harnessv1.Snapshot) {
	s.TurnCount++
	spentOf(s).Turns++
	if s.Turn == nil {
		s.Turn = &harnessv1.TurnState{}
	}
	s.Turn.Open = false
}

// CountCalls counts tool calls. It changes s.
func CountCalls(s *harnessv1.Snapshot, n int) {
	spent := spentOf(s)
	spent.ToolCalls += uint32(n)      //nolint:gosec // bounded by a response
	spent.ToolCallsTotal += uint32(n) //nolint:gosec // bounded by a response
}

// Append gives messages their ids and counts their bytes against the window.
// It changes s and the messages, and returns them.
func Append(s *harnessv1.Snapshot, turn uint32, messages ...*harnessv1.Message) []*harnessv1.Message {
	if s.TokenBudget == nil {
		s.TokenBudget = &harnessv1.TokenBudget{}
	}
	for _, m := range messages {
		s.MessageCount++
		m.Id = s.GetMessageCount()
		m.TurnNumber = turn
		s.TokenBudget.UnreportedBytes += Weight(m)
	}
	return messages
}

// Weight is the size of a message in bytes as the model is sent it: an upper
// bound of its tokens but for the few that frame a message.
func Weight(m *harnessv1.Message) uint64 {
	w := contentSize(m.GetContent())
	for _, c := range m.GetToolCalls() {
		w += uint64(len(c.GetName())+len(c.GetId())) + contentSize(c.GetArguments())
	}
	return w
}

func contentSize(c *harnessv1.Content) uint64 {
	if b := c.GetBlob(); b != nil {
		return b.GetSize()
	}
	return uint64(len(c.GetInline()))
}

// Answered says whether a call was answered from outside before.
func Answered(s *harnessv1.Snapshot, callID string) bool {
	return holds(s.GetAnsweredCalls(), runlog.HashID(callID))
}

// AnsweredBy says whether an inbox item with this id is the one that answered a
// call; known is false where nobody remembers which one was.
func AnsweredBy(s *harnessv1.Snapshot, callID, itemID string) (by, known bool) {
	missing := len(s.GetAnsweredCalls()) - len(s.GetAnsweredBy()) // of a time when it was not noted
	for i, call := range s.GetAnsweredCalls() {
		if call == runlog.HashID(callID) && i >= missing {
			return s.GetAnsweredBy()[i-missing] == runlog.HashID(itemID), true
		}
	}
	return false, false
}

// NoteAnswered remembers that a call was answered, and by which inbox item; empty
// where it was none. It changes s.
func NoteAnswered(s *harnessv1.Snapshot, callID, itemID string) {
	by := uint64(0)
	if itemID != "" {
		by = runlog.HashID(itemID)
	}
	s.AnsweredCalls = remember(s.GetAnsweredCalls(), runlog.HashID(callID))
	s.AnsweredBy = remember(s.GetAnsweredBy(), by)
}

// Decided says whether a call was allowed or refused from outside, or answered.
func Decided(s *harnessv1.Snapshot, callID string) bool {
	return Answered(s, callID) || Answered(s, approvalKey(callID))
}

// NoteDecided remembers that a call was allowed or refused. One of a client's tool
// that was allowed still waits for its answer. It changes s.
func NoteDecided(s *harnessv1.Snapshot, call *harnessv1.PendingCall, d harnessv1.ApprovalDecision, itemID string) {
	key := call.GetCallId()
	if call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT && d != harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
		key = approvalKey(key)
	}
	NoteAnswered(s, key, itemID)
}

// DecidedBy is AnsweredBy for an approval.
func DecidedBy(s *harnessv1.Snapshot, callID, itemID string) (by, known bool) {
	if by, known := AnsweredBy(s, approvalKey(callID), itemID); known {
		return by, known
	}
	return AnsweredBy(s, callID, itemID)
}

// approvalKey is what an approval is remembered by beside the answer of its call;
// no call has such an id.
func approvalKey(callID string) string { return "approval/" + callID }

// Drained says whether an inbox item was taken in before.
func Drained(s *harnessv1.Snapshot, itemID string) bool {
	return holds(s.GetDrainedItems(), runlog.HashID(itemID))
}

// NoteDrained remembers that an inbox item was taken in. It changes s.
func NoteDrained(s *harnessv1.Snapshot, itemID string) {
	s.DrainedItems = remember(s.GetDrainedItems(), runlog.HashID(itemID))
}

func holds(hashes []uint64, h uint64) bool {
	for _, have := range hashes {
		if have == h {
			return true
		}
	}
	return false
}

func remember(hashes []uint64, h uint64) []uint64 {
	if len(hashes) >= rememberedInputs {
		hashes = hashes[len(hashes)-rememberedInputs+1:]
	}
	return append(hashes, h)
}

// Grant lets a tool run unasked for the rest of the run. It changes s.
func Grant(s *harnessv1.Snapshot, tool string) {
	for _, have := range s.GetGrantedTools() {
		if have == tool {
			return
		}
	}
	if len(s.GetGrantedTools()) < maxGrants {
		s.GrantedTools = append(s.GrantedTools, tool)
	}
}

// MaxPending bounds the calls that may wait at once; more are refused.
const MaxPending = maxPendingCalls
