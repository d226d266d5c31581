package contract

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/redraw"
)

const (
	// maxTail bounds the end of a failed command's output in its coverage, in bytes.
	maxTail = 200
	// timedOut is the exit code of a command that exceeded its timeout.
	timedOut = 124
	// maxEvidence bounds the pieces of evidence from a service.
	maxEvidence = 4
)

var digestFormat = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-f]{64}$`) })

func (o *output) checkCommand(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	text := o.predicate().GetCommand()
	end, err := src.Command(ctx, o.spec.GetId(), text, o.timeout)
	switch shown := clip(text, 80); {
	case err != nil:
		return nil, err
	case end.GetError() != "":
		return unknown("the command could not be run: %s", end.GetError()), nil
	case end.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_UNKNOWN:
		return unknown("nobody knows how the command %q ended: its tool host died", shown), nil
	case end.GetOutcome() == harnessv1.ToolOutcome_TOOL_OUTCOME_CANCELLED:
		return unknown("the command %q was cancelled", shown), nil
	case end.GetOutcome() != harnessv1.ToolOutcome_TOOL_OUTCOME_DONE:
		return unknown("the tool host does not say how the command %q ended", shown), nil
	case end.GetExitCode() == 0:
		return met("command", "", "exit 0: "+shown), nil
	case end.GetExitCode() == timedOut:
		return unmet("%s", withTail(fmt.Sprintf("exit %d, perhaps for want of time (%v)", timedOut, o.timeout), end)), nil
	default:
		return unmet("%s", withTail(fmt.Sprintf("exit %d", end.GetExitCode()), end)), nil
	}
}

// withTail adds the end of a command's error output or, if that is empty, its output.
func withTail(text string, end *harnessv1.CheckCommandResponse) string {
	tail := strings.TrimSpace(end.GetErrorOutput())
	if tail == "" {
		tail = strings.TrimSpace(redraw.Text(end.GetOutput()))
	}
	if tail == "" {
		return text + ", without any output"
	}
	return text + ": " + clipFront(tail, maxTail)
}

// checkRemote calls a CheckService. It limits the answer and corrects impossible values;
// a MET without a confidence is certain.
func (o *output) checkRemote(ctx context.Context, src Sources) (*harnessv1.RequirementCoverage, error) {
	answer, err := src.Remote(ctx, o.predicate().GetGrpc(), o.spec, o.timeout)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the service answered without a coverage")
	}
	seen := proto.CloneOf(answer)
	if _, known := harnessv1.RequirementStatus_name[int32(seen.GetStatus())]; !known {
		return nil, fmt.Errorf("the service answered with an unknown status, %d", seen.GetStatus())
	}
	if seen.Status == harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNSPECIFIED {
		seen.Status = harnessv1.RequirementStatus_REQUIREMENT_STATUS_UNMET
	}
	there := seen.Status == harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET ||
		seen.Status == harnessv1.RequirementStatus_REQUIREMENT_STATUS_PARTIALLY_MET
	if there && seen.Confidence == 0 {
		seen.Confidence = certain
	}
	if there && len(seen.Evidence) == 0 {
		seen.Evidence = []*harnessv1.Evidence{{Text: o.predicate().GetGrpc()}}
	}
	seen.Evidence = seen.Evidence[:min(len(seen.Evidence), maxEvidence)]
	for _, e := range seen.Evidence {
		if !digestFormat().MatchString(e.GetDigest()) {
			e.Digest = ""
		}
		e.Kind = "service"
	}
	if seen.Status != harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET && seen.Why == "" {
		seen.Why = "the check at " + o.predicate().GetGrpc() + " says so, without a reason"
	}
	return seen, nil
}

// clamp limits a confidence to [0, 1].
func clamp(confidence float64) float64 {
	if math.IsNaN(confidence) {
		return 0
	}
	return min(max(confidence, 0), 1)
}
