package gym

import (
	"strings"

	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/test/kit/modeltest"
)

// limits are failures that the harness does not detect. Each has a remedy.
func limits() []*scenario {
	all := []*scenario{believed(), skipsItems(), oldSuccess(), claimsInWords(), waitsLong(), sameOutput()}
	for _, s := range all {
		s.kind = limit
	}
	return all
}

func believed() *scenario {
	return &scenario{
		name: "believed", what: "claims to be done, and has neither contract nor work items",
		goal: "Write report.md.", really: reported,
		model: inOrder(done("The report is written.")), verdict: accepted,
		instead: "Give the run a contract. Without one only the model's word counts.",
	}
}

func skipsItems() *scenario {
	return &scenario{
		name: "skips-items", what: "skips all of its work items",
		goal: "Write report.md.", really: reported, spec: edits(withItems()),
		model:   inOrder(calls(add("Write report.md", "WORKING")), calls(set("w1", "SKIPPED")), done("Nothing is left to do.")),
		verdict: accepted,
		instead: "Work items are the model's own plan. Put required outputs into a contract.",
	}
}

func oldSuccess() *scenario {
	passed := &harnessv1.RequiredOutput{Id: "test", Description: "The test was run and passed", Predicate: &harnessv1.Predicate{
		Type: harnessv1.PredicateType_PREDICATE_TYPE_TOOL_RESULT_SUCCESS, Tool: "run_command",
		Arguments: []*harnessv1.ArgumentMatch{{Name: "command", Pattern: "test.sh"}},
	}}
	return &scenario{
		name: "old-success", what: "changes the program after its test; the contract asks for a successful call (TOOL_RESULT_SUCCESS)",
		goal:   "total.sh should print the sum of 3 and 4. Mend it until `sh test.sh` passes.",
		files:  map[string]string{"total.sh": totalBad, "test.sh": totalTest},
		spec:   edits(contract(passed)),
		really: totalRight,
		model: inOrder(
			calls(write("total.sh", totalGood)), calls(sh("sh test.sh")),
			calls(write("total.sh", "echo \"sum: $((3 + 4))\"\n")), done("The test passes."),
		),
		verdict: accepted,
		instead: "Use COMMAND_SUCCEEDS: it runs the test when the model wants to stop.",
	}
}

func claimsInWords() *scenario {
	return &scenario{
		name: "says-the-words", what: "writes the words that the contract searches in the transcript",
		goal: "Run `sh test.sh` and mend total.sh until it says PASS.", really: totalRight,
		files:   map[string]string{"total.sh": totalBad, "test.sh": totalTest},
		spec:    edits(contract(holdsText("pass", "transcript", `\bPASS\b`))),
		model:   inOrder(textAndCalls("The test says PASS.", done("The test passes.").Calls...)),
		verdict: accepted,
		instead: "Words satisfy a contract for words. Check a file, or run a command.",
	}
}

func waitsLong() *scenario {
	return &scenario{
		name: "waits-long", what: "polls something that changes only at every eighth poll",
		goal:  "Wait until `sh status.sh` says ready, then write report.md.",
		files: status(8, 2), really: reported,
		spec:  edits(contract(thereIs("report.md"))),
		model: poll, verdict: doomLoop, by: correction,
		instead: "Wait inside one command, in a loop with sleep, instead of turns.",
	}
}

func sameOutput() *scenario {
	return &scenario{
		name: "same-output", what: "runs the same command ten times, which moves on each time and always prints the same",
		goal: "Run `sh step.sh` ten times: each run takes one of ten steps.",
		files: map[string]string{
			"steps": "", "step.sh": "echo step >> steps; echo ok\n",
		},
		really: func(w *world) bool { return strings.Count(w.file("steps"), "step") == 10 },
		spec:   edits(contract(succeeds("steps", "[ $(wc -l < steps) -eq 10 ]"))),
		model: func(c *chat) modeltest.Reply {
			if c.turn() <= 10 {
				return calls(sh("sh step.sh"))
			}
			return done("Ten steps are taken.")
		},
		verdict: doomLoop, by: correction,
		instead: "Let the command print its progress.",
	}
}
