package agent

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// NeedsError ends a pure decision that needs observations first. It reports no failure.
type NeedsError struct {
	// Keys of the observations, those of Hooks included.
	Keys []string
	// Hooks are the calls to make.
	Hooks []*harnessv1.HookRequest
	// Jobs are the calls of models to make.
	Jobs []*harnessv1.JobRequest
	// Profile is how a profile is to be changed or read; nil: not at all.
	Profile *harnessv1.ProfileChange
}

func (n *NeedsError) Error() string { return fmt.Sprintf("needs %v", n.Keys) }

// Output returns the needs as the output of the decision.
func (n *NeedsError) Output() *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: n.Keys, Hooks: n.Hooks, Jobs: n.Jobs, Profile: n.Profile}}}
}

// Observation returns the observation under a key, nil if there is none.
func Observation(in *harnessv1.StepInput, key string) *harnessv1.Observation {
	for _, o := range in.GetObserved() {
		if o.GetKey() == key {
			return o
		}
	}
	return nil
}

// Fire fires the hooks of a point with the outcomes that the input has observed. Its
// error is a *NeedsError if another hook must be called first.
func Fire(set *hook.Set, in *harnessv1.StepInput, p hook.Point) (hook.Result, error) {
	p.Namespace, p.RunID = in.GetNamespace(), in.GetRunId()
	result, need := set.Fire(p, func(key string) *harnessv1.HookOutcome { return Observation(in, key).GetHook() })
	if need != nil {
		return result, &NeedsError{Keys: []string{need.GetIdempotencyKey()}, Hooks: []*harnessv1.HookRequest{need}}
	}
	return result, nil
}

// CallPayload returns the payload of a tool call. Arguments that are no JSON are text.
func CallPayload(callID, tool, arguments, result string, isError bool) map[string]any {
	args, err := hook.Decode(arguments)
	if err != nil {
		args = arguments
	}
	return map[string]any{"call_id": callID, "tool": tool, "arguments": args, "result": result, "is_error": isError}
}

// StepPayload returns the payload of the end of a turn, for the subscribers of after_step.
func StepPayload(outcome, failure string, ended *harnessv1.TurnState) map[string]any {
	return map[string]any{
		"outcome": outcome, "error": failure, "agent_done": ended.GetAgentDone(), "called_work_complete": ended.GetCalledWorkComplete(),
	}
}

// maxOutcomes bounds the outcomes of one decision in total, in bytes: the record of the
// decision holds all of them.
const maxOutcomes = 96 << 10

// OutcomeLimit bounds the size of the hook outcomes in one decision. Its zero value is
// ready.
type OutcomeLimit struct{ bytes int }

// Apply returns o, or a failure of its hook if o and the outcomes before it exceed the
// limit.
func (s *OutcomeLimit) Apply(o *harnessv1.HookOutcome) *harnessv1.HookOutcome {
	if s.bytes+proto.Size(o) > maxOutcomes {
		return &harnessv1.HookOutcome{Error: fmt.Sprintf("the hooks of one decision say more than %d KiB together: let them say less, or fewer of them speak", maxOutcomes>>10)}
	}
	s.bytes += proto.Size(o)
	return o
}
