package toolcall

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/tool/elicit"
)

// InputRequired is the outcome of a call whose server asks a person.
const InputRequired = harnessv1.ToolOutcome_TOOL_OUTCOME_INPUT_REQUIRED

// CheckResponse returns the response of a tool host to a call with its question numbered; an error if the question
// is not one to put to a person. A question counts only with the outcome INPUT_REQUIRED.
func CheckResponse(c Call, r *harnessv1.ExecuteToolResponse) *harnessv1.ExecuteToolResponse {
	if r.GetOutcome() != InputRequired {
		if r.GetQuestion() != nil {
			r = proto.CloneOf(r)
			r.Question = nil
		}
		return r
	}
	q := &harnessv1.ServerQuestion{}
	if r.GetQuestion() != nil {
		q = proto.CloneOf(r.GetQuestion())
	}
	q.Round, q.Responses = c.Question.GetRound()+1, nil
	if err := elicit.Check(q); err != nil {
		return &harnessv1.ExecuteToolResponse{
			Outcome: harnessv1.ToolOutcome_TOOL_OUTCOME_DONE, IsError: true, Duration: r.GetDuration(), LedgerSequence: r.GetLedgerSequence(),
			Result: fmt.Sprintf("The server asks a person in a way that cannot be shown: %s. The call was given up; what it had done until then stays.", err),
		}
	}
	return &harnessv1.ExecuteToolResponse{
		Outcome: InputRequired, Duration: r.GetDuration(), FilesChanged: r.GetFilesChanged(), Question: q,
		LedgerSequence: r.GetLedgerSequence(), Unrecorded: r.GetUnrecorded(),
	}
}
