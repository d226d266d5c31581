package show

import (
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/render"
	"github.com/harnessmesh/harnessmesh/pkg/event/eventjson"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/runstate"
)

// workText returns the work items and the contract of a run; empty if there are none.
func workText(style render.Style, state *harnessv1.Snapshot) string {
	var text strings.Builder
	if lines := style.WorkLines(state.GetWorkItemLedger().GetItems()); len(lines) > 0 {
		text.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	}
	if lines := style.ContractLines(state.GetTaskContract(), state.GetCoverageLedger()); len(lines) > 0 {
		head := "contract: not evaluated yet"
		if state.GetCoverageLedger().GetTurnNumber() > 0 {
			head = "contract: " + render.CoverageLine(state.GetCoverageLedger().GetCoverage())
		}
		text.WriteString("\n" + head + "\n" + strings.Join(lines, "\n") + "\n")
	}
	return text.String()
}

// overviewJSON returns the run as in a list, with its mode, work items, contract
// coverage, result and spec.
func overviewJSON(answer *harnessv1.GetRunResponse, state *harnessv1.Snapshot) ([]byte, error) {
	run, err := runJSON(answer.GetRun(), answer.GetResult())
	if err != nil {
		return nil, err
	}
	spec, result := []byte("null"), []byte("null")
	if answer.GetSpec() != nil {
		if spec, err = eventjson.Message(answer.GetSpec()); err != nil {
			return nil, err
		}
	}
	if answer.GetResult() != nil {
		if result, err = eventjson.Result(answer.GetRun().GetRunId(), answer.GetResult()); err != nil {
			return nil, err
		}
	}
	items, err := array(state.GetWorkItemLedger().GetItems())
	if err != nil {
		return nil, err
	}
	requirements, err := array(state.GetCoverageLedger().GetRequirements())
	if err != nil {
		return nil, err
	}
	waiting, err := array(answer.GetWaiting())
	if err != nil {
		return nil, err
	}
	run = with(with(run, "result", result), "spec", spec)
	mode, err := json.Marshal(runstate.Mode(state))
	if err != nil {
		return nil, err
	}
	run = with(run, "mode", mode)
	run = with(with(run, "work_items", items), "requirements", requirements)
	return with(run, "waiting", waiting), nil
}

// array returns messages as a JSON array.
func array[M protoreflect.ProtoMessage](messages []M) ([]byte, error) {
	out := []byte("[")
	for i, m := range messages {
		line, err := eventjson.Message(m)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, line...)
	}
	return append(out, ']'), nil
}
