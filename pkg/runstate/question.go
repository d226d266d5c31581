package runstate

import (
	"strconv"
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// ContractQuestion is the tool of a pending call that puts a question of the
// contract to the user. No tool has this name.
const ContractQuestion = "contract_question"

const contractPrefix = "contract:"

// ContractCallID returns the id of the pending call that puts a question. version
// is that of the step decided on, so that a question that is
// put twice has two answers. A model cannot use such an id, see IsReservedCallID.
func ContractCallID(questionID string, version uint64) string {
	return contractPrefix + questionID + ":" + strconv.FormatUint(version, 10)
}

// IsReservedCallID reports whether only the harness gives calls this id.
func IsReservedCallID(id string) bool {
	return strings.HasPrefix(id, contractPrefix) || strings.HasPrefix(id, roundPrefix)
}

const roundPrefix = "round:"

// RoundID returns the id of the part of a call that follows its question with the number round, for
// the tool host's ledger and for answers; round 0 is the beginning, whose id is that of the call. A
// model cannot use such an id, see IsReservedCallID.
func RoundID(callID string, round uint32) string {
	if round == 0 {
		return callID
	}
	return roundPrefix + strconv.FormatUint(uint64(round), 10) + ":" + callID
}

// RoundCall returns the id of the call of an id that RoundID has made.
func RoundCall(id string) string {
	rest, round := strings.CutPrefix(id, roundPrefix)
	if _, call, ok := strings.Cut(rest, ":"); round && ok {
		return call
	}
	return id
}

// AnswerKey returns the id under which the answer to a pending call is remembered: that of the
// question, if a server asks, because a call may ask more than once.
func AnswerKey(c *harnessv1.PendingCall) string {
	return RoundID(c.GetCallId(), c.GetQuestion().GetRound())
}

// QuestionOf returns the question of the contract that a pending call puts. ok is
// false for every other call.
func QuestionOf(c *harnessv1.PendingCall) (questionID string, ok bool) {
	if c.GetTool() != ContractQuestion || c.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS || len(c.GetCallId()) <= len(contractPrefix) {
		return "", false
	}
	id, _, _ := strings.Cut(c.GetCallId()[len(contractPrefix):], ":")
	return id, true
}

// Held reports whether a pending call still runs at a tool host, which waits for the answer to the
// question of the call's server.
func Held(c *harnessv1.PendingCall) bool { return c.GetQuestion().GetLedgerId() != "" }

// KeyHeld, with the AnswerKey of a pending call, is the key of the observation that the tool host with
// the call in flight has cancelled it. A decision that answers such a call otherwise needs it.
const KeyHeld = "held:"

// HeldCall returns the held call of a snapshot whose observation has a key; nil if there is none.
func HeldCall(s SharedFields, key string) *harnessv1.PendingCall {
	for _, c := range s.GetPendingToolCalls() {
		if Held(c) && KeyHeld+AnswerKey(c) == key {
			return c
		}
	}
	return nil
}
