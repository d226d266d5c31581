package agent

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/agent/hook"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

// NeedsError is returned by a pure decision that has to know more first.
type NeedsError struct {
	// Keys of the observations, those of the hooks included.
	Keys []string
	// Hooks that are to be called.
	Hooks []*harnessv1.HookRequest
}

// Error names the keys; a NeedsError is no fault.
func (n *NeedsError) Error() string { return fmt.Sprintf("needs %v", n.Keys) }

// Output is the answer of the decision that has to know more.
func (n *NeedsError) Output() *harnessv1.StepOutput {
	return &harnessv1.StepOutput{Output: &harnessv1.StepOutput_Needs{Needs: &harnessv1.Needs{Keys: n.Keys, Hooks: n.Hooks}}}
}

// Observation is what was observed under a key; nil when nothing was.
func Observation(in *harnessv1.StepInput, key string) *harnessv1.Observation {
	for _, o := range in.GetObserved() {
		if o.GetKey() == key {
			return o
		}
	}
	return nil
}

// Fire calls the subscribers of a point over what the input holds. Its error is a
// *NeedsError when one of them has to be called first.
func Fire(set *hook.Set, in *harnessv1.StepInput, p hook.Point) (hook.Result, error) {
	p.Namespace, p.RunID = in.GetNamespace(), in.GetRunId()
	result, need := set.Fire(p, func(key string) *harnessv1.HookOutcome { return Observation(in, key).GetHook() })
	if need != nil {
		return result, &NeedsError{Keys: []string{need.GetIdempotencyKey()}, Hooks: []*harnessv1.HookRequest{need}}
	}
	return result, nil
}

// Aborted is the error of what a hook has aborted.
func Aborted(r hook.Result) string {
	if r.Reason == "" {
		return "aborted by the hook " + r.HookID
	}
	return r.Reason + " (hook " + r.HookID + ")"
}

// CallPayload is what subscribers are given of a tool call: arguments that are no
// JSON object are given as text.
func CallPayload(callID, tool, arguments, result string, isError bool) map[string]any {
	args, err := hook.Decode(arguments)
	if err != nil {
		args = arguments
	}
	return map[string]any{"call_id": callID, "tool": tool, "arguments": args, "result": result, "is_error": isError}
}

// maxSaid bounds what the subscribers of one decision say, in bytes: all of it stands
// in the record of the decision, which has its bound.
const maxSaid = 96 << 10

// OutcomeLimit adds up what subscribers say in one decision. Its zero value is ready.
type OutcomeLimit struct{ bytes int }

// Take is an outcome as it counts: one that is too much on top of those before it is a
// failure of its subscriber.
func (s *OutcomeLimit) Apply(o *harnessv1.HookOutcome) *harnessv1.HookOutcome {
	if s.bytes+proto.Size(o) > maxSaid {
		return &harnessv1.HookOutcome{Error: fmt.Sprintf("the hooks of one decision say more than %d KiB together: let them say less, or fewer of them speak", maxSaid>>10)}
	}
	s.bytes += proto.Size(o)
	return o
}
