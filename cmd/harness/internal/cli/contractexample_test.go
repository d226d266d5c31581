//go:build linux

package cli

import (
	"strings"
	"testing"
)

// TestTheFindingsExample: the end with a finding that quotes nothing is not accepted, and the
// saved artifacts are the deliverables.
func TestTheFindingsExample(t *testing.T) {
	e := newExampleOf(t, "../../../../examples/contracts/findings")
	if got := call(t, nil, "", "agent", "check", e.dir+"/agent.yaml", e.dir+"/contract.yaml", e.dir+"/script.yaml"); got.code != 0 || strings.Count(got.out, ": OK (") != 3 {
		t.Errorf("%+v", got)
	}
	said := e.run(t, "What do customers lack?")
	o := e.ended(t, said)
	var titles []string
	for _, d := range o.Deliverables {
		titles = append(titles, d.Title)
	}
	if got := strings.Join(titles, ", "); got != "Orders get lost, No view of the week, One list of orders" || o.Coverage.Total != 3 {
		t.Errorf("deliverables %s; %+v", got, o)
	}
	const gap = "have 1 of kind finding with a quote (and 1 without), want 2"
	if !strings.Contains(said.out, gap) {
		t.Errorf("%q is missing in\n%s", gap, said.out)
	}
	if told := call(t, nil, "", "show", "r", "--data", e.dir+"/data", "--conversation").out; !strings.Contains(told, "- bakery, Interview with a bakery, bakery.md") {
		t.Errorf("the agent does not know its sources:\n%s", told)
	}
}
