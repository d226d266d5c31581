//go:build linux

package run_test

import (
	"strings"
	"testing"

	"github.com/harnessmesh/harnessmesh/cmd/harness/internal/harnesstest"
)

// TestTheFindingsExample: the end with a finding that quotes nothing is not accepted, and the
// saved artifacts are the deliverables.
func TestTheFindingsExample(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the program for seconds")
	}
	t.Parallel()
	e := newExampleOf(t, "../../../../../examples/contracts/findings")
	if got := harnesstest.Call(t, nil, "", "agent", "check", e.dir+"/agent.yaml", e.dir+"/contract.yaml", e.dir+"/script.yaml"); got.Code != 0 || strings.Count(got.Out, ": OK (") != 3 {
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
	if !strings.Contains(said.Out, gap) {
		t.Errorf("%q is missing in\n%s", gap, said.Out)
	}
	if told := harnesstest.Call(t, nil, "", "show", "r", "--data", e.dir+"/data", "--conversation").Out; !strings.Contains(told, "- bakery, Interview with a bakery, bakery.md") {
		t.Errorf("the agent does not know its sources:\n%s", told)
	}
}
