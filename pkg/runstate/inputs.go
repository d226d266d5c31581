package runstate

import (
	"slices"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runlog"
)

// rememberedInputs bounds the inbox items and the answered calls that a snapshot
// remembers, so that one that is sent again has no second effect.
const rememberedInputs = 256

// maxGrants bounds the tools, and the rules, that are allowed for the rest of a run.
const maxGrants = 64

// Answered reports whether a call was already answered from outside.
func Answered(s InboxFields, callID string) bool {
	return slices.Contains(s.GetAnsweredCalls(), runlog.HashID(callID))
}

// AnsweredBy reports whether the inbox item itemID is one that answered a call; a call whose
// server asks more than once has several. known is false if the snapshot remembers none.
func AnsweredBy(s InboxFields, callID, itemID string) (by, known bool) {
	missing := len(s.GetAnsweredCalls()) - len(s.GetAnsweredBy()) // of snapshots without answered_by
	for i, call := range s.GetAnsweredCalls() {
		if call == runlog.HashID(callID) && i >= missing {
			by, known = by || s.GetAnsweredBy()[i-missing] == runlog.HashID(itemID), true
		}
	}
	return by, known
}

// RecordAnswer records that a call has an answer, and from which inbox item; itemID
// is empty if none did. It changes s.
func RecordAnswer(s *harnessv1.Snapshot, callID, itemID string) {
	by := uint64(0)
	if itemID != "" {
		by = runlog.HashID(itemID)
	}
	s.AnsweredCalls = remember(s.GetAnsweredCalls(), runlog.HashID(callID))
	s.AnsweredBy = remember(s.GetAnsweredBy(), by)
}

// Decided reports whether a call was allowed, refused or answered from outside.
func Decided(s InboxFields, callID string) bool {
	return Answered(s, callID) || Answered(s, approvalKey(callID))
}

// RecordDecision records that a call was allowed or refused. An allowed call of a
// client's tool still waits for its answer. It changes s.
func RecordDecision(s *harnessv1.Snapshot, call *harnessv1.PendingCall, d harnessv1.ApprovalDecision, itemID string) {
	key := call.GetCallId()
	if call.GetOrigin() == harnessv1.ToolOrigin_TOOL_ORIGIN_CLIENT && d != harnessv1.ApprovalDecision_APPROVAL_DECISION_DENY {
		key = approvalKey(key)
	}
	RecordAnswer(s, key, itemID)
}

// DecidedBy is AnsweredBy for an approval.
func DecidedBy(s InboxFields, callID, itemID string) (by, known bool) {
	if by, known := AnsweredBy(s, approvalKey(callID), itemID); known {
		return by, known
	}
	return AnsweredBy(s, callID, itemID)
}

// approvalKey is the key under which the approval of a call is remembered, next to
// its answer. No call has such an id.
func approvalKey(callID string) string { return "approval/" + callID }

// Drained reports whether an inbox item was already taken in.
func Drained(s InboxFields, itemID string) bool {
	return slices.Contains(s.GetDrainedItems(), runlog.HashID(itemID))
}

// RecordDrained records that an inbox item was taken in. It changes s.
func RecordDrained(s *harnessv1.Snapshot, itemID string) {
	s.DrainedItems = remember(s.GetDrainedItems(), runlog.HashID(itemID))
}

// remember appends h and drops the oldest hashes beyond rememberedInputs.
func remember(hashes []uint64, h uint64) []uint64 {
	if len(hashes) >= rememberedInputs {
		hashes = hashes[len(hashes)-rememberedInputs+1:]
	}
	return append(hashes, h)
}

// PassInbox moves the cursor of the inbox past the item with a sequence. It changes s.
func PassInbox(s *harnessv1.Snapshot, sequence uint64) {
	s.InboxCursor = max(s.GetInboxCursor(), sequence)
}

// Grant allows a tool without approvals for the rest of the run. It changes s.
func Grant(s *harnessv1.Snapshot, tool string) {
	if !slices.Contains(s.GetGrantedTools(), tool) && len(s.GetGrantedTools()) < maxGrants {
		s.GrantedTools = append(s.GrantedTools, tool)
	}
}

// GrantRules allows the calls that rules fit without approvals for the rest of the run. granted
// is false, and no rule is stored, if there would be too many. It changes s.
func GrantRules(s *harnessv1.Snapshot, rules []*harnessv1.ToolRule) (granted bool) {
	fresh := slices.DeleteFunc(slices.Clone(rules), func(r *harnessv1.ToolRule) bool {
		return slices.ContainsFunc(s.GetGrants(), func(stored *harnessv1.ToolRule) bool {
			return stored.GetName() == r.GetName() && stored.GetPrefix() == r.GetPrefix() && stored.GetPath() == r.GetPath() &&
				stored.GetHost() == r.GetHost() && stored.GetCommand() == r.GetCommand()
		})
	})
	if len(s.GetGrants())+len(fresh) > maxGrants {
		return false
	}
	for _, r := range fresh {
		s.Grants = append(s.Grants, &harnessv1.ToolRule{
			Name: r.GetName(), Policy: harnessv1.ToolDecision_TOOL_DECISION_ALLOW, Prefix: r.GetPrefix(), Path: r.GetPath(), Host: r.GetHost(), Command: r.GetCommand(),
		})
	}
	return true
}

// ShareGrants gives a run that starts the grants of the run from. It changes s.
func ShareGrants(s, from *harnessv1.Snapshot) {
	s.GrantedTools = slices.Clone(from.GetGrantedTools())
	for _, rule := range from.GetGrants() {
		s.Grants = append(s.Grants, proto.CloneOf(rule))
	}
}
