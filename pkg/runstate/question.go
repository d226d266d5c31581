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
func IsReservedCallID(id string) bool { return strings.HasPrefix(id, contractPrefix) }

// QuestionOf returns the question of the contract that a pending call puts. ok is
// false for every other call.
func QuestionOf(c *harnessv1.PendingCall) (questionID string, ok bool) {
	if c.GetTool() != ContractQuestion || c.GetOrigin() != harnessv1.ToolOrigin_TOOL_ORIGIN_HARNESS || len(c.GetCallId()) <= len(contractPrefix) {
		return "", false
	}
	id, _, _ := strings.Cut(c.GetCallId()[len(contractPrefix):], ":")
	return id, true
}
