package stopdecision_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/harnessmesh/harnessmesh/pkg/content"
	harnessv1 "github.com/harnessmesh/harnessmesh/pkg/gen/harness/v1"
	"github.com/harnessmesh/harnessmesh/pkg/quality"
)

// gates has, for the reason of each gate, a stop that it rejects.
var gates = map[string]func(*testing.T) *harnessv1.Outcome{
	"work_complete_not_called":      rejects(situation{done: true}),
	"work_complete_required_strict": rejects(situation{done: true, policy: "strict", retries: "used"}),
	"contract_not_satisfied":        rejects(situation{done: true, called: true, contract: "unmet"}),
	"work_items_incomplete":         rejects(situation{done: true, called: true, items: "open"}),
	"agent_stop_hook_blocked":       rejects(situation{done: true, called: true, hook: "block"}),
	"answer_too_long": func(t *testing.T) *harnessv1.Outcome {
		return outcome(t, situation{done: true, called: true}, func(in *harnessv1.StepInput) {
			s := in.GetStep().GetSnapshot()
			s.Definition, s.Answer = &harnessv1.Definition{MaxAnswerWords: 3}, content.Inline("one two three four")
		})
	},
	"output_invalid": func(t *testing.T) *harnessv1.Outcome {
		return outcome(t, situation{done: true, called: true}, func(in *harnessv1.StepInput) {
			s := in.GetStep().GetSnapshot()
			s.Definition = &harnessv1.Definition{OutputSchema: `{"type": "object"}`}
			s.Config.Stop.OutputMaxRetries = proto.Uint32(3)
		})
	},
	"quality_retry": func(t *testing.T) *harnessv1.Outcome {
		j := qualityRun(t, quality.Drafting)
		j.verifier = scored(0.4)
		return j.decide()
	},
}

func rejects(c situation) func(*testing.T) *harnessv1.Outcome {
	return func(t *testing.T) *harnessv1.Outcome { return outcome(t, c, nil) }
}

// TestEachGateHasACaseAndItsRows reads the reasons from gates.go. Each has a case above, a row in
// the table of the layers in docs/architecture.md, and a place in docs/events.md.
func TestEachGateHasACaseAndItsRows(t *testing.T) {
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var reasons []string
	for _, m := range regexp.MustCompile(`(?m)^\trejected\w+ += "(\w+)"$`).FindAllStringSubmatch(read("gates.go"), -1) {
		reasons = append(reasons, m[1])
	}
	if len(reasons) < len(gates) {
		t.Fatalf("gates.go has the reasons %v, and there are cases for %d", reasons, len(gates))
	}
	_, layers, _ := strings.Cut(read("../../docs/architecture.md"), "| layer | condition | outcome |")
	layers, _, _ = strings.Cut(layers, "\n\n")
	events := read("../../docs/events.md")
	for _, reason := range reasons {
		rejected, ok := gates[reason]
		if !ok {
			t.Errorf("%s has no case in this file", reason)
			continue
		}
		if got := verdict(rejected(t)); got != "repair "+reason {
			t.Errorf("%s: the decision is %q", reason, got)
		}
		if !strings.Contains(layers, "`"+reason+"`") {
			t.Errorf("docs/architecture.md: the table of the layers does not name %s", reason)
		}
		if !strings.Contains(events, "`"+reason+"`") {
			t.Errorf("docs/events.md does not name %s", reason)
		}
	}
	for reason := range gates {
		if !slices.Contains(reasons, reason) {
			t.Errorf("%s is no reason of gates.go", reason)
		}
	}
}

// TestLongAnswerIsSentBackOnce: the second stop of a segment passes with the same answer.
func TestLongAnswerIsSentBackOnce(t *testing.T) {
	o := gates["answer_too_long"](t)
	if text := content.Text(o.GetAppended()[0].GetContent()); !strings.Contains(text, "has 4 words, and may have 3") {
		t.Errorf("the request says %q", text)
	}
	again := outcome(t, situation{done: true, called: true}, func(in *harnessv1.StepInput) {
		s := in.GetStep().GetSnapshot()
		s.Definition, s.Answer = &harnessv1.Definition{MaxAnswerWords: 3}, content.Inline("one two three four")
		s.AnswerSentBack = o.GetStep().GetSnapshot().GetAnswerSentBack()
	})
	if got := verdict(again); got != "DONE agent_done true" {
		t.Errorf("the second stop: %s", got)
	}
}
