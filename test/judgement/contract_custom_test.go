package judgement

import (
	"testing"

	"github.com/harnessmesh/harnessmesh/test/kit/live"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
)

func contractCel(id, cel string) *harnessv1.RequiredOutput {
	return contractOutput(id, &harnessv1.Predicate{Type: contractCustom, Cel: cel})
}

// Expressions over the state see the response, the turn, the mode, usage, what calls
// did, the work items and their artifacts; each is unmet until it holds.
func TestContractExpressionsSeeTheState(t *testing.T) {
	t.Parallel()
	outputs := []*harnessv1.RequiredOutput{
		contractCel("response", `response.contains("final")`),
		contractCel("goal", `goal == "Do the task." && turn >= 3`),
		contractCel("turn", `turn == 3 && max_turns == 50`),
		contractCel("mode", `mode == "execute" && turn > 1`),
		contractCel("usage", `tool_usage["write_file"] == 2`),
		contractCel("reads", `reads == 1`),
		contractCel("writes", `writes == 2`),
		contractCel("items", `size(work_items) == 2 && work_items.all(i, i.status == "DONE")`),
		contractCel("artifact", `"w1" in artifacts && artifacts["w1"].startsWith("Dear")`),
		contractCel("called", `called_work_complete && turn > 1`),
	}
	s := live.Play(t, live.Replies(
		contractFinish("first"),
		live.Calls(itemsAdd("a"), itemsAdd("b"), itemsArtifact("w1", "Dear reader", ""), itemsSet("w1", "DONE"), itemsSet("w2", "DONE"),
			live.Call("write_file", live.Args{"path": "a.txt", "content": "a"}), live.Call("write_file", live.Args{"path": "b.txt", "content": "b"}),
			live.Call("read_file", live.Args{"path": "missing.txt"})),
		contractSays("This is the final answer.", live.Call("work_complete", live.Args{"summary": "second"})),
	), itemsOn, contractOf(outputs...))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "1: response goal turn mode usage reads writes items artifact called")
	itemsHas(t, "the gap report", contractToldGap(t, s, 1), `response.contains("final")`, "reads == 1")
	for _, r := range s.State().GetCoverageLedger().GetRequirements() {
		if r.GetStatus() != harnessv1.RequirementStatus_REQUIREMENT_STATUS_MET || len(r.GetEvidence()) != 1 || r.GetEvidence()[0].GetKind() != "expression" {
			t.Errorf("%v", r)
		}
	}
}

// Expressions see how many files have changed as it is when they are evaluated.
func TestContractExpressionsSeeChangedFiles(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractFinish("first"),
		live.Calls(live.Call("write_file", live.Args{"path": "a.txt", "content": "a"}), live.Call("write_file", live.Args{"path": "b.txt", "content": "b"})),
		contractFinish("second"),
	), contractOf(contractCel("changed", "files_changed == 2")), contractTurns(4))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "1: changed")
}

// An expression that cannot be evaluated is unmet or without an answer; it ends nothing.
func TestContractExpressionThatFailsIsNotMet(t *testing.T) {
	t.Parallel()
	s := live.Play(t, live.Replies(
		contractFinish("first"),
		live.Calls(itemsAdd("a"), itemsArtifact("w1", "Dear reader", ""), itemsSet("w1", "DONE")),
		contractFinish("second"),
	), itemsOn, contractOf(contractCel("letter", `artifacts["w1"] == "Dear reader"`), contractCel("first", `work_items[0].id == "w1"`)))
	s.Want("DONE agent_done accepted")
	itemsEqual(t, "gaps", contractGaps(s), "1: letter first")
}
